"""A plan as a picture of its domain: arrows on a grid, heat maps, roads; for other models a map of pairs, or a table.

The action of a plan depends on the state and the remaining budget; a map shows all states at one remaining budget.
"""

import re
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.domains.navigation import place_of_junctions
from prudent.domains.registry import Domain
from prudent.domains.treasure import DEPTH, MOVE_COST, SIZE, TREASURE
from prudent.errors import numeral
from prudent.models.ssp import SSP
from prudent.results.map_data import (
    Cell,
    arrows_at,
    choices,
    domain_of,
    is_number,
    other_parts,
    place_states,
    played_at,
    ways_of,
)
from prudent.results.plan import Plan

if TYPE_CHECKING:
    from prudent.apps.web.worker import Session

ROWS = 300  # the most states that a table shows
RARE = 0.001  # roads that fewer runs take are left out
CELLS = 3600  # the most cells of a map of pairs
HALFWAY = 0.6  # the share of the budget that is left when such a map opens: at the start, runs can be in few states
PAIR = re.compile(r"\(([^(),]+), ([^(),]+)\)")  # a state that is a pair, as text: files hold pairs so
STOPS = 120  # about the number of positions of a budget slider


def policy_map(session: "Session", plan: Plan, left: float | None, layer: str | None) -> dict[str, Any]:
    """Return the map of a plan at a remaining budget, by default the one that its domain opens with."""
    about, policy = session.kept.get_or_make("domain", lambda: domain_of(session.model)), plan.policy
    pairs = session.kept.get_or_make("pairs", lambda: _pairs(plan.model)) if about.drawn == "table" else {}
    if about.drawn == "sea":  # every move costs the same, so the remaining budget gives the number of moves made
        apart, count = float(MOVE_COST), max(part[2] for part in _acting(plan))
        opens_at = policy.whole - MOVE_COST * (count // 3)  # there is more to see than at the start
    else:
        size = policy.prepared.scale.level_size
        levels = max(policy.level, int(policy.whole / size + 1e-9))  # later states may have less left than at best
        apart = max(levels // STOPS, 1) * size
        count = int(levels * size / apart + 1e-9) + 1
        opens_at = (HALFWAY if pairs else about.opens_at) * policy.whole
    positions = [policy.whole - i * apart for i in range(count)][::-1]
    wanted = opens_at if left is None else left
    chosen = min(positions, key=lambda b: abs(b - wanted))
    if about.drawn == "sea":
        shown = _sea(plan, chosen)
    elif about.drawn == "heat":
        shown = _heat(about, plan, chosen, layer)
    elif about.drawn == "network":
        shown = _network(session, plan, chosen)
    else:
        shown = _map_of_pairs(plan, pairs, chosen) if pairs else _table(plan, chosen)
    return {**shown, "budget": {"left": chosen, "positions": positions, "start": policy.budget}}


def _acting(plan: Plan) -> list[Any]:
    """Return the states that act."""
    return [plan.model.state(index) for index in plan.model.acting]


def _heat(about: Domain, plan: Plan, left: float, layer: str | None) -> dict[str, Any]:
    """Map the first two parts of the state; the third is a slider, and others are as at the start."""
    model, where = plan.model, other_parts(plan.model)
    told: dict[str, Any] = {}
    if where:
        layers = sorted({state[2] for state in _acting(plan)})
        wanted: Any = int(layer) if layer is not None and layer.isdecimal() and len(layer) < 9 else where[2]
        where[2] = min(layers, key=lambda value: abs(value - wanted))
        told["layer"] = {"name": about.parts[2], "value": where[2], "positions": layers}
    shown = [each for each in choices(model, 0, 1, where) if plan.policy.prepared.members.state_of[each[0]] >= 0]
    found = {cell: played_at(plan, index, left) for index, cell in shown}
    columns, rows = (_axis({cell[i] for cell in found}) for i in (0, 1))
    numbers: list[Any] = [action for action in map(model.action, range(model.n_actions)) if is_number(action)]
    if min(numbers) < 0:
        told["least"] = min(numbers)
    for name, values in (("columns", columns), ("rows", rows)):
        if values != list(range(len(values))):  # else the page counts them
            told[name] = values
    cells = [[found.get((x, y)) for x in columns] for y in rows]
    names = {"x": about.parts[0], "y": about.parts[1], "z": about.action}
    return {"kind": "heat", "cells": cells, "most": max(numbers), **names, **told}


def _axis(values: set[Any]) -> list[Any]:
    """Return the values along an axis: all whole numbers from 0 if most of them occur, else those that do."""
    counted = list(range(int(max(values)) + 1)) if min(values) >= 0 and max(values) < 2 * len(values) else []
    return counted if values <= set(counted) else sorted(values)


def _sea(plan: Plan, left: float) -> dict[str, Any]:
    """Map Deep Sea Treasure."""
    moves = round((plan.policy.whole - left) / MOVE_COST)
    arrows = arrows_at(plan, moves).items()
    return {
        "kind": "grid",
        "size": SIZE,
        "depth": [DEPTH[column] for column in range(SIZE)],
        "treasure": [{"x": x, "y": y, "value": value} for (x, y), value in TREASURE.items()],
        "arrows": [{"x": column, "y": row, "action": action} for (column, row, _), action in arrows],
        "moves": moves,
    }


def _network(session: "Session", plan: Plan, left: float) -> dict[str, Any]:
    """Show how often runs take each road, and the next road at a remaining budget from junctions that runs pass."""
    model, names = plan.model, [str(plan.model.state(index)) for index in range(plan.model.n_states)]
    place, roads = session.kept.get_or_make("places", lambda: _laid_out(session, names))
    pairs, often = ways_of(model, plan.visits().played)
    passed = np.zeros(model.n_states)
    passed[model.initial_state] = model.initial_probability
    np.add.at(passed, pairs[:, 1], often)
    share = {name: min(by, 1.0) for name, by in zip(names, passed.tolist(), strict=True) if by >= RARE}
    met = [index for index, name in enumerate(names) if name in share and not model.is_goal[index]]
    turns = [(index, action) for index in met if (action := played_at(plan, index, left)) is not None]
    used = [(names[a], names[b], min(by, 1.0)) for (a, b), by in zip(pairs.tolist(), often.tolist(), strict=True)]
    return {
        "kind": "network",
        "places": [{"name": name, "x": x, "y": y, "share": share.get(name, 0)} for name, (x, y) in place.items()],
        "roads": [{"from": a, "to": b} for a, b in roads],
        "routes": [{"from": a, "to": b, "share": by} for a, b, by in used if by >= RARE],
        "next": [
            {"from": names[index], "to": names[model.successor[model.likeliest(model.find_action(index, action))]]}
            for index, action in turns
        ],
        "start": names[int(model.initial_state[0])],
        "goal": names[int(np.flatnonzero(model.is_goal)[0])],
    }


def _laid_out(session: "Session", names: list[str]) -> tuple[dict[str, tuple[float, float]], list[tuple[str, str]]]:
    """Return where states lie, and the lines between them: freeways of the invented network, else all ways."""
    known = place_of_junctions(session.model, int(session.settings.get("seed", 0)))
    if known is not None:
        return known, [(a, b) for a, b in pairwise(known) if a[0] == b[0]]
    pairs, _ = ways_of(session.model, np.zeros(session.model.n_actions))
    place = [(x, y) for x, y in place_states(session.model).tolist()]
    return dict(zip(names, place, strict=True)), [(names[a], names[b]) for a, b in pairs.tolist()]


def _table(plan: Plan, left: float) -> dict[str, Any]:
    """List what is played in the first states that runs can be in; ``more`` is how many states are left out."""
    model, at = plan.model, enumerate(plan.model.acting, 1)
    played = ((seen, model.state(i), action) for seen, i in at if (action := played_at(plan, i, left)) is not None)
    first = list(islice(played, ROWS))
    more = len(model.acting) - first[-1][0] if len(first) == ROWS else 0
    return {"kind": "table", "rows": [{"state": str(s), "action": str(a)} for _, s, a in first], "more": more}


def _pairs(model: SSP) -> dict[int, Cell]:
    """Return the two parts of each state that acts; none unless all are pairs, and a map of them is not too large."""
    found = [PAIR.fullmatch(str(model.state(index))) for index in model.acting]
    columns, rows = (_parts([match[i] for match in found if match]) for i in (1, 2))
    if not all(found) or min(len(set(columns)), len(set(rows))) < 2 or len(set(columns)) * len(set(rows)) > CELLS:
        return {}
    return dict(zip(model.acting, zip(columns, rows, strict=True), strict=True))


def _parts(texts: list[str]) -> list[Any]:
    """Return parts of states as numbers if all of them are."""
    try:
        numbers = [float(numeral(text)) for text in texts]
    except ValueError:
        return [text.strip("'\"") for text in texts]
    return [int(value) if value.is_integer() else value for value in numbers]


def _map_of_pairs(plan: Plan, pairs: dict[int, Cell], left: float) -> dict[str, Any]:
    """Map states by their two parts: by the action if all choices are among numbers, else by the action's number.

    Actions are numbered in the order of the model.
    """
    model = plan.model
    choices = [row for each in map(model.actions, pairs) if len(each) > 1 for row in each]
    offered = list(dict.fromkeys(str(model.action(row)) for row in choices))
    worth = _parts(offered)
    numbers = bool(worth) and not any(isinstance(each, str) for each in worth)
    names = list(dict.fromkeys(str(model.action(row)) for row in range(model.n_actions)))
    shown = dict(zip(offered, worth, strict=True)) if numbers else {name: i for i, name in enumerate(names)}
    columns, rows = (sorted({pair[i] for pair in pairs.values()}) for i in (0, 1))
    played = {pair: shown.get(str(played_at(plan, index, left))) for index, pair in pairs.items()}
    return {
        "kind": "heat" if numbers else "pairs",
        "cells": [[played.get((x, y)) for x in columns] for y in rows],
        "columns": columns,
        "rows": rows,
        "x": "first part of the state",
        "y": "second part of the state",
        **({"z": "action", "least": min(worth), "most": max(worth)} if numbers else {"actions": names}),
    }
