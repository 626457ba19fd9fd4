"""Focus: sweep a fine lattice only where an optimal plan can be, as a coarse one shows (models without cycles).

With L <= U <= H from a coarse step, a start budget w with w + L(start, w) / alpha above the best known CVaR cannot be
optimal.  Neither can an action whose value exceeds H at the budgets that the start budgets lead to.  The rest is
closed: every successor of a remaining pair through a remaining action remains as well.  So the fine sweep is the same
recursion on fewer pairs, and its answer is the same.

States are settled one by one, successors first, each for its whole range of budgets.  Once all states that look at a
state's values are settled, others reuse their place; only the actions are kept.
"""

from dataclasses import dataclass, replace

import numpy as np

from prudent.engine.prepared import Prepared, choice_type
from prudent.engine.room import shared_room
from prudent.engine.sweep.between import BetweenSweep
from prudent.engine.sweep.bounded import beneath
from prudent.engine.sweep.driver import Run
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.question import BOUND, EXCESS, Question
from prudent.engine.sweep.task import Swept, Task
from prudent.engine.sweep.tile_layout import Tiling, known_of, plain_tiling
from prudent.engine.sweep.tile_window import STRIP, new_scratch
from prudent.engine.values.expected_cost import Expected, at_step, least_expected_cost
from prudent.engine.values.worst_case import UNREACHED, WorstCase, least_worst_case
from prudent.kernels.between import PAD
from prudent.kernels.choices import Choices
from prudent.kernels.focus import narrow, settle_range
from prudent.kernels.questions import Base
from prudent.kernels.stretches import LANES, Values
from prudent.models.rows import BoolArray, FloatArray, IntArray, offsets
from prudent.runtime.limits import Limits, Stopped
from prudent.runtime.progress import Progress

FOCUSING, SWEEPING = "finding the budgets that matter", "the sweep of the budgets that matter"


@dataclass(frozen=True)
class Focus:
    """The budgets and actions that can matter."""

    low: IntArray  # (n_states,)  the least budget of each state
    high: IntArray  # (n_states,)  the largest; below ``low`` if no optimal plan reaches the state
    useful: BoolArray  # (n_actions, n_cells)  whether an action may be optimal somewhere in a cell of budgets
    ratio: int  # budgets in a cell
    work: float  # outcomes times levels that remain


def focus_on(prepared: Prepared, alpha: float, upper: float, ratio: int, limits: Limits) -> Focus | None:
    """Return what can matter, given an upper bound on the optimal CVaR in levels; a coarse level is ``ratio`` of them.

    The model has exact costs and no cycles.  Return None if the coarse bounds are too weak.
    """
    step = prepared.scale.level_size * ratio
    coarse = at_step(prepared, step, limits)
    levels = int(upper / ratio) + 3
    room = 3 * 8 * prepared.n_states + prepared.n_actions  # values of both sweeps, a copy, which actions are useful
    if (levels + PAD) * room > limits.memory:
        raise Stopped("memory", FOCUSING)
    above, below = _swept(coarse, levels, limits), _swept_between(coarse, levels, limits)
    if not below.sound:
        return None
    n, f = prepared.n_states, np.arange(levels) + below.table[prepared.start, PAD : PAD + levels] / alpha
    close = np.flatnonzero(f <= (upper / ratio) * (1 + 1e-9))
    low, high = np.full(n, UNREACHED), np.full(n, -UNREACHED)
    # f is linear between levels, so budgets between two levels that are not close are not close, either.
    low[prepared.start] = max(int(close.min(initial=levels)) - 1, 0) * ratio
    high[prepared.start] = min(int(close.max(initial=0)) + 1, levels - 1) * ratio
    useful = np.zeros((prepared.n_actions, levels + 1), dtype=bool)
    graph = prepared.action_start, prepared.outcome_start, prepared.probability, prepared.successor
    about = graph, prepared.cost, below.work, below.table, above, ratio
    narrow(prepared.blocks[1][::-1].copy(), *about, (low, high, useful))
    low = np.where(prepared.is_goal | (high < 1), 1, np.maximum(low, 1))
    high = np.where(prepared.is_goal | (high < 1), 0, high)
    return Focus(low, high, useful, ratio, _work(prepared, low, high, useful, ratio))


def _swept(coarse: Prepared, levels: int, limits: Limits) -> FloatArray:
    """Return an upper bound on U, by state and level of the coarse grid: costs are rounded up."""
    least = least_expected_cost(coarse, limits)
    base, worst = Base(least.value, least.upper, least.value), least_worst_case(coarse, limits)
    sweep = LevelSweep(Task(coarse, Question(base, least.choice, worst, BOUND), levels, True))
    _advance(sweep, levels, limits)
    error = float(plain_tiling(coarse).rounding.error(np.array([levels]))[0])  # the sweep rounds down
    assert sweep.values is not None
    return np.asarray(sweep.values.low * (1 + 2 * error))


def _swept_between(coarse: Prepared, levels: int, limits: Limits) -> BetweenSweep:
    """Return a finished sweep for a lower bound on U, with costs between levels."""
    below, base, worst = beneath(coarse, EXCESS, limits, between=True)
    sweep = BetweenSweep(Task(below, Question(base, below.proper_choice(), worst, BOUND), levels, True))
    _advance(sweep, levels + 1, limits)
    return sweep


def _advance(sweep: LevelSweep | BetweenSweep, levels: int, limits: Limits) -> None:
    run = Run(sweep, replace(limits.whole, keeper=None, ranks=None), doing=SWEEPING)
    while sweep.done <= levels:
        run.step(levels)


def _work(prepared: Prepared, low: IntArray, high: IntArray, useful: BoolArray, ratio: int) -> float:
    state = prepared.action_state
    begin, end = np.maximum(low, 0)[state] // ratio, high[state] // ratio
    cells = np.arange(useful.shape[1])
    inside = useful & (cells >= begin[:, None]) & (cells <= end[:, None])
    return float((inside.sum(axis=1) * np.diff(prepared.outcome_start)).sum()) * ratio


def focused_sweep(prepared: Prepared, least: Expected, worst: WorstCase, focus: Focus, limits: Limits) -> Swept:
    """Sweep what can matter for both objectives; raise Stopped if a limit is reached, TooLarge if memory is lacking."""
    tiling = plain_tiling(prepared)
    question = Question(least.base, least.choice, worst)
    asked = question.in_kernel(known_of(prepared, tiling, question), bounded=False)
    size = np.maximum(focus.high - focus.low + 1, 0)
    zeros = int(focus.high.max()) + 1  # the values of goals come first: they are 0
    row, room = _rows(prepared, tiling, size, zeros)
    entries = int(size.sum())
    kind = np.dtype(choice_type(prepared))
    need = 16 * room + entries * kind.itemsize + focus.useful.nbytes
    limits.check(need, "the tables", "give a gap (relative_gap=, --relative-gap), or raise memory= (--memory)")
    entry, first = np.empty(entries, dtype=kind), offsets(size)[:-1]
    excess, mean, nothing = np.empty(room + LANES), np.empty(room + LANES), np.zeros(1)
    excess[:zeros] = mean[:zeros] = 0.0
    at = np.where(prepared.is_goal, 0, row - focus.low)
    handing = tiling.looked_back[:0], 0, 1, 0, nothing, nothing  # no tile follows
    values = Values(at, excess, mean, -1, *handing, entry, first - focus.low, 1)
    scratch = new_scratch(tiling, STRIP)
    work = tiling.work._replace(delay=np.zeros(prepared.n_states, dtype=np.int64))
    with limits, Progress("sweeping the budgets that matter", total=float(entries), unit="pairs") as progress:
        done = 0
        for place, s in enumerate(work.group_node.tolist()):
            if size[s] == 0:
                continue
            if why := limits.stop:
                raise Stopped(why, SWEEPING)
            budgets = int(focus.low[s]), int(focus.high[s]), focus.ratio
            settle_range(asked, work, values, scratch, place, budgets, focus.useful)
            done += int(size[s])
            progress.at(done)
    start, levels = prepared.start, int(focus.high[prepared.start]) + 1
    found = np.full((3, levels), np.inf)
    found[:, 0] = [values[start] for values in least.base]
    begin, end = int(focus.low[start]), int(focus.high[start]) + 1
    found[0, begin:end] = excess[row[start] : row[start] + size[start]]
    found[2, begin:end] = mean[row[start] : row[start] + size[start]]
    error = tiling.rounding.error(np.arange(begin, end))
    found[1, begin:end] = question.bound(found[0, begin:end], question.sure, error)
    lost = tiling.rounding.lost(float(scratch.lost[0]), levels)
    without = (least.choice - prepared.action_start[:-1]).astype(kind)
    choices = Choices(entry, first, focus.low, focus.high, 1, without)
    return Swept(found[0], found[1], found[2], without[None], None, "", lost, choices)


def _rows(prepared: Prepared, tiling: Tiling, size: IntArray, room: int) -> tuple[IntArray, int]:
    """Return where each state's values begin, after some ``room``, and the room for all.

    A state's values make room for others once all states that lead to it are settled.
    """
    n = prepared.n_states
    time = np.empty(n, dtype=np.int64)
    time[tiling.work.group_node] = np.arange(n)
    gone = time.copy()
    np.maximum.at(gone, prepared.successor, time[prepared.outcome_state])
    gone[prepared.start] = n
    return shared_room(size, time, gone, room)
