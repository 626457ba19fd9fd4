"""Search: what it explores, what it refuses, and what it returns when it is stopped."""

import math
import os
import signal
import tracemalloc
from dataclasses import replace

import pytest

import prudent
from prudent.planning import search
from prudent.runtime.limits import Limits


def street(state):
    """A street without end, home at 0."""
    return {step: [(0.9, state + step, 1), (0.1, state, 2)] for step in (-1, 1)} if state else {}


def drifting(state):
    """The same in a storm: luck may carry a run anywhere."""
    return {step: [(0.8, state + step, 1), (0.2, state + 2, 1)] for step in (-1, 1)} if state > 0 else {}


def test_an_endless_model_is_explored_only_near_the_plan():
    plan = prudent.search(50, street, 0.1)
    assert plan.status == "optimal" and plan.explored.certified
    assert plan.explored.expanded <= plan.explored.met == plan.model.n_states - 1 < 200
    guided = prudent.search(50, street, 0.1, heuristic=lambda state: abs(state) * 11 / 9)
    assert guided.cvar == pytest.approx(plan.cvar) and guided.explored.met < plan.explored.met
    assert guided.policy(50) == -1 and not guided.explored.certified
    assert any("not certified" in note for note in guided.notes)


def test_a_plan_of_a_search_is_a_plan_like_any_other(tmp_path):
    plan = prudent.search(5, street, 0.1, heuristic=abs, name="street")
    assert prudent.evaluate(plan.model, plan.policy).mean == pytest.approx(plan.expected)
    assert "> -1" in str(plan.explain(5)) and plan.decisions().of(5)[0].action == -1
    prudent.save(plan, tmp_path / "plan.safetensors")
    again = prudent.load_plan(tmp_path / "plan.safetensors", plan.model)
    assert again.explored == plan.explored and again.cvar == plan.cvar
    answer = plan.to_dict()
    assert (answer["met"], answer["expanded"]) == (plan.explored.met, plan.explored.expanded)
    assert "states met" in str(plan.table()) and "street" in repr(plan)


def test_solves_are_few_where_much_is_explored():
    few = prudent.search((20, 20), lambda s: _grid(s, "chance"), 0.2).explored
    assert few.solves < 0.05 * few.expanded


def _grid(state, kind):
    x, y = state
    if state == (0, 0):
        return {}
    moves = {"n": (x, y + 1), "s": (x, y - 1), "e": (x + 1, y), "w": (x - 1, y)}
    return {name: [(0.8, to, 1), (0.2, state if kind == "chance" else to, 1)] for name, to in moves.items()}


def test_goals_that_are_named_are_those_without_actions():
    named = prudent.search(3, street, 0.5, goals=[0])
    assert named.status == "optimal" and named.cvar == prudent.search(3, street, 0.5).cvar
    with pytest.raises(prudent.ModelError, match="state 0 has no actions and is not among the goals"):
        prudent.search(3, street, 0.5, goals=["home"])


@pytest.mark.parametrize("start", [0, 3])
def test_a_goal_that_has_actions_is_refused_as_in_build(start):
    def endless(state):
        return {step: [(1, (state + step) % 9, 1)] for step in (-1, 1)}

    with pytest.raises(prudent.ModelError) as built:
        prudent.build(start, endless, goals=[0])
    with pytest.raises(prudent.ModelError) as searched:
        prudent.search(start, endless, 0.5, goals=[0])
    assert str(searched.value) == str(built.value) == "goal 0 has actions; a goal must have none"


def test_states_that_cannot_reach_a_goal_are_avoided_or_have_a_price():
    def cliff(state):
        if state == "ravine":
            return {"wait": [(1, "ravine", 0)]}
        return {"jump": [(0.9, "home", 1), (0.1, "ravine", 0)], "walk": [(1, "home", 7)]} if state == "cliff" else {}

    assert prudent.search("cliff", cliff, 0.2).policy("cliff") == "walk"
    priced = prudent.search("cliff", cliff, 0.2, dead_end_cost=5)
    assert priced.policy("cliff") == "jump"
    whole = prudent.solve(prudent.amend(prudent.build("cliff", cliff), dead_end_cost=5), 0.2)
    assert (priced.cvar, priced.expected) == (whole.cvar, whole.expected)
    hopeless = prudent.search("cliff", cliff, 0.2, heuristic=lambda s: math.inf if s == "ravine" else 0)
    assert hopeless.policy("cliff") == "walk"


def ravine(state):
    """A short way down into a ravine with many ledges, dear to climb along; nothing leads out of it."""
    if state == "cliff":
        return {"down": [(1, 0, 3)], "walk": [(1, "home", 30)]}
    return {} if state == "home" else {"climb": [(1, min(state + 1, 200), 1)]}


@pytest.mark.parametrize("price", [-10, 10, 26, 28, 100])
@pytest.mark.parametrize("h", [None, lambda s: -10, lambda s: math.inf if s not in ("cliff", "home") else -10])
def test_the_price_of_a_dead_end_is_paid_where_it_begins(price, h):
    whole = prudent.solve(prudent.amend(prudent.build("cliff", ravine), dead_end_cost=price), 0.2)
    plan = prudent.search("cliff", ravine, 0.2, dead_end_cost=price, heuristic=h)
    assert plan.status == "optimal" and plan.policy("cliff") == ("down" if price < 27 else "walk")
    assert (plan.cvar, plan.expected) == (whole.cvar, whole.expected) == (min(price + 3, 30),) * 2


def test_the_price_of_a_dead_end_is_no_price_of_what_is_not_explored():
    plan = prudent.search(10**6, street, 0.5, memory="200kB", dead_end_cost=10)  # a goal can be reached from anywhere
    assert plan.status == "gap_not_reached" and plan.lower <= 10 and plan.upper == math.inf

    def back(state):  # leads on from a state that was met at a gain; the heuristic is right
        return {"on": [(1, state + 1, -5 if state == 1 else 1)]} if state < 100 else {}

    least = {state: 100.0 - state - (6 if state < 2 else 0) for state in range(101)}
    stops = iter([""] * 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "AT_LEAST", 1)
        patch.setattr(search._Search, "_why_stop", lambda self: next(stops, "time"))
        stopped = prudent.search(0, back, 0.5, heuristic=least.get, dead_end_cost=10, time_limit=100)
    assert stopped.lower <= 94 <= stopped.upper


def test_no_policy_that_reaches_a_goal_is_an_error():
    with pytest.raises(prudent.PrudentError, match="no policy reaches a goal of model with probability 1"):
        prudent.search(0, {0: {"go": [(0.5, 1, 1), (0.5, 2, 1)]}, 1: {"go": [(1, 1, 1)]}}, 0.5)


@pytest.mark.parametrize(
    ("h", "told"),
    [
        (lambda s: 2.0 * s + 1, r"heuristic\(0\) is 1; it must be a lower bound .* at most 0 there: it is a goal"),
        (lambda s: 2.0 * s, r"heuristic\(5\) is 10; .* at most 6.1"),
        (lambda s: math.nan, r"heuristic\(5\) is nan; it must be a number"),
        (lambda s: "far", r"heuristic\(5\) is 'far'; it must be a number"),
        (lambda s: -math.inf, r"heuristic\(5\) is -inf; it must be a number"),
        (7, "heuristic is 7; it must be a function of the state"),
    ],
)
def test_a_wrong_heuristic_is_refused_by_its_state(h, told):
    with pytest.raises(prudent.PrudentError, match=told):
        prudent.search(5, street, 0.3, heuristic=h)


def test_where_costs_are_negative_every_state_not_expanded_is_on_trust(monkeypatch):
    """The heuristic says that the far way costs -1; it costs -50."""
    monkeypatch.setattr(search, "AT_LEAST", 1)

    def ways(state):
        if state == "start":
            return {"near": [(1, "home", -2)], "far": [(1, 0, 1)]}
        return {} if state == "home" else {"on": [(1, state + 1, 0) if state < 9 else (1, "home", -51)]}

    plan = prudent.search("start", ways, 0.5, heuristic=lambda s: 0 if s == "home" else -2 if s == "start" else -1)
    assert plan.cvar == -2 and plan.explored.trusted > 0 and not plan.explored.certified
    assert any("not certified" in note for note in plan.notes)


def refund(state):
    """A refund sixty steps away: the optimum is -440, and a plan that stops at once costs 10."""
    if state == 60:
        return {"x": [(1, "goal", -500)]}
    return {} if state == "goal" else {"a": [(1, state + 1, 1)], "stop": [(1, "goal", 10)]}


@pytest.mark.parametrize("h", [lambda s: 0, lambda s: -1 if s != "goal" else 0])
def test_what_was_not_seen_is_not_certified(h):
    plan = prudent.search(0, refund, 0.5, heuristic=h)
    assert plan.cvar == 10 and plan.explored.trusted == 1 and not plan.explored.certified
    assert plan.message.startswith("if the heuristic is valid where it was not checked, no plan has a lower CVaR")
    assert "1e-8" not in plan.message and "not certified: the lower bound holds if the heuristic" in plan.notes[-1]
    assert "all digits shown, if the heuristic is valid where it was not checked" in str(plan.table())
    right = prudent.search(0, refund, 0.5, heuristic=lambda s: -440 - s if s != "goal" else 0)
    assert right.cvar == -440 and right.explored.certified == (right.explored.met == right.explored.expanded)


def test_without_a_heuristic_the_plan_says_that_costs_are_taken_to_be_at_least_0():
    plan = prudent.search(0, refund, 0.5)
    assert plan.message.startswith("if no cost is negative in the part that was not explored, the optimal CVaR is")
    assert plan.notes == ("the lower bound holds if no cost is negative in the part that was not explored",)
    whole = prudent.search(1, {1: {"a": [(1, 0, 1)]}, 0: {}}, 0.5)
    assert whole.message.startswith("the optimal CVaR is known") and not whole.notes and whole.explored.certified


def toll(state):
    """A far way at no cost until its end, which costs 100, and a near way that costs 50."""
    if state == 0:
        return {"safe": [(1, "goal", 50)], "go": [(1, 1, 0.001)]}
    if state == "goal":
        return {}
    return {"end": [(1, "goal", 100)]} if state == 10**6 else {"on": [(1, state + 1, 0)]}


def test_the_upper_bound_of_a_price_says_what_it_rests_on(tmp_path):
    plan = prudent.search(0, toll, 0.5, fallback=1, memory="200kB")
    assert plan.upper == pytest.approx(1.001) and plan.explored.priced == 1 and not plan.explored.certified
    assert "runs can end at the price of the fallback" in plan.message
    assert "the upper bound holds if runs can end at a cost of 1 in all states in which" in " ".join(plan.notes)
    prudent.save(plan, tmp_path / "plan.safetensors")
    assert prudent.load_plan(tmp_path / "plan.safetensors", plan.model).message == plan.message
    safe = prudent.search(0, toll, 0.5, goals=["goal"], fallback=60, memory="200kB")
    assert safe.upper == pytest.approx(50) and safe.explored.priced == 0 and safe.explored.certified
    assert safe.worst_case == 0.001 and safe.expected_lower <= 0.001  # other plans may end elsewhere, at less


def test_bounds_of_a_stopped_search_are_not_those_of_its_fallback(monkeypatch):
    """Runs that fall back cost at least 900; those of the best plan cost 40."""
    monkeypatch.setattr(search, "GROWTH", 0)
    monkeypatch.setattr(search, "AT_LEAST", 1)
    stops = iter([""] * 3)
    monkeypatch.setattr(search._Search, "_why_stop", lambda self: next(stops, "time"))
    whole = prudent.solve(prudent.build(8, {s: {-1: [(1, s - 1, 5)]} if s else {} for s in range(9)}), 0.5)
    for fallback in (900, None):
        stops = iter([""] * 3)
        plan = prudent.search(8, lambda s: {-1: [(1, s - 1, 5)]} if s else {}, 0.5, fallback=fallback, time_limit=100)
        assert (
            plan.lower <= whole.cvar and plan.expected_lower <= whole.expected and plan.worst_case <= whole.worst_case
        )


def test_limits_and_steps_are_those_of_solve():
    one, two = (prudent.search(20, street, 0.1, threads=threads) for threads in (1, 2))
    assert (one.cvar, one.expected, one.explored) == (two.cvar, two.expected, two.explored) and one.device == "cpu"
    rounded = prudent.search(20, street, 0.1, step=3)
    assert rounded.step == 3 and rounded.lower <= one.cvar <= rounded.upper and rounded.status == "gap_not_reached"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"step": 0}, "step is 0; it must be a number above 0"),
        ({"memory": "much"}, "memory is 'much'; it must be a number of bytes"),
        ({"time_limit": -1}, "time_limit is -1; it must be a number of seconds"),
        ({"threads": 0}, "threads is 0; it must be a whole number from 1"),
        ({"device": "tpu"}, "device is 'tpu'"),
        ({"gap": -1}, "gap is -1"),
        ({"fallback": "home"}, "fallback is 'home'; it must be a function from states to actions, or a price"),
        ({"dead_end_cost": math.inf}, "dead_end_cost is inf; it must be a finite number"),
    ],
)
def test_options_that_cannot_be_are_refused(options, told):
    with pytest.raises(prudent.PrudentError, match=told):
        prudent.search(5, street, 0.3, **options)


def test_bounds_end_a_search_where_luck_may_carry_a_run_anywhere():
    plan = prudent.search(6, drifting, 0.1, fallback=500)
    assert plan.status == "optimal" and plan.upper - plan.lower <= 1e-7 and not plan.explored.certified
    assert "the upper bound holds if runs can end at a cost of 500" in " ".join(plan.notes)
    rough = prudent.search(6, drifting, 0.1, fallback=500, relative_gap=0.05)
    assert rough.status == "within_gap" and rough.explored.expanded < plan.explored.expanded
    assert rough.lower <= plan.cvar <= rough.upper


@pytest.mark.parametrize("price", [0, -5, 10])
def test_a_price_below_what_a_run_costs_is_refused(price):
    """Else the plan would walk to the end of what is explored, and end there."""
    with pytest.raises(prudent.PrudentError, match=rf"fallback is {price}; no plan has a CVaR below .*; raise it"):
        prudent.search(100, street, 0.5, fallback=price)


@pytest.mark.parametrize("fallback", [None, 500, lambda state: -1])
def test_a_search_that_is_stopped_has_bounds(fallback, monkeypatch):
    monkeypatch.setattr(search, "GROWTH", 0)
    monkeypatch.setattr(search, "AT_LEAST", 1)
    whole = prudent.search(12, street, 0.1)
    stops = iter([""] * 10)
    monkeypatch.setattr(search._Search, "_why_stop", lambda self: next(stops, "time"))
    plan = prudent.search(12, street, 0.1, fallback=fallback, time_limit=100)
    monkeypatch.undo()
    assert plan.status == "gap_not_reached" and "stopped at the time limit" in " ".join(plan.notes)
    assert plan.lower <= whole.cvar <= plan.upper and plan.explored.expanded <= 11
    assert "more time or memory" in plan.message and "heuristic" in plan.message and "fallback=" in plan.message
    if fallback is None:
        assert plan.upper == math.inf and math.isnan(plan.cvar) and "fallback=" in " ".join(plan.notes)
    else:
        assert plan.cvar <= plan.upper < 5000 and prudent.evaluate(plan.model, plan.policy).mean == plan.expected


def test_a_fallback_that_is_no_action_is_refused(monkeypatch):
    monkeypatch.setattr(search._Search, "_why_stop", lambda self: "time")
    with pytest.raises(prudent.PrudentError, match=r"fallback\(\d+\) is 'home'; the actions there are"):
        prudent.search(12, street, 0.1, fallback=lambda state: "home")
    with pytest.raises(prudent.PrudentError, match=r"fallback\(1\) is 'home'; the actions there are \[-1, 1\]"):
        prudent.search(1, street, 0.1, heuristic=lambda state: -abs(state), fallback=lambda s: "home" if s == 1 else -1)


def test_a_fallback_that_leads_nowhere_gives_no_upper_bound():
    plan = prudent.search(10**6, street, 0.5, memory="200kB", fallback=lambda state: -1 if state % 2 else 1)
    assert plan.upper == math.inf and "the fallback does not reach a goal with probability 1" in " ".join(plan.notes)
    with pytest.raises(prudent.PrudentError, match=r"fallback\(\d+\) is \[-1\]; the actions there are \[-1, 1\]"):
        prudent.search(10**6, street, 0.5, memory="200kB", fallback=lambda state: [-1])


@pytest.mark.parametrize("cost", [math.nan, math.inf])
def test_a_cost_that_is_no_number_is_refused_by_its_place(cost):
    with pytest.raises(prudent.PrudentError, match=rf"state 3, action 'go' has an outcome of cost {cost}"):
        prudent.search(3, lambda state: {"go": [(1, 0, cost)]} if state else {}, 0.5)


def test_a_heuristic_that_sees_no_way_at_all_is_named():
    with pytest.raises(
        prudent.PrudentError, match=r"no goal was met, and heuristic\([46]\) is inf, as in all other states"
    ):
        prudent.search(5, street, 0.5, heuristic=lambda state: math.inf if state else 0)


def test_ctrl_c_returns_the_best_plan_so_far():
    def interrupting(state):
        if state == 40:
            os.kill(os.getpid(), signal.SIGINT)
        return street(state)

    plan = prudent.search(100, interrupting, 0.1, heuristic=lambda s: abs(s) * 1.0, fallback=9000)
    assert plan.status == "interrupted" and 0 < plan.lower < plan.upper < math.inf
    assert "heuristic" in plan.message and "fallback=" in plan.message and "checkpoint" not in plan.message


@pytest.mark.parametrize(("fallback", "upper"), [(10**7, 10**7), (lambda state: -1, math.inf)])
def test_memory_ends_a_search_and_a_fallback_that_goes_too_far(fallback, upper):
    plan = prudent.search(10**6, street, 0.5, memory="200kB", fallback=fallback)
    assert plan.status == "gap_not_reached" and "memory" in " ".join(plan.notes)
    assert plan.explored.met < 1000 and 0 < plan.lower < plan.upper and plan.upper >= upper


@pytest.mark.parametrize("actions", [street, lambda state: _grid(state, "chance")])
def test_memory_counts_what_is_explored_and_solved(actions):
    start, limit = (10**6 if actions is street else (2000, 2000)), 10**6
    prudent.search(start, actions, 0.5, memory=limit)  # kernels are loaded
    tracemalloc.start()
    try:
        plan = prudent.search(start, actions, 0.5, memory=limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "stopped at the 1 MB limit" in " ".join(plan.notes) and limit / 2 < peak < 2 * limit


@pytest.mark.parametrize("fallback", [None, 500, lambda state: -1])
@pytest.mark.parametrize("dead_end_cost", [None, 10_000])
def test_a_solve_that_is_stopped_does_not_replace_a_better_plan(fallback, dead_end_cost, monkeypatch):
    stages, real = [], search.least_cvar

    def stopped_once(job, *about):
        if len(stages) == 2:
            job = replace(job, limits=Limits(10**9, 1e-9))
        stages.append(real(job, *about))
        return stages[-1]

    monkeypatch.setattr(search, "least_cvar", stopped_once)
    monkeypatch.setattr(search, "GROWTH", 0)
    monkeypatch.setattr(search, "AT_LEAST", 1)
    plan = prudent.search(12, street, 0.1, fallback=fallback, dead_end_cost=dead_end_cost, time_limit=100)
    monkeypatch.undo()
    whole = prudent.search(12, street, 0.1)
    assert stages[2].stopped == "time" and stages[2].bracket.gap > stages[1].bracket.gap
    assert plan.status == "gap_not_reached" and plan.lower <= whole.cvar <= plan.upper
    assert not any("best plan found" in note or "before the tail" in note for note in plan.notes)
    if fallback is None:
        assert plan.policy is stages[1].found.policy
    else:
        assert plan.upper < 5000
