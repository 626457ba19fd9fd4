"""A policy whose table has only the budgets that its runs meet does all that one with every budget does."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from plans import in_ranges, plan_for, same_policy
from prudent.engine.prepared import restrict
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.errors import TooLarge
from prudent.policies.chain import backward, spent_budget
from prudent.policies.mixed import MixedPolicy
from prudent.policies.policy import BudgetPolicy
from prudent.results.decisions import met_of
from strategies import cases, examples, noisy_table, solved

METHODS = ("exact", "expected", "worst-case", "cvar-ev")


def met(policy: BudgetPolicy) -> set[tuple[int, int]]:
    """The pairs of state and budget left in which runs of a policy act."""
    prepared = policy.prepared
    found = {(prepared.start, policy.level)}
    waiting = list(found)
    while waiting:
        s, b = waiting.pop()
        if prepared.is_goal[s]:
            continue
        a = prepared.action_start[s] + policy.choices.at(s, b)
        for o in range(prepared.outcome_start[a], prepared.outcome_start[a + 1]):
            after = int(prepared.successor[o]), max(b - int(prepared.cost[o]), 0)
            if after not in found:
                found.add(after)
                waiting.append(after)
    return {(s, b) for s, b in found if not prepared.is_goal[s]}


def cut(policy: BudgetPolicy) -> BudgetPolicy:
    """The policy with a table of the budgets that its runs meet, and those in between."""
    if isinstance(policy, MixedPolicy):
        (_, first), (_, second) = ((share, cut(part)) for share, part in policy.parts)
        return replace(policy, choices=first.choices, other=second.choices)
    budgets: dict[int, list[int]] = {}
    for s, b in met(policy):
        if policy.remembers and policy.memory[s] > 0:  # one action, whatever the budget
            continue
        # Where costs are rounded, true costs reach the levels in between, too.
        budgets.setdefault(s, []).append(max(b, 1) if policy.prepared.scale.rounded else b)
    within = {s: [b for b in some if b > 0] for s, some in budgets.items()}
    return in_ranges(policy, {s: (min(some), max(some)) for s, some in within.items() if some})


def test_what_is_known_without_budget_is_not_found_again():
    loop = {"try": [(0.5, "s", 1), (0.5, "g", 1)], "wade": [(0.6, "s", 3), (0.4, "g", 2)]}
    policy = prudent.solve(prudent.build("s", {"s": loop}), 0.1).policy
    known = least_expected_cost(policy.prepared)
    assert spent_budget(policy) is known
    found = least_expected_cost(restrict(policy.prepared, policy.without_budget))
    assert (found.lower <= known.upper).all() and (known.lower <= found.upper).all()
    other = policy.prepared.action_start[:-1] + 1 - (known.choice - policy.prepared.action_start[:-1])
    dearer = spent_budget(BudgetPolicy.of_states(policy.prepared, np.where(policy.prepared.is_goal, 0, other)))
    assert dearer.lower[policy.prepared.start] > known.upper[policy.prepared.start]


def assert_runs_alike(plan: prudent.Plan, other: prudent.Plan) -> None:
    model = plan.model
    own, found = prudent.evaluate(model, plan.policy), prudent.evaluate(model, other.policy)
    assert np.array_equal(own.values, found.values) and np.array_equal(own.probabilities, found.probabilities)
    for (_, mine), (_, yours) in zip(plan.policy.parts, other.policy.parts, strict=True):
        assert backward(mine, spent_budget(mine)) == backward(yours, spent_budget(yours))
    runs = [prudent.simulate(model, each.policy, episodes=200, seed=3, paths=8, threads=1) for each in (plan, other)]
    assert np.array_equal(runs[0].costs, runs[1].costs) and runs[0].paths == runs[1].paths
    for path in runs[0].paths:
        if not path or isinstance(plan.policy, MixedPolicy):
            continue
        agent = other.policy.start(path[0][0])
        for (state, action, cost), after in zip(path, [*path[1:], None], strict=True):
            assert (agent.state, agent.action) == (state, action)
            if after is not None:
                agent.observe(after[0], cost)
    chains = [each.chain() for each in (plan, other)]
    assert chains[0].fingerprint == chains[1].fingerprint
    assert [chains[0].state(s) for s in range(chains[0].n_states)] == [
        chains[1].state(s) for s in range(chains[1].n_states)
    ]


def assert_tells_the_same(plan: prudent.Plan, other: prudent.Plan) -> None:
    rows = met_of(plan.policy)
    assert met_of(other.policy) == rows
    if not plan.policy.prepared.scale.rounded:  # otherwise the table covers costs that runs of the plan do not have
        assert other.decisions().rows == plan.decisions().rows == rows
    for row in rows[:: len(rows) // 40 + 1]:
        beyond = plan.step if plan.policy.prepared.scale.rounded else 0.0  # then a range begins after its least cost
        spent = row.at_least + beyond if np.isinf(row.at_most) else row.at_most
        assert other.policy(row.state, spent) == row.action
        if plan.objective is None:
            assert other.explain(row.state, spent) == plan.explain(row.state, spent)
    pairs = np.array(sorted(met(plan.policy)), dtype=np.int64).reshape(-1, 2)
    mine, yours = (each.policy.choices.each(*pairs.T) for each in (plan, other))
    assert np.array_equal(mine, yours)


def assert_kept(plan: prudent.Plan, path) -> None:
    prudent.save(plan, path)
    again = prudent.load_plan(path, plan.model)
    assert again.to_dict() == plan.to_dict()
    assert type(again.policy) is type(plan.policy)
    for (_, mine), (_, yours) in zip(plan.policy.parts, again.policy.parts, strict=True):
        assert same_policy(mine, yours)


@pytest.mark.parametrize(
    ("name", "alpha", "options"),
    [
        ("figure-2", 0.1, {}),
        ("betting-game", 0.2, {}),
        ("deep-sea-treasure", 0.05, {}),
        ("inventory-control", 0.01, {"stages": 4}),
        ("betting-game", 0.2, {"objective": prudent.Exceedance(60)}),
        ("autonomous-navigation", 0.1, {"step": 2.0}),
    ],
)
def test_domains(name, alpha, options, tmp_path):
    if "stages" in options:
        plan = prudent.solve(prudent.domains.inventory_control(**options), alpha)
    else:
        plan = plan_for(name, alpha, **options)
    other = replace(plan, policy=cut(plan.policy))
    assert len(other.policy.choices.entry) < len(plan.policy.choices.entry)
    assert_runs_alike(plan, other)
    assert_tells_the_same(plan, other)
    assert_kept(other, tmp_path / "plan.safetensors")


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), alpha=st.sampled_from([0.05, 0.3, 1.0]), method=st.sampled_from(METHODS))
def test_random_models(case, alpha, method, tmp_path_factory):
    plan = solved(case, alpha, method=method)
    other = replace(plan, policy=cut(plan.policy))
    assert_runs_alike(plan, other)
    if not plan.policy.remembers:
        assert_tells_the_same(plan, other)
    assert_kept(other, tmp_path_factory.mktemp("plans") / "plan.safetensors")


@settings(max_examples=examples(10), deadline=None)
@given(case=cases(), slack=st.sampled_from([0.05, 0.5]))
def test_plans_that_draw(case, slack, tmp_path_factory):
    plan = solved(case, 0.2, absolute_slack=slack * case.step, randomise=True)
    other = replace(plan, policy=cut(plan.policy))
    assert_runs_alike(plan, other)
    assert_kept(other, tmp_path_factory.mktemp("plans") / "plan.safetensors")


@pytest.mark.parametrize("seed", range(5))
def test_rounded_costs(seed, tmp_path):
    plan = prudent.solve(prudent.build(0, noisy_table(np.random.default_rng(seed))), 0.1, step=0.05)
    other = replace(plan, policy=cut(plan.policy))
    assert plan.policy.prepared.scale.rounded
    assert_runs_alike(plan, other)
    assert_tells_the_same(plan, other)
    assert_kept(other, tmp_path / "plan.safetensors")


@settings(max_examples=examples(40), deadline=None)
@given(case=cases(), data=st.data())
def test_runs_outside_of_the_table_are_followed_as_well(case, data):
    plan = solved(case, 0.1)
    level, n = plan.policy.level, plan.policy.prepared.n_states
    ends = st.tuples(st.integers(1, max(level, 1)), st.integers(1, max(level, 1)))
    policy = in_ranges(plan.policy, {s: data.draw(ends) for s in range(n)})
    left = np.arange(level + 1)[:, None]
    whole = BudgetPolicy.of_rows(policy.prepared, policy.choices.each(np.arange(n), left).astype(np.uint8))
    whole, other = replace(plan, policy=whole), replace(plan, policy=policy)
    assert_runs_alike(whole, other)
    assert_tells_the_same(whole, other)
    assert np.array_equal(whole.policy.model_actions, other.policy.model_actions)


def test_what_has_every_budget_is_refused_where_there_are_too_many():
    plan = prudent.solve(prudent.domains.figure_2(), 0.1)
    policy = replace(in_ranges(plan.policy, {plan.policy.prepared.start: (10**13, 10**13)}), level=10**13)
    with pytest.raises(TooLarge, match=r"a table of all actions would take .* call the policy with state and spent"):
        policy.model_actions  # noqa: B018
    with pytest.raises(TooLarge, match="the chain of the policy would take"):
        replace(plan, policy=policy).chain()
    assert [row.state for row in replace(plan, policy=policy).decisions().rows] == ["s0", "s1", "s2"]
