"""The list of domains: a decorator makes one known everywhere, and its settings are read by their types."""

import pytest

import prudent
from prudent.domains import registry
from prudent.domains.registry import DOMAINS, Domain, domain, make


@pytest.fixture
def steps(monkeypatch):
    """A domain of one's own, gone after the test."""
    monkeypatch.setattr(registry, "DOMAINS", dict(DOMAINS))

    @domain("Some steps", drawn="network", action="jump")
    def some_steps(n: int = 2, price: float = 1.0, safe: bool = False, label: str = "end") -> prudent.SSP:
        cost = price if safe else 2 * price
        return prudent.build(0, lambda s: {"go": [(1, label if s == n - 1 else s + 1, cost)]} if s != label else {})

    return some_steps


def test_a_function_is_a_domain_by_its_name(steps):
    known = registry.DOMAINS
    assert known["some-steps"] == Domain("Some steps", steps, drawn="network", action="jump")
    assert known["some-steps"].environment == "prudent/SomeSteps-v0"
    assert list(known["some-steps"].parameters) == ["n", "price", "safe", "label"]
    assert make("some-steps").fingerprint == steps().fingerprint


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ((), {}),
        (("n=5",), {"n": 5}),
        (("price=0.5", "n=3"), {"price": 0.5, "n": 3}),
        (("price=2",), {"price": 2.0}),
        (("safe=TRUE",), {"safe": True}),
        (("safe=false",), {"safe": False}),
        (("label=a=b",), {"label": "a=b"}),
    ],
)
def test_settings_are_read_by_their_types(steps, settings, options):
    assert make("some-steps", settings).fingerprint == steps(**options).fingerprint


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("n",), "--set n: some-steps has no such parameter; write KEY=VALUE with KEY one of: n, price, safe, label"),
        (("m=3",), "--set m=3: some-steps has no such parameter"),
        (("n=3", "n=4"), "--set n=4: n is set twice"),
        (("n=2.5",), "--set n=2.5: the value must be a whole number"),
        (("price=dear",), "--set price=dear: the value must be a number"),
        (("n=1_0",), "--set n=1_0: the value must be a whole number"),
        (("price=1_0",), "--set price=1_0: the value must be a number"),
        (("safe=1",), "--set safe=1: the value must be true or false"),
    ],
)
def test_settings_that_mean_nothing_are_refused(steps, settings, message):
    with pytest.raises(prudent.PrudentError, match=message):
        make("some-steps", settings)


def test_a_domain_without_parameters_says_so():
    with pytest.raises(prudent.PrudentError, match=r"figure-2 has no such parameter; .* KEY one of: none"):
        make("figure-2", ("n=3",))


def test_an_unknown_domain_is_refused_with_the_nearest():
    with pytest.raises(prudent.PrudentError, match=r"^beting is neither .*; did you mean betting-game\?"):
        make("beting")
    with pytest.raises(prudent.PrudentError, match=r"^xyz is neither a domain nor a file; the domains are "):
        make("xyz")


@pytest.mark.parametrize("name", DOMAINS)
def test_every_domain_is_what_its_models_are_called(name):
    known = DOMAINS[name]
    assert make(name).name == name
    assert known.make is getattr(prudent.domains, name.replace("-", "_"))
    assert all(parameter.default is not parameter.empty for parameter in known.parameters.values())
    assert 0 < known.opens_at <= 1
