import math
from fractions import Fraction

import numpy as np
import pytest

import prudent
from prudent.engine.prepare import prepare, rounded_to
from prudent.engine.values.expected_cost import at_step, least_expected_cost
from prudent.models import graph
from prudent.runtime.limits import UNLIMITED, now


def model_of(table, start="s"):
    return prudent.build(start, lambda s: table.get(s, {}))


def test_pruning_keeps_what_proper_policies_use():
    table = {
        "s": {"risky": [(0.9, "g", 1), (0.1, "trap", 0)], "safe": [(1, "t", 5)], "free": [(1, "unused", 0)]},
        "t": {"on": [(1, "g", 0)]},
        "trap": {"stay": [(1, "trap", 0)]},
        "unused": {"down": [(1, "trap", 1)]},
    }
    prepared = prepare(model_of(table))
    assert prepared.n_actions == 2
    model = prepared.model
    assert prepared.members.state_of[model.index("trap")] == prepared.members.state_of[model.index("unused")] == -1
    plan = prudent.solve(model, 0.05)
    assert (plan.cvar, plan.policy("s")) == (5, "safe")


def test_outcomes_of_probability_zero_do_not_count():
    table = {"s": {"a": [(1, "g", 1), (0, "trap", 0), (0, "g", 100)]}, "trap": {"stay": [(1, "trap", 0)]}}
    plan = prudent.solve(model_of(table), 0.5)
    assert plan.cvar == plan.worst_case == 1


def test_no_proper_policy_names_a_trap():
    table = {"s": {"a": [(0.5, "g", 1), (0.5, "pit", 1)]}, "pit": {"wait": [(1, "pit", 1)]}}
    with pytest.raises(prudent.PrudentError, match=r"no policy reaches a goal.*'pit'"):
        prudent.solve(model_of(table), 0.5)


def test_a_chain_of_states_that_only_lead_to_a_trap_is_pruned():
    n = 3000
    table = {i: {0: [(0.5, "g", 1), (0.5, i + 1, 1)]} for i in range(n)}
    table[n] = {0: [(1, n, 1)]}
    table["s"] = {"in": [(1, 0, 0)], "home": [(1, "g", 7)]}
    assert prudent.solve(model_of(table), 0.5).cvar == 7


def test_costs_count_from_best_luck():
    prepared = prepare(prudent.domains.inventory_control())
    assert prepared.cost.min() == 0
    acting = prepared.action_start[:-1] < prepared.action_start[1:]
    free = set(prepared.outcome_state[prepared.cost == 0].tolist())
    assert free == set(acting.nonzero()[0].tolist())  # every state has its lucky outcome
    assert prepared.scale.in_units(0) == 10  # all sold every day, but the first day nobody asks for more than 15


def test_stride():
    table = {"s": {"a": [(0.5, "t", 1), (0.5, "t", 11)]}, "t": {"b": [(0.5, "g", 0), (0.5, "g", 20)]}}
    prepared = prepare(model_of(table))
    assert (prepared.scale.lattice.step, prepared.scale.stride, prepared.scale.in_units(0)) == (1, 10, 1)
    plan = prudent.solve(prepared.model, 0.25)
    assert (plan.cvar, plan.var) == (31, 21)
    assert prudent.evaluate(prepared.model, plan.policy).values.tolist() == [1, 11, 21, 31]


def test_negative_cycle_is_named():
    table = {"s": {"a": [(1, "t", -3)]}, "t": {"b": [(0.5, "s", 1), (0.5, "g", 0)]}}
    with pytest.raises(prudent.PrudentError, match=r"cycle '[st]' -> '[st]' -> '[st]' .* total cost of -2;.*not supp"):
        prudent.solve(model_of(table), 0.5)


def ring(costs, others):
    """States on a cycle with these costs, each of which may end the run at a cost of its own."""
    n = len(costs)
    return prudent.build(0, {s: {"go": [(0.5, (s + 1) % n, costs[s]), (0.5, "g", others[s])]} for s in range(n)})


def mean_of_ring(costs, others):
    """The expected cost, in fractions."""
    costs, others = [Fraction(c) for c in costs], [Fraction(c) for c in others]
    once = sum((c + d) / 2 / 2**k for k, (c, d) in enumerate(zip(costs, others, strict=True)))
    return float(once / (1 - Fraction(1, 2 ** len(costs))))


def test_a_cycle_below_zero_by_rounding_alone_is_no_negative_cycle():
    costs = [15.91296432189042, -14.379002511883382, -1.533961810007039]
    others = [2**0.5, 3**0.5, 5**0.5]
    plan = prudent.solve(ring(costs, others), 1)
    assert sum(costs) == 0 and plan.lower <= mean_of_ring(costs, others) <= plan.upper
    assert plan.expected == pytest.approx(mean_of_ring(costs, others), rel=1e-12)
    with pytest.raises(prudent.PrudentError, match="cycles of outcomes with negative total cost are not supported"):
        prudent.solve(ring([*costs[:2], costs[2] - 1e-13], others), 1)


@pytest.mark.parametrize("seed", range(60))
def test_random_cycles_of_nearly_zero_cost_are_solved_within_their_bounds(seed):
    rng = np.random.default_rng(seed)
    costs = rng.uniform(-20, 20, rng.integers(2, 30)).tolist()
    costs.append(-math.fsum(costs))
    costs[-1] += rng.integers(-1, 2) * np.spacing(costs[-1]) / 2  # to the last unit
    others = rng.uniform(-20, 20, len(costs)).tolist()
    truth = mean_of_ring(costs, others)
    plan = prudent.solve(ring(costs, others), 1)
    assert plan.lower <= truth + 1e-14 and truth <= plan.upper + 1e-14
    assert plan.upper - plan.lower <= 1e-9 and plan.expected == pytest.approx(truth, abs=1e-11)
    assert (prudent.solve(ring(costs, others), 0.1).policy.prepared.fine >= 0).all()


def arrays_of(table, n):
    rows = [table[s]["go"] for s in range(n)]
    starts = np.append(np.arange(n + 1), n), np.cumsum([0, *map(len, rows)])
    return (
        *starts,
        *(np.array([o[i] for row in rows for o in row]) for i in (0, 1)),
        np.array([float(o[2]) for row in rows for o in row]),
    )


def test_a_search_for_best_luck_knows_its_limits(monkeypatch):
    monkeypatch.setattr(graph, "AT_ONCE", 1000)
    n = 3000
    name = np.append(np.random.default_rng(0).permutation(n), n).tolist()  # so that passes in order do not suffice
    far = {name[s]: {"go": [(0.5, name[s + 1], -1), (0.5, name[max(s - 1, 0)], 2)]} for s in range(n)}
    model = prudent.from_arrays(*arrays_of(far, n), initial=name[0])
    with pytest.raises(
        prudent.PrudentError, match="looking for cycles of negative cost takes longer than the time limit"
    ):
        prudent.solve(model, 0.5, time_limit=1e-6)
    monkeypatch.setattr(graph, "go_on", lambda limits, what: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):  # between two parts of the search
        prepare(model)


def test_a_negative_cycle_of_a_large_model_is_found_as_it_closes():
    n, rng = 40_000, np.random.default_rng(0)
    target = np.column_stack([(np.arange(n) + 1) % n, (np.arange(n) + rng.integers(1, 50, n)) % n])
    target[n - 1, 0] = n
    rows = np.append(np.arange(n + 1), n), 2 * np.arange(n + 1)
    model = prudent.from_arrays(*rows, np.full(2 * n, 0.5), target.ravel(), np.full(2 * n, -1.0), initial=0)
    prudent.check(prudent.domains.figure_2())
    began = now()
    with pytest.raises(prudent.PrudentError, match=r"-> \.\.\. \([\d,]+ outcomes in all\) -> "):
        prepare(model)
    assert now() - began < 15  # from state to state it takes a minute and more


def test_negative_costs_that_are_lost_beside_huge_ones_are_refused():
    table = {0: {"go": [(1, 0, -1), (1e-200, "g", 1e150)]}}
    with pytest.raises(prudent.PrudentError, match=r"the cost -1 of state 0, action 'go' of model is too small beside"):
        prudent.solve(prudent.build(0, table), 1)


@pytest.mark.parametrize("seed", range(20))
def test_best_luck_with_negative_costs_is_that_of_bellman_and_ford(seed):
    rng = np.random.default_rng(seed)
    n = 400
    high = np.append(rng.integers(0, 10_000, n), 0)
    target = np.column_stack([np.minimum(np.arange(n) + 1, n), rng.integers(0, n + 1, (n, 2))])
    cost = high[target] - high[:n, None] + rng.integers(0, 4, target.shape)
    rows = np.append(np.arange(n + 1), n), 3 * np.arange(n + 1)
    chance = np.full(3 * n, 1 / 3)
    prepared = prepare(prudent.from_arrays(*rows, chance, target.ravel(), cost.ravel().astype(float), initial=0))
    best = np.append(np.full(n, 10**9), 0)
    for _ in range(n):
        best[:n] = np.minimum(best[:n], (cost + best[target]).min(axis=1))
    assert (prepared.scale.lattice.step * prepared.scale.luck).tolist() == best.tolist()


def test_costs_without_a_common_step_are_rounded_and_it_is_said():
    table = {"s": {"a": [(0.5, "g", 2**0.5), (0.5, "g", 1)], "b": [(1, "g", 3.14159265358979)]}}
    plan = prudent.solve(model_of(table), 0.5)
    assert plan.status == "within_gap"
    assert plan.cvar == pytest.approx(2**0.5, rel=1e-12)
    assert plan.lower <= 2**0.5 <= plan.upper <= plan.lower * 1.001
    note, below = plan.notes
    assert "the true CVaR is at least the one shown" in below
    assert note == f"costs were rounded to multiples of {plan.step:g}; the bounds account for it"
    result = prudent.evaluate(plan.model, plan.policy)
    assert result.grouped
    assert result.values.tolist() == pytest.approx([1, 2**0.5], rel=1e-12)
    agent = plan.policy.start()
    agent.observe("g", 2**0.5)
    assert agent.done
    runs = prudent.simulate(plan.model, plan.policy, episodes=100)
    assert sorted(set(runs.costs)) == [1, 2**0.5]  # runs pay the true costs


def test_free_cycles_collapse_and_members_find_the_exit():
    # a <-> b <-> c free, the exit is at c; staying for ever would cost nothing
    table = {
        "a": {"right": [(1, "b", 0)], "stay": [(1, "a", 0)], "leave": [(1, "g", 9)]},
        "b": {"left": [(1, "a", 0)], "right": [(1, "c", 0)]},
        "c": {"left": [(1, "b", 0)], "leave": [(1, "g", 2)]},
    }
    plan = prudent.solve(model_of(table, "a"), 0.1)
    assert (plan.cvar, plan.expected) == (2, 2)
    assert prepare(plan.model).n_states == 2
    assert [plan.policy(s) for s in "abc"] == ["right", "right", "leave"]
    result = prudent.evaluate(plan.model, {s: plan.policy(s) for s in "abc"})
    assert result.values.tolist() == [2]


def test_free_cycles_by_negative_costs():
    table = {
        "a": {"up": [(1, "b", 3)], "leave": [(1, "g", 9)]},
        "b": {"down": [(1, "a", -3)], "leave": [(0.5, "g", 1), (0.5, "g", 3)]},
    }
    plan = prudent.solve(model_of(table, "a"), 0.5)
    assert (plan.cvar, plan.expected) == (6, 5)
    assert (plan.policy("a"), plan.policy("b", 3)) == ("up", "leave")


def test_chance_loop_at_no_cost_is_harmless():
    table = {"s": {"try": [(0.5, "s", 0), (0.5, "g", 1)]}}
    plan = prudent.solve(model_of(table), 0.01)
    assert plan.cvar == plan.worst_case == plan.expected == 1
    far = {"s": {"try": [(1 - 1e-9, "s", 0), (1e-9, "g", 1)]}}
    assert prudent.solve(model_of(far), 0.01).cvar == 1


def test_chance_loop_over_several_states():
    table = {
        "a": {"try": [(0.75, "b", 0), (0.25, "g", 1)]},
        "b": {"try": [(0.75, "a", 0), (0.25, "g", 3)], "pay": [(1, "g", 2)]},
    }
    plan = prudent.solve(model_of(table, "a"), 1.0)
    assert plan.expected == pytest.approx(0.25 + 0.75 * plan_b_value(), rel=1e-12)
    assert plan.worst_case == 2


def plan_b_value():
    # playing on from b: v = 0.75 (0.25 + 0.75 v) + 0.75, against paying 2
    return min((0.75 * 0.25 + 0.75) / (1 - 0.75**2), 2)


def test_start_at_a_goal():
    model = prudent.build("g", lambda s: {})
    for method in ("exact", "expected", "worst-case"):
        plan = prudent.solve(model, 0.3, method=method)
        assert (plan.cvar, plan.expected, plan.var, plan.status) == (0, 0, 0, "optimal")
    assert prudent.evaluate(model, plan.policy).values.tolist() == [0]


def test_infinite_worst_case():
    table = {"s": {"try": [(0.5, "s", 1), (0.5, "g", 1)]}}
    plan = prudent.solve(model_of(table), 0.25)
    assert plan.worst_case == float("inf")
    assert plan.cvar == pytest.approx(4)  # given two failures, two more tries on average
    assert plan.expected == pytest.approx(2)
    other = prudent.solve(model_of(table), 0.25, method="worst-case")
    assert (other.worst_case, other.expected) == (float("inf"), pytest.approx(2))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("scale", [0.01, 2**0.5])
def test_another_step_is_as_if_prepared_for_it(seed, scale):
    rng = np.random.default_rng(seed)
    table = {
        s: {a: [(0.5, int(rng.integers(0, 7)), scale * int(rng.integers(0, 900))), (0.5, 6, scale)] for a in "ab"}
        for s in range(6)
    }
    model = prudent.build(0, table, goals=[6])
    base = prepare(model)
    for step in (base.scale.level_size * 7, base.scale.level_size * 60, 2.3, 170.0):
        one, other = at_step(base, step, UNLIMITED), prepare(model, step)
        assert at_step(base, step, UNLIMITED) is one
        assert rounded_to(base, step) is None or one.graph is base.graph
        assert (one.scale.step, one.scale.stride, one.scale.rounded) == (
            other.scale.step,
            other.scale.stride,
            other.scale.rounded,
        )
        for name in ("action_start", "outcome_start", "successor", "cost", "fine", "probability", "mean_cost"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
        mine, fresh = least_expected_cost(one), least_expected_cost(other)
        assert mine.value == pytest.approx(fresh.value, rel=1e-12)
        assert (mine.lower <= fresh.upper).all() and (fresh.lower <= mine.upper).all()
