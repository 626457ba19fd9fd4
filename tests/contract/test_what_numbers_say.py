"""Every number says how sure it is: exact, from below, at most, or unknown."""

import math

import pytest

import prudent
from prudent.apps.cli.terminal import print_comparison


@pytest.fixture(scope="module")
def game():
    return prudent.domains.betting_game()


@pytest.fixture(scope="module")
def stock():
    return prudent.domains.inventory_control()


@pytest.fixture
def too_large(monkeypatch):
    """Let no policy be followed."""
    room = prudent.policies.forwards.NUMBERS
    monkeypatch.setattr("prudent.policies.forwards.NUMBERS", 100)
    monkeypatch.setattr("prudent.policies.forwards._by_state", lambda *_: None)
    return lambda: monkeypatch.setattr("prudent.policies.forwards.NUMBERS", room)


def test_the_cvar_of_a_stopped_plan_that_cannot_be_followed_is_unknown(game, too_large, tmp_path):
    plan = prudent.solve(game, 0.2, time_limit=1e-9)
    assert math.isnan(plan.cvar)
    assert math.isnan(plan.var)
    assert plan.to_dict()["cvar"] is None
    assert "CVaR unknown (optimal" in repr(plan)
    rows = plan.table().rows
    assert rows[0] == ("CVaR", "unknown", f"mean of the worst 20% of runs; at most {plan.upper:,.6f}")
    assert "estimate it with prudent.simulate" in plan.notes[0]
    runs = prudent.simulate(game, plan, episodes=20_000, seed=1)
    assert runs.table().rows[1][2].endswith(f", at most {plan.upper:,.6f}")
    prudent.save(plan, tmp_path / "p.safetensors")
    assert math.isnan(prudent.load_plan(tmp_path / "p.safetensors", game).cvar)
    too_large()  # no more
    true = prudent.evaluate(game, plan.policy)
    assert plan.lower <= true.cvar(0.2) < plan.upper - 1  # what was shown as the policy's own
    assert plan.expected == pytest.approx(true.mean)
    assert prudent.solve(game, 0.2, time_limit=1e-9).cvar == pytest.approx(true.cvar(0.2))  # followed, it is known


def test_a_finished_sweep_of_exact_costs_knows_the_cvar_of_what_cannot_be_followed(too_large):
    model = prudent.build("s", {"s": {"a": [(0.5, "s", 200), (0.5, "g", 1)], "b": [(1, "g", 700)]}})
    plan = prudent.solve(model, 0.1)
    too_large()
    assert (plan.status, plan.own_cvar) == ("optimal", f"exactly {plan.cvar:g}")
    assert math.isnan(plan.var)
    assert plan.cvar == pytest.approx(prudent.evaluate(model, plan.policy).cvar(0.1))


def test_a_sweep_without_cycles_leaves_nothing_to_be_evaluated(game, too_large, monkeypatch):
    """What a time limit leaves no time for: sums of floats on a common step, and a policy that is too large."""
    cents = prudent.from_arrays(
        action_start=game.action_start,
        outcome_start=game.outcome_start,
        probability=game.probability,
        successor=game.successor,
        cost=game.cost * 0.01 + 0.0,
        initial=game.initial_state[0],
    )
    monkeypatch.setattr("prudent.methods.exact.backward", None)
    monkeypatch.setattr("prudent.planning.bounds.expected_steps", None)
    whole = prudent.solve(cents, 0.2)
    assert (whole.status, whole.var) == ("optimal", 0.86)
    stopped = prudent.solve(cents, 0.2, time_limit=1e-9)
    assert stopped.lower <= whole.cvar <= stopped.upper
    assert stopped.expected == pytest.approx(whole.expected_lower, rel=0.3)


def test_what_cannot_be_followed_within_limits_and_on_curves(game, too_large):
    plan = prudent.solve(game, 0.2, slack=0.02)
    assert math.isnan(plan.cvar)
    most = plan.own_cvar.removeprefix("at most ")
    assert plan.max_cvar <= float(most) < plan.max_cvar + 1e-6  # rounded up
    assert "the limit lowers it by" in plan.notes[-1]
    assert "nan" not in str(plan.table())
    rounded = prudent.solve(game, 0.2, step=7)
    assert math.isnan(rounded.cvar)
    assert not any("are grouped" in note for note in rounded.notes)
    point = prudent.curve(game, step=7, alpha_min=0.1).at(0.2)
    assert math.isnan(point.cvar)
    assert point.lower <= point.upper
    with pytest.raises(prudent.PrudentError, match="chosen is a plan whose CVaR is unknown"):
        prudent.plot.frontier(prudent.frontier(game, 0.2), chosen=plan)
    too_large()
    assert prudent.evaluate(game, plan.policy).cvar(0.2) <= plan.max_cvar


@pytest.mark.parametrize("step", [25, 600])
def test_rounded_costs_show_cvar_from_below(stock, step):
    plan = prudent.solve(stock, 0.02, step=step)
    true = prudent.simulate(stock, plan, episodes=50_000, seed=0)
    assert plan.lower <= plan.cvar < true.cvar(0.02) - 10 < plan.upper  # coarse: far below
    assert "CVaR at least" in repr(plan)
    assert plan.table().rows[0][2] == "mean of the worst 2% of runs, at least"
    assert plan.table().rows[1][2] == "exceeded in at most 2% of runs, about"
    assert any("are grouped: the true CVaR is at least the one shown" in note for note in plan.notes)
    assert true.table().rows[1][2].endswith(f", at least {plan.table().rows[0][1]}")
    result = prudent.evaluate(stock, plan.policy)
    assert result.std < true.costs.std()
    table = result.table(0.02)
    assert table.rows[0][2].endswith(", at least")
    assert [row[2].rpartition(", ")[2] for row in table.rows[1:8]] == ["at least"] + ["about"] * 6
    assert "the true CVaR is at least" in table.notes[0]
    (legend,) = prudent.plot.distribution(plan).get_legend().get_texts()
    assert "CVaR at least" in legend.get_text()


def shops(n):
    """Multiples of 0.1 that come out of sums, and many states, each of which could add its part to the bounds."""

    def shop(state):
        if state == "end":
            return {}
        if state == "start":
            return {"go": [(1 / n, i, 81.1 + 0.1 * (i % 7)) for i in range(n)]}
        return {"pay": [(0.5, "end", 99.9 + 0.1 * 3), (0.5, "end", 0.1 + 0.2)]}

    return shop


def with_return(shop, last):
    again = {"again": [(0.5, "start", 99.9), (0.5, "end", last)]}
    return prudent.build("start", lambda state: {**shop(state), **(again if state == 5 else {})})


def test_what_floats_did_to_a_common_step_seldom_costs_the_status():
    plan = prudent.solve(prudent.build("start", shops(8000)), 0.1)
    assert plan.step == pytest.approx(0.1)
    assert (plan.status, plan.notes) == ("optimal", ())
    assert plan.lower <= 100.2 + 81.672 + 1e-3  # more than a tenth of the runs pay 100.2
    plan = prudent.solve(with_return(shops(2000), 81.1), 0.1)
    assert plan.status == "optimal"
    assert plan.upper - plan.lower <= 1e-10 * plan.upper  # totals are off as costs are, if none is negative


def test_what_floats_did_widens_the_bounds_where_costs_may_be_negative():
    plan = prudent.solve(with_return(shops(2000), -81.1), 0.1)
    assert 1e-10 * plan.upper < plan.upper - plan.lower < 1e-8 * plan.upper


@pytest.mark.slow
def test_where_costs_may_be_negative_many_states_cost_the_status():
    plan = prudent.solve(with_return(shops(25_000), -81.1), 0.1)
    assert plan.status == "within_gap"
    assert plan.notes == ("the bounds account for costs that are off their common step by up to 3e-14",)


@pytest.mark.parametrize(("step", "said"), [(600, True), (None, False)])
def test_compared_plans_say_that_runs_are_taken_together(stock, step, said, capsys):
    print_comparison([prudent.solve(stock, 0.02, method=method, step=step) for method in ("exact", "expected")])
    assert (prudent.policies.distribution.GROUPED in capsys.readouterr().out.replace("\n", " ")) == said


def test_a_least_worst_case_is_kept_by_a_plan_that_cannot_be_followed(game, too_large):
    plan = prudent.solve(game, 0.2, method="worst-case")
    assert math.isnan(plan.cvar) and math.isnan(plan.var)
    assert plan.worst_case == 95
    assert plan.upper == pytest.approx(95, rel=1e-14)
    assert plan.lower <= 91.337584 <= plan.upper
    assert "estimate it with prudent.simulate" in plan.notes[0]
