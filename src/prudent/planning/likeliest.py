"""The likeliest goal: plans that reach a goal with the maximal probability.

With F(s) the least probability that a run from s fails, that is, never reaches a goal,

    F(s) = 1 where no goal can be reached,    F(goal) = 0,    F(s) = min over a of  sum over outcomes of  p F(s'),

a policy attains F(start) if and only if, wherever runs can be, it plays only actions that attain F, and surely reaches
a goal or a state from which no goal can be reached.  (Under such actions F of the state is a martingale.  If a run
continues forever with F below 1, the probability of a goal tends to 0 though F does not tend to 1, so some policy does
better.)  So these plans are the proper policies of a model with these actions alone, in which a run that can no longer
reach a goal pays a price and ends.  F is itself a least expected cost: actions cost nothing, failing costs 1.
"""

import math
from dataclasses import replace

import numpy as np

from prudent.engine.prepare import prepare
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.errors import PrudentError, as_number
from prudent.models.amend import amend
from prudent.models.rows import BoolArray, offsets, ranges
from prudent.models.ssp import SSP

__all__ = ["GOALS", "check_goal", "likeliest"]

GOALS = ("sure", "likeliest")
"""What plans must do: reach a goal for sure, or with the maximal probability."""

TIE = 1e-12
"""Actions whose probabilities of failing differ by less than this, relative to their size, are equally good."""


def check_goal(goal: str, dead_end_cost: float | None) -> None:
    """Reject arguments that make no sense together."""
    if goal not in GOALS:
        raise PrudentError(f"goal is {goal!r}; it must be 'sure' or 'likeliest'")
    if goal == "sure" and dead_end_cost is not None:
        raise PrudentError(
            "dead_end_cost is the price of a failed run under goal='likeliest'; to weigh it like any other cost, give "
            "it to prudent.amend instead"
        )


def likeliest(model: SSP, dead_end_cost: float | None) -> tuple[SSP, float]:
    """Return the model restricted to plans that reach a goal with the maximal probability, and this probability.

    A run that can no longer reach a goal pays ``dead_end_cost`` and ends.
    """
    price = (
        None if dead_end_cost is None else as_number("dead_end_cost", dead_end_cost, "a finite number", math.isfinite)
    )
    free = amend(replace(model, cost=np.zeros(model.n_outcomes)), dead_end_cost=1.0)
    prepared = prepare(free)
    scale, inside = prepared.scale, prepared.members.state_of[: model.n_states]
    fails = scale.lattice.value(scale.luck[: model.n_states])
    fails = np.where(inside >= 0, fails + least_expected_cost(prepared).value[inside] * scale.level_size, 1.0)
    failing = float(model.initial_probability @ fails[model.initial_state])
    chance = 1.0 - failing
    if chance <= 0:
        raise PrudentError(
            f"no plan for {model.name} reaches a goal with a probability above 1e-16; add an action that leads to a "
            "goal, or put a price on getting stuck with dead_end_cost= in prudent.amend"
        )
    after = np.bincount(model.outcome_action, model.probability * fails[model.successor], minlength=model.n_actions)
    here = fails[model.action_state]
    kept = _kept(model, (after <= here * (1 + TIE)) | (here >= 1))
    if failing > 0:
        if price is None:
            raise PrudentError(
                f"no plan for {model.name} reaches a goal with a probability above {chance:.9g}; give the cost of a "
                "failed run with dead_end_cost= (--dead-end-cost)"
            )
        kept = amend(kept, dead_end_cost=price)
    return kept, chance


def _kept(model: SSP, action: BoolArray) -> SSP:
    """Return the model with some of its actions."""
    if action.all():
        return model
    chosen = np.flatnonzero(action)
    outcome, names = ranges(model.outcome_start, chosen), model.names[1]
    return replace(
        model,
        action_start=offsets(action)[model.action_start],
        outcome_start=offsets(np.diff(model.outcome_start)[chosen]),
        probability=model.probability[outcome],
        successor=model.successor[outcome],
        cost=model.cost[outcome],
        action_names=[names[a] for a in chosen.tolist()],
    )
