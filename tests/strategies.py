"""Random models for hypothesis: small, with real ties, in every awkward shape."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

import prudent
from oracles import Raw
from prudent.policies.forwards import _by_state


@dataclass
class Case:
    """A random model with whole costs, and how it is shown to the package."""

    raw: Raw
    start: dict[int, float]
    step: float
    note: dict = field(default_factory=dict)

    @property
    def model(self) -> prudent.SSP:
        table = {s: {i: [(p, t, c * self.step) for p, t, c in o] for i, o in enumerate(a)} for s, a in self.raw.items()}
        return prudent.build(self.start, table.__getitem__)


def examples(n: int) -> int:
    """How many examples a test draws: ``n``, or a multiple of it, drawn anew, with PRUDENT_EXAMPLES=multiple."""
    return n * int(os.environ.get("PRUDENT_EXAMPLES", "1"))


STEPS = (1.0, 0.5, 0.01, 1 / 3, 7.0)


@st.composite
def cases(draw, *, acyclic=None, free=None, negative=None, steps=STEPS, least_cost=0, most_states=5):
    """Draw a model; options left at None are drawn too."""
    n = draw(st.integers(1, most_states))
    acyclic = draw(st.booleans()) if acyclic is None else acyclic
    free = draw(st.booleans()) if free is None else free
    negative = draw(st.booleans()) if negative is None else negative
    goals = draw(st.integers(1, 2))
    cost = st.sampled_from([0, 0, 0, 1, 2]) if free else st.integers(least_cost, 4)
    raw: Raw = {n + g: [] for g in range(goals)}
    for s in range(n):
        raw[s] = []
        for _ in range(draw(st.integers(1, 3))):
            weights = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
            total = sum(weights)
            targets = st.integers(s + 1, n + goals - 1) if acyclic else st.integers(0, n + goals - 1)
            raw[s].append([(weight / total, draw(targets), draw(cost)) for weight in weights])
    if negative:  # a potential makes costs negative but no cycle
        height = {s: draw(st.integers(-3, 3)) for s in raw}
        raw = {s: [[(p, t, c + height[t] - height[s]) for p, t, c in o] for o in a] for s, a in raw.items()}
    if draw(st.integers(0, 3)) == 0 and n > 1:
        first, second = draw(st.permutations(range(n)))[:2]
        start = {first: 0.25, second: 0.75}
    else:
        start = {0: 1.0}
    return Case(raw, start, draw(st.sampled_from(steps)), {"acyclic": acyclic, "free": free, "negative": negative})


HOPELESS = "no policy reaches a goal of model with probability 1|the model has no goal"
"""What is said of a drawn model from which no goal can be reached, and of one that has none."""


@contextmanager
def solvable() -> Iterator[None]:
    """Give up on an example from which no goal can be reached; every other refusal fails the test."""
    try:
        yield
    except prudent.PrudentError as error:
        if not re.match(HOPELESS, str(error)):
            raise
        reject()


def solved(case: Case, alpha: float, **options) -> prudent.Plan:
    """Solve a case; give up on the example where no policy reaches a goal."""
    with solvable():
        return prudent.solve(case.model, alpha, **options)


def at_the_start(policy, chance, left_out, most, *about):
    """Follow a policy state by state only where there is no level to follow; else it is followed level by level."""
    ends = most == 0 or policy.prepared.is_goal[policy.prepared.start]
    return _by_state(policy, chance, left_out, most, *about) if ends else None


def random_raw(rng: np.random.Generator, n: int, *, least_cost: int = 1) -> Raw:
    """A random cyclic model in which every action may reach the goal at once."""
    raw: Raw = {n: []}
    for s in range(n):
        raw[s] = []
        for _ in range(rng.integers(1, 4)):
            weights = rng.integers(1, 8, size=rng.integers(2, 4))
            targets = [n, *rng.integers(0, n + 1, size=len(weights) - 1)]
            costs = rng.integers(least_cost, 6, size=len(weights))
            raw[s].append(
                [(float(w / weights.sum()), int(t), int(c)) for w, t, c in zip(weights, targets, costs, strict=True)]
            )
    return raw


def noisy_table(rng: np.random.Generator) -> dict:
    """A small model with costs like 0.1 k + noise, some negative; every action may end the run at once."""
    n, cyclic, negative = int(rng.integers(1, 5)), rng.random() < 0.3, rng.random() < 0.5
    height = rng.normal(0, 0.4, n + 1) if negative else np.zeros(n + 1)
    height[n] = 0.0
    table: dict = {n: {}}
    for s in range(n):
        table[s] = {}
        for a in range(rng.integers(1, 4)):
            weights = rng.integers(1, 8, size=rng.integers(2, 4))
            inner = rng.integers(0, n + 1, len(weights) - 1) if cyclic else rng.integers(s + 1, n + 1, len(weights) - 1)
            low = 2 if cyclic else 0  # cycles cost something, so that totals are few
            costs = 0.1 * rng.integers(low, 9, len(weights)) + rng.choice([0, 1e-12, 1e-7, 0.01]) * rng.random()
            table[s][a] = [
                (w / weights.sum(), int(t), float(c + height[t] - height[s]))
                for w, t, c in zip(weights, [n, *inner], costs, strict=True)
            ]
    return table


UNITS = {"cents": 100, "thousandths": 1000, "sevenths": 7, "reals": None}
"""How people's costs look: whole numbers of such parts, or any numbers."""


def priced_model(
    rng: np.random.Generator, kind: str, *, acyclic: bool | None = None, most_states: int = 5
) -> prudent.SSP:
    """A random model with costs of a kind: free moves, loops, large prices, rare outcomes, negative costs, two starts.

    Every state can reach a goal.
    """
    unit, n, goals = UNITS[kind], int(rng.integers(1, most_states + 1)), int(rng.integers(1, 3))
    acyclic = bool(rng.random() < 0.5) if acyclic is None else acyclic
    free, dear = rng.random() < 0.4, rng.random() < 0.3
    top = int(
        rng.choice({"cents": [7, 60, 400], "thousandths": [9, 150, 900], "sevenths": [5, 30], "reals": [3]}[kind])
    )

    def cost() -> float:
        if free and rng.random() < 0.5:
            return 0
        if unit is not None:
            return int(rng.choice([rng.integers(1, top + 1), rng.integers(1, top + 1), 1, top, top // 2 + 1]))
        if not acyclic:  # cycles cost something, so that totals are few
            return top * (0.3 + rng.random())
        return float(
            rng.choice([rng.random() * top, 0.1 * rng.integers(1, 30) + 1e-7 * rng.random(), 0.01 * rng.random()])
        )

    height = rng.normal(0, 0.7 * top, n + goals) if rng.random() < 0.4 else np.zeros(n + goals)
    height = height if unit is None else np.rint(height)  # a potential makes costs negative but no cycle
    table: dict = {n + g: {} for g in range(goals)}
    for s in range(n):
        table[s] = {}
        for a in range(int(rng.integers(1, 4))):
            size = int(rng.integers(1, 4))
            weights = rng.integers(1, 8, size) if rng.random() < 0.85 else np.array([1000] * (size - 1) + [1])
            targets = rng.integers(s + 1 if acyclic else 0, n + goals, size)
            targets[0] = rng.integers(s + 1, n + goals) if a == 0 else targets[0]
            table[s][a] = [(w / weights.sum(), int(t), cost()) for w, t in zip(weights, targets, strict=True)]
        if dear and rng.random() < 0.5:
            table[s]["give up"] = [(1.0, n, int(rng.integers(3, 12)) * top)]

    def shown(c: float, s: int, t: int) -> float:
        return float(c + height[t] - height[s]) / (unit or 1)

    table = {s: {a: [(p, t, shown(c, s, t)) for p, t, c in o] for a, o in b.items()} for s, b in table.items()}
    start = {0: 0.25, int(rng.integers(1, n)): 0.75} if n > 1 and rng.random() < 0.25 else {0: 1.0}
    return prudent.build(start, table.__getitem__)
