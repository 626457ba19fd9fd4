"""A plan's chain has the plan's own distribution, for every kind of policy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.policies.mixed import MixedPolicy
from strategies import cases, examples, noisy_table, solved

METHODS = ("exact", "expected", "worst-case", "cvar-wc", "cvar-ev")


def of_chain(chain: prudent.SSP, tolerance: float = 1e-13) -> prudent.Distribution:
    """The distribution of the one policy that a chain leaves."""
    table = {chain.state(s): chain.action(int(chain.action_start[s])) for s in np.flatnonzero(~chain.is_goal)}
    return prudent.evaluate(chain, table, tolerance=tolerance)


def assert_same(plan: prudent.Plan) -> prudent.SSP:
    chain = plan.chain()
    assert set(np.diff(chain.action_start).tolist()) <= {0, 1}
    own, found = prudent.evaluate(plan.model, plan.policy), of_chain(chain)
    assert found.mean == pytest.approx(own.mean, rel=1e-12, abs=1e-12)
    if not own.grouped:
        both = min(len(own.values), len(found.values))  # the rest is less likely than the tolerance
        assert found.values[:both] == pytest.approx(own.values[:both], rel=1e-12, abs=1e-12)
        assert found.probabilities[:both] == pytest.approx(own.probabilities[:both], abs=1e-14)
        assert min(own.probabilities[:both].sum(), found.probabilities[:both].sum()) > 1 - 1e-12
    return chain


@settings(max_examples=examples(60))
@given(case=cases(), alpha=st.sampled_from([0.05, 0.3, 1.0]), method=st.sampled_from(METHODS))
def test_the_chain_of_any_plan_has_its_distribution(case, alpha, method):
    assert_same(solved(case, alpha, method=method))


@settings(max_examples=examples(20))
@given(case=cases(), slack=st.sampled_from([0.05, 0.5]))
def test_one_that_draws_does_so_at_first(case, slack):
    plan = solved(case, 0.2, absolute_slack=slack * case.step, randomise=True)
    chain = assert_same(plan)
    if isinstance(plan.policy, MixedPolicy):
        likely = int((plan.model.initial_probability > 0).sum())
        assert len(chain.initial_state) == likely * sum(share > 0 for share, _ in plan.policy.parts)


@pytest.mark.parametrize("seed", range(5))
def test_rounded_costs_stay_true_in_the_chain(seed):
    model = prudent.build(0, noisy_table(np.random.default_rng(seed)))
    plan = prudent.solve(model, 0.1, step=0.05)
    assert plan.policy.prepared.scale.rounded
    chain = assert_same(plan)
    assert set(chain.cost.tolist()) <= set(model.cost.tolist())


def test_names_say_where_and_what_is_left():
    plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    chain = plan.chain()
    assert chain.name == "figure-2-chain"
    assert chain.state_names == ("s0, 9 left", "s2, budget gone", "s1, 9 left", "g")
    assert chain.action_names == ("a", "b", "d")
    alone = prudent.solve(prudent.domains.figure_2(), alpha=0.1, method="expected").chain()
    assert alone.state_names == ("s0", "s1", "s2", "g")
    numbers = prudent.from_arrays([0, 2, 2], [0, 1, 2], [1.0, 1.0], [1, 1], [5.0, 4.0])
    assert prudent.solve(numbers, 1.0).chain().action_names == (1,)


def test_a_plan_that_draws_names_both():
    plan = prudent.solve(prudent.domains.betting_game(stages=3), 0.2, slack=0.01, randomise=True)
    chain = assert_same(plan)
    assert {name.rpartition(", ")[2] for name in chain.state_names} == {"policy 1", "policy 2"}
    assert chain.initial_probability.tolist() == [share for share, _ in plan.policy.parts]


def test_names_that_would_coincide_are_numbered():
    """The goal is called like the start with its budget."""
    table = {"x": {"sure": [(1.0, "x, 2 left", 2)], "try": [(0.5, "x", 1), (0.5, "x, 2 left", 1)]}}
    plan = prudent.solve(prudent.build("x", table), 0.1)
    assert assert_same(plan).state_names == ("x, 2 left (0)", "x, 2 left (1)")
