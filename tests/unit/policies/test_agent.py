from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from strategies import cases, examples, noisy_table, solved

HINT = "; measured=True takes it as it is"


@pytest.fixture(scope="module")
def plan():
    return prudent.solve(prudent.domains.betting_game(), 0.2)


def test_the_papers_story_step_by_step(plan):
    """After a jackpot that makes the tail safe the bettor turns bold, and the plan can say why."""
    agent = plan.policy.start()
    assert (agent.state, agent.spent, agent.budget, agent.done) == ((0, 5), 0, 86, False)
    assert agent.action == 2  # careful: a lost bet still leaves something
    assert not plan.explain(agent.state, agent.spent).safe
    agent.observe((1, 25), 0)  # the jackpot: ten times the bet
    assert agent.action == 5  # as bold as one can be
    told = plan.explain(agent.state, agent.spent)
    assert told.safe
    assert "no run needs to exceed it" in told.summary
    assert all(option.excess == 0 for option in told.options)
    for stage in range(1, 10):
        stage_money = agent.state[1]
        assert agent.action <= stage_money
        agent.observe((stage + 1, stage_money - agent.action), 0)  # and loses every bet that is left
    assert agent.action == "stop"
    agent.observe("end", 100 - agent.state[1])
    assert agent.done
    assert agent.action is None
    assert agent.spent <= plan.policy.budget == 86  # boldness never touched the tail
    with pytest.raises(prudent.PrudentError, match="the run is over: state 'end' is a goal"):
        agent.observe("end", 0)


def test_what_cannot_happen_is_refused_with_what_can(plan):
    agent = plan.policy.start()
    with pytest.raises(prudent.PrudentError) as caught:
        agent.observe((1, 6), 0)
    assert "action 2 in state (0, 5) cannot lead to (1, 6) at cost 0" in str(caught.value)
    assert "possible: (1, 7) at cost 0, (1, 3) at cost 0, (1, 25) at cost 0" in str(caught.value)
    with pytest.raises(
        prudent.PrudentError, match=rf"cannot lead to \(1, 7\) at cost 0.1; possible there: cost 0{HINT}$"
    ):
        agent.observe((1, 7), 0.1)
    for cost in ("0", None, float("nan"), 10**400):
        with pytest.raises(prudent.PrudentError, match=r"cost is .*; it must be a finite number"):
            agent.observe((1, 7), cost)
    assert agent.state == (0, 5)
    agent.observe((1, 7), 1e-10)
    assert (agent.state, agent.spent) == ((1, 7), 0)


def test_costs_may_be_of_any_size():
    table = {
        "a": {"x": [(0.5, "b", 1e-9), (0.5, "b", 3e-9)]},
        "b": {"x": [(0.5, "g", 1e-9), (0.5, "g", 9e-9)], "y": [(1, "g", 4e-9)]},
    }
    plan = prudent.solve(prudent.build("a", lambda s: table.get(s, {})), 0.3)
    agent = plan.policy.start()
    with pytest.raises(prudent.PrudentError, match="possible there: cost 1e-09, 3e-09; measured=True"):
        agent.observe("b", 1.4e-9)
    with pytest.raises(prudent.PrudentError, match="it must be the name of a state"):
        agent.observe(np.array([1, 2]), 1e-9)
    agent.observe("b", 1.4e-9, measured=True)
    assert agent.spent == 1.4e-9
    assert agent.action == plan.policy("b", 2e-9)
    with pytest.raises(prudent.PrudentError, match="must be a multiple of the model's cost step 1e-09"):
        plan.policy("b", 1.4e-9)
    assert plan.explain("b", 1e300).budget == plan.policy.budget - 1e300


@pytest.mark.parametrize(
    ("costs", "observed", "words"),
    [
        (range(1, 7), 8, "cost 1, 2, 3, 4, 5, 6"),
        (range(5, 205, 5), 32, "40 costs from 5 to 200, all multiples of 5, the nearest 30 and 35"),
        ([i / 10 for i in range(40)], 99, "40 costs from 0 to 3.9, all multiples of 0.1, the nearest 3.8 and 3.9"),
        (
            [2**0.5 * i**0.5 for i in range(1, 9)],
            1.4,
            "8 costs from 1.41421356237 to 4, the nearest 1.41421356237 and 2",
        ),
    ],
)
def test_of_many_costs_the_nearest_are_told(costs, observed, words):
    outcomes = [(1 / len(costs), "there", cost) for cost in costs]
    model = prudent.build("here", {"here": {"go": outcomes}, "there": {}}.get)
    agent = prudent.solve(model, 0.3).policy.start()
    with pytest.raises(prudent.PrudentError) as caught:
        agent.observe("there", observed)
    assert str(caught.value).endswith(f"cannot lead to 'there' at cost {observed}; possible there: {words}{HINT}")
    with pytest.raises(prudent.PrudentError) as caught:
        agent.observe("elsewhere", observed)
    listed = ", ".join(f"'there' at cost {cost}" for cost in costs)
    shown = listed if len(costs) <= 6 else f"'there' at cost {min(costs):.12g} to {max(costs):.12g}"
    assert str(caught.value).endswith(f"; possible: {shown}")


def test_of_many_successors_the_first_are_told():
    model = prudent.build("here", lambda s: {"go": [(1 / 40, i, i) for i in range(40)]} if s == "here" else {})
    agent = prudent.solve(model, 0.3).policy.start()
    with pytest.raises(prudent.PrudentError, match=r"possible: 0 at cost 0, .*, 5 at cost 5 and 34 more states$"):
        agent.observe(40, 1)


def test_small_errors_in_costs_do_not_add_up():
    table = {i: {"go": [(0.5, i + 1, 0.1), (0.5, i + 1, 0.3)]} for i in range(50)}
    model = prudent.build(0, lambda s: table.get(s, {}))
    agent = prudent.solve(model, 0.3).policy.start()
    for i in range(50):
        agent.observe(i + 1, 0.1 + 9e-11)  # within a billionth of it
    assert agent.spent == pytest.approx(5, abs=1e-15)


def test_several_initial_states():
    table = {"a": {"go": [(1, "g", 1)]}, "b": {"go": [(1, "g", 2)]}}
    model = prudent.build({"a": 0.5, "b": 0.5}, lambda s: table.get(s, {}))
    policy = prudent.solve(model, 0.5).policy
    assert policy.start("b").action == "go"
    with pytest.raises(prudent.PrudentError, match="2 initial states; choose one of them: 'a', 'b'"):
        policy.start()
    with pytest.raises(
        prudent.PrudentError, match=r"'g' is not an initial state.*; build or load .* with that start, or "
    ):
        policy.start("g")


def test_agents_agree_with_the_policy_and_the_decisions(plan):
    runs = prudent.simulate(plan.model, plan.policy, episodes=50, paths=50, seed=4)
    decisions = plan.decisions()
    for path in runs.paths:
        agent = plan.policy.start()
        for (state, action, cost), after in zip(path, [*(s for s, _, _ in path[1:]), "end"], strict=True):
            assert (agent.state, agent.action) == (state, action)
            assert plan.policy(state, agent.spent) == action
            (row,) = [d for d in decisions.of(state) if d.at_least <= agent.spent <= d.at_most]
            assert row.action == action
            agent.observe(after, cost)
        assert agent.done
    assert repr(agent).startswith("<Agent in 'end', spent")


def _happens(model, agent, rng):
    """Return one outcome of the agent's action: where it leads and what it costs."""
    action = model.find_action(model.index(agent.state), agent.action)
    outcome = rng.integers(model.outcome_start[action], model.outcome_start[action + 1])
    return model.state(model.successor[outcome]), float(model.cost[outcome])


@settings(max_examples=examples(60))
@given(cases(), st.integers(0, 9))
def test_listed_costs_are_the_same_if_measured(case, seed):
    plan, rng = solved(case, 0.3), np.random.default_rng(seed)
    start = plan.model.state(plan.model.initial_state[0])
    agent, other = plan.policy.start(start), plan.policy.start(start)
    while not agent.done and rng.random() < 0.95:
        outcome = _happens(plan.model, agent, rng)
        agent.observe(*outcome)
        other.observe(*outcome, measured=True)
        assert vars(agent) == vars(other)


@settings(max_examples=examples(60))
@given(cases(), st.integers(0, 9), st.sampled_from([0.3, 3.0, 50.0]))
def test_measured_costs_are_paid_in_full_and_rounded_up_for_the_plan(case, seed, size):
    plan, rng, paid = solved(case, 0.3), np.random.default_rng(seed), 0.0
    agent = plan.policy.start(plan.model.state(plan.model.initial_state[0]))
    while not agent.done and rng.random() < 0.95:
        state, cost = _happens(plan.model, agent, rng)
        if rng.random() < 0.7:
            cost += plan.step * rng.normal(0, size)
        agent.observe(state, cost, measured=True)
        paid += cost
        assert agent.spent == pytest.approx(paid, rel=1e-9, abs=1e-9)
        if plan.policy.budget is not None:
            assert agent.budget == plan.policy.budget - agent.spent
        if not agent.done:
            assert agent.action == _played_from(plan, state, agent.spent)


def _played_from(plan, state, spent):
    """Return what is played at the least total, from what was spent up, that a run can have."""
    for multiple in count(int(np.ceil(spent / plan.step - 1e-9))):
        try:
            return plan.policy(state, multiple * plan.step)
        except prudent.PrudentError as error:
            assert str(error).startswith("no run can be in state")
            assert multiple * plan.step < spent + 1000 * plan.step


@pytest.mark.parametrize("seed", range(30))
def test_measured_costs_where_costs_are_rounded(seed):
    rng = np.random.default_rng(seed)
    plan = prudent.solve(prudent.build(0, noisy_table(rng).get), 0.3, step=0.05)
    agent = plan.policy.start()
    while not agent.done:
        state, cost = _happens(plan.model, agent, rng)
        agent.observe(state, cost + rng.random() / 7, measured=True)
        if not agent.done:
            assert agent.action == plan.policy(state, agent.spent)


def test_a_measured_cost_may_be_any_finite_number():
    table = {
        "a": {"go": [(0.5, "b", 3), (0.5, "b", 9)]},
        "b": {"slow": [(1, "g", 5)], "fast": [(0.9, "g", 0), (0.1, "g", 9)]},
    }
    plan = prudent.solve(prudent.build("a", table.get, goals=["g"]), 0.3)
    first, last = plan.bands("b")[0].action, plan.bands("b")[-1].action
    for cost, action in ((-1e308, first), (-2.5, first), (2, first), (1e9, last), (1e308, last)):
        agent = plan.policy.start()
        agent.observe("b", cost, measured=True)
        assert (agent.spent, agent.action) == (cost, action)
    agent.observe("g", 1e308, measured=True)
    assert agent.done
    agent = plan.policy.start()
    with pytest.raises(
        prudent.PrudentError, match=r"cannot lead to 'g' at cost 3; possible: 'b' at cost 3, .* cost 9$"
    ):
        agent.observe("g", 3, measured=True)
    with pytest.raises(prudent.PrudentError, match="must be a finite number"):
        agent.observe("b", float("inf"), measured=True)


def test_a_policy_with_a_memory_takes_no_measured_costs():
    agent = prudent.solve(prudent.domains.figure_2(), 0.1, method="cvar-wc").policy.start()
    with pytest.raises(prudent.PrudentError, match=r"remembers more .* use method='exact'"):
        agent.observe("s1", 0, measured=True)
    with pytest.raises(prudent.PrudentError, match=r"possible there: cost 0$"):
        agent.observe("s1", 0.5)


def test_off_the_lattice_the_neighbours_are_told():
    table = {i: {"go": [(0.5, i + 1, 0.1), (0.5, i + 1, 0.3)]} for i in range(20)}
    plan = prudent.solve(prudent.build(0, lambda s: table.get(s, {})), 0.3)
    with pytest.raises(prudent.PrudentError, match=r"cost step 0.1, such as 3 or 3.2; round a measured cost up$"):
        plan.policy(10, 3.07)  # after ten steps of 0.1 or 0.3 no run has spent 3.1
    with pytest.raises(prudent.PrudentError, match=r"cost step 0.1, such as 1; round a measured cost up"):
        plan.policy(10, 0.07)


@pytest.mark.parametrize("options", [{"method": "expected"}, {"alpha": 1}, {"method": "cvar-wc"}])
def test_a_plan_that_looks_at_no_budget_shows_none(options):
    plan = prudent.solve(prudent.domains.figure_2(), **{"alpha": 0.1, **options})
    agent = plan.policy.start()
    assert (plan.policy.budget, agent.budget) == (None, None)
    assert repr(agent) == "<Agent in 's0', spent 0, next 'a'>"
    assert repr(plan.policy).endswith("for figure-2: no budget>")


@pytest.mark.parametrize("objective", [prudent.Exceedance(7), prudent.ValueAtRisk()])
def test_the_budget_is_the_one_asked_for(objective, tmp_path):
    plan = prudent.solve(prudent.domains.figure_2(), 0.1, objective=objective)
    prudent.save(plan, tmp_path / "plan.safetensors")
    for each in (plan, prudent.load_plan(tmp_path / "plan.safetensors", plan.model)):
        assert each.policy.budget == each.policy.start().budget == 7


def test_what_was_measured_is_rounded_up_to_where_the_plan_turns():
    plan = prudent.solve(prudent.domains.figure_2(), 0.1)
    played = {0: "d", 0.01: "e", 0.99: "e", 2: "e", 2 + 1e-12: "e", 2.01: "c", -0.5: "d"}
    for cost, action in played.items():
        agent = plan.policy.start()
        agent.observe("s1", cost, measured=True)
        assert agent.action == action
    inventory = prudent.solve(prudent.domains.inventory_control(stages=4), 0.1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        agent = inventory.policy.start()
        while not agent.done:
            state, cost = _happens(inventory.model, agent, rng)
            agent.observe(state, cost + rng.random(), measured=True)
            assert agent.done or agent.action == inventory.policy(state, np.ceil(agent.spent))
