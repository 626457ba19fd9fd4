"""Sets of models: intervals from counts, and which intervals a model takes."""

import numpy as np
import pytest
from scipy.stats import binom

import prudent
from prudent.models.intervals import clopper_pearson

LOOP = prudent.build("s", lambda s: {"a": [(0.5, "g", 1), (0.5, "s", 1)]} if s == "s" else {})
LINE = prudent.build("s", lambda s: {"a": [(0.5, "g", 1), (0.5, "g", 2)]} if s == "s" else {})


def test_intervals_of_counts_are_where_so_few_or_so_many_would_be_seen_too_seldom():
    model = prudent.build("s", lambda s: {"a": [(0.15, "g", 1), (0.85, "g", 2)]} if s == "s" else {})
    sets = clopper_pearson([3, 17], model, 0.9)
    assert binom.sf(2, 20, sets.low[0]) == pytest.approx(0.05)
    assert binom.cdf(3, 20, sets.high[0]) == pytest.approx(0.05)
    assert sets.low[1] == pytest.approx(1 - sets.high[0])
    assert sets.high[1] == pytest.approx(1 - sets.low[0])


def test_the_confidence_is_split_over_all_intervals():
    three = prudent.build("s", lambda s: {"a": [(0.2, "g", c) for c in range(5)]} if s == "s" else {})
    sets = clopper_pearson([4] * 5, three, 0.95)
    assert binom.sf(3, 20, sets.low[0]) == pytest.approx(0.05 / 5 / 2)


def test_they_cover_the_truth_as_often_as_they_say():
    rng, held = np.random.default_rng(0), 0
    truth = np.array([0.7, 0.2, 0.1])
    model = prudent.build("s", lambda s: {"a": [(p, "g", c) for c, p in enumerate(truth)]} if s == "s" else {})
    for _ in range(300):
        count = rng.multinomial(40, truth)
        sets = clopper_pearson(count, model, 0.9)
        held += bool(((sets.low <= truth) & (truth <= sets.high)).all())
    assert held >= 0.9 * 300


@pytest.mark.parametrize(
    ("model", "low", "high", "message"),
    [
        (LINE, [0.5], [0.5], "bounds for 1 outcomes; model has 2"),
        (LINE, [0.6, 0.4], [0.7, 0.5], "low 0.6, high 0.7; the model's own probability, 0.5, must lie between them"),
        (LINE, [0.6, 0.4], [0.4, 0.6], "both must lie between 0 and 1, with low <= high"),
        (LINE, [float("nan"), 0.4], [0.6, 0.6], "both must lie between 0 and 1, with low <= high"),
        (LOOP, [0.0, 0.0], [1.0, 1.0], "state 's', action 'a': .* give these outcomes a low above 0"),
    ],
)
def test_intervals_that_do_not_fit_are_refused(model, low, high, message):
    with pytest.raises(prudent.PrudentError, match=message):
        prudent.solve(model, 0.2, uncertainty=prudent.Intervals(low, high))


def test_an_outcome_may_lose_its_chance_where_there_are_no_cycles():
    plan = prudent.solve(LINE, 0.5, uncertainty=prudent.Intervals([0, 0], [1, 1]))
    assert plan.upper == pytest.approx(2)
    assert plan.nominal.expected == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("uncertainty", "message"),
    [
        (0.95, "has no counts"),
        ("own", "has no intervals of its own"),
        ("wide", "uncertainty is 'wide'; it must be prudent.Intervals"),
        (True, "uncertainty is True"),
    ],
)
def test_what_is_no_uncertainty_is_refused(uncertainty, message):
    with pytest.raises(prudent.PrudentError, match=message):
        prudent.solve(LINE, 0.2, uncertainty=uncertainty)


def test_ragged_intervals_are_refused():
    with pytest.raises(prudent.PrudentError, match="low has 1 entries, high has 2"):
        prudent.Intervals([0.5], [0.5, 0.5])
    with pytest.raises(prudent.PrudentError, match="low must be an array of numbers"):
        prudent.Intervals(["much"], [1])
    with pytest.raises(prudent.PrudentError, match=r"confidence is 1\.5"):
        clopper_pearson([3, 17], LINE, 1.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, "sets of models .* need the CPU; remove device="),
        ({"method": "expected"}, "uncertainty needs method 'exact' and CVaR as the objective"),
        ({"slack": 0.1}, "remove other methods, limits on CVaR"),
        ({"objective": prudent.ValueAtRisk()}, "objectives, checkpoints"),
        ({"goal": "likeliest"}, "goal='likeliest'"),
    ],
)
def test_options_that_do_not_go_with_a_set_are_refused(options, message):
    with pytest.raises(prudent.PrudentError, match=message):
        prudent.solve(LINE, 0.2, uncertainty=prudent.Intervals([0.4, 0.4], [0.6, 0.6]), **options)


def test_limits_and_steps_go_with_a_set():
    sets = prudent.Intervals([0.4, 0.4], [0.6, 0.6])
    plan = prudent.solve(LINE, 1.0, uncertainty=sets, threads=1, time_limit=60, memory="1GB", gap=0)
    assert plan.upper == pytest.approx(1.6)
    assert plan.status == "optimal"
    rough = prudent.solve(LINE, 1.0, uncertainty=sets, step=2)
    assert rough.lower <= 1.6 <= rough.upper + 1e-9


def test_check_says_what_a_model_knows_of_its_probabilities():
    assert not prudent.check(LINE).counts
    data = prudent.from_episodes(
        [{"state": "s", "action": "a", "next_state": "g", "cost": 1, "n": 3}], count="n", initial="s"
    )
    report = prudent.check(data.model)
    assert (report.counts, report.intervals) == (True, False)
    assert "--uncertainty 0.95" in str(report.table())


TRIES = {"s": {"try": [(0.5, "s", 1), (0.3, "t", 0), (0.2, "g", 1)]}, "t": {"rest": [(0.5, "s", 0), (0.5, "g", 2)]}}


def test_with_cycles_what_does_not_lead_on_may_lose_its_chance():
    model = prudent.build("s", TRIES)
    sure = prudent.Intervals([0.0, 0.0, 0.2, 0.5, 0.5], [0.8, 0.8, 1.0, 0.5, 0.5])
    plan = prudent.solve(model, 1.0, uncertainty=sure)
    # Always through t: 0.2 * 1 + 0.8 * (0.5 V + 0.5 * 2) = V; always back to s: 1 + 0.8 V = V, so V = 5.
    assert plan.expected == pytest.approx(5)
    below = prudent.solve(model, 1.0, uncertainty=prudent.Intervals(np.maximum(sure.low, 1e-9), sure.high))
    assert plan.upper == pytest.approx(below.upper, rel=1e-6)


@pytest.mark.parametrize("low", [[0, 0.1, 0, 0.5, 0], [0.1, 0, 0, 0.5, 0.5]])
def test_sets_in_which_runs_need_not_end_are_refused(low):
    model = prudent.build("s", TRIES)
    with pytest.raises(prudent.PrudentError, match=r"state 's', action 'try': .* runs may never end"):
        prudent.solve(model, 0.5, uncertainty=prudent.Intervals(low, np.ones(5)))


@pytest.mark.parametrize("times", [1e6, 1e12, 1e18, 1e300])
def test_many_observations_leave_little_room(times):
    row = {"state": "s", "action": "a", "next_state": "g"}
    log = [{**row, "cost": 1, "n": 0.9 * times}, {**row, "cost": 5, "n": 0.1 * times}]
    sets = prudent.from_episodes(log, count="n", initial="s").intervals(0.95)
    assert 0 <= sets.width <= 4 / times**0.5
    assert (sets.low <= [0.9, 0.1]).all() and (sets.high >= [0.9, 0.1]).all()


WAYS = {
    "s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "sure": [(1, "g", 20)], "walk": [(1, "t", 1)]},
    "t": {"back": [(1, "s", 1)], "on": [(0.5, "t", 2), (0.5, "g", 2)]},
}


def test_an_action_that_may_never_lead_on_is_left_out_where_another_one_is_safe():
    model = prudent.build("s", WAYS)
    low, high = model.probability.copy(), model.probability.copy()
    low[:2], high[:2] = [0.2, 0.0], [1.0, 0.8]
    plan = prudent.solve(model, 0.2, uncertainty=prudent.Intervals(low, high))
    without = prudent.build("s", {**WAYS, "s": {a: o for a, o in WAYS["s"].items() if a != "try"}})
    assert plan.status == "optimal" and plan.cvar == pytest.approx(prudent.solve(without, 0.2).cvar)
    assert "left out: state 's', action 'try', where nature could keep runs" in " ".join(plan.notes)
    assert plan.model.n_actions == model.n_actions - 1  # going back, a choice of the plan, is none of nature's
    worst = prudent.evaluate(plan.model, plan.policy, uncertainty=plan.intervals).at_worst.cvar(0.2)
    assert worst == pytest.approx(plan.cvar)
    curve = prudent.curve(model, uncertainty=prudent.Intervals(low, high), alpha_min=0.2)
    assert curve.points[0].cvar == pytest.approx(plan.cvar) and "left out" in " ".join(curve.notes)


def test_a_way_to_where_no_action_is_safe_is_left_out():
    """In 'trap' nature may keep runs, so only the dear way is left; nothing that a plan could do with is lost."""
    table = {
        "s": {"cheap": [(1, "trap", 1)], "dear": [(1, "g", 9)]},
        "trap": {"out": [(0.5, "trap", 1), (0.5, "g", 1)]},
    }
    model = prudent.build("s", table)
    low, high = model.probability.copy(), model.probability.copy()
    trap = model.outcome_state == model.index("trap")
    low[trap], high[trap] = 0.0, 1.0
    plan = prudent.solve(model, 0.5, uncertainty=prudent.Intervals(low, high))
    assert plan.cvar == 9 and plan.policy("s") == "dear" and not any("left out" in note for note in plan.notes)


def test_nature_may_rule_out_a_slip_where_plans_can_go_in_circles():
    """A slip that may have probability 0 is no reason to refuse a grid, where plans can walk in circles."""
    table = {s: {d: [(0.8, (s + d) % 5, 1), (0.2, s, 1)] for d in (-1, 1)} if s else {} for s in range(5)}
    model = prudent.build(2, table)
    slip = model.successor == model.outcome_state
    low, high = np.where(slip, 0.0, 0.7), np.where(slip, 0.3, 1.0)
    plan = prudent.solve(model, 0.2, uncertainty=prudent.Intervals(low, high))
    exact = prudent.build(
        2, {s: {d: [(0.7, (s + d) % 5, 1), (0.3, s, 1)] for d in (-1, 1)} if s else {} for s in table}
    )
    assert plan.status == "optimal" and plan.cvar == pytest.approx(prudent.solve(exact, 0.2).cvar)
    assert not any("left out" in note for note in plan.notes)
