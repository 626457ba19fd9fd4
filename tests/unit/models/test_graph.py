"""Components in order: by the states' numbers, in turns, or from state to state; and layers of acyclic graphs."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from prudent.models import graph
from prudent.models.graph import SMALL, ordered_blocks, reachable, towards
from prudent.models.rows import Rows, offsets, owner, starts


@pytest.fixture
def in_turns(monkeypatch):
    """Search small graphs as large ones are."""
    monkeypatch.setattr(graph, "LARGE", 0)


def by_source(source, target, n):
    """Return arcs as rows."""
    order = np.argsort(source, kind="stable")
    return starts(source, n), target[order]


def check_layers(order, arc_start, target):
    """Check that a state leads only to states of parts that come before its own layer, both ways."""
    for part, after, state in (order.backwards, order.forwards):
        place, n = np.full(len(arc_start) - 1, -1), len(state)
        place[state] = np.searchsorted(part, np.arange(n), side="right") - 1
        source = owner(arc_start)
        known = place[source] >= 0
        first, last = place[source[known]], place[target[known]]
        if part is not order.part:
            first, last = last, first
        assert (last < after[first]).all()
        assert (after <= np.arange(len(after))).all()
        assert part[0] == 0
        assert part[-1] == n


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("first", [0, 7, 11])
def test_numbers_give_the_order(monkeypatch, seed, direction, first):
    """States but the start lead to higher numbers, or to lower ones; where all are reached, no search is needed."""
    rng = np.random.default_rng(seed)
    n, m = 12, 40
    low, high = np.sort(rng.integers(0, n - 1, (2, m)), axis=0)
    low, high = np.append(low[low < high], -1), np.append(high[low < high], 0)  # the start leads to the lowest
    name = np.delete(np.arange(n)[::direction], n - 1 - first if direction < 0 else first)
    name = np.append(name, first)  # the last one is number -1
    arc_start, target = by_source(name[low], name[high], n)
    found = ordered_blocks(arc_start, target, first)
    known = reachable(name[low], name[high], n, np.array([first]))
    assert found.acyclic
    assert np.array_equal(found.blocks[2] >= 0, known)
    assert (found.blocks[2][name[low]] >= found.blocks[2][name[high]])[known[name[low]]].all()
    check_layers(found, arc_start, target)
    if known.all():
        monkeypatch.delattr(graph, "strong_components")
        again = ordered_blocks(arc_start, target, first)
        assert all(np.array_equal(a, b) for a, b in zip(found.blocks, again.blocks, strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_turns_find_the_same_components(in_turns, seed):
    rng = np.random.default_rng(seed)
    n, m = 12, int(rng.integers(10, 60))
    source, target = rng.integers(0, n - 2, m), rng.integers(0, n, m)
    arc_start, target = by_source(source, target, n)
    for start in (-1, 0):
        found = ordered_blocks(arc_start, target, start)
        block_start, block_state, block_of = found.blocks
        known = np.ones(n, dtype=bool) if start < 0 else reachable(owner(arc_start), target, n, np.array([start]))
        assert np.array_equal(block_of >= 0, known)
        assert np.array_equal(np.sort(block_state), np.flatnonzero(known))
        inside = known[owner(arc_start)]
        assert (block_of[owner(arc_start)] >= block_of[target])[inside].all()
        matrix = csr_array((np.ones(len(target)), (owner(arc_start), target)), shape=(n, n))
        _, label = connected_components(matrix, connection="strong")
        assert len(block_start) - 1 == len(np.unique(label[known]))
        for block in range(len(block_start) - 1):
            members = block_state[block_start[block] : block_start[block + 1]]
            assert len(np.unique(label[members])) == 1


def test_one_component_is_found_in_turns(in_turns, monkeypatch):
    monkeypatch.delattr(graph, "strong_components")
    arc_start, target = by_source(np.array([0, 1, 2, 2, 5]), np.array([1, 2, 0, 3, 0]), 6)
    block_start, block_state, block_of = ordered_blocks(arc_start, target, 1).blocks
    assert block_start.tolist() == [0, 1, 4]
    assert block_state.tolist() == [3, 0, 1, 2]
    assert block_of.tolist() == [1, 1, 1, 0, -1, -1]


def test_a_deep_component_is_found_from_state_to_state(in_turns):
    n = 20 * graph.TURNS
    arc_start, target = np.arange(n + 1), np.roll(np.arange(n), 1)  # against the order in which turns go
    assert ordered_blocks(arc_start, target, n // 2).blocks[0].tolist() == [0, n]


def test_a_wide_layer_is_cut_into_parts():
    width, arcs = 4 * SMALL, 3
    n = 2 * width
    arc_start = offsets(np.repeat([arcs, 0], width))
    target = np.random.default_rng(0).integers(width, n, width * arcs)
    found = ordered_blocks(arc_start, target)
    assert np.unique(found.after).tolist() == [0, (found.after == 0).sum()]  # two layers
    assert 10 < len(found.after) < 40
    check_layers(found, arc_start, target)


def test_states_that_may_get_stuck_are_found_in_few_rounds_whatever_their_numbers(monkeypatch):
    n, rng = 2000, np.random.default_rng(0)
    order = rng.permutation(n)
    successor = np.empty((n, 2), dtype=np.int64)
    successor[:, 0] = n  # the goal
    successor[order, 1] = np.append(order[1:], n + 1)  # at the end of the chain is a trap
    rows = Rows()
    rows.action_start, rows.outcome_start = np.append(np.arange(n + 1), [n, n + 1]), np.arange(0, 2 * n + 3, 2)
    inside, searches = np.ones(n + 1, dtype=bool), []
    monkeypatch.setattr(graph, "towards", lambda *given: searches.append(given) or towards(*given))
    reaches = graph.almost_sure(rows, np.append(successor.ravel(), [n + 1, n + 1]), inside)
    assert np.flatnonzero(reaches).tolist() == [n] and not inside.any()
    assert len(searches) <= 3
