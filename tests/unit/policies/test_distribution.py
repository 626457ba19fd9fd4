import numpy as np
import pytest

from prudent.errors import PrudentError
from prudent.policies.distribution import Distribution, check_alpha

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


@pytest.mark.parametrize("alpha", [0, -0.1, 1.1, float("nan"), "much", None])
def test_alpha_is_checked(alpha):
    with pytest.raises(PrudentError, match="must be the fraction of worst runs"):
        check_alpha(alpha)
