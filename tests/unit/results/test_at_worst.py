"""A policy's numbers in the worst model of a set."""

import numpy as np
import pytest

import prudent
from prudent.results.at_worst import _least
from prudent.runtime import limits

MODELS = {
    "without cycles": prudent.domains.betting_game(stages=5),
    "with shared lists": prudent.domains.inventory_control(stages=3, capacity=4, demand=3),
    "with cycles": prudent.build(
        "s",
        {
            "s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "wade": [(0.6, "s", 3), (0.4, "t", 0)]},
            "t": {"rest": [(0.5, "s", 0), (0.5, "g", 2)]},
        },
    ),
}


def intervals(model: prudent.SSP, width: float) -> prudent.Intervals:
    p = model.probability
    return prudent.Intervals(p - width * p * (1 - p), p + width * p * (1 - p))


@pytest.mark.parametrize("name", MODELS)
def test_of_a_robust_plan_they_are_the_plans_own(name):
    model = MODELS[name]
    sets = intervals(model, 0.4)
    plan = prudent.solve(model, 0.2, uncertainty=sets)
    worst = prudent.evaluate(model, plan.policy, uncertainty=sets).at_worst
    assert worst.cvar(0.2) == pytest.approx(plan.cvar, rel=1e-8)
    assert worst.mean == pytest.approx(plan.expected, rel=1e-8)
    assert worst.cvar(1) == worst.mean


@pytest.mark.parametrize("name", MODELS)
def test_no_plan_does_better_at_worst_than_the_robust_one(name):
    model = MODELS[name]
    sets = intervals(model, 0.4)
    robust = prudent.solve(model, 0.2, uncertainty=sets)
    for method in ("exact", "expected", "worst-case"):
        policy = prudent.solve(model, 0.2, method=method).policy
        assert prudent.evaluate(model, policy, uncertainty=sets).at_worst.cvar(0.2) >= robust.lower * (1 - 1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_where_nothing_is_uncertain_they_are_those_of_the_model(name):
    model = MODELS[name]
    plan = prudent.solve(model, 0.2)
    result = prudent.evaluate(model, plan.policy, uncertainty=intervals(model, 0.0))
    for alpha in (0.05, 0.2, 0.7, 0.95, 1):
        assert result.at_worst.cvar(alpha) == pytest.approx(result.cvar(alpha), rel=1e-8)


@pytest.mark.parametrize("out", [1e-2, 1e-5, 1e-7])
def test_free_cycles_that_are_hardly_ever_left_count_in_full(out):
    ways = {
        "a": {"x": [(1 - out, "b", 0), (out, "g", 1)]},
        "b": {"y": [(1 - out, "a", 0), (out / 2, "g", 3), (out / 2, "g", 4)]},
    }
    model = prudent.build("a", ways)
    p = model.probability
    spare = 0.1 * np.minimum(p, out)
    sets = prudent.Intervals(p - spare, p + spare)
    plan = prudent.solve(model, 0.5, uncertainty=sets)
    result = prudent.evaluate(model, plan.policy, uncertainty=sets)
    # Nature leaves by b with a chance of 0.55 (less a little, since a comes first), to 4 rather than to 3.
    worst = 3 + 0.55 * (0.55 / 1.045) / 0.5
    assert result.cvar(0.5) <= result.at_worst.cvar(0.5) == pytest.approx(plan.cvar, rel=1e-8)
    assert plan.cvar == pytest.approx(worst, rel=2 * out + 1e-6)


def test_tables_and_policies_that_are_drawn():
    model = prudent.domains.figure_2()
    sets = intervals(model, 0.5)
    table = prudent.evaluate(model, {"s0": "a", "s1": "e", "s2": "b"}, uncertainty=sets)
    assert table.mean == pytest.approx(7.3)
    assert table.at_worst.mean == pytest.approx(7 + 3 * (0.1 + 0.5 * 0.1 * 0.9))
    drawn = prudent.solve(model, 0.1, max_cvar=12, randomise=True).policy
    whole = prudent.evaluate(model, drawn, uncertainty=sets).at_worst
    parts = [(share, prudent.evaluate(model, part, uncertainty=sets).at_worst) for share, part in drawn.parts]
    assert whole.mean == pytest.approx(sum(share * part.mean for share, part in parts))
    assert whole.cvar(0.3) >= sum(share * part.cvar(0.3) for share, part in parts) - 1e-9
    certain = prudent.evaluate(model, drawn, uncertainty=intervals(model, 0.0))
    assert certain.at_worst.cvar(0.3) == pytest.approx(certain.cvar(0.3))


def test_they_stand_beside_the_numbers_of_the_model():
    model = prudent.domains.figure_2()
    plan, sets = prudent.solve(model, 0.1), intervals(model, 0.1)
    result = prudent.evaluate(model, plan.policy, uncertainty=sets)
    assert result.to_dict(0.1)["cvar"] == pytest.approx(plan.cvar)
    assert result.to_dict(0.1)["at_worst"] == {"mean": result.at_worst.mean, "cvar": result.at_worst.cvar(0.1)}
    assert [row[0] for row in result.table(0.1).rows[3:5]] == ["worst-case expected cost", "worst-case CVaR"]
    assert "at_worst" not in prudent.evaluate(model, plan.policy).to_dict(0.1)


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        (lambda state, spent: "a", {}, "not a function"),
        (prudent.solve(prudent.domains.figure_2(), 0.1, method="cvar-wc").policy, {}, "not the paper's"),
        ({"s0": "a", "s1": "e", "s2": "b"}, {"device": "gpu"}, "need the CPU|no NVIDIA GPU|CuPy"),
    ],
)
def test_what_cannot_be_followed_against_nature_is_refused(policy, options, message):
    model = prudent.domains.figure_2()
    with pytest.raises(prudent.PrudentError, match=message):
        prudent.evaluate(model, policy, uncertainty=intervals(model, 0.1), **options)


def test_the_least_of_a_convex_function_is_found_from_anywhere():
    for low in (0, 1, 7, 40):
        for near in (0, 3, 7, 100):
            assert _least(lambda w, low=low: float((w - low) ** 2), near) == 0
    assert _least(lambda w: float(np.maximum(5 - w, 0)), 2) == 0


def test_numbers_read_after_the_call_do_not_keep_its_limit(monkeypatch):
    model = MODELS["with cycles"]
    plan = prudent.solve(model, 0.2)
    result = prudent.evaluate(model, plan.policy, uncertainty=intervals(model, 0.4), time_limit=100)
    later = limits.now() + 1000
    monkeypatch.setattr(limits, "now", lambda: later)
    assert result.at_worst.mean >= result.mean and result.at_worst.cvar(0.2) >= result.cvar(0.2)
