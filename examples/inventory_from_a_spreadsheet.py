"""An inventory problem from a spreadsheet with the demands seen in past weeks.

A unit ordered costs 3, a unit kept for another week 1, a customer sent away 9.  Up to 12
units arrive at the start of a week, and the shelf holds 16.  Run it beside demand.csv.
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
    """Return the possible orders in a state (week, stock), each with its outcomes."""
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
for name, method in (("expected-cost plan", "expected"), ("risk-averse plan", "exact")):
    plan = prudent.solve(model, alpha=0.05, method=method)
    print(f"{name}: expected cost {plan.expected:.2f}, worst 5% of seasons {plan.cvar:.2f}")
    print(f"  first order: {plan.policy((1, 0))}; {len(plan.decisions())} decisions in all")
