"""An inventory problem from a spreadsheet: how often each demand was seen in each week.

A unit ordered costs 3, a unit kept for another week 1, a customer sent away 9.  Up to 12
units arrive at the start of a week, and the shelf holds 16.  Run it where demand.csv is.
"""

import csv
from collections import defaultdict

import prudent

ORDER, KEEP, SENT_AWAY = 3, 1, 9

seen = defaultdict(dict)
with open("demand.csv", newline="") as file:
    for row in csv.DictReader(file):
        seen[int(row["week"])][int(row["demand"])] = int(row["weeks seen"])


def shop(state):
    """Return the orders possible in a week with so much in stock, and what each may cost."""
    week, stock = state
    if week not in seen:
        return {}  # the season is over
    total, orders = sum(seen[week].values()), {}
    for order in range(0, min(12, 16 - stock) + 1, 2):
        orders[order] = outcomes = []
        for demand, times in seen[week].items():
            left, short = max(stock + order - demand, 0), max(demand - stock - order, 0)
            cost = ORDER * order + KEEP * left + SENT_AWAY * short
            outcomes.append((times / total, (week + 1, left), cost))
    return orders


model = prudent.build((1, 0), shop, name="shop")
for what, method in (("for the mean", "expected"), ("for the tail", "exact")):
    plan = prudent.solve(model, alpha=0.05, method=method)
    print(f"{what}: {plan.expected:.2f} on average, {plan.cvar:.2f} in the worst 5% of seasons")
    print(f"  first order: {plan.policy((1, 0))}; the plan has {len(plan.decisions())} lines")
