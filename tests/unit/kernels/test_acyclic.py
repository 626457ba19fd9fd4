"""Models without cycles take a shorter way, to the same place."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, shortest_path

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import least_worst_case
from prudent.models.graph import ordered_blocks, reachable, towards
from prudent.models.rows import starts
from prudent.runtime.limits import Limits


def random_model(seed, *, with_cycle):
    """Return a model of stages; with a cycle that no run can reach, it goes the way of models with cycles."""
    rng = np.random.default_rng(seed)
    n = 12
    table = {}
    for s in range(n):
        table[s] = {}
        for a in range(int(rng.integers(1, 4))):
            size = int(rng.integers(1, 5))
            chance, target = rng.dirichlet(np.ones(size)), rng.integers(s + 1, n + 1, size)
            cost = rng.integers(-3, 9, size) / 4
            table[s][a] = list(zip(chance.tolist(), target.tolist(), cost.tolist(), strict=True))
    whole = prudent.build({s: 1 / n for s in range(n)}, table)
    loop = [(0.5, n + 1, 0.25), (0.5, n, 0.0)] if with_cycle else [(1.0, n, 0.0)]
    rows = np.array([[p, t, c] for p, t, c in loop])
    index = [whole.index(n) if t == n else whole.n_states for _, t, _ in loop]
    return prudent.from_arrays(
        np.append(whole.action_start, whole.n_actions + 1),
        np.append(whole.outcome_start, whole.n_outcomes + len(loop)),
        np.append(whole.probability, rows[:, 0]),
        np.append(whole.successor, index),
        np.append(whole.cost, rows[:, 2]),
        initial=whole.index(0),
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("step", [None, 0.4])
def test_the_short_way_and_the_long_way_meet(seed, step):
    short, long = (prepare(random_model(seed, with_cycle=cycle), step) for cycle in (False, True))
    assert short.acyclic
    for name in ("action_start", "outcome_start", "probability", "successor", "fine", "cost", "free_stop", "plays"):
        assert np.array_equal(getattr(short, name), getattr(long, name)), name
    assert np.array_equal(short.scale.luck[:-1], long.scale.luck[:-1])
    order = long.order._replace(part=np.empty(0, dtype=np.int64))  # as if there were cycles
    long = replace(long, graph=replace(long.graph, known=order))
    assert np.array_equal(least_worst_case(short).value, least_worst_case(long).value)
    assert np.array_equal(least_worst_case(short).action_value, least_worst_case(long).action_value)
    quick, slow = least_expected_cost(short), least_expected_cost(long)
    assert quick.value == pytest.approx(slow.value, rel=1e-15, abs=0)
    assert np.array_equal(quick.choice, slow.choice)
    assert np.allclose(quick.steps(), slow.steps(), rtol=1e-12)
    for bound in ("lower", "upper"):
        assert np.allclose(getattr(quick, bound), getattr(slow, bound), rtol=1e-12)
    assert (quick.lower <= quick.value).all()
    assert (quick.value <= quick.upper).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_same_bits_for_any_number_of_threads(seed, monkeypatch):
    monkeypatch.setattr("prudent.runtime.team.SHARE", 1)
    monkeypatch.setattr("prudent.models.graph.SMALL", 5)
    model = staged(30, 8, seed)

    def found(threads):
        least = least_expected_cost(prepare(model, None, Limits(10**9, threads=threads)))
        return least.value, least.lower, least.upper, least.choice, least.steps(), least.variance()

    for threads in (2, 5):
        assert all(np.array_equal(one, other) for one, other in zip(found(1), found(threads), strict=True))


def staged(stages, width, seed):
    """Return stages whose states lead one or two stages on."""
    rng = np.random.default_rng(seed)
    n = stages * width
    stage = np.repeat(np.arange(n) // width, 2)[:, None] + rng.integers(1, 3, (2 * n, 3))
    successor = np.minimum(stage * width + rng.integers(0, width, stage.shape), n)
    starts = np.append(np.arange(0, 2 * n + 1, 2), 2 * n)
    chance, cost = rng.dirichlet(np.ones(3), 2 * n), rng.integers(0, 9, successor.size)
    return prudent.from_arrays(
        starts, np.arange(0, 6 * n + 1, 3), chance.ravel(), successor.ravel(), cost.astype(float)
    )


@pytest.mark.parametrize("seed", range(30))
def test_searches_agree_with_scipy(seed):
    rng = np.random.default_rng(seed)
    n, m = 15, int(rng.integers(5, 40))
    source, target = rng.integers(0, n, m), rng.integers(0, n, m)
    if seed % 2:  # without cycles, in an order that does not show
        name = rng.permutation(n)
        low, high = np.minimum(source, target), np.maximum(source, target)
        source, target = name[low[low < high]], name[high[low < high]]
    ones = np.ones(len(source))
    matrix = csr_array((ones, (source, target)), shape=(n, n))
    found = np.zeros(n, dtype=bool)
    found[breadth_first_order(matrix, 0, return_predecessors=False)] = True
    assert np.array_equal(reachable(source, target, n, np.array([0])), found)

    marked = rng.random(n) < 0.2
    apart = shortest_path(matrix, unweighted=True)
    far = apart[:, marked].min(axis=1, initial=np.inf)  # from a marked state
    hop = towards(source, target, n, marked)
    assert np.array_equal(hop >= 0, np.isfinite(far) & ~marked)
    assert (apart[hop >= 0, hop[hop >= 0]] == 1).all()
    assert (far[hop[hop >= 0]] == far[hop >= 0] - 1).all()

    order = np.argsort(source, kind="stable")
    found = ordered_blocks(starts(source, n), target[order])
    block_start, block_state, block_of = found.blocks
    count, label = connected_components(matrix, connection="strong")
    assert len(block_start) - 1 == count
    assert (block_of[source] >= block_of[target]).all()
    assert np.array_equal(np.sort(block_state), np.arange(n))
    assert found.acyclic == (count == n and not (source == target).any())
    for block in range(count):
        members = block_state[block_start[block] : block_start[block + 1]]
        assert np.array_equal(members, np.flatnonzero(label == label[members[0]]))
