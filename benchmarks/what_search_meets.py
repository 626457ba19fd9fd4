"""How many states a search meets, of all there are: a city of ten million crossings, racetrack, sailing.

    python benchmarks/what_search_meets.py

Racetrack and sailing are the problems of the papers on heuristic search, from their public descriptions; the maps are
ours.  Bounds ahead: none, a simple one (moves to the goal in a straight line), and the least expected cost itself.
"""

import math
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.values.expected_cost import least_expected_cost

TRACK = """
XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX
XXXXXXXXXXX                 XXXXXXG
XXXXXXXX                       XXXG
XXXXX                             G
XXX             XXXXXXXXX         G
XX           XXXXXXXXXXXXXX       G
XX        XXXXXXXXXXXXXXXXXXXXXXXXX
X        XXXXXXXXXXXXXXXXXXXXXXXXXX
X       XXXXXXXXXXXXXXXXXXXXXXXXXXX
XSSSSSSSXXXXXXXXXXXXXXXXXXXXXXXXXXX
"""
CELL = {(x, y): mark for y, row in enumerate(TRACK.split("\n")[1:-1]) for x, mark in enumerate(row)}
GRID = [place for place, mark in CELL.items() if mark == "S"]
SLIP = 0.1
"""The chance that the car does not obey and keeps its speed."""

LAKE = 20
ROUND = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]
SAILED, TACK = (1, 2, 3, 4), 3
"""The cost of a leg by its angle to the wind, with it first; and of changing the tack.  Nobody sails into the wind."""

CITY, HOSPITAL = 3_200, (1_615, 1_615)
"""Crossings each way, and where to go; the way begins thirty crossings from there."""


def racetrack(state: Any) -> dict[Any, Any]:
    """Speed up, keep or brake in both directions; a car that hits a wall stands still in front of it."""
    if state == "finish":
        return {}
    x, y, right, down = state
    options = {}
    for push in ((a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)):
        obeyed, slipped = _driven(x, y, right + push[0], down + push[1]), _driven(x, y, right, down)
        options[push] = [(1 - SLIP, obeyed, 1), (SLIP, slipped, 1)]
    return options


def _driven(x: int, y: int, right: int, down: int) -> Any:
    steps, last = max(abs(right), abs(down), 1), (x, y)
    for k in range(1, steps + 1):
        place = (x + round(right * k / steps), y + round(down * k / steps))
        if CELL.get(place, "X") == "G":
            return "finish"
        if CELL.get(place, "X") == "X":
            return (*last, 0, 0)
        last = place
    return (*last, right, down)


def sailing(state: Any) -> dict[Any, Any]:
    """Sail to the middle of a lake; the wind turns by at most an eighth with each leg."""
    x, y, tack, wind = state
    if (x, y) == (LAKE // 2, LAKE // 2):
        return {}
    options = {}
    for heading, (right, up) in enumerate(ROUND):
        turn = (heading - wind) % 8
        if turn == 4 or not (0 <= x + right < LAKE and 0 <= y + up < LAKE):
            continue
        side = 0 if turn == 0 else 1 if turn < 4 else 2
        cost = SAILED[min(turn, 8 - turn)] + (TACK if tack and side and side != tack else 0)
        there = (x + right, y + up, side or tack)
        turned = ((0.3, -1), (0.4, 0), (0.3, 1))
        options[heading] = [(chance, (*there, (wind + by) % 8), cost) for chance, by in turned]
    return options


def city(place: Any) -> dict[Any, Any]:
    """Drive to the hospital; a street may be blocked, and some districts are slow."""
    if place == HOSPITAL:
        return {}
    x, y = place
    minutes, options = 4 if (7 * x + 13 * y) % 5 == 0 else 1, {}
    for there in ((x, y + 1), (x, y - 1), (x + 1, y), (x - 1, y)):
        if 0 <= min(there) and max(there) < CITY:
            options[there] = [(0.8, there, minutes), (0.2, place, minutes + 1)]
    return options


def least_expected(model: prudent.SSP) -> Callable[[Any], float]:
    """Return the least expected cost as a function of the state."""
    prepared = prepare(model)
    inside, scale = prepared.members.state_of, prepared.scale
    value = scale.lattice.value(scale.luck) + least_expected_cost(prepared).value[inside] * scale.level_size
    value = np.where(model.is_goal, 0.0, np.where(inside >= 0, value, math.inf))
    return dict(zip(model.names[0], value.tolist(), strict=True)).__getitem__


def main() -> None:
    """Print the table."""
    head = f"{'problem':<12}{'alpha':>6}  {'bound ahead':<12}{'explored':>8}{'of all':>12}{'solves':>8}"
    head += f"{'CVaR':>11}{'expected':>11}"
    print(f"{head}{'s':>8}{'peak MB':>9}")
    problems: list[tuple[str, Any, Any, Callable[[Any], float] | None]] = [
        ("city", (1_600, 1_600), city, lambda s: 1.25 * (abs(s[0] - HOSPITAL[0]) + abs(s[1] - HOSPITAL[1]))),
        ("racetrack", {(x, y, 0, 0): 1 / len(GRID) for x, y in GRID}, racetrack, None),
        ("sailing", (2, 2, 0, 0), sailing, lambda s: float(max(abs(s[0] - LAKE // 2), abs(s[1] - LAKE // 2)))),
    ]
    for name, initial, actions, simple in problems:
        ahead: dict[str, Callable[[Any], float] | None] = {"none": None}
        if simple is not None:
            ahead["simple"] = simple
        total, model = CITY**2, None
        if name != "city":
            model = prudent.build(initial, actions)
            total, ahead["V"] = model.n_states, least_expected(model)
        for alpha in (1.0, 0.1, 0.01):
            whole = None if model is None else prudent.solve(model, alpha)
            for kind, heuristic in ahead.items():
                began = time.perf_counter()
                plan = prudent.search(initial, actions, alpha, heuristic=heuristic)
                taken, seen = time.perf_counter() - began, plan.explored
                assert seen is not None and plan.status == "optimal"
                assert whole is None or np.allclose((plan.cvar, plan.expected), (whole.cvar, whole.expected), rtol=1e-9)
                row = f"{name:<12}{alpha:>6g}  {kind:<12}{seen.met:>8,}{total:>12,}{seen.solves:>8}"
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6  # of the process, so far
                print(f"{row}{plan.cvar:>11.4f}{plan.expected:>11.4f}{taken:>8.2f}{peak:>9.0f}", flush=True)


if __name__ == "__main__":
    main()
