"""A question that no verb asks: with it come tiles and levels, threads, ranks, a device and checkpoints.

The least probability that the total cost lies between two numbers, both included.  With b the budget left of the larger
one, and one level more, since a budget of 0 is not exceeded yet:

    X(s, b)    = 0                                                    for b <= 0
    X(goal, b) = 1 for 0 < b <= width, else 0
    X(s, b)    = min over a of  sum over outcomes of  p X(s', b - c)
"""

import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.sweep.driver import budget_sweep
from prudent.engine.sweep.question import Question, without_safety
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.kernels.questions import Base, Terms
from prudent.runtime.limits import Limits
from standin import StandIn
from threads_as_ranks import led


class Shelf(dict):
    """Checkpoints, saved whenever they may be."""

    def load(self, key):
        return self.get(key)

    def save(self, key, content, *, final=False):
        self[key] = {name: array.copy() for name, array in content.items()}

    def due(self):
        return True


def chance_between(model, least, most, limits):
    """The least probability of a total from ``least`` to ``most`` levels above best luck, and a lower bound on it."""
    prepared = prepare(model)
    expected, none = least_expected_cost(prepared, limits), np.zeros(prepared.n_states)
    question = Question(
        Base(none, none, expected.value),
        expected.choice,
        without_safety(prepared),
        terms=Terms(accrual=0.0, slope=0.0, goal=1.0, until=most - least + 1),
    )
    swept = budget_sweep(prepared, question, limits, most=most + 1)
    return swept.excess[most + 1], swept.low[most + 1]


def tried_out(model, least, most):
    """The same, by all that can happen."""
    prepared = prepare(model)

    @cache
    def chance(s, left):
        if prepared.is_goal[s]:
            return float(0 <= left <= most - least)
        if left < 0:
            return 0.0
        rows = [range(*prepared.outcome_start[a : a + 2]) for a in range(*prepared.action_start[s : s + 2])]
        move = [
            [(prepared.probability[o], int(prepared.successor[o]), int(prepared.cost[o])) for o in row] for row in rows
        ]
        return min(sum(p * chance(t, left - c) for p, t, c in outcomes) for outcomes in move)

    return chance(prepared.start, most)


def cyclic(seed):
    draw = random.Random(seed)

    def outcomes():
        p = draw.uniform(0.1, 0.7)
        return [
            (p, draw.randrange(8), draw.randint(1, 4)),
            (0.8 - p, draw.randrange(8), draw.randint(1, 4)),
            (0.2, 8, 2),
        ]

    table = {s: {a: outcomes() for a in range(draw.randint(1, 3))} for s in range(8)}
    return prudent.build(0, lambda s: table.get(s, {}))


MODELS = {
    "betting": lambda: prudent.domains.betting_game(stages=4, cap=40),
    "inventory": lambda: prudent.domains.inventory_control(stages=3, capacity=6, demand=3),
    **{seed: (lambda seed=seed: cyclic(seed)) for seed in range(4)},
}


@pytest.mark.parametrize(("least", "most"), [(0, 3), (2, 9), (5, 5), (10, 25)])
@pytest.mark.parametrize("which", MODELS)
def test_every_executor_answers_it(which, least, most):
    model, shelf = MODELS[which](), Shelf()
    truth = tried_out(model, least, most)
    kept = Limits(10**9, keeper=shelf)
    each = [Limits(10**9, threads=3), replace(Limits.of(None, None), device=StandIn()), kept, kept]
    found = [chance_between(model, least, most, limits) for limits in each]
    found.append(led(3, lambda ranks: chance_between(model, least, most, Limits(10**9, ranks=ranks))))
    for chance, low in found:
        assert chance == pytest.approx(truth, abs=1e-12)
        assert low <= truth + 1e-15


@pytest.mark.parametrize("which", ["betting", 0])
def test_every_executor_adds_up_a_second_cost(which):
    model = MODELS[which]()
    prepared = prepare(model)
    plain = least_expected_cost(prepared)
    base = Base(plain.value, plain.lower, 2 * plain.value)
    question = replace(Question(base, plain.choice, without_safety(prepared)), mean_cost=2 * prepared.mean_cost)
    most, whole = 20, Question(plain.base, plain.choice, without_safety(prepared))
    truth = 2 * budget_sweep(prepared, whole, Limits(10**9), most=most).mean

    def mean(limits):
        return budget_sweep(prepare(model), question, limits, most=most).mean

    found = [mean(Limits(10**9)), mean(replace(Limits.of(None, None), device=StandIn()))]
    found.append(led(2, lambda ranks: mean(Limits(10**9, ranks=ranks))))
    for each in found:
        assert each == pytest.approx(truth, rel=1e-12)
