import pytest

import prudent


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
    assert "the tail is safe" in told.summary
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
    with pytest.raises(prudent.PrudentError, match=r"cannot lead to \(1, 7\) at cost 0.1; possible there: cost 0$"):
        agent.observe((1, 7), 0.1)
    for cost in ("0", None, float("nan")):
        with pytest.raises(prudent.PrudentError, match=r"cost is .*; it must be a finite number"):
            agent.observe((1, 7), cost)
    assert agent.state == (0, 5)
    agent.observe((1, 7), 1e-10)
    assert (agent.state, agent.spent) == ((1, 7), 0)


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
    assert str(caught.value).endswith(f"cannot lead to 'there' at cost {observed}; possible there: {words}")
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
        agent.observe(i + 1, 0.1 + 9e-10)
    assert agent.spent == pytest.approx(5, abs=1e-15)


def test_several_initial_states():
    table = {"a": {"go": [(1, "g", 1)]}, "b": {"go": [(1, "g", 2)]}}
    model = prudent.build({"a": 0.5, "b": 0.5}, lambda s: table.get(s, {}))
    policy = prudent.solve(model, 0.5).policy
    assert policy.start("b").action == "go"
    with pytest.raises(prudent.PrudentError, match="2 initial states; say which: 'a', 'b'"):
        policy.start()
    with pytest.raises(prudent.PrudentError, match="'g' is not an initial state"):
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
