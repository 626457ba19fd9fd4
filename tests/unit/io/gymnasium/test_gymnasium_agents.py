"""Plans in environment loops: one environment, vectors that reset themselves in every mode, and what is refused."""

import numpy as np
import pytest

import prudent
from prudent import PrudentError

gymnasium = pytest.importorskip("gymnasium")

import prudent.gym  # noqa: E402

BETTING = prudent.domains.betting_game(stages=4)


@pytest.fixture(scope="module")
def plan():
    return prudent.solve(BETTING, alpha=0.2)


@pytest.fixture(scope="module")
def cliff():
    env = gymnasium.make("CliffWalkingSlippery-v1")
    return prudent.solve(prudent.from_gymnasium(env), alpha=0.1)


def played(agent, env, seed):
    agent.start(env.reset(seed=seed)[0])
    path = []
    while not agent.done:
        path.append((agent.action, agent.spent))
        agent.observe(*env.step(agent.action))
    return path


def test_an_agent_plays_what_the_policy_says(plan):
    env = gymnasium.make("prudent/BettingGame-v0", stages=4)
    agent = prudent.gymnasium_agent(plan, env)
    assert "before its first run" in repr(agent)
    for seed in range(20):
        obs, _ = env.reset(seed=seed)
        agent.start(obs)
        earned = 0.0
        while not agent.done:
            state = BETTING.state(obs)
            assert env.unwrapped.actions[agent.action] == plan.policy(state, agent.spent)
            step = env.step(agent.action)
            obs, earned = step[0], earned + step[1]
            agent.observe(*step)
        assert agent.spent == -earned
        assert agent.budget == plan.policy.budget - agent.spent
        assert agent.action is None and "done" in repr(agent)


def test_measured_costs_of_environments(plan):
    def late(env, action):
        obs, reward, *rest = env.step(action)
        return obs, reward - 0.25, *rest

    env = gymnasium.make("prudent/BettingGame-v0", stages=4)
    agent = prudent.gymnasium_agent(plan, env)
    agent.start(env.reset(seed=1)[0])
    with pytest.raises(prudent.PrudentError, match=r"at cost 0.25; .*; measured=True takes it as it is$"):
        agent.observe(*late(env, agent.action))
    envs = vector("prudent/BettingGame-v0", "NextStep", 2, stages=4)
    agents = prudent.gymnasium_agent(plan, envs)
    agents.start(envs.reset(seed=1)[0])
    agents.observe(*late(envs, agents.actions), measured=True)
    assert [each.spent for each in agents.agents] == [0.25, 0.25]


def test_an_agent_without_a_budget_shows_none():
    env = gymnasium.make("prudent/BettingGame-v0", stages=4)
    agent = prudent.gymnasium_agent(prudent.solve(BETTING, 0.2, method="expected"), env)
    agent.start(env.reset(seed=1)[0])
    assert agent.budget is None
    assert "budget" not in repr(agent)


def vector(id_, mode, n, **options):
    return gymnasium.make_vec(id_, num_envs=n, vector_kwargs={"autoreset_mode": mode}, **options)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_vectors_earn_what_single_environments_earn(mode, cliff):
    """The same seeds: the first run of each environment is that of the environment alone, and so are those after it."""
    n, runs = 4, 3
    alone = []
    for i in range(n):
        env = gymnasium.make("CliffWalkingSlippery-v1")
        agent = prudent.gymnasium_agent(cliff, env)
        totals = []
        for run in range(runs):
            played(agent, env, 10 + i if run == 0 else None)
            totals.append(agent.spent)
        alone.append(totals)
    envs = vector("CliffWalkingSlippery-v1", mode, n)
    agents = prudent.gymnasium_agent(cliff, envs)
    agents.start(envs.reset(seed=10)[0])
    while min(map(len, agents.totals)) < runs:
        agents.observe(*envs.step(agents.actions))
    assert [totals[:runs] for totals in agents.totals] == alone


def test_totals_are_of_truncated_runs_too(cliff):
    envs = vector("CliffWalkingSlippery-v1", "SameStep", 2, max_episode_steps=3)
    agents, earned = prudent.gymnasium_agent(cliff, envs), np.zeros(2)
    agents.start(envs.reset(seed=0)[0])
    for _ in range(3):
        step = envs.step(agents.actions)
        earned += step[1]
        agents.observe(*step)
    assert step[3].all() and agents.totals == [[total] for total in (-earned).tolist()]


def test_vectors_that_do_not_reset_themselves(plan):
    envs = vector("prudent/BettingGame-v0", "Disabled", 3, stages=4)
    agents = prudent.gymnasium_agent(plan, envs)
    agents.start(envs.reset(seed=0)[0])
    for _ in range(5):
        agents.observe(*envs.step(agents.actions))
    assert [len(totals) for totals in agents.totals] == [1, 1, 1]
    mask = np.array([False, True, True])
    agents.start(envs.reset(options={"reset_mask": mask})[0], mask)
    assert [agent.done for agent in agents.agents] == [True, False, False]
    with pytest.raises(PrudentError, match=r"the run is over"):
        agents.observe(np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3), {})


def test_vectors_in_processes_of_their_own_play_as_those_in_one(cliff):
    totals = []
    for mode in ("sync", "async"):
        envs = gymnasium.make_vec("CliffWalkingSlippery-v1", num_envs=2, vectorization_mode=mode)
        try:
            agents = prudent.gymnasium_agent(cliff, envs)
            agents.start(envs.reset(seed=1)[0])
            while not all(agents.totals):
                agents.observe(*envs.step(agents.actions))
        finally:
            envs.close()
        totals.append(agents.totals)
    assert totals[0] == totals[1]


def test_time_limits(cliff):
    env = gymnasium.make("CliffWalkingSlippery-v1", max_episode_steps=5)
    agent = prudent.gymnasium_agent(cliff, env)
    assert len(played(agent, env, 0)) == 5  # cut short by the environment
    model = prudent.from_gymnasium(env, horizon=True, horizon_cost=50)
    plan = prudent.solve(model, alpha=0.1)
    agent = prudent.gymnasium_agent(plan, env)
    path = played(agent, env, 0)
    assert len(path) == 5 and agent.spent == path[-1][1] + 51
    longer = gymnasium.make("CliffWalkingSlippery-v1")
    assert len(played(prudent.gymnasium_agent(plan, longer), longer, 0)) == 5  # the plan's own horizon
    envs = vector("CliffWalkingSlippery-v1", "NextStep", 2)
    agents = prudent.gymnasium_agent(plan, envs)
    agents.start(envs.reset(seed=0)[0])
    with pytest.raises(
        PrudentError, match=r"is over, but the environment continues; make it with .* max_episode_steps="
    ):
        for _ in range(6):
            agents.observe(*envs.step(agents.actions))


def test_costs_by_a_function_count_the_same_in_planning_and_acting():
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=-1)
    holes = {int(s) for s in np.flatnonzero(env.unwrapped.desc.ravel() == b"H")}
    model = prudent.from_gymnasium(env, cost=lambda state, action, reward, after: 1 + 100 * (after in holes))
    plan = prudent.solve(model, alpha=0.5)
    agent = prudent.gymnasium_agent(plan, env)
    for seed in range(5):
        path = played(agent, env, seed)
        fell = env.unwrapped.s in holes
        assert agent.spent == len(path) + 100 * fell


@pytest.mark.parametrize("method", ["expected", "worst-case", "cvar-wc", "cvar-ev"])
def test_policies_of_every_method(method):
    """Those that remember more than the cost so far, too."""
    env = gymnasium.make("prudent/BettingGame-v0", stages=3)
    plan = prudent.solve(env.unwrapped.model, alpha=0.2, method=method)
    agent, totals = prudent.gymnasium_agent(plan, env), []
    for seed in range(300):
        played(agent, env, seed)
        totals.append(agent.spent)
    assert abs(np.mean(totals) - plan.expected) <= 4 * np.std(totals) / np.sqrt(300)


def test_policies_that_draw_need_another_seed_for_each_run():
    model = prudent.domains.figure_2()
    plan = prudent.solve(model, alpha=0.1, slack=0.05, randomise=True)
    assert type(plan.policy).__name__ == "MixedPolicy"
    env = prudent.to_gymnasium(model)
    agent, mean = prudent.gymnasium_agent(plan, env, seed=4), []
    first = [tuple(action for action, _ in played(agent, env, seed)) for seed in range(300)]
    assert len(set(first)) > 2  # both policies came up
    again = prudent.gymnasium_agent(plan.policy, env, seed=4)
    assert first == [tuple(action for action, _ in played(again, env, seed)) for seed in range(300)]
    for seed in range(300):
        played(again, env, 1000 + seed)
        mean.append(again.spent)
    assert abs(np.mean(mean) - plan.expected) < 4 * np.std(mean) / np.sqrt(300)


def test_what_is_refused(plan, cliff):
    env = gymnasium.make("prudent/BettingGame-v0", stages=4)
    agent = prudent.gymnasium_agent(plan, env)
    for act in (lambda: agent.done, lambda: agent.action, lambda: agent.observe(0, 0.0, False)):
        with pytest.raises(PrudentError, match=r"no run has begun; call start\(\)"):
            act()
    with pytest.raises(PrudentError, match=r"it must be the number of a state, the first of what reset\(\)"):
        agent.start(env.reset(seed=0))
    agent.start(env.reset(seed=0)[0])
    with pytest.raises(PrudentError, match=r"cannot lead to 'end' at cost 3.0; possible: "):
        agent.observe(BETTING.index("end"), -3.0, True)
    with pytest.raises(PrudentError, match=r"env plays another model than <SSP betting-game"):
        prudent.gymnasium_agent(plan, gymnasium.make("prudent/BettingGame-v0", stages=5))
    with pytest.raises(PrudentError, match=r"does not define how rewards become costs; .*, or give cost="):
        prudent.gymnasium_agent(plan, gymnasium.make("Taxi-v4"))
    with pytest.raises(PrudentError, match=r"cost is 'banana'; it must be one of 'negative reward' "):
        prudent.gymnasium_agent(plan, env, cost="banana")
    with pytest.raises(PrudentError, match=r"cost is 'steps', but env plays the plan's model, .*; leave it out"):
        prudent.gymnasium_agent(plan, env, cost="steps")
    for none in (None, "Taxi-v4", type(env)):
        with pytest.raises(PrudentError, match=r"env is .*; pass an environment, such as gymnasium.make returns"):
            prudent.gymnasium_agent(plan, none, cost="negative reward")
    with pytest.raises(PrudentError, match=r"plan is a str"):
        prudent.gymnasium_agent("plan", env)
    with pytest.raises(PrudentError, match=r"seed is -1"):
        prudent.gymnasium_agent(plan, env, seed=-1)
    taxi = gymnasium.make("CliffWalkingSlippery-v1")
    with pytest.raises(PrudentError, match=r"cost is 'steps', but the plan's model was made with 'negative reward'"):
        prudent.gymnasium_agent(cliff, taxi, cost="steps")
    with pytest.raises(PrudentError, match=r"cost is 'banana'; it must be one of 'negative reward' "):
        prudent.gymnasium_agent(cliff, taxi, cost="banana")
    with pytest.raises(PrudentError, match=r"state 3 is not an initial state of CliffWalkingSlippery-v1"):
        prudent.gymnasium_agent(cliff, taxi).start(3)


def test_a_model_of_ones_own_for_an_environment():
    """Observations and actions are names; the cost rule must be given."""
    env = gymnasium.make("CliffWalking-v1")

    def actions(cell):
        if cell == 47:
            return {}
        if cell == 36:
            return {0: [(1.0, 24, 1)]}
        return {1: [(1.0, cell + 1, 1)]} if cell < 35 else {2: [(1.0, 47, 1)]}

    plan = prudent.solve(prudent.build(36, actions), alpha=0.5)
    agent = prudent.gymnasium_agent(plan, env, cost="negative reward")
    played(agent, env, 0)
    assert agent.spent == 13
    ends = prudent.solve(prudent.build(36, {36: {0: [(1.0, 24, 1)]}, 24: {0: [(1.0, 47, 1)]}}), alpha=0.5)
    early = prudent.gymnasium_agent(ends, env, cost="negative reward")
    early.start(36)
    with pytest.raises(PrudentError, match=r"ended the run in state 24, which is not a goal of the model"):
        early.observe(24, -1.0, True)
