"""How much of the naive work each saving saves: counted, not timed.

Naive is every outcome of the model at every budget up to the worst case, for both objectives.  Each row says what is
left once its saving is made, too; the last is what the kernels really do, but for ties.
"""

import numpy as np

from cases import Case, domains, fifty_thousand
from prudent.engine.sweep.question import PLAN, Question
from prudent.engine.sweep.tile_layout import Tiling, known_of, tiling_of
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import UNREACHED, least_worst_case
from prudent.models.rows import IntArray, owner
from table import Found, Row

PART = "less work: multiply-adds left"


def run(quick: bool) -> Found:
    """Count on the paper's domains and on the finite-horizon model."""
    found = Found()
    for case in [*domains(0.02), fifty_thousand(quick)]:
        found.rows += counted(case)
    return found


def counted(case: Case) -> list[Row]:
    """Return what is left after each saving, in percent of the naive work."""
    prepared, levels, tiling = case.prepared, case.levels, tiling_of(case.prepared)
    outcomes, worst = case.model.n_outcomes, int(least_worst_case(prepared).value[prepared.start])
    bounded = worst < UNREACHED
    naive = 2.0 * outcomes * (worst + 1 if bounded else levels)
    size = f"{outcomes:,} outcomes x {worst + 1 if bounded else levels:,} levels x 2"
    left = {
        "naive": (naive, size if bounded else f"{size}; runs have no worst-case cost, so levels end at the early stop"),
        "early stop": (2.0 * outcomes * levels, f"at the optimal CVaR: {levels:,} levels"),
        "merged outcomes, useless actions": (2.0 * len(prepared.cost) * levels, f"{len(prepared.cost):,} outcomes"),
    }
    if tiling is None:
        return _rows(case, naive, left)
    work = tiling.work
    left["equal action rows once"] = 2.0 * len(work.cost) * levels, f"{len(work.cost):,} outcomes"
    source = owner(work.action_start)[owner(work.outcome_start)]
    reachable = np.maximum(levels - 1 - work.delay[source], 0)
    left["budgets that can be left"] = 2.0 * float(reachable.sum()), "counted from the least that was spent"
    excess, mean = banded(case, tiling, source, reachable)
    left["bands of U"] = excess + float(reachable.sum()), "nothing from the worst case of a state on"
    left["M only where U is attained"] = (
        excess + mean,
        "one action, none where its expected cost is known; ties not counted",
    )
    return _rows(case, naive, left)


def banded(case: Case, tiling: Tiling, source: IntArray, reachable: IntArray) -> tuple[float, float]:
    """Return the multiply-adds of U within its bands, and of M along the plan."""
    prepared, work, levels = case.prepared, tiling.work, case.levels
    least, worst = least_expected_cost(prepared), least_worst_case(prepared)
    known = known_of(prepared, tiling, Question(least.base, least.choice, worst, PLAN))
    ends = np.append(worst.value, np.full(len(tiling.heads), UNREACHED))
    excess = float(np.minimum(reachable, np.maximum(ends[source] - 1, 0)).sum())
    policy = case.solve().policy
    size, mean = np.diff(work.outcome_start), 0.0
    for s in range(prepared.n_states):
        if work.action_start[s] < work.action_start[s + 1]:
            last = min(levels - work.delay[s], known.calm[s], policy.level + 1)
            mean += float(size[work.action_start[s] + policy.choices.each(s, np.arange(1, max(last, 1)))].sum())
    for node in range(prepared.n_states, len(work.delay)):
        last = min(levels - work.delay[node], known.calm[node])
        mean += float(size[work.action_start[node]]) * max(last - 1, 0)
    return excess, mean


def _rows(case: Case, naive: float, left: dict[str, tuple[float, str]]) -> list[Row]:
    return [Row(PART, case.about, what, 100 * amount / naive, "%", note=note) for what, (amount, note) in left.items()]
