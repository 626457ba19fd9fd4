"""Durations on a grid: each direction's promise, tails, and what is refused."""

import numpy as np
import pytest
from scipy import stats

from prudent import PrudentError
from prudent.io.networkx import Grid, durations

GAMMA = stats.gamma(4, scale=2.5)


def test_numbers_and_histograms_are_taken_as_they_are():
    grid = Grid(step=1)
    assert durations(3.25, grid, "x") == [(3.25, 1.0)]
    assert durations(np.int64(3), grid, "x") == [(3.0, 1.0)]
    assert durations({2.5: 0.25, 7: 0.75}, grid, "x") == [(2.5, 0.25), (7.0, 0.75)]
    assert durations(([2.5, 7], np.array([0.25, 0.75])), grid, "x") == [(2.5, 0.25), (7.0, 0.75)]


@pytest.mark.parametrize(
    "distribution",
    [
        stats.uniform(1, 3),
        stats.beta(2, 5, loc=0.3, scale=4),
        stats.randint(0, 9),
        stats.binom(7, 0.4),
        stats.randint(4, 5),
    ],
)
@pytest.mark.parametrize("step", [0.1, 0.7, 1.0, 50.0])
def test_each_duration_goes_where_its_direction_says(distribution, step):
    """Against rounding a sample: the same quantiles, since both round the same way."""
    sample = distribution.ppf((np.arange(20_000) + 0.5) / 20_000)
    where = {
        "up": np.ceil(sample / step - 1e-9),
        "down": np.floor(sample / step + 1e-9),
        "nearest": np.floor(sample / step + 0.5 + 1e-9),
    }
    for rounding, expected in where.items():
        pairs = dict(durations(distribution, Grid(step, rounding), "x"))
        assert sum(pairs.values()) == pytest.approx(1, abs=1e-12)
        multiples = np.round(np.array(list(pairs)) / step)
        assert np.allclose(multiples * step, list(pairs), rtol=1e-12)
        found = dict(zip(multiples, pairs.values(), strict=True))
        counted = dict(zip(*np.unique(expected, return_counts=True), strict=True))
        for k in found.keys() | counted.keys():
            assert found.get(k, 0) == pytest.approx(counted.get(k, 0) / 20_000, abs=2e-4)


@pytest.mark.parametrize("step", [0.25, 2.0])
def test_up_and_down_enclose_every_quantile(step):
    tail = 1e-9
    up, down = (durations(GAMMA, Grid(step, rounding, tail), "x") for rounding in ("up", "down"))
    for q in np.linspace(0.001, 0.999, 97):
        true = GAMMA.ppf(q)
        for pairs, low, high in ((up, true, true + step), (down, true - step, true)):
            values, chances = np.array(pairs).T
            found = values[np.searchsorted(np.cumsum(chances), q)]
            assert low - 1e-9 <= found <= high + 1e-9
    means = [sum(t * p for t, p in pairs) for pairs in (down, up)]
    assert means[0] <= GAMMA.mean() <= means[1] <= means[0] + step + 1e-9


NEW = [stats.Binomial(n=10, p=0.4)] if hasattr(stats, "Binomial") else []


@pytest.mark.parametrize(
    "distribution",
    [stats.hypergeom(20, 7, 12), stats.hypergeom(20, 7, 12, loc=0.5), stats.nhypergeom(20, 7, 5, loc=2.25), *NEW],
)
@pytest.mark.parametrize("step", [0.25, 0.75, 1.0, 1.5])
def test_durations_that_jump_are_each_where_their_direction_says(distribution, step):
    """By the probability of each duration; SciPy's distribution functions are nan or wrong between them."""
    low, high = distribution.support()
    value = np.arange(low, high + 1)
    chance = distribution.pmf(value)
    assert chance.sum() == pytest.approx(1, abs=1e-12)
    for rounding, number in (
        ("up", np.ceil(value / step)),
        ("down", np.floor(value / step)),
        ("nearest", np.floor(value / step + 0.5)),
    ):
        found = dict(durations(distribution, Grid(step, rounding), "x"))
        for t in {*found, *(number * step).tolist()}:
            assert found.get(t, 0) == pytest.approx(chance[number * step == t].sum(), abs=1e-12)


def test_durations_that_jump_anywhere():
    listed = stats.rv_discrete(values=([0.3, 1.7], [0.25, 0.75]))  # no lattice
    assert dict(durations(listed, Grid(0.5, "up"), "x")) == pytest.approx({0.5: 0.25, 2.0: 0.75})
    skellam = stats.skellam(9, 0.01, loc=0.5)  # without a first one
    found = dict(durations(skellam, Grid(1, "up", 1e-3), "x"))
    assert found[9] == pytest.approx(skellam.pmf(8.5), abs=1e-12)


NOISY = [stats.geninvgauss(2.3, 1.5), *([stats.irwinhall(10)] if hasattr(stats, "irwinhall") else [])]


@pytest.mark.parametrize("distribution", NOISY)
def test_noise_in_a_distribution_function_is_no_fault(distribution):
    up, down = (durations(distribution, Grid(0.01, rounding, 1e-9), "x") for rounding in ("up", "down"))
    for pairs in (up, down):
        assert min(p for _, p in pairs) > 0
        assert sum(p for _, p in pairs) == pytest.approx(1, abs=1e-12)
    low, high = (sum(t * p for t, p in pairs) for pairs in (down, up))
    assert low <= distribution.mean() <= high <= low + 0.01 + 1e-6


class Falling:
    def support(self):
        return 0.0, 2.0

    def cdf(self, x):
        return np.where(np.asarray(x) < 1, 0.5, 0.4)[()]


def test_tails_are_cut_at_their_quantile():
    for rounding, last in (("up", np.ceil), ("down", np.floor)):
        pairs = durations(GAMMA, Grid(0.5, rounding, 0.01), "x")
        assert pairs[-1][0] == last(GAMMA.ppf(0.99) / 0.5) * 0.5
        assert pairs[-1][1] >= 0.01
    normal = durations(stats.norm(10, 2), Grid(1, "up", 1e-6), "x")
    assert min(t for t, _ in normal) >= 0
    assert sum(p for _, p in normal) == pytest.approx(1, abs=1e-15)


def test_samples_are_a_histogram_of_scipys():
    samples = GAMMA.rvs(500, random_state=1)
    pairs = durations(stats.rv_histogram(np.histogram(samples, bins=50)), Grid(0.5), "x")
    assert sum(p for _, p in pairs) == pytest.approx(1, abs=1e-15)
    bins = np.ptp(samples) / 50
    assert -bins < sum(t * p for t, p in pairs) - samples.mean() < 0.5 + bins


def test_scipys_new_distributions_do_too():
    if not hasattr(stats, "Uniform"):
        pytest.skip("SciPy before 1.15")
    new, old = (durations(d, Grid(0.5, "nearest"), "x") for d in (stats.Uniform(a=1.0, b=4.0), stats.uniform(1, 3)))
    assert np.allclose(new, old, atol=1e-15)
    with pytest.raises(PrudentError, match=r"x is several distributions at once; its parameters must be numbers"):
        durations(stats.Normal(mu=[10.0, 20.0], sigma=2.0), Grid(1, "up", 1e-6), "x")
    with pytest.raises(PrudentError, match=r"x is a distribution without its parameters"):
        durations(stats.Normal, Grid(1, "up", 1e-6), "x")
    normal = durations(stats.Normal(mu=10.0, sigma=2.0), Grid(1, "up", 1e-6), "x")
    assert np.allclose(normal, durations(stats.norm(10, 2), Grid(1, "up", 1e-6), "x"), atol=1e-12)


@pytest.mark.parametrize(
    ("time", "grid", "message"),
    [
        (GAMMA, {}, r"x is a distribution; give step="),
        (GAMMA, {"step": 1}, r"x has no longest duration; give tail=, such as 1e-6"),
        (GAMMA, {"step": 1e-7, "tail": 1e-6}, r"x is up to .*, more than 100,000 times step=1e-07; give a larger step"),
        (
            stats.norm(10, 2),
            {"step": 1},
            r"x is below 0 with probability 2.87e-07; times must be at least 0; tail= allows",
        ),
        (
            stats.norm(1, 2),
            {"step": 1, "tail": 1e-3},
            r"x is below 0 with probability 0.309; times must be at least 0$",
        ),
        (stats.gamma(-4), {"step": 1}, r"x is a distribution with invalid parameters"),
        (Falling(), {"step": 0.5}, r"x is a distribution whose cdf does not rise to 1"),
        (stats.gamma, {"step": 1}, r"x is a distribution without its parameters; it must be a number, .* a distr"),
        (stats.gamma([1, 2]), {"step": 1}, r"x is several distributions at once; its parameters must be numbers"),
        (stats.gamma([1]), {"step": 1}, r"x is several distributions at once"),
        (stats.norm([10, 20]), {"step": 1, "tail": 1e-6}, r"x is several distributions at once"),
        (True, {}, r"x is True; it must be a number"),
        (np.True_, {}, r"x is .*True.*; it must be a number"),
        ({1: True}, {}, r"x is \{1: True\}; it must be"),
        (3, {"rounding": []}, r"rounding is \[\]; it must be one of 'up', 'down', 'nearest'"),
        (-1, {}, r"x can be -1; times must be numbers, at least 0"),
        (float("nan"), {}, r"x can be nan"),
        ("soon", {}, r"x is 'soon'; it must be a number, {time: probability}"),
        ("12", {}, r"x is '12'; it must be a number"),
        (None, {}, r"x is None; it must be a number"),
        ({-2: 0.5, 3: 0.5}, {}, r"x can be -2"),
        ({2: 0.5, 3: 0.6}, {}, r"the probabilities of x sum to 1.1; they must sum to 1"),
        (
            {2: 0.5, 3: 0.49},
            {},
            r"the probabilities of x sum to 0.99; they must sum to 1; if they were rounded, divide them by their sum",
        ),
        ({2: 1.5, 3: -0.5}, {}, r"x is 2 with probability 1.5; probabilities lie between 0 and 1: divide"),
        ({1: 50, 2: 40}, {}, r"x is 1 with probability 50; .* between 0 and 1: divide counts by their sum$"),
        (([1, 2], [1.0]), {}, r"x is \(\[1, 2\], \[1.0\]\); it must be"),
        ([1, 2, 3], {}, r"x is \[1, 2, 3\]; it must be"),
        ({}, {}, r"the probabilities of x sum to 0; they must sum to 1"),
        (3, {"step": 0}, r"step is 0; it must be a number above 0"),
        (3, {"rounding": "half"}, r"rounding is 'half'; it must be one of 'up', 'down', 'nearest'"),
        (3, {"tail": 0.7}, r"tail is 0.7; it must be a probability above 0 and below 0.5"),
    ],
)
def test_what_is_refused(time, grid, message):
    with pytest.raises(PrudentError, match=message):
        durations(time, Grid(**grid), "x")
