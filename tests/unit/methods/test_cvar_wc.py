"""The paper's methods: the inner problem against a linear program, the propositions, the example."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import prudent
from prudent.engine.prepare import prepare
from prudent.kernels.game import Game, merge, respond
from prudent.methods.cvar_wc import chow_grid
from prudent.runtime.limits import Limits
from strategies import cases, examples, solved


def random_inner_problem(rng):
    """One action with a few outcomes, and concave F on a random grid for each successor."""
    n, points = int(rng.integers(1, 7)), int(rng.integers(2, 12))
    grid = np.concatenate([[0], np.sort(rng.random(points - 1)), [1]])
    slope = -np.sort(-rng.random((n, points)) * rng.choice([1, 10, 100], size=(n, 1)), axis=1)
    slope[rng.random((n, points)) < 0.2] = 5.0  # equal slopes are common
    slope = -np.sort(-slope, axis=1)
    p = rng.dirichlet(np.ones(n))
    cost = rng.integers(0, 20, n).astype(float)
    zero = np.zeros(1, dtype=np.int64)
    value = np.concatenate([np.zeros((n, 1)), np.cumsum(slope * np.diff(grid), axis=1)], axis=1)
    return Game(zero, np.array([0, n]), p, np.arange(n), cost, grid, value, slope, 0.0)


def by_linear_program(game, y):
    """max sum p_k (G_k + c_k z_k), G_k below every tangent of F(s_k, .), sum p_k z_k = y."""
    n, points = game.slope.shape
    f, rows, limits = game.value, [], []
    for k in range(n):
        for j in range(points):
            row = np.zeros(2 * n)
            row[n + k], row[k] = 1, -game.slope[k, j]
            rows.append(row)
            limits.append(f[k, j] - game.slope[k, j] * game.grid[j])
    p = game.probability
    found = linprog(
        -np.concatenate([p * game.cost, p]),
        A_ub=np.array(rows),
        b_ub=limits,
        A_eq=np.concatenate([p, np.zeros(n)])[None],
        b_eq=[y],
        bounds=[(0, 1)] * n + [(None, None)] * n,
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("seed", range(60))
def test_merging_slopes_solves_the_adversarys_linear_program(seed):
    rng = np.random.default_rng(seed)
    game = random_inner_problem(rng)
    n = len(game.probability)
    used, z, out = np.empty(n, dtype=np.int64), np.empty(n), np.empty(len(game.grid))
    for y in [*rng.random(3), 1.0, 1e-7]:
        value = respond(game, 0, y, used, z)
        assert value == pytest.approx(by_linear_program(game, y), rel=1e-9, abs=1e-9)
        assert game.probability @ z == pytest.approx(y, rel=1e-9)  # feasible, and worth what it says
        assert (z >= 0).all() and (z <= 1 + 1e-12).all()
        f = [np.interp(z[k], game.grid, game.value[k]) for k in range(n)]
        assert value == pytest.approx(game.probability @ (f + game.cost * z), rel=1e-9)
    merge(game, 0, used, out)
    assert out == pytest.approx([by_linear_program(game, y) for y in game.grid], rel=1e-9, abs=1e-9)


def test_the_papers_grid():
    grid = chow_grid(30)
    assert len(grid) == 31
    assert (grid[0], grid[-1]) == (0, 1)
    assert grid[-2] == pytest.approx(0.9)
    assert grid[1] == pytest.approx((10 ** (1 / 29) - 1) / 10)


@pytest.mark.parametrize(
    ("name", "points", "alpha", "value"),
    [
        ("betting_game", 30, 0.2, 91.103),
        ("inventory_control", 30, 0.02, 386.069),
        ("inventory_control", 30, 0.2, 359.737),
        ("deep_sea_treasure", 30, 0.02, 473.456),
        ("deep_sea_treasure", 80, 0.02, 476.899),
        ("deep_sea_treasure", 600, 0.02, 477.397),
    ],
)
def test_game_values(name, points, alpha, value):
    """Against an independent program (the project's reference figures)."""
    model = getattr(prudent.domains, name)()
    method = prudent.CvarWC(points=points)
    prepared = prepare(model)
    solved_game = method.solve_game(prepared, Limits.of(None, None))
    found = np.interp(alpha, solved_game.game.grid, solved_game.bound) / alpha
    assert prepared.scale.in_units(found) == pytest.approx(value, abs=6e-4)


def test_figure_2():
    """cvar-wc plays the worst-case action e; cvar-ev and exact turn to d, which is better on average.

    At 0.1 exactly the VaR of cvar-wc is 7, since P(C > 7) = 0.1 there, and cvar-ev, bound by it, stays with e.
    """
    model = prudent.domains.figure_2()
    for method, alpha, action, mean in (
        ("cvar-wc", 0.1, "e", 7.3),
        ("exact", 0.1, "d", 4.06),
        (prudent.CvarEV(episodes=None), 0.1, "e", 7.3),
        ("cvar-ev", 0.09, "d", 4.06),
    ):
        plan = prudent.solve(model, alpha, method=method)
        assert (plan.cvar, plan.expected) == (pytest.approx(10), pytest.approx(mean))
        agent = plan.policy.start()
        agent.observe("s1", 0)
        assert agent.action == action


ALPHAS = st.sampled_from([0.75, 0.5, 0.3, 0.1])


@settings(max_examples=examples(80))
@given(cases(), ALPHAS)
def test_game_value_optimum_policy(case, alpha):
    """Proposition 1 as it holds: a bracket.  At any grid."""
    optimum = solved(case, alpha).cvar
    small = 1e-9 * max(1, abs(optimum))
    for points in (5, 30):
        for method in (prudent.CvarWC(points=points), prudent.CvarEV(points=points, episodes=None, cost_steps=None)):
            plan = prudent.solve(case.model, alpha, method=method)
            assert plan.lower <= optimum + small
            assert optimum <= plan.cvar + small
            assert plan.upper == pytest.approx(plan.cvar, rel=1e-9, abs=1e-9)


@settings(max_examples=examples(80))
@given(cases(acyclic=True), ALPHAS)
def test_turning_to_the_mean_where_the_run_cannot_matter_keeps_the_tail(case, alpha):
    """Propositions 2 and 3: where cvar-wc is optimal, cvar-ev has the same CVaR and no larger mean."""
    optimum = solved(case, alpha).cvar
    careful = prudent.solve(case.model, alpha, method=prudent.CvarWC(points=200, zero=1e-6))
    assume(careful.cvar <= optimum + 1e-9 * max(1, abs(optimum)))
    bold = prudent.solve(
        case.model, alpha, method=prudent.CvarEV(points=200, switch=1e-6, episodes=None, cost_steps=None)
    )
    assert bold.cvar == pytest.approx(careful.cvar, rel=1e-9, abs=1e-9)
    assert bold.expected <= careful.expected + 1e-9 * max(1, abs(careful.expected))


@settings(max_examples=examples(60))
@given(cases(acyclic=True, most_states=4), ALPHAS)
def test_without_choices_the_game_is_the_cvar(case, alpha):
    """Proposition 1 with equality: there is no choice that could depend on y."""
    case.raw.update({s: actions[:1] for s, actions in case.raw.items()})
    plan = solved(case, alpha, method=prudent.CvarWC(points=4000))
    size = max(plan.upper - prepare(plan.model).scale.in_units(0), case.step)
    assert plan.upper - plan.lower <= 2e-3 * size


def test_at_y_0_the_worst_case_is_played():
    """Remark 1: where the adversary has no budget left, the policy minimises the worst case."""
    table = {
        "s": {"go": [(0.5, "bad", 0), (0.5, "good", 0)]},
        "bad": {"pay": [(1, "g", 100)]},
        "good": {"mean": [(0.9, "g", 0), (0.1, "g", 50)], "worst": [(1, "g", 20)]},
    }
    model = prudent.build("s", table)
    agents = {m: prudent.solve(model, 0.1, method=m).policy.start() for m in ("cvar-wc", "cvar-ev")}
    for agent in agents.values():
        agent.observe("good", 0)
    assert agents["cvar-wc"].action == "worst"
    assert agents["cvar-ev"].action == "mean"


@pytest.mark.slow
def test_ties_of_the_worst_case_policy_matter():
    """Deep Sea Treasure at 0.02, 80 points: the reference figures (200,000 simulated runs)."""
    model = prudent.domains.deep_sea_treasure()
    for ties, cvar, mean in (("last", 486.3, 381), ("first", 501.4, 398)):
        plan = prudent.solve(model, 0.02, method=prudent.CvarWC(points=80, ties=ties))
        assert plan.cvar == pytest.approx(cvar, abs=1.0)
        assert plan.expected == pytest.approx(mean, abs=0.5)


@pytest.mark.parametrize(
    ("method", "cvar", "mean"),
    [
        (prudent.CvarWC(floor=1e-6), 501.72, 402.31),
        (prudent.CvarEV(floor=1e-6), 501.18, 351.46),
        (prudent.CvarWC(floor=1e-7), None, 397.89),  # the floor matters,
        (prudent.CvarWC(floor=1e-6, points=79), 502.75, 401.97),  # and so does the grid
        (prudent.CvarWC(floor=1e-6, points=81), 497.13, 399.38),
    ],
    ids=str,
)
def test_the_papers_rule_at_grid_point_0(method, cvar, mean):
    """Deep Sea Treasure at 0.02, evaluated exactly: the reference figures, to their last digit."""
    model = prudent.domains.deep_sea_treasure()
    plan = prudent.solve(model, 0.02, method=method)
    assert cvar is None or plan.cvar == pytest.approx(cvar, abs=0.006)
    assert plan.expected == pytest.approx(mean, abs=0.006)
    without = prudent.solve(model, 0.02, method=replace(method, floor=0.0))
    assert plan.lower == without.lower
    assert plan.expected != without.expected


def test_with_a_floor_outcomes_without_weight_count_and_the_bound_does_not_know():
    """By hand: up to 1/2, F is 10 y in a and b; both hold 10 floor at y = 0, and the adversary weighs only one."""
    table = {
        "s": {"go": [(0.5, "a", 0), (0.5, "b", 0)]},
        "a": {"on": [(0.5, "g", 10), (0.5, "g", 0)]},
        "b": {"on": [(0.5, "g", 10), (0.5, "g", 0)]},
    }
    model, floor = prudent.build("s", table), 1e-3
    method = prudent.CvarWC(grid=(0, 0.1, 0.25, 0.5, 1), floor=floor)
    prepared = prepare(model)
    solved_game = method.solve_game(prepared, Limits.of(None, None))
    at_a_tenth = prepared.scale.level_size * solved_game.game.value[prepared.start][1]
    assert at_a_tenth == pytest.approx(0.1 * 10 + 0.5 * 10 * floor, rel=1e-12)
    plan = prudent.solve(model, 0.1, method=method)
    assert plan.lower == pytest.approx(10, rel=1e-9) and plan.lower <= plan.cvar


@settings(max_examples=examples(40))
@given(cases(), ALPHAS, st.sampled_from([1e-6, 1e-3]))
def test_bounds_hold_with_a_floor(case, alpha, floor):
    optimum = solved(case, alpha).cvar
    small = 1e-9 * max(1, abs(optimum))
    options = {"points": 5, "floor": floor}
    for method in (prudent.CvarWC(**options), prudent.CvarEV(**options, episodes=None, cost_steps=None)):
        plan = prudent.solve(case.model, alpha, method=method)
        assert plan.lower == prudent.solve(case.model, alpha, method=replace(method, floor=0.0)).lower
        assert plan.lower <= optimum + small
        assert optimum <= plan.cvar + small


def test_a_domain_has_its_own_number_of_grid_points():
    model = prudent.domains.deep_sea_treasure()
    for method in (prudent.CvarWC, prudent.CvarEV):
        usual, own = (prudent.solve(model, 0.1, method=made) for made in (method.name, method(points=80)))
        assert usual.lower == own.lower != prudent.solve(model, 0.1, method=method(points=30)).lower
    other = prudent.domains.betting_game(stages=4)
    usual, own = (prudent.solve(other, 0.2, method=made) for made in ("cvar-wc", prudent.CvarWC(points=30)))
    assert usual.lower == own.lower


def test_where_the_worst_case_is_infinite_the_mean_is_played():
    model = prudent.build("s", {"s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "slow": [(0.9, "s", 1), (0.1, "g", 1)]}})
    for method in ("cvar-wc", "cvar-ev"):
        plan = prudent.solve(model, 0.25, method=method)
        assert plan.worst_case == np.inf
        assert plan.expected == pytest.approx(2, rel=1e-6)
        assert any("sweeps of the game" in note for note in plan.notes)
        assert any("lowest expected cost is played at y = 0" in note for note in plan.notes)


@pytest.mark.parametrize("alpha", [1e-3, 0.1])
@pytest.mark.parametrize("method", [prudent.CvarWC(), prudent.CvarWC(points=3), prudent.CvarEV(points=3)], ids=str)
def test_a_game_that_prefers_to_stay_for_ever_is_left(tmp_path, method, alpha):
    """Between grid points F is linear, and a costly loop may look cheaper than a risky way out."""
    model = prudent.build(0, {0: {"stay": [(1.0, 0, 1)], "go": [(1 / 3, 0, 2), (2 / 3, "g", 1)]}})
    plan = prudent.solve(model, alpha, method=method)
    optimum = prudent.solve(model, alpha)
    assert plan.lower <= optimum.upper
    assert optimum.lower <= plan.upper < np.inf
    assert plan.expected == pytest.approx(2)
    prudent.save(plan, tmp_path / "p.safetensors")
    again = prudent.load_plan(tmp_path / "p.safetensors", model)
    assert again.policy.start().action == plan.policy.start().action == "go"
    assert prudent.evaluate(model, again.policy).mean == pytest.approx(2)


def test_endlessly_many_values_of_y_are_rounded_and_it_is_said(monkeypatch):
    """A cyclic model on which runs meet more and more values of y."""
    monkeypatch.setattr("prudent.methods.cvar_wc.NODES", 20_000)
    third, sixth = 1 / 3, 1 / 6
    table = {
        0: {0: [(2 / 7, 1, 0), (1 / 7, 2, 0), (4 / 7, 0, 0)]},
        1: {0: [(sixth, 0, 3), (sixth, 1, 2), (4 * sixth, 1, 0)], 1: [(third, 1, 2), (0.5, 1, 2), (sixth, 2, 4)]},
        2: {0: [(1.0, 0, 0)], 1: [(2 * third, 0, 0), (third, "g", 0)]},
    }
    model = prudent.build({0: 0.25, 1: 0.75}, table)
    optimum = prudent.solve(model, 0.5)
    for method in (prudent.CvarWC(points=5), prudent.CvarEV(points=5)):
        plan = prudent.solve(model, 0.5, method=method)
        assert any("too many values of y" in note for note in plan.notes)
        assert plan.lower <= optimum.upper
        assert optimum.lower <= plan.upper
        runs = prudent.simulate(model, plan.policy)
        assert abs(runs.mean - plan.expected) <= 4 * runs.mean_se


@pytest.mark.parametrize(
    ("d", "alpha"),
    [(0.5, 1e-6), (1e-2, 1e-9), *(pytest.param(1e-3, alpha, marks=pytest.mark.slow) for alpha in (1e-6, 1e-9))],
)
def test_the_policys_own_cvar_has_no_tail_cut_off(d, alpha):
    """One policy only, so every method's bounds must enclose the same number."""
    model = prudent.build("s", {"s": {"a": [(1 - d, "s", 1), (d, "g", 1)]}})
    exact = prudent.solve(model, alpha)
    for method in ("cvar-wc", "cvar-ev", "expected"):
        plan = prudent.solve(model, alpha, method=method)
        assert plan.upper >= exact.lower
        assert plan.cvar == pytest.approx(exact.cvar, rel=1e-9)
        assert plan.expected == pytest.approx(1 / d, rel=1e-9)


def test_on_rounded_costs_all_methods_pay_the_true_ones():
    table = {"s": {"a": [(0.5, "t", 2**0.5), (0.5, "g", 1.8)], "b": [(1, "g", 5)]}, "t": {"x": [(1, "g", 2.718281828)]}}
    model = prudent.build("s", table)
    truth = 0.5 * (2**0.5 + 2.718281828) + 0.5 * 1.8
    for method in ("exact", "cvar-wc", "cvar-ev"):
        plan = prudent.solve(model, 0.5, method=method, step=0.05)
        runs = prudent.simulate(model, plan.policy)
        assert abs(runs.mean - truth) <= 4 * runs.mean_se


def test_options_are_checked():
    model = prudent.domains.figure_2()
    for method, message in [
        (prudent.CvarWC(points=1), "points is 1; the grid of y needs at least 2"),
        (prudent.CvarWC(floor=-1e-6), "floor is -1e-06; it must be at least 0, and below the first grid"),
        (
            prudent.CvarWC(floor=0.05, grid=(0, 0.05, 1)),
            "floor is 0.05; it must be .* above 0, 0.05",
        ),
        (prudent.CvarEV(floor="1e-6"), "floor is '1e-6'; it must be"),
        (prudent.CvarWC(grid=(0, 0.5)), "grid must rise strictly from 0 to 1"),
        (prudent.CvarWC(ties="none"), "ties is 'none'; it must be 'first' or 'last'"),
        (prudent.CvarEV(cost_steps=0), "cost_steps is 0"),
    ]:
        with pytest.raises(prudent.PrudentError, match=message):
            prudent.solve(model, 0.1, method=method)
    own = prudent.solve(model, 0.1, method=prudent.CvarWC(grid=(0, 0.05, 0.1, 0.5, 1)))
    assert own.cvar == pytest.approx(10)


def test_a_policy_that_remembers_says_so():
    plan = prudent.solve(prudent.domains.figure_2(), 0.1, method="cvar-wc")
    for call in (lambda: plan.policy("s0"), lambda: plan.explain("s0"), plan.decisions):
        with pytest.raises(prudent.PrudentError, match="remembers more than the cost so far"):
            call()


@pytest.mark.parametrize("method", ["cvar-wc", "cvar-ev"])
def test_plans_of_the_game_can_be_kept(tmp_path, method):
    model = prudent.domains.betting_game()
    plan = prudent.solve(model, 0.2, method=method)
    prudent.save(plan, tmp_path / "p.safetensors")
    again = prudent.load_plan(tmp_path / "p.safetensors", model)
    one, other = prudent.evaluate(model, plan.policy), prudent.evaluate(model, again.policy)
    assert np.array_equal(one.probabilities, other.probabilities)
    assert again.to_dict() == plan.to_dict()


@pytest.mark.parametrize("method", ["cvar-wc", "cvar-ev"])
def test_agents_on_the_model_itself_agree_with_the_evaluation(method):
    """An independent walk: the agent on the user's states and costs, not on the unrolled ones."""
    model = prudent.domains.betting_game(stages=6)
    plan = prudent.solve(model, 0.3, method=method)
    rng, totals = np.random.default_rng(0), []
    for _ in range(1500):
        agent = plan.policy.start()
        while not agent.done:
            a = model.find_action(model.index(agent.state), agent.action)
            rows = np.arange(model.outcome_start[a], model.outcome_start[a + 1])
            o = rng.choice(rows, p=model.probability[rows])
            agent.observe(model.state(model.successor[o]), model.cost[o])
        totals.append(agent.spent)
    assert abs(np.mean(totals) - plan.expected) <= 4 * np.std(totals) / np.sqrt(len(totals))
