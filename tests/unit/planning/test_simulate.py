from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import prudent
from prudent.policies import simulation
from prudent.results import runs as runs_module

LOOP = {"s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "pay": [(1, "g", 5)], "wait": [(1, "s", 0)]}}


def model_of(table, start="s"):
    return prudent.build(start, lambda s: table.get(s, {}))


@pytest.mark.parametrize("alpha", [0.02, 0.2])
@pytest.mark.parametrize("method", ["exact", "expected", "worst-case", "cvar-wc", "cvar-ev"])
@pytest.mark.parametrize("name", ["betting_game", "deep_sea_treasure", "inventory_control", "figure_2"])
def test_within_four_standard_errors_of_the_truth(name, method, alpha):
    model = getattr(prudent.domains, name)(**({"stages": 6} if name == "inventory_control" else {}))
    plan = prudent.solve(model, alpha, method=method)
    runs = prudent.simulate(model, plan.policy, episodes=10_000, seed=1)
    assert abs(runs.mean - plan.expected) <= 4 * runs.mean_se + 1e-9
    assert abs(runs.cvar(alpha) - plan.cvar) <= 4 * runs.cvar_se(alpha) + 1e-9
    assert runs.episodes == 10_000


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
    with pytest.raises(prudent.PrudentError, match="policy is a int; pass a plan or its policy"):
        prudent.simulate(model, 7)


def test_one_run_has_no_standard_error():
    plan = prudent.solve(prudent.domains.figure_2(), 0.5)
    assert prudent.simulate(plan.model, plan.policy, episodes=1).mean_se == float("inf")


def try_twice(state, spent):
    """Can be sent to a worker."""
    return "try" if spent < 2 else "pay"


ROOTS = {
    "s": {"a": [(0.5, "t", 2**0.5), (0.5, "t", 1)]},
    "t": {"a": [(0.5, "g", 3**0.5), (0.3, "s", 0.1), (0.2, "g", 5)]},
}


def kinds_of_policies():
    """Yield a model and a policy of each kind that is simulated in a way of its own."""
    game = prudent.domains.betting_game()
    yield game, prudent.solve(game, 0.2).policy
    yield game, prudent.solve(game, 0.2, max_cvar=93, randomise=True).policy
    yield game, prudent.solve(game, 0.2, method="cvar-wc").policy
    roots = model_of(ROOTS)
    yield roots, prudent.solve(roots, 0.2, step=0.5).policy
    yield roots, {"s": "a", "t": "a"}
    yield model_of(LOOP), {"s": "try"}
    yield model_of(LOOP), try_twice


def same(one, two):
    return (
        (np.array_equal(one.tally.values, two.tally.values), np.array_equal(one.tally.counts, two.tally.counts))
        == (True, True)
        and (one.mean, one.mean_se, one.cvar(0.1), one.cvar_se(0.1))
        == (two.mean, two.mean_se, two.cvar(0.1), two.cvar_se(0.1))
        and one.paths == two.paths
    )


def split_as_small_as_can_be(monkeypatch):
    """Let an executor have small pieces, however little they are worth."""
    monkeypatch.setattr(simulation, "BRIEF", 0)
    monkeypatch.setattr(simulation, "PER_BYTE", 0)


@pytest.mark.parametrize("number", range(7))
def test_the_same_numbers_however_runs_are_split(number, monkeypatch):
    """By one thread, by an executor, into pieces of any size, one by one or counted."""
    monkeypatch.setattr(simulation.OfFunction, "chunk", 1024)
    split_as_small_as_can_be(monkeypatch)
    model, policy = list(kinds_of_policies())[number]
    asked = {"episodes": 5000, "seed": 7, "paths": 1100}
    whole = prudent.simulate(model, policy, threads=1, **asked)
    assert whole.costs.sum() == pytest.approx(whole.mean * 5000)
    for kept in (10_000, 100):
        for module in (simulation, runs_module):
            monkeypatch.setattr(module, "KEPT", kept)
        for pieces in (1, 2, 1024):
            monkeypatch.setattr(simulation, "PIECES", pieces)
            with ThreadPoolExecutor(3) as executor:
                split = prudent.simulate(model, policy, executor=executor, **asked)
            assert same(whole, split)
            assert (split.kept is None) == (kept == 100)
            if kept == 10_000:
                assert np.array_equal(split.costs, whole.costs)


def test_many_different_costs_are_rounded_alike_and_the_error_says_so(monkeypatch):
    model, policy = model_of(ROOTS), {"s": "a", "t": "a"}
    exact = prudent.simulate(model, policy, episodes=5000)
    for module in (simulation, runs_module):
        monkeypatch.setattr(module, "KEPT", 100)
    monkeypatch.setattr(simulation, "MANY", 10)
    monkeypatch.setattr(simulation, "BITS", 6)
    monkeypatch.setattr(simulation, "COUNTED", 1024)
    rounded = prudent.simulate(model, policy, episodes=5000)
    assert rounded.tally.rounded and rounded.tally.values.tolist() == rounded.tally.values.round(9).tolist()
    assert rounded.mean_se > exact.mean_se
    assert abs(rounded.mean - exact.mean) <= rounded.tally.rounding * exact.costs.max()


def test_processes_give_the_same_numbers(monkeypatch):
    split_as_small_as_can_be(monkeypatch)
    kinds = list(kinds_of_policies())
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        for model, policy in (kinds[0], kinds[-1]):
            here = prudent.simulate(model, policy, episodes=3000, paths=2)
            assert same(here, prudent.simulate(model, policy, episodes=3000, paths=2, executor=executor))
        with pytest.raises(prudent.PrudentError, match="took more than 3 actions"):
            prudent.simulate(model_of(LOOP), {"s": "try"}, max_steps=3, executor=executor)
        with pytest.raises(prudent.PrudentError, match="policy cannot be sent to another process"):
            prudent.simulate(model_of(LOOP), lambda state, spent: "try", executor=executor)


def test_costs_that_are_not_kept_are_refused_by_name(monkeypatch):
    for module in (simulation, runs_module):
        monkeypatch.setattr(module, "KEPT", 100)
    plan = prudent.solve(prudent.domains.figure_2(), 0.5)
    many = prudent.simulate(plan.model, plan.policy, episodes=101)
    with pytest.raises(prudent.PrudentError, match="the costs of 101 runs are not kept one by one; use tally or dist"):
        many.costs  # noqa: B018
    with pytest.raises(prudent.PrudentError, match="simulate at most 100"):
        many.to_frame()
    assert many.to_dict(alpha=0.5)["episodes"] == 101


def test_pieces_are_worth_what_they_bring_along(monkeypatch):
    """With a clock that says a millisecond for each thousand runs and so many bytes: few large pieces, or many."""
    ticks = iter(range(100))
    monkeypatch.setattr(simulation, "now", lambda: next(ticks) * 1e-3)

    class Costless:
        chunk = 1000

        def costs(self, begin, end, paths, limits):
            assert (begin, end, paths) == (0, 1024, 0)

    def split(sent, runs, executor="some"):
        monkeypatch.setattr(simulation, "sent_with", lambda source: sent)
        return simulation.Simulation(runs, 0, 1, None, executor)._split(Costless())

    assert split(0, 10**6) == (103_000, 2 * 10**9)  # a tenth of a second
    assert split(10**7, 10**6) == (1_024_000, 200)  # a second
    assert split(10**9, 10**6) == (102_400_000, 16)
    assert split(10**6, 10**9) == (977_000, 2000)  # as many as there may be
    assert split(10**9, 1000) == (1000, None) and split(10**9, 5000, executor=None) == (1000, None)


def test_what_is_sent_is_counted():
    game = prudent.domains.betting_game()
    walk = prudent.solve(game, 0.2).policy.walk()
    assert simulation.sent_with(walk) > walk.choices.entry.nbytes + 4 * walk.probability.nbytes
    assert simulation.sent_with(simulation.OfFunction(game, try_twice, 0, 9)) > 3 * game.probability.nbytes


def test_an_executor_must_be_one():
    with pytest.raises(prudent.PrudentError, match="executor is a int"):
        prudent.simulate(model_of(LOOP), {"s": "try"}, executor=4)
    with ThreadPoolExecutor(1) as executor, pytest.raises(prudent.PrudentError, match="longer than the time limit"):
        prudent.simulate(model_of(LOOP), try_twice, episodes=10**6, time_limit=1e-9, executor=executor)
