"""Outcome lists that actions share, and the layers of states and lists, against a plain search."""

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.sweep.nodes import FEW, actions_alike
from prudent.engine.sweep.tile_layout import Rules, lay_out, plain_tiling
from prudent.models.rows import offsets, owner
from prudent.runtime.limits import Limits


@pytest.fixture(params=[1, 3])
def threads(request, monkeypatch):
    """Let so many threads share the smallest parts."""
    monkeypatch.setattr("prudent.runtime.team.GRAIN", 4)
    monkeypatch.setattr("prudent.runtime.team.SHARE", 1)
    return request.param


def staged(seed, n=40):
    """Return a model of stages, half of whose actions have the outcomes of another one, up to a shift."""
    rng = np.random.default_rng(seed)
    table, rows = {}, []
    for s in reversed(range(n)):
        table[s] = {}
        for a in range(int(rng.integers(1, 5))):
            if rows and rng.random() < 0.5:
                row, shift = rows[rng.integers(len(rows))], int(rng.integers(4))
                table[s][a] = [(p, t, cost + shift) for p, t, cost in row]
                continue
            size = int(rng.integers(1, 6))
            chance, target = rng.dirichlet(np.ones(size)).tolist(), rng.integers(s + 1, n + 1, size).tolist()
            rows.append(list(zip(chance, target, rng.integers(0, 9, size).tolist(), strict=True)))
            table[s][a] = rows[-1]
    return prudent.build({s: 1 / n for s in range(n)}, table)


def listed(start, *columns):
    """Return each action's outcomes, costs less the least, as a tuple."""
    found = []
    for first, last in pairwise(start):
        successor, cost, bits = (column[first:last] for column in columns)
        found.append((*successor, *(cost - cost[0]), *bits))
    return found


def assert_alike(start, successor, cost, probability, threads):
    like, shift, shared = actions_alike(start, successor, cost, probability, threads)
    rows, size = listed(start, successor, cost, probability.view(np.uint64)), np.diff(start)
    expected = [rows.index(row) if size[a] >= FEW else a for a, row in enumerate(rows)]
    assert like.tolist() == expected
    assert np.array_equal(shift, cost[start[:-1]])
    others = np.arange(len(rows)) != like
    assert np.array_equal(np.flatnonzero(shared), np.unique(like[others]))
    return others.sum()


@pytest.mark.parametrize("seed", range(5))
def test_actions_with_the_same_outcomes_are_found(seed, threads):
    prepared = prepare(staged(seed), None, Limits.of(None, None, threads=threads))
    assert assert_alike(prepared.outcome_start, prepared.successor, prepared.cost, prepared.probability, threads) > 0


def test_actions_that_share_a_hash_alone_share_nothing(threads):
    # Outcomes are mixed by exclusive or of probability and multiplied successor: here that is the same for all of them.
    number = np.array([5, 3, 5, 7, 3, 7, 5, 9, 3, 9, 9, 5], dtype=np.uint64)
    successor = np.repeat(number, FEW)
    bits = successor * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(12345)
    start = FEW * np.arange(len(number) + 1)
    cost = np.tile(np.arange(FEW), len(number)) + np.repeat(np.arange(len(number)), FEW)
    like, _, shared = actions_alike(start, successor.astype(np.int64), cost, bits.view(np.float64), threads)
    assert like.tolist() == [0 if each == 5 else a for a, each in enumerate(number)]
    assert np.flatnonzero(shared).tolist() == [0]


def longest_path(graph, node, known):
    if node not in known:
        known[node] = max((longest_path(graph, t, known) + 1 for t in graph[node]), default=0)
    return known[node]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("plain", [False, True])
def test_layers_delays_and_rows(seed, plain, threads):
    prepared = prepare(staged(seed), None, Limits.of(None, None, threads=threads))
    tiling = plain_tiling(prepared) if plain else lay_out(prepared, Rules())
    work, n = tiling.work, tiling.n_nodes
    assert (len(tiling.heads) == 0) == plain
    arc_start = work.outcome_start[work.action_start]
    graph = [work.successor[arc_start[s] : arc_start[s + 1]].tolist() for s in range(n)]
    known = {}
    layer = np.array([longest_path(graph, s, known) for s in range(n)])
    assert tiling.layer_start.tolist() == offsets(np.bincount(layer)).tolist()
    assert work.group_node.tolist() == np.argsort(layer, kind="stable").tolist()
    assert tiling.rounding.sums == layer.max() + 2
    source = owner(arc_start)
    for node in range(prepared.n_states, n):
        into = work.successor == node
        assert into.sum() > 1
        assert work.delay[node] == (work.delay[source] + work.cost)[into].min()
    assert np.array_equal(work.delay[: prepared.n_states], prepared.least_spent)
    assert tiling.back == (work.cost + work.delay[source] - work.delay[work.successor]).max()
    assert tiling.longest == np.diff(work.outcome_start).max()
    last = layer.copy()
    np.maximum.at(last, work.successor, layer[source])
    inner = np.flatnonzero(np.diff(work.action_start) > 0)
    for s in inner:
        also = (tiling.row[inner] == tiling.row[s]) & (layer[inner] <= last[s]) & (last[inner] >= layer[s])
        assert inner[also].tolist() == [s]


@pytest.mark.parametrize("seed", range(3))
def test_the_layout_is_the_same_for_any_number_of_threads(seed, monkeypatch):
    monkeypatch.setattr("prudent.runtime.team.GRAIN", 4)
    monkeypatch.setattr("prudent.runtime.team.SHARE", 1)
    found = []
    for threads in (1, 4):
        limits = Limits.of(None, None, threads=threads)
        found.append(lay_out(prepare(staged(seed, 200), None, limits), Rules()))
    one, several = found
    for name in [field.name for field in fields(one) if field.name not in ("prepared", "work")]:
        assert np.array_equal(getattr(one, name), getattr(several, name)), name
    for name, mine, other in zip(one.work._fields, one.work, several.work, strict=True):
        assert np.array_equal(mine, other), name
