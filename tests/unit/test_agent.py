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
    with pytest.raises(prudent.PrudentError, match=r"cannot lead to \(1, 7\) at cost 0.1"):
        agent.observe((1, 7), 0.1)
    assert agent.state == (0, 5)
    agent.observe((1, 7), 1e-10)
    assert (agent.state, agent.spent) == ((1, 7), 0)


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
