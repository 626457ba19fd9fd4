"""Search: the plan for a model that is explored as it is solved is the plan for the whole model."""

import numpy as np
import pytest

import prudent
from plans import domain
from prudent.domains.registry import DOMAINS
from prudent.engine.prepare import prepare
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.models.build import as_function
from prudent.planning import search
from strategies import examples, priced_model


@pytest.fixture(autouse=True)
def no_more_than_needed(monkeypatch):
    """Only what a plan meets is expanded, so that small models are not explored whole."""
    monkeypatch.setattr(search, "GROWTH", 0)
    monkeypatch.setattr(search, "AT_LEAST", 1)


def least_expected(model: prudent.SSP) -> dict:
    """The least expected cost by state; infinite where no goal can be reached for sure."""
    prepared = prepare(model)
    inside, scale = prepared.members.state_of, prepared.scale
    value = scale.lattice.value(scale.luck) + least_expected_cost(prepared).value[inside] * scale.level_size
    value = np.where(model.is_goal, 0.0, np.where(inside >= 0, value, np.inf))
    return dict(zip(model.names[0], value.tolist(), strict=True))


def heuristics(model: prudent.SSP) -> dict:
    value = least_expected(model)
    half = {s: v - abs(v) / 2 if np.isfinite(v) else 0.0 for s, v in value.items()}
    none = {} if model.cost.min() < 0 else {"0": None}
    return {**none, "half": half.__getitem__, "V": value.__getitem__}


def check_equal(plan: prudent.Plan, whole: prudent.Plan) -> None:
    assert plan.status == whole.status == "optimal"
    for name in ("cvar", "expected", "lower", "upper"):
        assert getattr(plan, name) == pytest.approx(getattr(whole, name), rel=1e-8, abs=1e-9), name
    result = prudent.evaluate(plan.model, plan.policy)
    assert result.cvar(plan.alpha) == pytest.approx(whole.cvar, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("kind", ["cents", "sevenths"])
@pytest.mark.parametrize("seed", range(examples(25)))
def test_search_is_the_full_solve_on_random_models(seed, kind):
    fewer = 0
    for number in range(4):
        rng = np.random.default_rng([seed, number, len(kind)])
        model, alpha = priced_model(rng, kind, most_states=25), float(rng.choice([1.0, 0.5, 0.1, 0.01]))
        whole = prudent.solve(model, alpha, gap=0)
        for h in heuristics(model).values():
            plan = prudent.search(*as_function(model), alpha, heuristic=h, gap=0)
            check_equal(plan, whole)
            assert plan.explored.expanded <= plan.explored.met <= model.n_states
            fewer += plan.explored.expanded < model.n_states
    assert fewer > 0


def with_traps(rng: np.random.Generator) -> dict:
    """A random table in which some states lead, at a cost, only to each other or to themselves; the last is a goal."""
    n, table = int(rng.integers(2, 16)), {}
    for s in range(n):
        table[s] = {}
        for a in range(int(rng.integers(1, 4))):
            weight = rng.integers(1, 5, int(rng.integers(1, 4)))
            to = [int(rng.choice([rng.integers(0, n), min(s + 1, n), rng.integers(0, n + 1)])) for _ in weight]
            table[s][a] = [(w / weight.sum(), t, int(rng.integers(0, 4))) for w, t in zip(weight, to, strict=True)]
    for s in rng.integers(0, n, max(1, n // 3)).tolist():
        table[s] = {"on": [(1.0, int(rng.integers(max(0, s - 2), s + 1)), int(rng.integers(1, 9)))]}
    return {**table, n: {}}


@pytest.mark.parametrize("seed", range(examples(25)))
def test_search_is_the_full_solve_where_getting_stuck_has_a_price(seed):
    for number in range(4):
        rng = np.random.default_rng([seed, number, 3])
        table, alpha = with_traps(rng), float(rng.choice([1.0, 0.5, 0.1, 0.02]))
        price = float(rng.choice([-3, 0, 1, 4, 11.5, 40]))
        try:
            model = prudent.amend(prudent.build(0, table), dead_end_cost=price)
        except prudent.ModelError:  # the goal is not among the states that can be reached
            continue
        whole, value = prudent.solve(model, alpha, gap=0), least_expected(model)
        for h in (None, value.__getitem__, lambda s, value=value: min(value[s], 0) - 1):
            plan = prudent.search(0, table, alpha, heuristic=h, dead_end_cost=price, gap=0)
            check_equal(plan, whole)


@pytest.mark.parametrize("seed", range(examples(6)))
def test_bounds_hold_where_costs_have_no_common_step(seed):
    rng = np.random.default_rng([seed, 5])
    model, alpha = priced_model(rng, "reals", most_states=12), float(rng.choice([1.0, 0.3, 0.05]))
    whole = prudent.solve(model, alpha)
    for h in heuristics(model).values():
        plan = prudent.search(*as_function(model), alpha, heuristic=h)
        assert plan.status in ("optimal", "within_gap")
        assert plan.lower <= whole.upper * (1 + 1e-12) + 1e-12 and whole.lower <= plan.upper * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("alpha", [1.0, 0.1])
@pytest.mark.parametrize("name", [name for name in DOMAINS if name != "autonomous-navigation"])
def test_search_is_the_full_solve_on_every_domain_with_a_common_step(name, alpha, monkeypatch):
    monkeypatch.setattr(search, "GROWTH", 0.5)
    model = domain(name)
    whole = prudent.solve(model, alpha)
    for h in heuristics(model).values():
        check_equal(prudent.search(*as_function(model), alpha, heuristic=h), whole)


@pytest.mark.parametrize("alpha", [1.0, 0.1])
def test_search_is_as_close_as_the_full_solve_on_the_road_network(alpha, monkeypatch):
    monkeypatch.setattr(search, "GROWTH", 0.5)
    model = domain("autonomous-navigation")
    whole = prudent.solve(model, alpha)
    for h in heuristics(model).values():
        plan = prudent.search(*as_function(model), alpha, heuristic=h)
        assert plan.status == whole.status
        assert plan.lower <= whole.upper and whole.lower <= plan.upper
        assert plan.cvar == pytest.approx(whole.cvar, rel=1e-3)


def test_where_costs_are_negative_a_heuristic_is_asked_for():
    with pytest.raises(prudent.PrudentError, match=r"outcome of cost -.*set heuristic= to a lower bound"):
        prudent.search(*as_function(domain("inventory-control")), 0.1)


@pytest.mark.parametrize("seed", range(examples(10)))
def test_a_heuristic_that_is_too_high_is_refused_or_the_plan_is_not_certified(seed):
    rng = np.random.default_rng([seed, 9])
    model, alpha = priced_model(rng, "cents", most_states=20), float(rng.choice([1.0, 0.3, 0.05]))
    value = least_expected(model)
    high = {s: v + rng.choice([0.0, 5.0]) * (1 + abs(v)) for s, v in value.items()}
    try:
        plan = prudent.search(*as_function(model), alpha, heuristic=high.__getitem__)
    except prudent.PrudentError as error:
        assert "it must be a lower bound on the lowest expected cost" in str(error)
    else:
        whole = prudent.solve(model, alpha)
        same = plan.cvar == pytest.approx(whole.cvar) and plan.expected == pytest.approx(whole.expected)
        assert same or not plan.explored.certified


@pytest.mark.parametrize("seed", range(examples(12)))
def test_a_plan_says_what_its_bounds_rest_on(seed):
    """Whatever the heuristic, the fallback and the limit: bounds that say of no assumption hold."""
    seen = set()
    for number in range(12):
        rng = np.random.default_rng([seed, number, 21])
        model, alpha = priced_model(rng, "cents", most_states=16), float(rng.choice([1.0, 0.5, 0.1, 0.02]))
        whole, value, size = prudent.solve(model, alpha, gap=0), least_expected(model), float(np.abs(model.cost).max())
        valid, h = bool(rng.integers(2)), None
        if rng.random() < 0.8:
            off = {s: (-1 if valid else 1) * size * rng.choice([0, 0.2, 3]) for s in value}
            h = {s: v + (off[s] if np.isfinite(v) and v != 0 else 0.0) for s, v in value.items()}.__getitem__
        real = whole.worst_case + size * model.n_states
        price = [None, real if np.isfinite(real) else 1e4, whole.lower + 0.1 * size][int(rng.integers(3))]
        stops = iter([""] * int(rng.integers(12)))
        try:
            with pytest.MonkeyPatch.context() as patch:
                if rng.random() < 0.7:
                    patch.setattr(search._Search, "_why_stop", lambda self, stops=stops: next(stops, "time"))
                plan = prudent.search(*as_function(model), alpha, heuristic=h, fallback=price, time_limit=100)
        except (prudent.PrudentError, search.Stopped) as error:
            assert not valid or "fallback is" in str(error) or "takes longer" in str(error) or h is None, error
            continue
        known, slip, notes = plan.explored, 1e-9 * size * model.n_states, " ".join(plan.notes)
        above, below = plan.upper < whole.lower - slip, plan.lower > whole.upper + slip
        assert not (above and not known.priced) and not (below and not known.trusted and model.cost.min() >= 0)
        assert not below or "the lower bound holds if" in notes
        assert not above or "the upper bound holds if runs can end at a cost of" in notes
        if valid or (h is None and model.cost.min() >= 0):
            assert not below and plan.expected_lower <= whole.expected + slip
            assert plan.worst_case <= whole.worst_case + slip
        assert known.certified or (plan.message.startswith("if ") and "1e-8" not in plan.message)
        assert known.certified or "not certified" in notes
        assert known.met == known.expanded or "holds if" in notes
        if plan.status == "optimal" and valid and h and not known.priced:
            assert plan.cvar == pytest.approx(whole.cvar, abs=slip)
            assert plan.expected == pytest.approx(whole.expected, abs=slip)
        seen |= {plan.status, known.certified, known.priced > 0, below, above}
    assert {True, False, "gap_not_reached"} <= seen
