"""One driver under every verb: what is asked of the bounds holds for all of them, where costs have no common step."""

import numpy as np
import pytest

import prudent
from strategies import noisy_table

SEEDS = (0, 3, 5, 8)


def real_model(seed):
    """A small model whose costs have no common step."""
    rng = np.random.default_rng(seed)
    table = noisy_table(rng)
    return prudent.build(
        0,
        {s: {a: [(p, t, c * 2**0.5) for p, t, c in o] for a, o in actions.items()} for s, actions in table.items()}.get,
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("objective", [prudent.ValueAtRisk(), prudent.MeanPlusCVaR(2.0), prudent.WorstCase()])
def test_objectives_are_refined_to_the_gap_asked_for(seed, objective):
    model = real_model(seed)
    rough, fine = (prudent.solve(model, 0.3, objective=objective, relative_gap=gap).objective for gap in (1e-2, 1e-5))
    size = max(abs(fine.lower), abs(fine.upper))
    assert fine.upper - fine.lower <= 1e-5 * size
    assert rough.upper - rough.lower <= 1e-2 * size
    assert max(rough.lower, fine.lower) <= min(rough.upper, fine.upper)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_limit_on_cvar_is_refined_while_that_helps(seed):
    model = real_model(seed)
    rough, fine = (prudent.solve(model, 0.3, max_cvar=1e3, relative_gap=gap) for gap in (1e-2, 1e-6))
    assert fine.status in ("optimal", "within_gap")  # every plan is within the limit: only rounding leaves a gap
    assert fine.expected - fine.expected_lower <= 1e-6 * max(abs(fine.expected), 1.0)
    assert fine.expected <= rough.expected + 1e-9
    tight = prudent.solve(model, 0.3, slack=0.02, relative_gap=1e-9)  # which no step may reach
    assert tight.expected_lower <= tight.expected
    assert tight.lower <= tight.cvar <= tight.max_cvar + 1e-9


def test_a_limit_that_ends_a_finer_attempt_leaves_the_best_so_far():
    model = real_model(0)
    asked = {"objective": prudent.MeanPlusCVaR(2.0), "relative_gap": 1e-5}
    plan = prudent.solve(model, 0.3, memory="1MB", **asked)
    truth = prudent.solve(model, 0.3, **asked)
    assert plan.status == "gap_not_reached"
    assert any("of memory would not do" in note for note in plan.notes)
    assert plan.objective.lower <= truth.objective.upper and truth.objective.lower <= plan.objective.upper
