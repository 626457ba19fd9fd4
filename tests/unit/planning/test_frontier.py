import numpy as np
import pytest

import prudent
import prudent.methods.mean_cvar
from cycles import walk
from plans import same_policy
from prudent.runtime.limits import Stopped
from strategies import noisy_table


def test_ends_are_the_two_optima():
    for name, alpha in (("betting_game", 0.2), ("deep_sea_treasure", 0.02)):
        model = getattr(prudent.domains, name)()
        found = prudent.frontier(model, alpha, tolerance=0.05)
        cheap, safe = prudent.solve(model, alpha, method="expected"), prudent.solve(model, alpha)
        assert found.points[0].expected == pytest.approx(cheap.expected, rel=1e-9)
        assert found.points[0].cvar <= cheap.cvar + 1e-9
        assert (found.points[-1].expected, found.points[-1].cvar) == pytest.approx((safe.expected, safe.cvar), rel=1e-9)
        assert found.gap <= 0.05 * (safe.expected - cheap.expected)
        assert f"{len(found.points)} points" in repr(found)


def test_a_limit_that_the_cheapest_plan_keeps_is_no_limit():
    model = prudent.domains.betting_game()
    plan = prudent.solve(model, 0.2, max_cvar=99)
    assert plan.status == "optimal"
    assert plan.expected == pytest.approx(58.381353, abs=1e-6)
    assert plan.message == "no plan within the limit on CVaR has a lower expected cost, to within 1e-8 of its size"


def test_a_limit_below_the_optimum_names_it():
    with pytest.raises(
        prudent.PrudentError,
        match=r"max_cvar is 90; no plan has a CVaR that low. The optimal CVaR is 91\.3375837; raise",
    ):
        prudent.solve(prudent.domains.betting_game(), 0.2, max_cvar=90)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slack": -0.1}, "slack is -0.1; it must be a number, at least 0"),
        ({"slack": "1%"}, "slack is '1%'"),
        ({"absolute_slack": -1}, "absolute_slack is -1; it must be a cost, at least 0"),
        ({"absolute_slack": 1, "max_cvar": 100}, "exclude each other"),
        ({"max_cvar": float("nan")}, "max_cvar is nan; it must be a finite number"),
        ({"slack": 0.1, "max_cvar": 100}, "exclude each other"),
        ({"slack": 0.1, "method": "expected"}, "need method 'exact', not 'expected'"),
    ],
)
def test_what_is_asked_is_checked(options, message):
    with pytest.raises(prudent.PrudentError, match=message):
        prudent.solve(prudent.domains.betting_game(), 0.2, **options)


def test_what_a_frontier_is_asked_is_checked():
    for options in ({"tolerance": -1}, {"most": 0}, {"most": 1.5}):
        with pytest.raises(prudent.PrudentError, match="it must be"):
            prudent.frontier(prudent.domains.figure_2(), 0.1, **options)
    with pytest.raises(prudent.PrudentError, match="model is a str"):
        prudent.frontier("model", 0.1)
    with pytest.raises(prudent.PrudentError, match="would take"):
        prudent.frontier(prudent.domains.betting_game(), 0.2, memory="1kB")


def test_a_plan_within_a_limit_is_kept(tmp_path):
    plan = prudent.solve(prudent.domains.betting_game(), 0.2, slack=0.01)
    prudent.save(plan, tmp_path / "p.safetensors")
    assert prudent.load_plan(tmp_path / "p.safetensors", plan.model).to_dict() == plan.to_dict()


@pytest.mark.parametrize("seed", range(4))
def test_costs_without_a_common_step(seed):
    model, alpha = prudent.build(0, noisy_table(np.random.default_rng(seed))), 0.3
    found = prudent.frontier(model, alpha)
    optimum = prudent.solve(model, alpha)
    for i, point in enumerate(found.points):
        result, own = prudent.evaluate(model, point.policy), found.plan(i)
        assert result.mean == pytest.approx(point.expected, rel=1e-9, abs=1e-12)
        assert result.cvar(alpha) <= point.cvar + 1e-9
        assert found.least_expected(point.cvar) <= point.expected + 1e-9
        assert point.cvar >= optimum.lower - 1e-9
        assert own.lower <= result.cvar(alpha) <= own.max_cvar == own.upper
        assert own.expected_lower <= result.mean * (1 + 1e-9)
    plan = prudent.solve(model, alpha, slack=0.1)
    assert plan.expected_lower <= plan.expected
    assert plan.cvar <= plan.max_cvar + 1e-9


def test_points_of_a_frontier_are_plans(tmp_path):
    model, alpha = prudent.domains.betting_game(), 0.2
    found = prudent.frontier(model, alpha)
    for i, point in enumerate(found.points):
        plan = found.plan(i)
        result = prudent.evaluate(model, plan.policy)
        assert (plan.cvar, plan.expected) == pytest.approx((point.cvar, point.expected), rel=1e-9)
        assert (plan.cvar, plan.expected) == pytest.approx((result.cvar(alpha), result.mean), rel=1e-9)
        assert plan.var == result.var(alpha)
        assert plan.lower <= plan.cvar <= plan.upper == plan.max_cvar == pytest.approx(plan.cvar, rel=1e-9)
        assert plan.expected_lower <= plan.expected
        assert plan.status == "optimal" or (i == len(found.points) - 1 and plan.status == "within_gap")
        again = prudent.solve(model, alpha, max_cvar=plan.max_cvar)  # its bound must hold for what that finds
        assert plan.expected_lower <= again.expected <= plan.expected * (1 + 1e-9)
    prudent.save(plan, tmp_path / "p.safetensors")
    assert prudent.load_plan(tmp_path / "p.safetensors", model).to_dict() == plan.to_dict()
    assert found.plan(-1).decisions().to_csv() == plan.decisions().to_csv()
    with pytest.raises(prudent.PrudentError, match="this plan has a limit on CVaR"):
        plan.explain((0, 5))
    for i in (len(found.points), -len(found.points) - 1, True, 0.0):
        with pytest.raises(
            prudent.PrudentError, match=f"i is {i}; there are {len(found.points)} points, so it must be"
        ):
            found.plan(i)


def test_a_plan_that_draws_one_of_two_policies(tmp_path):
    model = prudent.domains.betting_game()
    plain, plan = (prudent.solve(model, 0.2, slack=0.02, randomise=drawn) for drawn in (False, True))
    assert plan.status == "optimal"
    assert plain.expected_lower == pytest.approx(plan.expected, rel=1e-6)
    assert plan.expected < plain.expected
    assert plan.cvar == pytest.approx(plan.max_cvar, rel=1e-9)
    (share, first), (rest, second) = plan.policy.parts
    assert share + rest == 1
    means = [prudent.evaluate(model, part).mean for part in (first, second)]
    assert share * means[0] + rest * means[1] == pytest.approx(plan.expected, rel=1e-12)
    runs = [prudent.simulate(model, plan.policy, episodes=40_000, seed=1, threads=n, paths=5) for n in (1, 2)]
    assert np.array_equal(runs[0].costs, runs[1].costs)
    assert abs(runs[0].mean - plan.expected) <= 4 * runs[0].mean_se
    assert abs(runs[0].cvar(0.2) - plan.cvar) <= 4 * runs[0].cvar_se(0.2)
    for path, cost in zip(runs[0].paths, runs[0].costs, strict=False):
        assert sum(paid for _, _, paid in path) == pytest.approx(cost)
    agents = [plan.policy.start(seed=seed) for seed in range(200)]
    drawn = np.mean([same_policy(agent._policy, first) for agent in agents])
    assert abs(drawn - share) < 0.15
    assert plan.policy.start(seed=3).action == plan.policy.start(seed=3).action
    prudent.save(plan, tmp_path / "p.safetensors")
    again = prudent.load_plan(tmp_path / "p.safetensors", model)
    assert again.to_dict() == plan.to_dict()
    assert again.policy.share == plan.policy.share
    for (_, one), (_, other) in zip(again.policy.parts, plan.policy.parts, strict=True):
        assert same_policy(one, other)
    for refused in (plan.decisions, lambda: plan.policy("s")):
        with pytest.raises(prudent.PrudentError, match="one of two"):
            refused()


def test_randomising_is_asked_for_where_it_helps():
    model = prudent.domains.figure_2()
    with pytest.raises(prudent.PrudentError, match=r"needs a limit on CVaR.*give slack, absolute_slack or max_cvar"):
        prudent.solve(model, 0.1, randomise=True)


def test_absolute_slack():
    model = prudent.domains.figure_2()
    relative, absolute = prudent.solve(model, 0.1, slack=0.3), prudent.solve(model, 0.1, absolute_slack=3.0)
    assert absolute.max_cvar == pytest.approx(13, rel=1e-12)
    assert absolute.to_dict() | {"seconds": 0} == relative.to_dict() | {"seconds": 0}


def test_drawing_with_costs_that_have_no_common_step():
    root = 2**0.5
    model = prudent.build("s", {"s": {"bold": [(0.9, "g", 1), (0.1, "g", 5 * root)], "safe": [(1, "g", 2 * root)]}})
    # safe costs 2.83; bold 1.61 on average, 7.07 in the worst tenth: sharing them meets a limit on CVaR in between
    plan = prudent.solve(model, 0.1, max_cvar=5.0, randomise=True)
    share, bold, safe = (5.0 - 2 * root) / (3 * root), 0.9 + 0.5 * root, 2 * root
    best = share * bold + (1 - share) * safe
    assert plan.expected_lower <= best <= plan.expected + 1e-12
    assert plan.expected == pytest.approx(best, rel=2e-3)
    assert prudent.evaluate(model, plan.policy).cvar(0.1) <= 5 + 1e-9
    assert plan.status == "within_gap"


def test_a_plan_within_a_limit_says_what_it_buys():
    plan = prudent.solve(prudent.domains.betting_game(), 0.2, max_cvar=93, randomise=True)
    assert plan.cvar <= plan.max_cvar
    drawn, bought = plan.notes
    assert drawn.startswith("randomised: draws a policy at the start of a run, with probability 0.")
    assert bought.startswith(
        "at the minimal CVaR, 91.337584, the expected cost is 75.486476; an extra CVaR of 1.662416 lowers it by 12.685"
    )


def test_notes_on_what_a_limit_buys_have_two_decimals_for_money():
    step = [(0.8, "g", 1.25), (0.2, "g", 9.99)]
    model = prudent.build("s", lambda state: {"bold": step, "safe": [(1.0, "g", 4.5)]} if state == "s" else None)
    (bought,) = prudent.solve(model, 0.1, max_cvar=10).notes
    assert (
        bought
        == "at the minimal CVaR, 4.50, the expected cost is 4.50; an extra CVaR of 5.49 lowers it by 1.50 (33.4%)"
    )


def test_time_runs_out_within_a_limit():
    model = prudent.domains.inventory_control()
    plan = prudent.solve(model, 0.2, slack=0.01, time_limit=1e-9)
    assert plan.status == "gap_not_reached"
    assert plan.lower <= prudent.solve(model, 0.2).cvar and plan.upper >= prudent.evaluate(model, plan.policy).cvar(0.2)
    assert any("stopped at the time limit" in note for note in plan.notes)
    assert "stopped before the limit" in plan.notes[-1]


def test_stopped_between_two_weights(monkeypatch):
    """What was found until then is kept, with its bound."""
    model, tried = prudent.domains.betting_game(), []
    sweep = prudent.methods.mean_cvar.Weighing.sweep

    def stop(self, weight, **options):
        tried.append(weight)
        if len(tried) == 3:
            raise prudent.runtime.limits.Stopped("interrupted", "this")
        return sweep(self, weight, **options)

    monkeypatch.setattr(prudent.methods.mean_cvar.Weighing, "sweep", stop)
    plan = prudent.solve(model, 0.2, slack=0.05)
    assert plan.status == "interrupted"
    assert plan.expected_lower < plan.expected
    assert prudent.evaluate(model, plan.policy).cvar(0.2) <= plan.max_cvar
    tried.clear()
    found = prudent.frontier(model, 0.2)
    assert found.status == "interrupted"
    assert len(found.points) == 4
    assert found.gap > 0


def test_what_a_frontier_knows_below_the_optimum():
    found = prudent.frontier(prudent.domains.betting_game(), 0.2)
    assert found.status == "within_gap"
    assert found.least_expected(found.lower - 1) == np.inf
    assert found.lower == pytest.approx(found.points[-1].cvar, rel=1e-9)
    few = prudent.frontier(prudent.domains.betting_game(), 0.2, most=2)
    assert few.status == "gap_not_reached"
    assert few.gap > found.gap


def test_rounded_points_are_what_their_policies_cost():
    model = prudent.build(0, noisy_table(np.random.default_rng(3)))
    found = prudent.frontier(model, 0.3, step=0.05)
    assert "rounded" in found.notes[0]
    assert found.gap > 0
    for point in found.points:
        result = prudent.evaluate(model, point.policy)
        assert (result.mean, result.cvar(0.3)) == pytest.approx((point.expected, point.cvar), rel=1e-9)
    curve = prudent.curve(model, step=0.05)
    for alpha in (0.05, 0.3, 0.7):
        point, plan = curve.at(alpha), prudent.solve(model, alpha, step=0.05)
        assert (point.cvar, point.var, point.expected) == pytest.approx((plan.cvar, plan.var, plan.expected), rel=1e-12)


def test_what_does_not_go_together(tmp_path):
    model = prudent.domains.figure_2()
    with pytest.raises(prudent.PrudentError, match="checkpoint works only for the minimal CVaR"):
        prudent.solve(model, 0.1, slack=0.1, checkpoint=tmp_path / "place")
    with pytest.raises(prudent.PrudentError, match="objective excludes slack"):
        prudent.solve(model, 0.1, slack=0.1, objective=prudent.ValueAtRisk())
    with pytest.raises(prudent.PrudentError, match=r"it must be .* call it"):
        prudent.solve(model, 0.1, objective=prudent.ValueAtRisk)
    for options in ({"slack": 0.1}, {"objective": prudent.Exceedance(200)}, {"objective": prudent.MeanPlusCVaR(1)}):
        with pytest.raises(prudent.PrudentError, match="can be explained"):
            prudent.solve(model, 0.1, **options).explain("s1")
    drawn = prudent.solve(prudent.domains.betting_game(), 0.2, slack=0.02, randomise=True)
    with pytest.raises(prudent.PrudentError, match="another number for each run"):
        drawn.policy.start()


@pytest.mark.parametrize(("offset", "alpha", "most"), [(1e5, 0.6, 3), (1e6, 0.7, 5), (-1e6, 0.7, 5), (1e9, 0.7, 5)])
@pytest.mark.parametrize("randomise", [False, True])
def test_limits_at_the_optimum_far_from_zero(offset, alpha, most, randomise):
    """In units a limit loses digits that levels have."""
    risky = [(0.9, "g", offset), (0.1, "g", offset + 10)]
    milder = [(1 - 1 / 7, "g", offset + 1), (1 / 7, "g", offset + most)]
    model = prudent.build("s", {"s": {"risky": risky, "milder": milder}})
    optimum = prudent.solve(model, alpha)
    for options in ({"slack": 0}, {"max_cvar": optimum.cvar}, {"max_cvar": optimum.cvar - 1e-13 * abs(offset)}):
        plan = prudent.solve(model, alpha, randomise=randomise, **options)
        assert plan.expected_lower <= plan.expected
        assert plan.cvar == pytest.approx(optimum.cvar, rel=1e-12)
        assert plan.expected == pytest.approx(optimum.expected, rel=1e-12)


def test_rounded_costs_without_any_risk():
    model = prudent.build(0, {0: {"a": [(1, 1, 2 + 2**0.5)]}, 1: {"a": [(1, "g", 3)]}})
    total = 5 + 2**0.5
    assert prudent.curve(model).at(0.1).cvar == pytest.approx(total)
    assert prudent.frontier(model, 0.1).points[0].cvar == pytest.approx(total)
    assert prudent.solve(model, 0.1, slack=0).cvar == pytest.approx(total)
    assert prudent.solve(model, 0.1, objective=prudent.WorstCase()).objective.value == pytest.approx(total)
    assert prudent.check(model).ok


def test_a_rounded_frontier_counts_what_rounding_may_hide():
    root = 2**0.5
    lots = [(0.25, "g", 2 + 6 * root), (0.375, "g", 1 + 5 * root), (0.375, "g", 4 * root)]
    model = prudent.build(0, {0: {"go": [(1, 1, 1 + root)]}, 1: {"draw": lots, "sure": [(1, "g", 6 * root)]}})
    found = prudent.frontier(model, 0.5, tolerance=0)
    for action in ("draw", "sure"):
        only = prudent.build(
            0,
            {0: {"go": [(1, 1, 1 + root)]}, 1: {"draw": lots} if action == "draw" else {"sure": [(1, "g", 6 * root)]}},
        )
        plan = prudent.solve(only, 0.5, relative_gap=1e-6)
        line = np.interp(plan.cvar, *np.array([(p.cvar, p.expected) for p in found.points[::-1]]).T)
        assert plan.expected >= line - found.gap - 1e-9


def test_no_room_to_draw():
    model = prudent.build("s", {"s": {"a": [(2 / 3, "g", 0), (1 / 3, "g", 6)], "c": [(1, "g", 3)]}})
    plan = prudent.solve(model, 0.6, slack=0, randomise=True)
    assert (plan.status, plan.expected) == ("optimal", 3)
    assert plan.expected_lower == pytest.approx(3, rel=1e-8)


@pytest.mark.parametrize("randomise", [False, True])
@pytest.mark.parametrize("limit", [{"max_cvar": 12.0}, {"slack": 0.2}, {"absolute_slack": 2.0}])
def test_a_limit_that_a_plan_meets_exactly_is_met(limit, randomise):
    actions = {
        "safe": [(1, "g", 10)],
        "middle": [(0.5, "g", 2), (0.5, "g", 12)],  # its CVaR is 12
        "cheap": [(0.75, "g", 0), (0.25, "g", 20)],
    }
    plan = prudent.solve(prudent.build("s", {"s": actions}, goals=["g"]), 0.1, randomise=randomise, **limit)
    assert plan.status == "optimal"
    assert plan.expected == pytest.approx(7, rel=1e-12)
    assert plan.expected_lower <= 7
    assert plan.cvar == pytest.approx(12, rel=1e-12)


@pytest.mark.parametrize("n", [60, 20_000])
def test_where_time_ends_before_the_first_point_there_is_the_plan_at_hand(n):
    model = walk(n)
    found = prudent.frontier(model, 0.05, time_limit=1e-9)
    (point,) = found.points
    assert found.status == "gap_not_reached" and found.gap == np.inf and np.isnan(point.cvar)
    assert np.isnan(point.expected) == (n == 20_000)
    assert any("stopped at the time limit" in note for note in found.notes)
    assert "how far" in str(found.table()) and "unknown" in repr(found) and found.to_dict()["gap"] is None
    plan = found.plan(0)
    assert plan.status == "gap_not_reached" and np.isinf(plan.max_cvar) and plan.lower < plan.upper
    if n == 60:
        truth = prudent.solve(model, 0.05)
        assert found.lower <= truth.upper and plan.lower <= truth.upper and truth.lower <= plan.upper
        assert found.least_expected(truth.upper) <= truth.expected
    with pytest.raises(prudent.PrudentError, match="no point whose CVaR is known; raise time_limit="):
        prudent.plot.frontier(found)


def test_where_time_ends_at_the_cheapest_plan_the_safest_is_there(monkeypatch):
    def late(self):
        raise Stopped("time", "this")

    model = prudent.domains.betting_game()
    whole = prudent.frontier(model, 0.2)
    monkeypatch.setattr(prudent.methods.mean_cvar.Weighing, "cheapest", property(late))
    found = prudent.frontier(model, 0.2, time_limit=100)
    assert [(p.expected, p.cvar) for p in found.points] == [(whole.points[-1].expected, whole.points[-1].cvar)]
    assert found.status == "gap_not_reached" and found.gap >= found.points[0].expected - whole.points[0].expected
    assert any("stopped at the time limit of 100 seconds" in note for note in found.notes)
