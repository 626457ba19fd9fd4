"""Costs in levels and back, against whole numbers and fractions counted along runs."""

from math import ceil

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import prudent
from oracles import best_luck
from prudent.engine.cost_scale import multiple
from prudent.engine.prepare import prepare
from strategies import cases, examples, solvable


def run_of(case, prepared, random):
    """Yield the state and what has been spent in it, in the case's whole units, along a run; and the least by luck."""
    model = prepared.model
    kept = {*prepared.model_action.tolist(), *prepared.members.inner_action.tolist()} - {-1}
    usable = {(model.state(model.state_of_action(a)), model.action(a)) for a in kept}
    raw = {s: [o if (s, i) in usable else [] for i, o in enumerate(a)] for s, a in case.raw.items()}
    luck = best_luck({s: [o for o in a if o] for s, a in raw.items()})
    state, spent = random.choice(list(case.start)), 0
    yield state, spent, luck
    for _ in range(12):
        if not raw[state]:
            return
        _, after, cost = random.choice(random.choice([o for o in raw[state] if o]))
        state, spent = after, spent + cost
        yield state, spent, luck


@settings(max_examples=examples(60))
@given(case=cases(), random=st.randoms(use_true_random=False))
def test_without_rounding_levels_and_units_are_each_others_inverse(case, random):
    with solvable():
        prepared = prepare(case.model)
    scale, model, levels, before = prepared.scale, prepared.model, None, None
    assert not scale.rounded and scale.resolution == scale.level_size and scale.notes == ()
    for name, whole, luck in run_of(case, prepared, random):
        state, spent = model.index(name), whole * case.step
        first = min(luck[s] for s in case.start)
        if levels is None:
            levels, left_out = scale.first(state)
            assert (levels, left_out) == (scale.first_charge(state), 0)
        else:
            cost = spent - before[1]
            levels += int(scale.charged(cost, before[0], state))
        assert levels * scale.level_size == pytest.approx((whole + luck[name] - first) * case.step, abs=1e-12)
        assert scale.used(state, spent, 0) == scale.measured(state, spent, 0) == levels
        assert scale.total(levels, state) == pytest.approx(spent, rel=1e-15, abs=1e-15)
        assert scale.nearest(spent * (1 + 1e-14)) == scale.total(levels, state)
        if model.is_goal[state]:
            assert scale.in_units(levels) == pytest.approx(spent, rel=1e-14, abs=1e-14)
            assert scale.in_levels(spent) == pytest.approx(levels, abs=1e-12)
            assert scale.level_within(np.nextafter(spent, -np.inf)) == levels
            assert scale.level_within(spent - 1e-6 * scale.level_size) == levels - 1
        before = state, spent


@settings(max_examples=examples(60))
@given(case=cases(steps=(1.0, 0.5, 7.0)), parts=st.sampled_from([2, 3, 5]), random=st.randoms(use_true_random=False))
def test_rounded_costs_are_charged_one_by_one_and_their_sum_as_a_whole(case, parts, random):
    assume(any(c for actions in case.raw.values() for o in actions for _, _, c in o))
    with solvable():
        prepared = prepare(case.model, parts * case.step)
    scale, model, levels, left_out, before = prepared.scale, prepared.model, None, 0.0, None
    assume(scale.rounded and scale.slip == 0)
    assert (scale.resolution, scale.level_size, scale.nearest(0.123)) == (0.0, parts * case.step, 0.123)
    assert scale.notes == (f"costs were rounded to multiples of {parts * case.step:g}",)
    for name, whole, luck in run_of(case, prepared, random):
        state, first = model.index(name), min(luck[s] for s in case.start)
        if levels is None:
            assert scale.first(state)[0] == ceil((luck[name] - first) / parts)
            levels, left_out = scale.first(state)
        else:
            cost = whole - before[1]
            normalised = cost + luck[name] - luck[before[0]]
            charge = int(scale.charged(cost * case.step, model.index(before[0]), state))
            assert charge == ceil(normalised / parts)
            levels, left_out = levels + charge, left_out + normalised / parts - charge
        truth = (whole + luck[name] - first) / parts
        assert levels + left_out == pytest.approx(truth, abs=1e-12)
        assert scale.used(state, whole * case.step, 0) == scale.measured(state, whole * case.step, 0) == ceil(truth)
        assert ceil(truth) <= levels
        before = name, whole


@pytest.fixture
def stairs():
    """Costs of -1.5 or 2.5, then of 1 or 5: levels of 4 above the best of luck, which is -0.5."""
    model = prudent.build(
        "s", {"s": {"a": [(0.5, "t", -1.5), (0.5, "t", 2.5)]}, "t": {"b": [(0.5, "g", 1), (0.5, "g", 5)]}}
    )
    return model, prepare(model).scale


def test_negative_costs_are_counted_from_the_best_of_luck(stairs):
    model, scale = stairs
    assert (scale.in_units(0), scale.level_size, scale.lattice.step, scale.stride) == (-0.5, 4, 0.5, 8)
    assert scale.totals(np.arange(3)).tolist() == [-0.5, 3.5, 7.5]
    assert scale.totals(np.arange(2), model.index("t")).tolist() == [-1.5, 2.5]


def test_what_no_run_has_spent_is_no_level(stairs):
    model, scale = stairs
    t = model.index("t")
    assert [scale.used(t, spent, 0) for spent in (-5.5, -1.5, 0.5, 2.5, 6.5)] == [None, 0, None, 1, 2]
    with pytest.raises(
        prudent.PrudentError,
        match=r"multiple of the model's cost step 0\.5, such as -1\.5 or 2\.5; round a measured cost up",
    ):
        scale.used(t, 0.7, 0)
    with pytest.raises(prudent.PrudentError, match=r"step 0\.5, such as 2\.5; round a measured cost up"):
        scale.used(t, -1.7, 1)
    assert scale.used(t, 2.5 + 1e-9, 0) == 1
    with pytest.raises(prudent.PrudentError, match=r"spent is 2\.50000"):
        scale.used(t, 2.5 + 1e-7, 0)
    with pytest.raises(prudent.PrudentError, match="spent is nan; it must be a finite number"):
        scale.used(t, float("nan"), 0)


def test_what_was_measured_is_rounded_up_and_never_below_the_least(stairs):
    model, scale = stairs
    t = model.index("t")
    assert [scale.measured(t, spent, 0) for spent in (-9.0, -1.5, -1.4, 2.5, 2.5 + 1e-12, 2.6)] == [0, 0, 1, 1, 1, 2]
    assert scale.measured(t, -9.0, 1) == 1


def test_totals_beyond_all_whole_numbers_keep_their_size(stairs):
    model, scale = stairs
    t = model.index("t")
    assert scale.measured(t, 1e300, 0) == scale.measured(t, 1e301, 0) == -(-(2**62 + 3) // 8)
    assert scale.used(t, -1e300, 0) is None
    far = np.array([0, 2**60, 2**62])
    assert scale.totals(far) == pytest.approx(-0.5 + 4.0 * far, rel=1e-15)


def test_costs_on_a_fine_lattice_give_up_the_slip_from_below():
    model = prudent.build("s", {"s": {"a": [(0.5, "g", 2**0.5), (0.5, "g", 1.0)], "b": [(1, "g", np.pi)]}})
    scale = prepare(model, 0.1).scale
    assert scale.rounded and scale.slip > 0
    steps = np.array([0, scale.slip, scale.slip + 3, 10**6])
    assert scale.surely(steps).tolist() == [0, 0, 3, 10**6 - scale.slip]
    assert scale.in_units(0) == pytest.approx(1, rel=1e-12)
    assert int(scale.charged(2**0.5, 0, 1)) == 5  # 0.414... above the best of luck, in steps of 0.1
    assert scale.unrounded(scale.normalised(2**0.5, 0, 1)) == pytest.approx((2**0.5 - 1) / 0.1, rel=1e-9)
    assert scale.used(0, -1e-17, 0) == 0


def test_one_rounding_below_the_least_is_taken_for_it():
    model = prudent.build("s", {"s": {"a": [(1, "t", 0.1 + 2**0.5)]}, "t": {"b": [(0.5, "g", 1.0), (0.5, "g", 2.3)]}})
    scale, t = prepare(model).scale, model.index("t")
    least = 0.1 + 2**0.5
    assert scale.rounded
    assert [scale.used(t, spent, 0) for spent in (least, np.nextafter(least, 0), least - 0.1)] == [0, 0, None]


@pytest.mark.parametrize(
    ("large", "small", "is_one"),
    [
        (0.3, 0.1, True),
        (1.0, 1 / 3, True),
        (1.0, 0.3, False),
        (0.1, 0.3, False),
        (7.0, 7.0, True),
        (1.0, 0.9999, False),
    ],
)
def test_multiples_are_told_to_rounding(large, small, is_one):
    assert multiple(large, small) is is_one


def test_what_is_too_fine_to_count_is_no_multiple():
    assert not multiple(1e16, 1.0)
    assert not multiple(1.0, 0.0)
    assert not multiple(1.0, np.inf)
