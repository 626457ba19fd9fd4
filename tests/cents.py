"""Models with costs as people have them: prices in cents, times in milliseconds."""

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

import prudent

__all__ = ["grid", "in_cents", "limits_on", "machines", "maintenance", "spare_parts"]

Outcomes = list[tuple[float, Any, float]]
Choices = dict[str, Outcomes]

AS_NEW, BROKEN = 0, 4
"""The least wear of a machine, and the largest."""

BREAKS = (0.01, 0.04, 0.09, 0.2)
LOSES = (8.35, 19.99, 44.75, 103.2)
"""By wear: how likely a machine breaks in a week, and what scrap costs."""


def _week(wear: int, care: str) -> list[tuple[float, int, float]]:
    """Return a week of one machine: probabilities, its wear then, prices in euros and cents."""
    if care == "replace":
        return [(0.96, AS_NEW, 1249.9), (0.04, AS_NEW, 1683.35)]
    if wear == BROKEN:
        return [(0.55, 1, 587.45), (0.35, 2, 812.6), (0.1, BROKEN, 934.17)]
    if care == "service":
        return [(0.75, max(wear - 1, AS_NEW), 124.95), (0.2, AS_NEW, 149.35), (0.05, wear, 171.49)]
    breaks, loses = BREAKS[wear], LOSES[wear]
    worn = round(13.85 + 1.2 * loses, 2)
    stays = 0.7 - breaks
    return [(stays, wear, 11.79 + loses), (0.3, min(wear + 1, BROKEN - 1), worn), (breaks, BROKEN, 379.95 + loses)]


def maintenance(weeks: int = 52) -> prudent.SSP:
    """Return a plan for one machine: each week run it, service it or replace it; 258 states in a year."""

    def actions(state: tuple[int, int]) -> Choices | None:
        week, wear = state
        if week == weeks:
            return None
        cares = ("repair", "replace") if wear == BROKEN else ("run", "service", "replace")
        return {care: [(p, (week + 1, then), round(cost, 2)) for p, then, cost in _week(wear, care)] for care in cares}

    return prudent.build((0, AS_NEW), actions, name="maintenance")


def machines(weeks: int, count: int) -> prudent.SSP:
    """Return a plan for some machines that are alike: each week one at most is cared for."""

    def both(wears: tuple[int, ...], cared: int | None) -> list[tuple[float, tuple[int, ...], float]]:
        each = []
        for place, wear in enumerate(wears):
            idle = [(1.0, BROKEN, 57.9)] if wear == BROKEN else _week(wear, "run")
            each.append(_week(wear, "service") if place == cared else idle)
        found: dict[tuple[tuple[int, ...], float], float] = {}
        for joint in product(*each):
            key = tuple(sorted(then for _, then, _ in joint)), round(sum(cost for _, _, cost in joint), 2)
            found[key] = found.get(key, 0.0) + float(np.prod([p for p, _, _ in joint]))
        return [(p, then, cost) for (then, cost), p in found.items()]

    known = {
        (wears, cared): both(wears, cared)
        for wears in combinations_with_replacement(range(BROKEN + 1), count)
        for cared in (None, *range(count))
    }

    def actions(state: tuple[int, tuple[int, ...]]) -> Choices | None:
        week, wears = state
        if week == weeks:
            return None
        first = {wear: wears.index(wear) for wear in wears}
        cares = {"run": None} | {f"care for {wear}": place for wear, place in first.items()}
        return {
            care: [(p, (week + 1, then), cost) for p, then, cost in known[wears, place]]
            for care, place in cares.items()
        }

    return prudent.build((0, (AS_NEW,) * count), actions, name="machines")


def grid(side: int, seed: int = 0) -> prudent.SSP:
    """Return a way across a grid: seconds to the millisecond; in some fields one may get stuck, which has a price."""
    draw = np.random.default_rng(seed)
    takes = draw.integers(700, 4900, (side, side)) / 1000
    slips = draw.uniform(0.03, 0.25, (side, side)).round(3)
    soft = draw.random((side, side)) < 0.07
    end = side - 1, side - 1
    soft[0, 0] = soft[end] = False
    ways = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

    def arrive(p: float, field: tuple[int, int]) -> Outcomes:
        if soft[field]:
            return [(0.9 * p, field, round(2.4 * takes[field], 3)), (0.1 * p, "stuck", 450.0)]
        return [(p, field, float(takes[field]))]

    def actions(field: Any) -> Choices | None:
        if field in (end, "stuck"):
            return None
        i, j = field
        fields = {name: (i + di, j + dj) for name, (di, dj) in ways.items()}
        fields = {name: (a, b) for name, (a, b) in fields.items() if 0 <= a < side and 0 <= b < side}
        p, found = slips[field], Choices()
        for name, to in fields.items():
            aside = next(other for other in fields.values() if other != to)
            found[name] = [*arrive(1 - p, to), (0.6 * p, field, 1.125), *arrive(0.4 * p, aside)]
        return found

    return prudent.build((0, 0), actions, name="grid")


def spare_parts(weeks: int = 52, room: int = 8) -> prudent.SSP:
    """Return a plan for a store of spare parts: order each week, by ship or by air; without a part a machine stands.

    A state is the week, the parts in store and those on their way; 4,143 states and 574,154 outcomes in a year.
    """
    fails = np.array([0.30, 0.33, 0.19, 0.10, 0.05, 0.02, 0.007, 0.003])
    late, rates = 0.15, ((0.7, 1.0), (0.25, 1.18), (0.05, 2.4))

    def week(store: int, coming: int, order: int, how: str) -> Outcomes:
        price = (61.35 if how == "ship" else 97.8) * order + (48.9 if order else 0.0)
        found: dict[tuple[tuple[int, int], float], float] = {}
        for (need, p), delayed, (q, rate) in product(enumerate(fails), (False, True), rates):
            here = store + (0 if delayed else coming) + (order if how == "air" else 0)
            left, lacks = min(max(here - need, 0), room), max(need - here, 0)
            then = left, min((coming if delayed else 0) + (order if how == "ship" else 0), room)
            cost = price + 1.17 * left + (289.45 * rate + 35.6) * lacks + 3.29 * (left == room)
            key = then, round(cost, 2)
            found[key] = found.get(key, 0.0) + float(p) * (late if delayed else 1 - late) * q
        return [(p, then, cost) for (then, cost), p in found.items()]

    known = {
        (store, coming): {
            f"{how} {order}" if order else "wait": week(store, coming, order, how)
            for how in ("ship", "air")
            for order in (range(5) if how == "ship" else (1, 2))
        }
        for store in range(room + 1)
        for coming in range(room + 1)
    }

    def actions(state: tuple[int, tuple[int, int]]) -> Choices | None:
        now, parts = state
        if now == weeks:
            return None
        return {name: [(p, (now + 1, then), cost) for p, then, cost in some] for name, some in known[parts].items()}

    return prudent.build((0, (4, 0)), actions, name="spare parts")


def in_cents(seed: int, most_states: int) -> prudent.SSP:
    """Return a random model: in each state actions from dear and safe to cheap and risky, with or without cycles."""
    rng = np.random.default_rng(seed)
    n, cycles, top = int(rng.integers(3, most_states)), rng.random() < 0.5, float(rng.choice([9.0, 80.0, 700.0]))
    table: dict[int, dict[int, Outcomes]] = {n: {}}
    for state in range(n):
        table[state] = {}
        for action in range(int(rng.integers(2, 5))):
            bold, found = rng.random(), Outcomes()
            for p in rng.dirichlet(np.ones(int(rng.integers(1, 4)))):
                back = cycles and rng.random() < 0.2
                then = int(rng.integers(0, n) if back else rng.integers(state + 1, min(state + 5, n) + 1))
                found.append((0.96 * float(p), then, round(top * (1.2 - bold) * rng.uniform(0.3, 1), 2)))
            found.append((0.04, state + 1, round(top * (0.2 + 4 * bold * rng.random()), 2)))
            table[state][action] = found
    return prudent.build(0, table.__getitem__, name="in cents")


def limits_on(
    model: prudent.SSP, plan: prudent.Plan, rng: np.random.Generator
) -> Iterator[tuple[dict[str, float], float]]:
    """Yield a limit on CVaR of each kind, each with the largest value that it may have for the user of a plan."""
    cheap = prudent.solve(model, plan.alpha, method="expected", step=plan.step)
    top = plan.upper + rng.uniform(0.1, 0.9) * max(cheap.cvar - plan.upper, 0.01)
    yield {"slack": 0.02}, 1.02 * plan.upper
    yield {"absolute_slack": 0.05 * plan.upper}, 1.05 * plan.upper
    yield {"max_cvar": top}, top
    yield {"slack": 0.01, "randomise": True}, 1.01 * plan.upper
