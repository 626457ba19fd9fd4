"""What every method promises, on every kind of model."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from plans import same_policy
from strategies import cases, examples, noisy_table, solved

METHODS = ["exact", "expected", "worst-case", "cvar-wc", "cvar-ev"]


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=examples(60))
@given(case=cases(), alpha=st.sampled_from([1.0, 0.5, 0.1, 0.01]))
def test_promises(method, case, alpha):
    plan = solved(case, alpha, method=method)
    model, before = plan.model, case.model.fingerprint
    small = 1e-9 * max(1.0, abs(plan.cvar))
    assert plan.status == "optimal" if method == "exact" else plan.status in ("optimal", "approximate")
    assert plan.lower - small <= plan.cvar <= plan.upper + small
    assert plan.lower <= plan.upper
    assert plan.var <= plan.cvar + small
    assert plan.expected <= plan.cvar + small
    result = prudent.evaluate(model, plan.policy)
    assert result.mean == pytest.approx(plan.expected, rel=1e-9, abs=1e-9)
    assert result.cvar(alpha) == pytest.approx(plan.cvar, rel=1e-9, abs=1e-9)
    assert result.var(alpha) == plan.var
    # the same again, and nothing was touched
    again = prudent.solve(model, alpha, method=method)
    assert {**again.to_dict(), "seconds": 0} == {**plan.to_dict(), "seconds": 0}
    assert same_policy(again.policy, plan.policy)
    assert model.fingerprint == before
    # the exact optimum is inside every method's bounds
    best = prudent.solve(model, alpha)
    assert plan.lower - small <= best.cvar <= plan.upper + small
    if plan.status == "optimal":  # in both objectives
        assert abs(plan.cvar - best.cvar) <= small and abs(plan.expected - best.expected) <= small


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(examples(6)))
def test_promises_on_costs_without_a_common_step(method, seed):
    rng, alpha = np.random.default_rng(seed), [1.0, 0.3, 0.05][seed % 3]
    model = prudent.build(0, noisy_table(rng))
    plan = prudent.solve(model, alpha, method=method)
    before = prudent.build(0, noisy_table(np.random.default_rng(seed))).fingerprint
    small = 1e-9 * max(1.0, abs(plan.cvar))
    assert plan.lower - small <= plan.cvar <= plan.upper + small
    assert plan.expected_lower <= plan.expected + small
    assert plan.expected <= plan.cvar + small
    result = prudent.evaluate(model, plan.policy)
    assert result.mean == pytest.approx(plan.expected, rel=1e-9, abs=1e-9)
    assert result.cvar(alpha) == pytest.approx(plan.cvar, rel=1e-9, abs=1e-9)
    runs = prudent.simulate(model, plan.policy, episodes=20_000, seed=seed)  # pays the true costs
    assert abs(runs.mean - plan.expected) <= 5 * runs.mean_se + small
    low, high = plan.lower - 5 * runs.cvar_se(alpha), plan.upper + 5 * runs.cvar_se(alpha)
    assert low - small <= runs.cvar(alpha) <= high + small
    again = prudent.solve(model, alpha, method=method)
    assert {**again.to_dict(), "seconds": 0} == {**plan.to_dict(), "seconds": 0}
    assert same_policy(again.policy, plan.policy)
    assert model.fingerprint == before
    best = prudent.solve(model, alpha)
    assert max(plan.lower, best.lower) <= min(plan.upper, best.upper) + small
    assert plan.worst_case == pytest.approx(best.worst_case, rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_an_agent_charges_itself_what_a_simulated_run_does(method):
    rng = np.random.default_rng(3)
    model = prudent.build(0, noisy_table(rng))
    policy = prudent.solve(model, 0.3, method=method, step=0.05).policy
    for path in prudent.simulate(model, policy, episodes=50, seed=1, paths=50).paths:
        agent = policy.start()
        for (state, action, cost), after in zip(path, [*path[1:], None], strict=True):
            assert (agent.state, agent.action) == (state, action)
            ends = [t for t in range(model.n_states) if model.is_goal[t]]
            agent.observe(model.state(ends[0]) if after is None else after[0], cost)
        assert agent.done
        assert agent.spent == pytest.approx(sum(cost for _, _, cost in path), abs=1e-9)


ANSWER = """
import hashlib, json, prudent
model = prudent.domains.inventory_control(stages=4)
found = []
for method in ("exact", "expected", "worst-case", "cvar-wc", "cvar-ev"):
    plan = prudent.solve(model, 0.1, method=method)
    digest = hashlib.sha256(plan.policy.choices.entry.tobytes()).hexdigest()
    found.append([digest, {**plan.to_dict(), "seconds": 0}, prudent.evaluate(model, plan.policy).mean])
print(json.dumps(found))
"""


def test_the_same_answer_to_the_last_bit_for_any_number_of_threads():
    def answer(threads):
        names = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **{name: str(threads) for name in names}}
        return subprocess.run([sys.executable, "-c", ANSWER], env=environment, capture_output=True, check=True).stdout

    assert answer(1) == answer(2)


def test_each_status_has_a_message_and_a_test():
    game = prudent.domains.betting_game()
    assert prudent.solve(game, 0.2).status == "optimal"
    assert prudent.solve(game, 0.2, method="expected").status == "approximate"
    assert prudent.solve(game, 0.2, method="expected", gap=50).status == "within_gap"
    assert prudent.solve(game, 0.2, method="expected", relative_gap=0.5).status == "within_gap"
    assert prudent.solve(game, 0.2, method="expected", gap=1).status == "gap_not_reached"
    assert "method exact" in prudent.solve(game, 0.2, method="worst-case").message
    for gap in ({"gap": -1}, {"relative_gap": float("nan")}):
        with pytest.raises(prudent.PrudentError, match="must be a number, at least 0"):
            prudent.solve(game, 0.2, **gap)
