"""What a prepared model knows of itself: the same with any number of threads."""

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.sweep.tile_layout import tiling_of
from prudent.engine.values.worst_case import least_worst_case, worst_case_of
from prudent.models import graph
from prudent.runtime import team
from prudent.runtime.limits import Limits

GIVEN = ("action_start", "outcome_start", "free_stop", "probability", "successor", "fine", "cost", "mean_cost", "plays")


def random_model(n, *, cyclic, seed=0, initial=0):
    """Return a model of stages of ten states, or one whose outcomes lead anywhere; some of its outcomes are equal."""
    rng = np.random.default_rng(seed)
    size = 2 * n, 4
    stage = (np.arange(2 * n) // 20 * 10)[:, None]
    successor = rng.integers(0, n, size) if cyclic else stage + rng.integers(10, 20, size)
    successor[:, 0] = n
    return prudent.from_arrays(
        np.minimum(2 * np.arange(n + 2), 2 * n),
        4 * np.arange(2 * n + 1),
        rng.dirichlet(np.ones(4), 2 * n).ravel(),
        np.minimum(successor, n).ravel(),
        rng.integers(0 if cyclic else -2, 6, 8 * n).astype(float) + 2.0 * (successor.ravel() == n),
        initial=initial,
    )


def all_of(prepared):
    """Return everything that is computed in parts."""
    worst, choice = least_worst_case(prepared), prepared.proper_choice()
    found = [getattr(prepared, name) for name in GIVEN]
    found += [*prepared.blocks, *prepared.free_blocks, prepared.graph.distance, prepared.least_spent, choice]
    found += [worst.value, worst.action_value, worst_case_of(prepared, choice)]
    return found


@pytest.mark.parametrize("cyclic", [False, True])
@pytest.mark.parametrize("initial", [0, {s: 0.1 for s in range(10)}])
def test_threads_prepare_the_same_bits(monkeypatch, cyclic, initial):
    model = random_model(300, cyclic=cyclic, initial=initial)
    alone = all_of(prepare(model))
    for name, value in (("SHARE", 1), ("GRAIN", 50)):
        monkeypatch.setattr(team, name, value)
    together = all_of(prepare(model, None, Limits.of(None, None, threads=3)))
    assert len(alone) == len(together)
    for one, other in zip(alone, together, strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_component_found_in_turns_is_prepared_the_same(monkeypatch):
    model = random_model(300, cyclic=True)
    alone = all_of(prepare(model))
    monkeypatch.setattr(graph, "LARGE", 0)
    for one, other in zip(alone, all_of(prepare(model)), strict=True):
        assert one.tobytes() == other.tobytes()


def test_the_least_spent_far_from_the_start():
    """A cycle of many states takes more turns than there are: then states are settled one by one."""
    n = 500
    table = {s: {0: [(0.5, (s - 1) % n, 1), (0.5, "end", 1)]} for s in range(n)}
    prepared = prepare(prudent.build(0, table))
    place = prepared.members.state_of[[prepared.model.index(s) for s in range(n)]]
    assert prepared.least_spent[place].tolist() == [(n - s) % n * prepared.cost.max() for s in range(n)]


def test_tiles_that_are_too_long_for_most_outcomes_are_not_tried(monkeypatch):
    prepared = prepare(random_model(300, cyclic=True))
    monkeypatch.delattr("prudent.engine.sweep.tile_layout._cyclic")
    assert tiling_of(prepared) is None
