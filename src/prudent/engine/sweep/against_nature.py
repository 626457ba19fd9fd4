"""Sweeps over budgets against nature, which chooses probabilities from intervals at every visit.

:mod:`prudent.kernels.nature_sweep` settles states; here is how far a sweep goes: for a plan until no larger budget can
be optimal, for a given policy up to a level.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.engine.cost_step import nice_step
from prudent.engine.prepared import choice_type
from prudent.engine.sweep.nature_layout import Levels, error_of, largest_block
from prudent.engine.sweep.question import TIE
from prudent.engine.sweep.task import Swept
from prudent.engine.uncertain import Uncertain
from prudent.engine.values.robust_cost import WorstMean
from prudent.engine.values.worst_case import UNREACHED
from prudent.kernels.acyclic import Played, worst_ahead
from prudent.kernels.choices import Choices
from prudent.kernels.nature import Values, value_at
from prudent.kernels.nature_sweep import RobustGiven, RobustPlan
from prudent.models.rows import FloatArray, IntArray
from prudent.runtime.limits import Limits, Stopped, go_on
from prudent.runtime.progress import Progress
from prudent.runtime.team import in_parts

MARGIN = 2
"""The factor by which a step is advised that is larger than needed: rounding adds levels."""

FURTHER = 1.3
"""The length of the first tables, as a multiple of the levels surely needed."""

EVALUATING = "evaluating the policy in the worst model"


def robust_sweep(model: Uncertain, worst: WorstMean, alpha: float, limits: Limits) -> Swept:
    """Sweep rising budgets until no larger one can be optimal for alpha."""
    prepared, start, sure = model.prepared, model.prepared.start, float(worst.value[model.prepared.start])
    limits.check(_bytes(model, int(sure) + 2), "the tables of a robust plan", _advice(model, sure, limits.memory))
    levels, plan = Levels(model, limits.threads), _first(model, worst, int(FURTHER * sure) + 34)
    done, best, seen, stopped = 1, np.inf, 0, ""
    with limits, Progress("sweeping budgets", total=None, unit="levels") as progress:
        while True:
            row = start * plan.excess.stride
            f = np.arange(seen, done) + plan.excess.table[row + seen : row + done] / alpha
            best, seen = min(best, float(f.min(initial=np.inf))), done
            if done > best + 2:  # the cell above the best budget counts, too
                break
            last = int(min(done + levels.at_once, max(FURTHER * sure, done * 1.1, done + 16) + 1, best + 4))
            stopped = limits.stop
            if not stopped and last > plan.excess.stride:
                if _bytes(model, 2 * last) > limits.memory:
                    stopped = "memory"
                else:
                    plan = _longer(plan, model.n_nodes, 2 * last)
            if stopped and not limits.partial:
                raise Stopped(stopped, "the sweep")
            if stopped:
                break
            levels.settle(plan, done, last)
            done = last
            progress.at(done, best)
    excess, below, mean = (each.table[row : row + done].copy() for each in (plan.excess, plan.below, plan.mean))
    choice = np.ascontiguousarray(plan.choice.reshape(model.n_nodes, -1)[: prepared.n_states, :done].T)
    return Swept(excess, below, mean, choice, None, stopped)


def _worst_case(model: Uncertain, choice: IntArray) -> IntArray:
    """Return the largest cost of runs from each node, whatever nature does, under the choices; without cycles."""
    sets, order, most = model.sets, model.order, np.empty(model.n_nodes, dtype=np.int64)
    last, after = choice + (np.diff(sets.action_start) > 0), np.empty(len(sets.outcome_start) - 1, dtype=np.int64)
    played = Played(choice, last, sets.outcome_start, sets.successor, sets.cost)
    in_parts(
        model.prepared.threads, worst_ahead, len(sets.cost), order.backwards, played, most, after, most=order.width
    )
    return most


def _worst_first(model: Uncertain, worst: WorstMean) -> IntArray:
    """Return the outcomes of each action in the order in which nature fills them without budget.

    Where values tie, as where no excess is left, the order of the level before stays: nature's choice is then also the
    worst one for budgets between the two levels.
    """
    sets = model.sets
    action = np.repeat(np.arange(len(sets.outcome_start) - 1), np.diff(sets.outcome_start))
    return np.lexsort((-(sets.cost + worst.base.excess[sets.successor]), action))


def _advice(model: Uncertain, sure: float, memory: int) -> str:
    """Return advice for a sweep that needs more memory than there is: a step at which its first tables fit."""
    prepared = model.prepared
    fixed, each = _bytes(model, 0), _bytes(model, 1) - _bytes(model, 0)
    fewer = (memory - fixed) / (MARGIN * each)
    step = nice_step(prepared.scale.level_size * (sure + 2) / fewer) if fewer > 2 else np.inf
    if step > float(np.abs(prepared.model.cost).max(initial=0.0)):
        return "raise memory= (--memory)"
    return f"raise memory= (--memory), or set a larger step (step=, --step), from about {step:g} on"


def _bytes(model: Uncertain, levels: int) -> int:
    size = 3 * 8 + 2 * np.dtype(choice_type(model.prepared)).itemsize
    return 2 * size * model.n_nodes * levels + 8 * largest_block(model) ** 2


def _first(model: Uncertain, worst: WorstMean, levels: int) -> RobustPlan:
    """Return the tables of a plan, with their values without budget."""
    base, order, stride = worst.base, _worst_first(model, worst), 1
    excess = Values(base.excess, stride, base.excess, 1.0, order, falls=True)
    below = Values(base.low, stride, base.low, 1.0, order)
    mean = Values(base.mean, stride, base.mean, 0.0, order.copy())
    choice = (worst.choice - model.sets.action_start[:-1]).astype(choice_type(model.prepared))
    safe = _worst_case(model, worst.choice) + 1 if model.prepared.acyclic else np.full(model.n_nodes, UNREACHED)
    return _longer(RobustPlan(excess, below, mean, choice, safe, TIE), model.n_nodes, levels)


def _longer(plan: RobustPlan, n_nodes: int, levels: int) -> RobustPlan:
    """Return tables of this many levels, with the values known so far; others are 0."""

    def longer(table: NDArray[Any]) -> NDArray[Any]:
        new, known = np.zeros((n_nodes, levels), table.dtype), table.reshape(n_nodes, -1)
        new[:, : known.shape[1]] = known
        return new.ravel()

    tables = plan.excess, plan.below, plan.mean
    excess, below, mean = (each._replace(table=longer(each.table), stride=levels) for each in tables)
    return plan._replace(excess=excess, below=below, mean=mean, choice=longer(plan.choice))


@dataclass(frozen=True)
class Worth:
    """The worst-case value of following a policy, by state and level."""

    values: Values
    error: float  # relative error
    model: Uncertain

    def at(self, state: int, level: int) -> float:
        """Return the value in a state at a level."""
        return float(value_at.py_func(self.values, state, level))

    def after(self, actions: IntArray, level: int) -> FloatArray:
        """Return the worst expectation after each of some actions, played at a level."""
        return self.model.worst_after(actions, level, self.values)


def worth(
    model: Uncertain, choices: Choices, base: FloatArray, slope: float, behind: int, top: int, limits: Limits
) -> Worth:
    """Follow a policy against nature, up to a level; its budget is ``behind`` the level.

    At level 0 and below, the value is ``base`` less the slope times the level: 1 for an excess, 0 for a cost.
    """
    prepared, stride = model.prepared, top + 1
    need = 8 * prepared.n_states * stride
    limits.check(need, "the values of a policy in the worst model", "raise memory= (--memory)")
    values, goals, levels = model.values(base, slope, stride), prepared.is_goal, Levels(model, limits.threads)
    values.table.reshape(-1, stride)[goals] = np.maximum(base[goals][:, None] - slope * np.arange(stride), 0)
    for first in range(1, stride, levels.at_once):
        go_on(limits, EVALUATING)
        levels.settle(RobustGiven(values, choices, behind), first, min(first + levels.at_once, stride))
    return Worth(values, error_of(model, top), model)
