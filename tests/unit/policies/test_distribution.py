from fractions import Fraction

import numpy as np
import pytest

import prudent
from prudent.errors import PrudentError
from prudent.policies.distribution import Distribution, Groups, check_alpha

COIN = Distribution(np.array([1.0, 2.0, 10.0]), np.array([0.5, 0.3, 0.2]), mean=3.1)


def test_moments():
    assert COIN.mean == 3.1
    assert COIN.std == pytest.approx(np.sqrt(0.5 * 2.1**2 + 0.3 * 1.1**2 + 0.2 * 6.9**2))


@pytest.mark.parametrize(
    ("alpha", "var", "cvar"), [(1, 1, 3.1), (0.5, 1, 5.2), (0.4, 2, 6), (0.2, 2, 10), (0.1, 10, 10), (1e-6, 10, 10)]
)
def test_tail(alpha, var, cvar):
    assert COIN.var(alpha) == var
    assert COIN.cvar(alpha) == pytest.approx(cvar)
    brute = min(w + COIN.probabilities @ np.maximum(COIN.values - w, 0) / alpha for w in COIN.values)
    assert COIN.cvar(alpha) == pytest.approx(brute)


@pytest.mark.parametrize("alpha", [1, 0.5, 0.4, 0.2, 0.1, 1e-6])
def test_the_tail_is_the_worst_alpha_and_its_mean_is_cvar(alpha):
    part = COIN.tail(alpha)
    assert part.sum() == pytest.approx(alpha)
    assert part @ COIN.values / alpha == pytest.approx(COIN.cvar(alpha))
    cut = Distribution(np.array([1.0, 2.0]), np.array([0.5, 0.3]), mean=3.1, missing=0.2, missing_mean=10.0)
    assert cut.tail(alpha) == pytest.approx(part[:2])


def test_exceeds_and_quantile():
    assert [COIN.exceeds(x) for x in (0, 1, 1.5, 2, 9.9, 10)] == pytest.approx([1, 0.5, 0.5, 0.2, 0.2, 0])
    assert [COIN.quantile(q) for q in (0, 0.5, 0.51, 0.8, 1)] == [1, 1, 2, 2, 10]
    with pytest.raises(PrudentError, match="q is 2"):
        COIN.quantile(2)


def test_missing_mass_counts_with_its_mean():
    cut = Distribution(np.array([1.0, 2.0]), np.array([0.5, 0.3]), mean=3.1, missing=0.2, missing_mean=10.0)
    for alpha in (1, 0.5, 0.2):
        assert cut.cvar(alpha) == pytest.approx(COIN.cvar(alpha))
    assert cut.var(0.1) == cut.cvar(0.1) == np.inf
    assert cut.exceeds(5) == pytest.approx(0.2)
    assert "0.2 missing" in repr(cut)


def test_the_expected_value_of_a_function():
    cut = Distribution(np.array([1.0, 2.0]), np.array([0.5, 0.3]), mean=3.1, missing=0.2, missing_mean=10.0)
    for each in (COIN, cut):
        assert each.expect(lambda cost: cost) == pytest.approx(3.1)
        assert each.expect(lambda cost: cost > 1.5) == pytest.approx(each.exceeds(1.5))
        assert each.expect(lambda cost: max(cost - 2, 0)) / 0.2 + 2 == pytest.approx(each.cvar(0.2))
        assert each.expect(np.square) - each.mean**2 == pytest.approx(each.std**2)
    for wrong, message in (
        (2, "function is 2; it must be a function of a cost"),
        (str, r"function\(1\) is '1.0'; it must be a number"),
        (lambda cost: None, r"function\(1\) is None; it must be a number"),
    ):
        with pytest.raises(PrudentError, match=message):
            COIN.expect(wrong)


@pytest.mark.parametrize("alpha", [0, -0.1, 1.1, float("nan"), "much", None])
def test_alpha_is_checked(alpha):
    with pytest.raises(PrudentError, match="must be the worst fraction of runs"):
        check_alpha(alpha)


@pytest.mark.parametrize("alpha", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_groups_bound_the_cvar_of_every_distribution_with_their_moments(seed, alpha):
    rng = np.random.default_rng(seed)
    cost, chance = rng.gamma(2.0, 5.0, 60), rng.dirichlet(np.ones(60))
    group = np.round(cost / 8).astype(int)
    share, mean = (np.bincount(group, weights=each) for each in (chance, chance * cost))
    share, mean, square = share[share > 0], mean[share > 0], np.bincount(group, weights=chance * cost**2)[share > 0]
    mean, square = mean / share, square / share
    found = Groups(share, mean, np.maximum(square - mean**2, 0.0), np.zeros(len(share))).cvar_at_most(alpha)
    order = np.argsort(cost)
    truth = Distribution(cost[order], chance[order], float(chance @ cost)).cvar(alpha)
    assert truth <= found * (1 + 1e-12)
    assert found <= truth + (1e-9 if alpha == 1 else 8)  # no more than a group is wide
    one = Groups(np.array([0.5, 0.5]), np.array([3.0, 7.0]), np.zeros(2), np.zeros(2))
    assert one.cvar_at_most(0.25) == pytest.approx(7.0, rel=1e-12)  # without spread it is CVaR


def test_quantiles_of_tiny_probabilities_have_their_digits():
    rare = Distribution(np.array([1.0, 2.0, 3.0]), np.array([1e-20, 1e-18, 1.0]), 3.0)
    assert [rare.quantile(q) for q in (0, 1e-20, 2e-20, 1e-18, 2e-18, 0.5, 1)] == [1, 1, 2, 2, 3, 3, 3]


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("rare", [1e-13, 1e-12, 9e-10, 1e-9, 1.0000001e-9, 3e-7])
def test_var_at_tiny_alphas_is_that_of_exact_arithmetic_everywhere(rare, loop):
    outcomes = [(rare, "g", 7), (1 - rare, "g", 0)]
    if loop:
        outcomes = [(0.5, "s", 0), *((p / 2, t, c) for p, t, c in outcomes)]
    model = prudent.build("s", {"s": {"go": outcomes}})
    total = sum(Fraction(p) for p, t, _ in outcomes if t == "g")
    for alpha in (1e-18, 1e-13, 1e-9, 1e-6):
        exceeded = Fraction(outcomes[1][0] if loop else rare) / total  # P(C > 0)
        truth = 7 if exceeded > Fraction(alpha) * (1 + Fraction(1e-12)) else 0
        plan = prudent.solve(model, alpha)
        aimed = prudent.solve(model, alpha, objective=prudent.ValueAtRisk())
        found = [
            plan.var,
            aimed.var,
            aimed.objective.value,
            aimed.objective.lower,
            prudent.curve(model, alpha_min=1e-18).at(alpha).var,
            *(prudent.evaluate(model, each).var(alpha) for each in (plan, {"s": "go"}, lambda state, spent: "go")),
        ]
        assert found == [truth] * len(found), (alpha, float(exceeded))


def test_a_rare_cost_among_simulated_runs_is_above_a_tiny_alpha():
    counts = np.array([10**12 - 1, 1])  # P(C > 0) is 1e-12
    result = Distribution(np.array([0.0, 7.0]), counts / counts.sum(), 7e-12)
    assert [result.var(alpha) for alpha in (1e-13, 1e-12, 1e-11)] == [7, 0, 0]
    assert [result.quantile(q) for q in (1 - 1e-12, 1 - 1e-13, 1.0)] == [0, 7, 7]
