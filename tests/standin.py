"""A stand-in for a GPU: NumPy arrays, and the kernels of ``prudent/kernels/cuda`` in plain NumPy, one by one.

Everything but the launch itself runs with it: layouts, layers, windows, the policy's way to the host, bounds.  Kernels
take the arguments of those in the CUDA files, in the same order; lines there say what each does.
"""

from collections import deque

import numpy as np

from prudent.engine.sweep.device_levels import LANES
from prudent.runtime.gpu import BLOCK, OWNERS

UNREACHED = 2**62


class StandIn:
    """A device whose memory is the host's."""

    name = "stand-in"

    def __init__(self, free=2**40):
        self.free, self.launched, self.latest, self.under_way = free, [], deque(maxlen=OWNERS), 0

    def up(self, array):
        return np.array(array)

    def down(self, array):
        return np.array(array)

    def new(self, size, kind):
        return np.zeros(size, dtype=kind)

    def kernels(self, file, **types):
        return _Kernels(self, file, {name: np.dtype(kind) for name, kind in types.items()})

    def take(self, array, index):
        return array[index]

    def down_later(self, array):
        there = array.copy()
        self.under_way += 1

        def wait():
            self.under_way -= 1
            return there

        return wait


class _Kernels:
    def __init__(self, device, file, types):
        self.device, self.file, self.types = device, file, types

    def each(self, name, items, *arguments):
        if items > 0:
            self._launch(name, items, *arguments)

    def blocks(self, name, grid, *arguments):
        if min(grid) > 0:
            self._launch(name, grid, *arguments)

    def alone(self, name, *arguments):
        self._launch(name, *arguments)

    def _launch(self, name, *arguments):
        assert name in KERNELS[self.file]
        self.device.launched.append(name)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            KERNELS[self.file][name](*arguments)


def _sums(start, terms):
    """Sum terms by row; every row has some."""
    return np.add.reduceat(terms, start[:-1] - start[0]) if len(terms) else np.zeros(len(start) - 1)


def _part(first, count, action_start, outcome_start):
    """The actions and outcomes of some places: slices, and where their rows begin."""
    starts = action_start[first : first + count + 1].astype(np.int64)
    rows = outcome_start[starts[0] : starts[-1] + 1].astype(np.int64)
    return starts, slice(starts[0], starts[-1]), rows, slice(rows[0], rows[-1])


def _back(b, window, cost):
    """Which line an outcome looks up, and by how much it exceeds the budget."""
    cost = cost.astype(np.int64)
    return np.where(cost < b, (b - cost) % window, 0), np.maximum(cost - b, 0)


def _at_goal(b, goal, rise, until):
    """The first objective at a goal with some budget left."""
    return goal + rise * b if b <= until else 0.0


def settle_plan(
    count, first, n, start, b, window, accrual, slope, goal, rise, until, action_start, outcome_start, probability,
    successor, cost, mean_cost, worst, tie, state, action_worst, fallback, table, found, choice, lost,
):  # fmt: skip
    count //= LANES
    starts, actions, rows, outcomes = _part(first, count, action_start, outcome_start)
    line, over = _back(b, window, cost[outcomes])
    after, p = table[line * n + successor[outcomes]], probability[outcomes]
    excess = accrual * mean_cost[actions] + _sums(rows, p * (after[:, 0] + slope * over))
    mean = mean_cost[actions] + _sums(rows, p * after[:, 1])
    line = b % window * n
    for s in range(count):
        begin, end = starts[s : s + 2] - starts[0]
        value = _at_goal(b, goal, rise, until), 0.0
        if begin < end:
            u, m, safe = excess[begin:end], mean[begin:end], b >= worst[first + s]
            allowed = action_worst[actions][begin:end] <= b if safe else u <= u.min() * (1 + tie)
            least, chosen = 0.0 if safe else u.min(), fallback[first + s]
            best = np.where(allowed, m, np.inf)
            if best.min() < np.inf:
                chosen = best.argmin()
                if not safe and u[chosen] > least > 0:
                    lost[0] = max(lost[0], u[chosen] / least - 1)
            value = least, best.min()
            choice[state[first + s]] = chosen
        table[line + first + s] = value
        if first + s == start:
            found[:] = value


def settle_bound(
    count, first, n, start, b, window, accrual, slope, goal, rise, until, action_start, outcome_start, probability,
    successor, cost, mean_cost, worst, rounding, table, found,
):  # fmt: skip
    starts, actions, rows, outcomes = _part(first, count, action_start, outcome_start)
    line, over = _back(b, window, cost[outcomes])
    after = table[line * n + successor[outcomes]] + slope * over
    total = accrual * mean_cost[actions] + _sums(rows, probability[outcomes] * after)
    low = (1 - rounding[actions]) * total
    for s in range(count):
        begin, end = starts[s : s + 2] - starts[0]
        least = _at_goal(b, goal, rise, until)
        if begin < end:
            least = low[begin:end].min() if b < worst[first + s] else 0.0
        table[b % window * n + first + s] = least
        if first + s == start:
            found[:] = least


def settle_given(
    count, first, n, start, b, window, accrual, slope, goal, rise, until, action_start, outcome_start, probability,
    successor, cost, mean_cost, worst, state, entry, entry_start, low, high, stride, without, table, found,
):  # fmt: skip
    for s in range(first, first + count):
        value, t = (_at_goal(b, goal, rise, until), 0.0), state[s]
        if action_start[s] < action_start[s + 1]:
            left = min(max(b, low[t]), high[t])
            number = without[t] if high[t] < low[t] else entry[entry_start[t] + (left - low[t]) * stride]
            a = int(action_start[s]) + int(number)
            outcomes = slice(outcome_start[a], outcome_start[a + 1])
            line, over = _back(b, window, cost[outcomes])
            after, p = table[line * n + successor[outcomes]], probability[outcomes]
            mean = mean_cost[a] + p @ after[:, 1]
            value = accrual * mean_cost[a] + p @ (after[:, 0] + slope * over), mean
        table[b % window * n + s] = value
        if s == start:
            found[:] = value


def _by_layer(settle, lanes):
    """A kernel for narrow layers, by one for a wide one."""

    def settle_layers(count, layer_start, *about):
        for first, last in zip(layer_start[:-1].tolist(), layer_start[1:].tolist(), strict=True):
            settle(lanes * (last - first), first, *about)

    return settle_layers


def _owners(start):
    return np.repeat(np.arange(len(start) - 1), np.diff(start.astype(np.int64)))


def ends(n_actions, action_start, outcome_start, probability, successor, leave):
    goal = np.diff(action_start.astype(np.int64)) == 0
    leave[:] = np.bincount(_owners(outcome_start), probability * goal[successor], minlength=n_actions)


def _repeated(action_start, outcome_start, probability, successor, k, x):
    action, state = _owners(outcome_start), _owners(action_start)
    moves = successor != state[action]
    total = k + np.bincount(action, np.where(moves, probability * x[successor], 0.0), minlength=len(k))
    away = np.bincount(action, np.where(moves, probability, 0.0), minlength=len(k))
    loops = np.bincount(action, ~moves, minlength=len(k)) > 0
    return np.where(loops, np.where(away > 0, total / away, np.inf), total)


def _best(action_start, total):
    """The least total of each state, and its action; goals have none."""
    acting = np.flatnonzero(np.diff(action_start.astype(np.int64)))
    first = action_start[:-1][acting].astype(np.int64)
    least = np.minimum.reduceat(total, first)
    at = np.flatnonzero(total == np.repeat(least, np.diff(np.append(first, len(total)))))
    return acting, least, at[np.searchsorted(at, first)]


def relax(count, n, action_start, outcome_start, probability, successor, k, leave, x, new, gone):
    total = _repeated(action_start, outcome_start, probability, successor, k, x)
    acting, least, best = _best(action_start, total)
    new[:], gone[:] = 0.0, 0.0
    new[acting], gone[acting] = least, leave[best]


def tally(n_threads, n, x, new, gone, sums):
    for row, terms in enumerate((new - x, np.abs(new - x), gone, new)):
        sums[row * n_threads : (row + 1) * n_threads] = np.bincount(np.arange(n) % n_threads, terms)


def shift(n, change, x):
    x[x > 0] = np.maximum(x + change, 0.5 * x)[x > 0]


def claim(
    n_threads, n, action_start, outcome_start, probability, successor, k, unit, x, luck, chosen, least, most
):  # fmt: skip
    action, state = _owners(outcome_start), _owners(action_start)
    acting, _, best = _best(action_start, _repeated(action_start, outcome_start, probability, successor, k, x))
    chosen[acting] = best - action_start[:-1][acting]

    def rises(y):
        rise = probability * (y[successor] - y[state[action]])
        return (np.bincount(action, terms, minlength=len(k)) for terms in (rise, np.abs(rise)))

    (rise, size), (climb, reach) = rises(x), rises(x + luck)
    gap, error, fall = k + rise, unit * (np.abs(k) + size), -climb - unit * reach
    needed = error - gap
    needed[best] = error[best] + np.abs(gap[best])
    bad = ~(np.isfinite(needed) & ((needed <= 0) | (fall > 0)))
    lowest = np.where(bad, np.inf, np.where(needed > 0, needed / fall, 0.0))
    highest = np.where(~bad & (needed <= 0) & (fall < 0), needed / fall, np.inf)
    least[:], most[:] = 0.0, np.inf
    np.maximum.at(least, state % n_threads, lowest)
    np.minimum.at(most, state % n_threads, highest)
    if not ((x + luck >= 0) & np.isfinite(x)).all():
        least[0] = np.inf


def _added(a, b, up):
    total = a + b
    part = total - a
    lack = (a - (total - part)) + (b - part)
    return np.where(lack > 0 if up else lack < 0, np.nextafter(total, np.inf if up else -np.inf), total)


def enclose(n, factor, luck, x, lower, upper):
    error = factor * (x + luck)
    lower[:], upper[:] = np.maximum(_added(x, -error, False), 0.0), _added(x, error, True)
    x[:] = np.clip(x, lower, upper)


def _after(outcome_start, successor, cost, value):
    return np.maximum.reduceat(value[successor] + cost.astype(np.int64), outcome_start[:-1].astype(np.int64))


def begin_worst(n, action_start, value):
    value[:] = np.where(np.diff(action_start.astype(np.int64)) == 0, 0, UNREACHED)


def lower_worst(n, action_start, outcome_start, successor, cost, value, changed):
    acting, least, _ = _best(action_start, _after(outcome_start, successor, cost, value))
    if (least < value[acting]).any():
        value[acting] = np.minimum(value[acting], least)
        changed[0] = 1


def worst_after(n_actions, outcome_start, successor, cost, value, after):
    after[:] = np.minimum(_after(outcome_start, successor, cost, value), UNREACHED)


def fill_past(items, first, count, width, slope, plan, delay, base, base_mean, excess, mean):
    n, t = len(delay), first + np.arange(count)
    excess.reshape(n, width)[:, t % width] = base[:, None] - slope * (t - delay[:, None])
    if plan:
        mean.reshape(n, width)[:, t % width] = base_mean[:, None]


def settle_nodes(
    grid, first, last, width, rows, n_states, accrual, slope, goal, rise, until, tie, plan, node, action_start,
    outcome_start, outcome, mean_cost, delay, base, base_mean, worst, action_worst, calm, base_choice, excess, mean,
    choice, lost,
):  # fmt: skip
    assert grid == (len(node), -(-(last - first) // BLOCK))
    outcome = outcome.view([("p", np.float64), ("successor", np.int32), ("back", np.int32)])
    n = len(delay)
    excess, mean = excess.reshape(n, width), mean.reshape(n, width) if plan else mean
    t = np.arange(first, last)

    def added_up(a, value, table):
        total = np.full(len(t), value)
        for each in outcome[outcome_start[a] : outcome_start[a + 1]]:
            total += each["p"] * table[each["successor"], (t - each["back"]) % width]
        return total

    for s in node.tolist():
        b, actions = t - int(delay[s]), range(action_start[s], action_start[s + 1])
        gone, safe, still = b <= 0, b >= worst[s], b >= calm[s]
        least = second = np.where(b <= until, goal + rise * b, 0.0)
        if len(actions) > 0:
            u = np.array([added_up(a, accrual * mean_cost[a], excess) for a in actions])
            least = np.where(safe, 0.0, u.min(axis=0))
            second = u <= least * (1 + tie)
        excess[s, t % width] = np.where(gone, base[s] - slope * b, least)
        if not plan:
            continue
        if len(actions) == 0:
            mean[s, t % width] = np.where(gone, base_mean[s], 0.0)
            continue
        m = np.array([added_up(a, mean_cost[a], mean) for a in actions])
        allowed = np.where(safe, action_worst[actions.start : actions.stop, None] <= b, second)
        m = np.where(allowed, m, np.inf)
        chosen = np.where(still, base_choice[s], m.argmin(axis=0))
        mean[s, t % width] = np.where(gone | still, base_mean[s], m.min(axis=0))
        taken = np.take_along_axis(u, chosen[None].astype(np.int64), axis=0)[0]
        more = (taken / least - 1)[~(gone | safe | still) & (least > 0)]
        lost[0] = max(lost[0], more.max(initial=0.0))
        if s < n_states:
            choice[(b % rows)[~gone], s] = chosen[~gone]


KERNELS = {
    "levels": {
        "settle_plan": settle_plan,
        "settle_bound": settle_bound,
        "settle_plan_layers": _by_layer(settle_plan, LANES),
        "settle_bound_layers": _by_layer(settle_bound, 1),
        "settle_given": settle_given,
        "settle_given_layers": _by_layer(settle_given, 1),
    },
    "values": {
        each.__name__: each
        for each in (ends, relax, tally, shift, claim, enclose, begin_worst, lower_worst, worst_after)
    },
    "tiles": {"fill_past": fill_past, "settle_nodes": settle_nodes},
}  # fmt: skip
