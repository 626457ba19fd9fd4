import numpy as np
import pytest

import prudent

LOOP = {"s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "pay": [(1, "g", 5)], "wait": [(1, "s", 0)]}}


def model_of(table, start="s"):
    return prudent.build(start, lambda s: table.get(s, {}))


@pytest.mark.parametrize("alpha", [0.02, 0.2])
@pytest.mark.parametrize("method", ["exact", "expected", "worst-case", "cvar-wc", "cvar-ev"])
@pytest.mark.parametrize("name", ["betting_game", "deep_sea_treasure", "inventory_control", "figure_2"])
def test_within_four_standard_errors_of_the_truth(name, method, alpha):
    model = getattr(prudent.domains, name)()
    plan = prudent.solve(model, alpha, method=method)
    runs = prudent.simulate(model, plan.policy, episodes=20_000, seed=1)
    assert abs(runs.mean - plan.expected) <= 4 * runs.mean_se + 1e-9
    assert abs(runs.cvar(alpha) - plan.cvar) <= 4 * runs.cvar_se(alpha) + 1e-9
    assert runs.episodes == 20_000


@pytest.mark.parametrize("cost", [0.0, 0.1, 1 / 3, 1e9 + 0.3, -0.7])
def test_runs_that_all_cost_the_same_are_within_four_standard_errors(cost):
    """There, a standard error is rounding and nothing else; the check in the README holds all the same."""
    model = prudent.build(0, {0: {"a": [(1, 1, cost)]}, 1: {"a": [(1, 2, cost), (0, 0, 1)]}, 2: {"a": [(1, 3, 0.1)]}})
    plan = prudent.solve(model, alpha=0.01)
    for policy in (plan.policy, {0: "a", 1: "a", 2: "a"}, lambda state, spent: "a"):
        runs = prudent.simulate(plan.model, policy, episodes=20_000, seed=0)
        assert abs(runs.mean - plan.expected) <= 4 * runs.mean_se
        assert abs(runs.cvar(0.01) - plan.cvar) <= 4 * runs.cvar_se(0.01)
        assert runs.mean_se <= 1e-11 * max(1.0, abs(plan.expected))


def test_threads_change_nothing_and_seeds_do():
    plan = prudent.solve(prudent.domains.betting_game(), 0.2)
    one, two, five = (prudent.simulate(plan.model, plan.policy, episodes=5000, threads=t) for t in (1, 2, 5))
    assert np.array_equal(one.costs, two.costs)
    assert np.array_equal(one.costs, five.costs)
    assert not np.array_equal(one.costs, prudent.simulate(plan.model, plan.policy, episodes=5000, seed=1).costs)
    # the same stream, cut short
    assert np.array_equal(one.costs[:100], prudent.simulate(plan.model, plan.policy, episodes=100).costs)


def test_paths_are_the_runs_themselves():
    plan = prudent.solve(prudent.domains.deep_sea_treasure(), 0.1)
    runs = prudent.simulate(plan.model, plan.policy, episodes=1100, paths=1050)
    assert len(runs.paths) == 1050
    assert [sum(cost for _, _, cost in path) for path in runs.paths] == runs.costs[:1050].tolist()


def test_tables_and_functions():
    model = model_of(LOOP)
    table = prudent.simulate(model, {"s": "try"}, seed=2)
    function = prudent.simulate(model, lambda state, spent: "try", seed=2, paths=3)
    for runs in (table, function):
        assert abs(runs.mean - 2) <= 4 * runs.mean_se
        assert abs(runs.cvar(0.25) - 4) <= 4 * runs.cvar_se(0.25)
    assert [len(path) for path in function.paths] == function.costs[:3].tolist()
    stop = prudent.simulate(model, lambda state, spent: "try" if spent < 2 else "pay")
    assert sorted(set(stop.costs)) == [1, 2, 7]


def test_costs_without_a_common_step_can_be_simulated_by_a_function():
    table = {"s": {"a": [(0.5, "g", 2**0.5), (0.25, "g", 3.14159265358979), (0.25, "g", 1)]}}
    runs = prudent.simulate(model_of(table), lambda state, spent: "a")
    assert sorted(set(runs.costs)) == [1, 2**0.5, 3.14159265358979]


def test_free_cycles_are_routed_through():
    table = {
        "a": {"right": [(0.5, "b", 0), (0.5, "a", 0)], "leave": [(1, "g", 9)]},
        "b": {"left": [(1, "a", 0)], "right": [(0.5, "c", 0), (0.5, "a", 0)]},
        "c": {"left": [(1, "b", 0)], "leave": [(0.5, "g", 2), (0.5, "a", 1)]},
    }
    plan = prudent.solve(model_of(table, "a"), 0.2)
    runs = prudent.simulate(plan.model, plan.policy)
    assert abs(runs.mean - plan.expected) <= 4 * runs.mean_se
    assert abs(runs.cvar(0.2) - plan.cvar) <= 4 * runs.cvar_se(0.2)


def test_outcomes_of_probability_zero_never_happen():
    model = prudent.from_arrays([0, 1, 1], [0, 3], [0.5, 0.5, 0.0], [1, 1, 1], [1.0, 2.0, 99.0])
    assert prudent.simulate(model, {0: 0}).costs.max() == 2


def test_what_is_wrong_is_said():
    model = model_of(LOOP)
    plan = prudent.solve(model, 0.5)
    for change, message in [
        ({"episodes": 0}, "episodes is 0; it must be a whole number, at least 1"),
        ({"episodes": 2.5}, "episodes is 2.5"),
        ({"seed": -1}, "seed is -1"),
        ({"paths": True}, "paths is True"),
        ({"max_steps": 0}, "max_steps is 0"),
    ]:
        with pytest.raises(prudent.PrudentError, match=message):
            prudent.simulate(model, plan.policy, **change)
    with pytest.raises(prudent.PrudentError, match="took more than 3 actions; raise max_steps="):
        prudent.simulate(model, {"s": "try"}, max_steps=3)
    with pytest.raises(prudent.PrudentError, match="took more than 100 actions"):
        prudent.simulate(model, lambda state, spent: "wait", max_steps=100)
    with pytest.raises(prudent.PrudentError, match="does not reach a goal with probability 1"):
        prudent.simulate(model, {"s": "wait"})
    with pytest.raises(prudent.PrudentError, match="the policy was made for"):
        prudent.simulate(prudent.domains.figure_2(), plan.policy)
    with pytest.raises(prudent.PrudentError, match="policy is a Plan"):
        prudent.simulate(model, plan)


def test_one_run_has_no_standard_error():
    plan = prudent.solve(prudent.domains.figure_2(), 0.5)
    assert prudent.simulate(plan.model, plan.policy, episodes=1).mean_se == float("inf")
