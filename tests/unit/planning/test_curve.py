import importlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings

import prudent
from cycles import walk
from plans import same_policy
from prudent.planning.curve import _ever_closer
from prudent.runtime.limits import Stopped
from strategies import cases, examples, noisy_table, solvable

DOMAINS = ["figure_2", "betting_game", "deep_sea_treasure", "inventory_control"]


def same(point, plan) -> bool:
    numbers = ("cvar", "var", "expected", "lower", "upper")
    return all(getattr(point, name) == pytest.approx(getattr(plan, name), abs=1e-9) for name in numbers)


@pytest.mark.parametrize("name", DOMAINS)
def test_equal_to_a_solve_at_every_alpha(name):
    model = getattr(prudent.domains, name)()
    found = prudent.curve(model, alpha_min=0.02)
    for alpha in [0.02, 0.05, 0.1, 0.2, *np.geomspace(0.021, 1, 25)]:
        plan = prudent.solve(model, alpha)
        assert same(found.at(alpha), plan), alpha
        again = found.plan(alpha)
        assert again.upper == pytest.approx(plan.upper, rel=1e-12)  # the curve looked at more levels
        assert {**again.to_dict(), "seconds": 0, "upper": 0} == {**plan.to_dict(), "seconds": 0, "upper": 0}
        assert same_policy(again.policy, plan.policy)


@settings(max_examples=examples(60))
@given(case=cases())
def test_equal_to_a_solve_on_random_models(case):
    with solvable():
        found = prudent.curve(case.model, alpha_min=0.05)
    alphas = [point.alpha for point in found.points]
    assert alphas == sorted(alphas)
    assert (alphas[0], alphas[-1]) == (0.05, 1.0)
    middles = [(a + b) / 2 for a, b in itertools.pairwise(alphas)]
    for alpha in [*alphas, *middles, 0.1, 0.5]:
        assert same(found.at(alpha), prudent.solve(case.model, alpha)), alpha


@pytest.mark.parametrize("name", DOMAINS)
def test_nothing_changes_between_breakpoints(name):
    found = prudent.curve(getattr(prudent.domains, name)(), alpha_min=0.02)
    points = found.points
    assert all(a.cvar >= b.cvar - 1e-9 for a, b in itertools.pairwise(points))  # CVaR falls as alpha rises
    for a, b in list(itertools.pairwise(points))[:: max(len(points) // 20, 1)]:
        inside = [found.at(a.alpha + share * (b.alpha - a.alpha)) for share in (0.01, 0.5, 0.99)]
        assert len({(point.var, point.expected) for point in inside}) == 1
        # in 1/alpha the optimal CVaR is a straight line between breakpoints
        x, y = [1 / p.alpha for p in inside], [p.cvar for p in inside]
        assert y[1] == pytest.approx(np.interp(x[1], x[::-1], y[::-1]), rel=1e-9)


def test_costs_without_a_common_step():
    model = prudent.build(0, noisy_table(np.random.default_rng(5)))
    found = prudent.curve(model, alpha_min=0.05)
    for alpha in (0.05, 0.3, 1.0):
        point, plan = found.at(alpha), prudent.solve(model, alpha)
        assert point.lower <= point.cvar <= point.upper
        assert max(point.lower, plan.lower) <= min(point.upper, plan.upper)
        again = found.plan(alpha)
        assert (again.lower, again.cvar) == pytest.approx((point.lower, point.cvar), rel=1e-12)
        assert point.upper <= again.upper <= point.upper + again.step * 3
        close = again.upper - again.lower <= 1e-3 * max(abs(again.lower), abs(again.upper))
        assert (again.status == "gap_not_reached") == (not close)


def test_what_is_asked_is_checked():
    model = prudent.domains.figure_2()
    found = prudent.curve(model, alpha_min=0.1)
    assert repr(found) == "<Curve for figure-2: alpha 0.1 to 1, CVaR 10 to 1.9, 3 points>"
    for ask in (found.at, found.plan):
        with pytest.raises(prudent.PrudentError, match=r"this curve begins at 0\.1; give curve a smaller alpha_min="):
            ask(0.05)
    with pytest.raises(prudent.PrudentError, match="alpha_min is 0; it must be"):
        prudent.curve(model, alpha_min=0)
    with pytest.raises(prudent.PrudentError, match="model is a str"):
        prudent.curve("model")
    with pytest.raises(prudent.PrudentError, match="would take"):
        prudent.curve(prudent.domains.betting_game(), memory="1kB")


@pytest.mark.parametrize("name", DOMAINS)
def test_from_each_point_to_the_next_var_and_mean_stay(name):
    found = prudent.curve(getattr(prudent.domains, name)(), alpha_min=0.02)
    points = found.points
    for point, after in list(itertools.pairwise(points))[1:]:
        middle = found.at((point.alpha + after.alpha) / 2)
        assert (middle.var, middle.expected) == (point.var, point.expected)
        assert found.at(point.alpha).cvar == pytest.approx(point.cvar, rel=1e-12)


@pytest.mark.parametrize("name", ["figure_2", "betting_game"])
def test_for_a_set_of_models_it_is_that_of_solves_too(name):
    model = getattr(prudent.domains, name)()
    p = model.probability
    sets = prudent.Intervals(p - 0.3 * p * (1 - p), p + 0.3 * p * (1 - p))
    found = prudent.curve(model, alpha_min=0.05, uncertainty=sets)
    for alpha in (0.05, 0.1, 0.37, 1):
        plan, point = prudent.solve(model, alpha, uncertainty=sets), found.at(alpha)
        assert same(point, plan), alpha
        assert vars(point.nominal) == pytest.approx(vars(plan.nominal))
        assert same(found.plan(alpha), plan)
        assert point.cvar >= prudent.solve(model, alpha).cvar - 1e-9
    assert [point.cvar for point in found.points] == sorted((point.cvar for point in found.points), reverse=True)
    assert list(found.to_frame([0.1]).columns[-3:]) == ["nominal_cvar", "nominal_var", "nominal_expected"]
    assert found.to_dict([0.1])["points"][0]["nominal"]["cvar"] == found.at(0.1).nominal.cvar
    assert "nominal" not in prudent.curve(model).to_dict([0.1])["points"][0]
    assert "in the model itself" in str(found.table([0.1]))


def test_within_a_time_limit_points_are_found_at_once_and_as_many_as_the_time_allows(monkeypatch):
    rng = np.random.default_rng(0)
    n, shape = 30, (60, 3)
    about = rng.dirichlet(np.ones(3), 60), rng.integers(0, n + 1, shape), 10 * rng.random(shape)
    rows = np.append(2 * np.arange(n + 1), 2 * n), 3 * np.arange(2 * n + 1)
    model = prudent.from_arrays(*rows, *(each.ravel() for each in about), initial=0)
    whole, module = prudent.curve(model, step=1), importlib.import_module("prudent.methods.exact")
    assert len(whole.points) > 20 and prudent.curve(model, step=1, time_limit=100).points == whole.points
    asked, real = [], module.own_tail

    def slow(*about, limits, **options):
        asked.append(limits)
        if limits.time_limit is not None and len(asked) > 9:
            raise Stopped("time", "following the policy")
        return real(*about, limits=limits, **options)

    monkeypatch.setattr(module, "own_tail", slow)
    few = prudent.curve(model, step=1, time_limit=100)
    assert len(asked) == 10 and len(few.points) == 9 and set(few.points) < set(whole.points)
    assert (few.points[0], few.points[-1]) == (whole.points[0], whole.points[-1])
    left = len(whole.points) - 9
    assert few.notes[-1] == f"the time limit leaves out {left} breakpoints; .at(alpha) gives any point"
    assert "9 points" in repr(few) and few.at(0.1) == whole.at(0.1)


def test_first_parts_of_an_order_are_spread():
    for n in (1, 2, 3, 10, 1000):
        order = _ever_closer(n)
        assert sorted(order) == list(range(n)) and order[:2] == [0, n - 1][:n]
    assert max(np.diff(sorted(order[:40]))) < 70


@pytest.mark.parametrize("n", [60, 20_000])
def test_where_time_ends_before_the_curve_is_known_points_have_bounds(n):
    model = walk(n)
    found = prudent.curve(model, time_limit=1e-9)
    assert [point.alpha for point in found.points] == [0.01, 1.0]
    assert any("stopped at the time limit" in note for note in found.notes)
    assert "unknown" in str(found.table()) and "unknown" in repr(found) and found.to_dict()["points"][0]["cvar"] is None
    for alpha in (0.01, 0.05, 1.0):
        point, plan = found.at(alpha), found.plan(alpha)
        assert np.isnan(point.cvar) and np.isnan(point.var) and point.lower < point.upper
        assert (point.lower, point.upper) == (plan.lower, plan.upper)
        if n == 60:
            truth = prudent.solve(model, alpha)
            assert point.lower <= truth.upper and truth.lower <= point.upper and point.expected <= truth.expected + 1e-6
    assert prudent.plot.curve(found, alpha=0.1).get_title(loc="left")
    with pytest.raises(prudent.PrudentError, match="takes longer than the time limit"):
        prudent.curve(model, time_limit=1e-9, uncertainty=prudent.Intervals(model.probability, model.probability))
