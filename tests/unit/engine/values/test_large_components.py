"""Large components: every way to evaluate a policy there, against closed forms and each other."""

from fractions import Fraction

import numpy as np
import pytest

import prudent
from brackets import brackets, widest
from prudent.engine.prepare import prepare
from prudent.engine.values import bellman as rounds
from prudent.engine.values import large_components as large
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.runtime.limits import UNLIMITED, Limits

WAYS = ["dense", "band", "lu", "krylov"]


def no_factor(rows, most, ordered=False):
    return None


@pytest.fixture
def way(request, monkeypatch):
    """Force one way of evaluating policies, whatever the size of the component."""
    monkeypatch.setattr(rounds, "DENSE", 10_000 if request.param == "dense" else 1)
    if request.param in ("band", "lu"):
        monkeypatch.setattr(large, "THIN", 1e11 if request.param == "band" else -1.0)
        monkeypatch.setattr(large, "STEPS", 0)
        monkeypatch.setattr(large, "BANDED", 1e11 if request.param == "band" else -1.0)
    if request.param == "krylov":
        monkeypatch.setattr(large, "_factor", no_factor)
    return request.param


def chain(n, up, *, jump=False):
    """Climb from 0 to n, one up with chance ``up``, else one down; with ``jump``, dearer ways that never pay."""

    def actions(s):
        if s == n:
            return {}
        walk = {"walk": [(up, s + 1, 1), (1 - up, max(s - 1, 0), 1)]}
        return {**walk, "back": [(1.0, 0, 1)], "dear": [(up, s + 1, 2), (1 - up, max(s - 1, 0), 1)]} if jump else walk

    return prudent.build(0, actions)


def chain_truth(n, up):
    """Expected numbers of steps: h(s) from s to s + 1 is (1 + down h(s - 1)) / up."""
    up, hops = Fraction(up), []
    for _ in range(n):
        hops.append((1 + (1 - up) * hops[-1] if hops else 1) / up)
    total, truth = Fraction(0), [Fraction(0)]
    for hop in reversed(hops):
        total += hop
        truth.append(total)
    return truth[::-1]


def grid(width, slip):
    def actions(place):
        if place == (width - 1, width - 1):
            return {}

        def move(dx, dy):
            return min(max(place[0] + dx, 0), width - 1), min(max(place[1] + dy, 0), width - 1)

        price = 1 + (place[0] * 7 + place[1] * 13) % 5
        return {
            name: [(1 - 2 * slip, move(dx, dy), price), (slip, move(dy, dx), 1), (slip, move(-dx, -dy), 2)]
            for name, dx, dy in (("east", 1, 0), ("north", 0, 1), ("west", -1, 0), ("south", 0, -1))
        }

    return prudent.build((0, 0), actions)


def mesh(n, leave, seed=0):
    """Random successors: one component that mixes at once and is left with chance ``leave`` or more."""
    rng = np.random.default_rng(seed)
    n_actions = 2 * n
    successor = rng.integers(0, n, size=(n_actions, 3))
    successor[:, 0] = n
    probability = np.empty((n_actions, 3))
    probability[:, 0] = leave * rng.choice([1.0, 1.5], size=n_actions)
    probability[:, 1] = (1 - probability[:, 0]) * rng.choice([0.5, 0.25], size=n_actions)
    probability[:, 2] = 1 - probability[:, 0] - probability[:, 1]
    starts = np.append(np.arange(0, n_actions + 1, 2), n_actions)
    cost = rng.integers(1, 6, size=successor.size)
    return prudent.from_arrays(starts, np.arange(0, 3 * n_actions + 1, 3), probability.ravel(), successor.ravel(), cost)


def relative_width(least):
    positive = least.value > 0
    return ((least.upper - least.lower)[positive] / least.value[positive]).max()


@pytest.mark.parametrize("way", WAYS, indirect=True)
@pytest.mark.parametrize(("n", "up"), [(200, 5 / 8), (300, 5 / 8), (100, 1 / 2), (40, 31 / 64)])
def test_chains_against_their_closed_form(n, up, way):
    width = widest(*brackets(chain(n, up)), chain_truth(n, up))
    if up > 0.5 or way != "krylov":  # what mixes slowly is not for iterating
        assert width < 1e-10


@pytest.mark.parametrize("way", ["band", "lu"], indirect=True)
@pytest.mark.parametrize(("n", "up"), [(2000, 5 / 8), (2000, 1 / 2), (400, 31 / 64)])
def test_long_chains_by_factorising(n, up, way):
    assert widest(*brackets(chain(n, up, jump=True)), chain_truth(n, up)) < 1e-9


@pytest.mark.parametrize(("n", "up"), [(2000, 5 / 8), (2000, 1 / 2), (400, 31 / 64)])
def test_long_chains_as_they_come(n, up):
    assert widest(*brackets(chain(n, up, jump=True)), chain_truth(n, up)) < 1e-10


def test_a_chain_beyond_what_two_floats_hold():
    lower, upper = brackets(chain(600, 3 / 8))  # about 1e134
    assert widest(lower, upper, chain_truth(600, 3 / 8)) == np.inf
    assert [float(low) for low in lower] == [600 - s for s in range(601)]  # with luck


@pytest.mark.parametrize("n", [200, 800])  # in a dense and in a large component
def test_a_value_that_no_float_holds(n):
    model = chain(n, 1 / 64)
    least = least_expected_cost(prepare(model))
    truth = chain_truth(n, 1 / 64)
    assert truth[0] > 10**308
    assert least.lower[0] <= truth[0]
    assert least.upper[0] == np.inf


@pytest.mark.parametrize("slip", [0.1, 0.3])
@pytest.mark.parametrize("way", WAYS[1:], indirect=True)
def test_grids_by_every_way(slip, way, monkeypatch):
    prepared = prepare(grid(18, slip))
    one = least_expected_cost(prepared)
    monkeypatch.setattr(rounds, "DENSE", 10_000)
    other = least_expected_cost(prepared)
    assert relative_width(one) < 1e-11
    assert (one.lower <= other.upper).all() and (other.lower <= one.upper).all()


@pytest.mark.parametrize("leave", [1e-2, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("way", WAYS[1:], indirect=True)
def test_meshes_by_every_way(leave, way, monkeypatch):
    prepared = prepare(mesh(250, leave))
    one = least_expected_cost(prepared)
    monkeypatch.setattr(rounds, "DENSE", 10_000)
    other = least_expected_cost(prepared)
    assert relative_width(one) < 1e-12
    assert relative_width(other) < 1e-12
    assert (one.lower <= other.upper).all() and (other.lower <= one.upper).all()


@pytest.mark.parametrize("leave", [0.02, 1e-9])
def test_a_large_mesh_is_narrow_and_soon_done(leave, monkeypatch):
    evaluated = []
    evaluate = large.LargeBlock._evaluate
    monkeypatch.setattr(large.LargeBlock, "_evaluate", lambda *args: evaluated.append(1) or evaluate(*args))
    prepared = prepare(mesh(20_000, leave))
    assert relative_width(least_expected_cost(prepared)) < 1e-12
    assert 0 < len(evaluated) < 20


def test_what_would_fill_up_is_not_factorised():
    prepared = prepare(mesh(30_000, 0.02))
    (block,) = rounds.large_blocks(prepared, UNLIMITED)
    block._play(block.arcs.action_start[block.state])
    assert large._factor(block.rows, large.WORK) is None


def test_a_state_that_all_lead_to_does_not_widen_the_band(monkeypatch):
    n = 3000
    found = []
    hubs_of = large.hubs_of
    monkeypatch.setattr(large, "hubs_of", lambda rows: found.append(hubs_of(rows)) or found[-1])
    model = prudent.build(
        0, lambda s: {} if s == n else {"a": [(0.875, s + 1, 1), (0.125 - 2**-10, s, 1), (2**-10, 0, 1)]}
    )
    assert relative_width(least_expected_cost(prepare(model))) < 1e-11
    assert [(hub.sum(), width) for hub, width in found] == [(1, 1)] * len(found) != []


def test_without_any_way_the_bounds_are_wide_and_true(monkeypatch):
    monkeypatch.setattr(large, "_factor", no_factor)
    monkeypatch.setattr(large, "STEPS", 1)
    lower, upper = brackets(chain(400, 1 / 2))
    assert widest(lower, upper, chain_truth(400, 1 / 2)) == np.inf
    assert all(low >= 400 - s for s, low in enumerate(lower))


def ring(n, leave):
    """Return neighbours in a ring, each left with the same chance: near to a way out, but slow to mix."""

    def actions(s):
        if s == n:
            return {}
        return {up: [(leave, n, 1), (up - leave, (s + 1) % n, s % 5), (1 - up, (s - 1) % n, 2)] for up in (0.5, 0.625)}

    return prudent.build(0, actions)


@pytest.fixture
def in_phases(monkeypatch):
    """Let small components be cut into phases, and small work be shared."""
    monkeypatch.setattr(large, "MANY", 1)
    monkeypatch.setattr("prudent.runtime.team.SHARE", 1)


@pytest.mark.parametrize("model", [mesh(3000, 0.02), mesh(3000, 1e-9), ring(700, 0.001), chain(100, 5 / 8)])
def test_the_same_bits_for_any_number_of_threads(model, in_phases):
    def found(threads):
        least = least_expected_cost(prepare(model, None, Limits(10**9, threads=threads)))
        return least.value, least.lower, least.upper, least.choice, least.steps(), least.variance()

    for threads in (2, 5):
        assert all(np.array_equal(one, other) for one, other in zip(found(1), found(threads), strict=True))


@pytest.mark.parametrize("model", [mesh(500, 0.02), mesh(500, 1e-9), ring(300, 0.001)])
def test_in_phases_values_are_the_same(model, in_phases, monkeypatch):
    one = least_expected_cost(prepare(model))
    monkeypatch.setattr(rounds, "DENSE", 10_000)
    other = least_expected_cost(prepare(model))
    assert relative_width(one) < 1e-12
    assert (one.lower <= other.upper).all() and (other.lower <= one.upper).all()
    assert one.steps() == pytest.approx(other.steps(), rel=0.01)
    assert one.variance() == pytest.approx(other.variance(), rel=0.01)


def test_deep_components_are_not_cut(in_phases):
    blocks = [rounds.large_blocks(prepare(model), UNLIMITED) for model in (mesh(500, 0.02), chain(500, 5 / 8))]
    assert [block.cut.parts for (block,) in blocks] == [large.PARTS, 1]


@pytest.mark.parametrize(("model", "wide"), [(mesh(300, 0.02), 10), (ring(300, 0.001), 0), (chain(300, 5 / 8), 0)])
def test_what_is_surely_wide_is_never_narrow(model, wide):
    (block,) = rounds.large_blocks(prepare(model), UNLIMITED)
    block._play(block.arcs.action_start[block.state])
    hub, width = large.hubs_of(block.rows)
    told = [large.surely_wide(block.rows, most) for most in range(310)]
    assert all(told[: wide + 1])
    assert not any(told[width + hub.sum() :])


@pytest.mark.slow
def test_a_hundred_thousand_states():
    for leave in (0.02, 1e-9):
        assert relative_width(least_expected_cost(prepare(mesh(100_000, leave)))) < 1e-12
