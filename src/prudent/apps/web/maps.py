"""A plan as a picture of its domain: arrows on a grid, heat maps, roads, or a table for any other model.

What a plan plays depends on the state and the budget left; a map shows all states at one budget left.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np

import prudent
from prudent.apps.web.sessions import Session
from prudent.domains.navigation import synthetic_roads
from prudent.domains.treasure import DEPTH, MOVE_COST, SIZE, TREASURE
from prudent.errors import PrudentError
from prudent.results.plan import Plan

__all__ = ["policy_map"]

ROWS = 300
"""The most states that a table shows."""

RUNS = 1000
"""Simulated runs that weigh the routes."""

STOPS = 120
"""About as many positions a budget slider has."""


def policy_map(session: Session, plan: Plan, left: float | None, layer: str | None) -> dict[str, Any]:
    """Return the map of a plan at a budget left, by default that of the start."""
    draw = {
        "deep-sea-treasure": _treasure,
        "betting-game": _betting,
        "inventory-control": _inventory,
        "autonomous-navigation": _roads,
    }.get(session.kind, _table)
    return draw(session, plan, left, layer)


class _Budget:
    """The positions of a budget slider, and what the plan plays at the chosen one."""

    def __init__(self, plan: Plan, left: float | None) -> None:
        self.plan, policy = plan, plan.policy
        prepared = policy.prepared
        apart = max(policy.level // STOPS, 1) * prepared.scale.level_size
        count = int(policy.level * prepared.scale.level_size / apart + 1e-9)
        self.positions = [policy.whole - i * apart for i in range(count + 1)][::-1]
        wanted = policy.whole if left is None else left
        self.left = min(self.positions, key=lambda b: abs(b - wanted))
        self.spent = prepared.scale.nearest(policy.whole - self.left)

    def plays(self, state: Hashable) -> Hashable | None:
        """Return what is played in a state, or nothing where no run can be with so much left."""
        try:
            return self.plan.policy(state, self.spent)
        except PrudentError:
            return None

    def told(self) -> dict[str, Any]:
        """Return the slider."""
        return {"left": self.left, "positions": self.positions, "start": self.plan.policy.budget}


def _betting(session: Session, plan: Plan, left: float | None, layer: str | None) -> dict[str, Any]:
    budget = _Budget(plan, left)
    stages = {s for s in _states(session) if isinstance(s, tuple)}
    last = max(stage for stage, _ in stages)
    money = max(amount for _, amount in stages)
    cells: list[list[Any]] = [[None] * last for _ in range(money + 1)]
    for stage, amount in stages:
        if stage < last:
            cells[amount][stage] = _number(budget.plays((stage, amount)))
    return {
        "kind": "heat",
        "cells": cells,
        "x": "bets made",
        "y": "money",
        "z": "bet",
        "most": 5,
        "budget": budget.told(),
    }


def _inventory(session: Session, plan: Plan, left: float | None, layer: str | None) -> dict[str, Any]:
    budget = _Budget(plan, 0.6 * plan.policy.whole if left is None else left)  # all stages can have that left
    states = [s for s in _states(session) if isinstance(s, tuple)]
    stages = 1 + max(stage for stage, _, _ in states)
    capacity = max(max(stock, demand) for _, stock, demand in states)
    layers = sorted({demand for _, _, demand in states})
    wanted = int(layer) if layer is not None and layer.isdecimal() and len(layer) < 9 else states[0][2]
    chosen = min(layers, key=lambda demand: abs(demand - wanted))
    most = max(stock for _, stock, demand in states if demand == chosen)
    cells: list[list[Any]] = [[None] * stages for _ in range(most + 1)]
    for stage, stock, demand in states:
        if demand == chosen:
            cells[stock][stage] = _number(budget.plays((stage, stock, demand)))
    return {
        "kind": "heat",
        "cells": cells,
        "x": "stage",
        "y": "stock",
        "z": "units bought",
        "most": capacity,
        "budget": budget.told(),
        "layer": {"name": "demand before", "value": chosen, "positions": layers},
    }


def _treasure(session: Session, plan: Plan, left: float | None, layer: str | None) -> dict[str, Any]:
    """Every move costs the same, so the budget left tells how many moves were made."""
    states = [s for s in _states(session) if isinstance(s, tuple)]
    most = max(moves for _, _, moves in states)
    start = plan.policy.whole
    positions = [start - MOVE_COST * moves for moves in range(most)][::-1]
    wanted = start - MOVE_COST * (most // 3) if left is None else left  # there is more to see than at the start
    chosen = min(positions, key=lambda b: abs(b - wanted))
    moves = round((start - chosen) / MOVE_COST)
    arrows = []
    for column, row, made in states:
        if made == moves and (column, row) not in TREASURE:
            arrows.append({"x": column, "y": row, "action": str(plan.policy((column, row, made), made * MOVE_COST))})
    return {
        "kind": "grid",
        "size": SIZE,
        "depth": [DEPTH[column] for column in range(SIZE)],
        "treasure": [{"x": x, "y": y, "value": value} for (x, y), value in TREASURE.items()],
        "arrows": arrows,
        "moves": moves,
        "budget": {"left": chosen, "positions": positions, "start": plan.policy.budget},
    }


def _roads(session: Session, plan: Plan, left: float | None, layer: str | None) -> dict[str, Any]:
    budget = _Budget(plan, 0.5 * plan.policy.whole if left is None else left)
    place = session.kept.get_or_make("places", lambda: synthetic_roads(int(session.settings.get("seed", 0)))[1])
    drives, visits = session.kept.get_or_make(("routes", plan.alpha), lambda: _driven(plan))
    here = [name for name in place if name in visits]
    return {
        "kind": "network",
        "places": [{"name": name, "x": x, "y": y, "share": visits.get(name, 0)} for name, (x, y) in place.items()],
        "routes": [{"from": a, "to": b, "share": share} for (a, b), share in drives.items()],
        "next": [{"from": name, "to": str(to)} for name in here if (to := budget.plays(name)) is not None],
        "runs": RUNS,
        "start": str(session.model.state(int(session.model.initial_state[0]))),
        "goal": str(session.model.state(int(np.flatnonzero(session.model.is_goal)[0]))),
        "budget": budget.told(),
    }


def _driven(plan: Plan) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
    """Return which share of simulated runs takes each road, and comes by each junction."""
    runs = prudent.simulate(plan.model, plan.policy, episodes=RUNS, seed=0, paths=RUNS, threads=1)
    roads, places = Counter[tuple[str, str]](), Counter[str]()
    for path in runs.paths:
        roads.update({(str(state), str(action)) for state, action, _ in path})
        places.update({str(state) for state, _, _ in path} | {str(path[-1][1])})
    return {road: n / RUNS for road, n in roads.items()}, {name: n / RUNS for name, n in places.items()}


def _table(session: Session, plan: Plan, left: float | None, layer: str | None) -> dict[str, Any]:
    budget = _Budget(plan, left)
    model, more = session.model, 0
    rows: list[dict[str, str]] = []
    for index in np.flatnonzero(~model.is_goal).tolist():
        if len(rows) == ROWS:
            more = int((~model.is_goal).sum()) - index
            break
        name = model.state(index)
        played = budget.plays(name)
        if played is not None:
            rows.append({"state": str(name), "action": str(played)})
    return {"kind": "table", "rows": rows, "more": more, "budget": budget.told()}


def _states(session: Session) -> list[Any]:
    return [session.model.state(i) for i in range(session.model.n_states)]


def _number(action: Hashable | None) -> int | None:
    return action if isinstance(action, int) else None
