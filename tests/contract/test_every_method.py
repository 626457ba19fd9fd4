"""What every method promises, on every kind of model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.plan import STATUS
from strategies import cases, examples, solved

METHODS = ["exact", "expected", "worst-case", "cvar-wc", "cvar-ev"]


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=examples(60))
@given(case=cases(), alpha=st.sampled_from([1.0, 0.5, 0.1, 0.01]))
def test_promises(method, case, alpha):
    plan = solved(case, alpha, method=method)
    model, before = plan.model, case.model.fingerprint
    small = 1e-9 * max(1.0, abs(plan.cvar))
    assert plan.status in STATUS
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
    assert np.array_equal(again.policy.choice, plan.policy.choice)
    assert model.fingerprint == before
    # the exact optimum is inside every method's bounds
    optimum = prudent.solve(model, alpha).cvar
    assert plan.lower - small <= optimum <= plan.upper + small


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
