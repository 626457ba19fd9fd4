"""Least expected cost, with bounds that hold.

    V(s) = min over a of  sum over outcomes of  p (c + V(s'))          V(goal) = 0

Solved component by component in the order of the graph: at sight where it is acyclic, by policy iteration
with a direct solve elsewhere.  It stops when no choice improves; a small last change is never taken for a
small error.  The error is bounded afterwards, from the residual r of the computed V
in each action, rounding included:

* above: with e the total of the errors r that the chosen policy is expected to meet, V + 2 e is checked to be a
  supersolution of that policy, i.e. at least ``sum p (c + .)``, hence above its true cost;
* below: with e the largest such total that *nearly optimal* actions can meet, V - 2 e is checked to be a
  subsolution, i.e. at most ``sum p (c + .)`` for every action, hence below the cost of every policy that
  reaches a goal.  The total is finite: an end component of optimal actions would be one at no cost, and
  those are collapsed.

The factor 2 pays for the rounding of e itself.  Both errors are relative: where V is 0, they are 0.
"""

from dataclasses import dataclass

import numpy as np

from prudent.graph import BoolArray, end_components, towards
from prudent.kernels.blocks import Round
from prudent.model import FloatArray, IntArray
from prudent.prepared import Prepared
from prudent.values.rounds import UNIT, full_round, rounding, solve_round

__all__ = ["Expected", "least_expected_cost", "proper_choice"]


@dataclass(frozen=True)
class Expected:
    """The least expected cost from every prepared state, in levels."""

    value: FloatArray  # (n_states,)  as computed
    lower: FloatArray  # (n_states,)  at most the true one
    upper: FloatArray  # (n_states,)  at least what the choice costs
    choice: IntArray  # (n_states,)  the action played
    steps: FloatArray  # (n_states,)  expected number of steps under the choice


def least_expected_cost(prepared: Prepared) -> Expected:
    """Return the least expected cost from every state, bounded below and above."""
    arcs = full_round(prepared)
    everything = np.ones(prepared.n_actions, dtype=bool)
    choice = proper_choice(prepared)
    value = solve_round(arcs, prepared.mean_cost, everything, choice)

    rise, size = _rise(prepared, value)
    gap, slip = prepared.mean_cost + rise, rounding(prepared) * (prepared.mean_cost + size)
    played = np.zeros(prepared.n_actions, dtype=bool)
    played[choice[_acting(prepared)]] = True
    steps = solve_round(arcs, np.ones(prepared.n_actions), played, choice.copy())
    return Expected(
        value=value,
        lower=_subsolution(prepared, arcs, value, gap, slip, choice),
        upper=_supersolution(prepared, arcs, value, gap, slip, choice, played),
        choice=choice,
        steps=steps,
    )


def _acting(prepared: Prepared) -> BoolArray:
    return np.diff(prepared.action_start) > 0


def _rise(prepared: Prepared, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return by how much the value is expected to rise with each action, and the size of the sum behind it.

    Summed from differences: in a loop that is hardly ever left, values are large and their differences small.
    """
    rise = prepared.probability * (value[prepared.successor] - value[prepared.outcome_state])
    total = np.bincount(prepared.outcome_action, weights=rise, minlength=prepared.n_actions)
    size = np.bincount(prepared.outcome_action, weights=np.abs(rise), minlength=prepared.n_actions)
    return total.astype(np.float64), size.astype(np.float64)


def proper_choice(prepared: Prepared) -> IntArray:
    """Choose actions that may move closer to a goal: every such policy reaches one with probability 1."""
    acting = _acting(prepared)
    hop = towards(prepared.outcome_state, prepared.successor, prepared.n_states, ~acting)
    good = np.flatnonzero(hop[prepared.outcome_state] == prepared.successor)
    choice = prepared.action_start[:-1].copy()
    choice[prepared.outcome_state[good[::-1]]] = prepared.outcome_action[good[::-1]]
    return choice


def _total(
    prepared: Prepared,
    arcs: Round,
    error: FloatArray,
    usable: BoolArray,
    needed: FloatArray,
    choice: IntArray,
    sense: float,
) -> FloatArray | None:
    """Return totals of the errors of single steps whose fall is surely at least half of what each step needs.

    The totals have rounding errors of their own; those are charged as further errors until the check passes.
    """
    extra = np.zeros_like(error)
    for _ in range(4):
        total = solve_round(arcs, error + extra, usable, choice.copy(), sense=sense)
        if not np.isfinite(total).all():
            return None
        rise, size = _rise(prepared, total)
        if (2 * (-rise - rounding(prepared) * size) >= needed).all():
            return total
        extra = 4 * UNIT * total[prepared.action_state] + 4 * rounding(prepared) * size
    return None


def _supersolution(
    prepared: Prepared,
    arcs: Round,
    value: FloatArray,
    gap: FloatArray,
    slip: FloatArray,
    choice: IntArray,
    played: BoolArray,
) -> FloatArray:
    needed = np.where(played, gap + slip, -np.inf)
    total = _total(prepared, arcs, np.maximum(gap + slip, 0.0), played, needed, choice, 1.0)
    return np.where(_acting(prepared), np.inf, 0.0) if total is None else value + 2 * total


def _subsolution(
    prepared: Prepared, arcs: Round, value: FloatArray, gap: FloatArray, slip: FloatArray, choice: IntArray
) -> FloatArray:
    theta = 1e-4 * max(1.0, float(value.max()))
    for _ in range(8):
        near = gap <= theta
        _, inside = end_components(
            prepared.action_state, prepared.outcome_start, prepared.successor, prepared.n_states, near
        )
        if not inside.any():
            total = _total(prepared, arcs, np.maximum(slip - gap, 0.0), near, slip - gap, choice, -1.0)
            if total is not None:
                return np.maximum(value - 2 * total, 0.0)
        theta /= 30
    return np.zeros(prepared.n_states)
