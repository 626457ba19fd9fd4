"""A model of your own: the way to work, planned for the worst 1% of days."""

import prudent


def commute(place):
    """Return the actions of a place: {action: [(probability, next place, minutes), ...]}."""
    if place == "work":
        return {}  # the goal
    if place == "home":
        train = [(0.9, "station", 10), (0.1, "station", 25)]
        return {"bike": [(1.0, "work", 50)], "train": train}
    return {"bus": [(0.9, "work", 15), (0.1, "work", 35)], "taxi": [(1.0, "work", 24)]}


plan = prudent.solve(prudent.build("home", commute), alpha=0.01)
print(f"{plan.status}: worst 1% of days {plan.cvar:.1f} minutes, all days {plan.expected:.1f}")
print(plan.decisions())
