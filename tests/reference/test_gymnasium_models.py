"""Gymnasium's own environments: optima against value iteration on their tables, returns against evaluation."""

import numpy as np
import pytest

import prudent
from prudent.results.runs import Runs

gymnasium = pytest.importorskip("gymnasium")

ENVIRONMENTS = [
    ("FrozenLake-v1", {}),
    ("FrozenLake-v1", {"is_slippery": False}),
    ("FrozenLake8x8-v1", {}),
    ("FrozenLake8x8-v1", {"is_slippery": False}),
    ("CliffWalking-v1", {}),
    ("CliffWalkingSlippery-v1", {}),
    ("Taxi-v4", {}),
    ("Taxi-v4", {"is_rainy": True}),
]
# Without a time limit: what Gymnasium calls the optimum is at 100, 200 and 200 actions.
KNOWN = {"FrozenLake-v1": 14 / 17, "FrozenLake8x8-v1": 1.0, "CliffWalking-v1": -13.0}


def arrays(env):
    """Return chance[s, a, t] of going on and mean reward[s, a], as the table has them, and the first chance step."""
    table = env.unwrapped.P
    chance = np.zeros((len(table), env.action_space.n, len(table)))
    reward = np.zeros(chance.shape[:2])
    for s, row in table.items():
        for a, outcomes in row.items():
            for p, t, r, terminated in outcomes:
                reward[s, a] += p * r
                if not terminated:
                    chance[s, a, t] += p
    return chance, reward, np.asarray(env.unwrapped.initial_state_distrib)


def iterated(chance, reward, steps=200_000):
    """Value iteration until nothing moves, or for so many steps."""
    value = np.zeros(len(chance))
    for _ in range(steps):
        before, value = value, (reward + chance @ value).max(axis=1)
        if np.array_equal(before, value):
            break
    return value


def made(id_, options):
    return gymnasium.make(id_, max_episode_steps=-1, **options)


@pytest.mark.parametrize(("id_", "options"), ENVIRONMENTS)
def test_least_expected_cost_is_that_of_value_iteration(id_, options):
    env = made(id_, options)
    chance, reward, first = arrays(env)
    best = first @ iterated(chance, reward)
    plan = prudent.solve(prudent.from_gymnasium(env), alpha=1)
    assert plan.expected == pytest.approx(-best, abs=1e-12 * max(1, abs(best)))
    assert plan.status == "optimal"
    if id_ in KNOWN and options == {}:
        assert -plan.expected == pytest.approx(KNOWN[id_], abs=1e-9)


@pytest.mark.parametrize(("id_", "known"), [("FrozenLake-v1", 0.74), ("FrozenLake8x8-v1", 0.91), ("Taxi-v4", None)])
def test_time_limit_as_horizon_is_backward_induction(id_, known):
    env = gymnasium.make(id_)
    chance, reward, first = arrays(env)
    limit = env.spec.max_episode_steps
    best = first @ iterated(chance, reward, steps=limit)
    model = prudent.from_gymnasium(env, horizon=True)
    assert prudent.solve(model, alpha=1).expected == pytest.approx(-best, abs=1e-12 * max(1, abs(best)))
    if known is not None:  # as Gymnasium's registry has it
        assert best == pytest.approx(known, abs=0.01)


def returns(id_, options, plan, episodes, mode="NextStep"):
    """Return the total costs of real episodes, as many in each environment of a vector: the first to end are short."""
    n = 50
    envs = gymnasium.make_vec(
        id_,
        num_envs=n,
        vector_kwargs={"autoreset_mode": mode},
        max_episode_steps=-1,
        disable_env_checker=True,
        **options,
    )
    agents = prudent.gymnasium_agent(plan, envs)
    agents.start(envs.reset(seed=7)[0])
    earned, totals = np.zeros(n), [[] for _ in range(n)]
    while min(map(len, totals)) < episodes // n:
        obs, reward, terminated, truncated, info = envs.step(agents.actions)
        agents.observe(obs, reward, terminated, truncated, info)
        earned += reward
        for i in np.flatnonzero(terminated):
            totals[i].append(-earned[i])
            earned[i] = 0
    assert agents.totals == totals
    return Runs.of(np.concatenate([own[: episodes // n] for own in totals]), seed=7)


def hold_against_evaluation(id_, options, episodes):
    plan = prudent.solve(prudent.from_gymnasium(made(id_, options)), alpha=0.3)
    exact = prudent.evaluate(plan.model, plan.policy)
    runs = returns(id_, options, plan, episodes)
    assert runs.episodes == episodes
    assert abs(runs.mean - exact.mean) <= 4 * runs.mean_se + 1e-9
    assert abs(runs.cvar(0.3) - exact.cvar(0.3)) <= 4 * runs.cvar_se(0.3) + 1e-9
    assert exact.mean == pytest.approx(plan.expected, abs=1e-9)


@pytest.mark.parametrize(("id_", "options"), ENVIRONMENTS)
def test_returns_of_real_episodes(id_, options):
    hold_against_evaluation(id_, options, 100)


@pytest.mark.slow
@pytest.mark.parametrize(("id_", "options"), ENVIRONMENTS)
def test_returns_of_ten_thousand_real_episodes(id_, options):
    hold_against_evaluation(id_, options, 10_000)


@pytest.mark.parametrize("id_", ["prudent/BettingGame-v0", "prudent/DeepSeaTreasure-v0", "prudent/InventoryControl-v0"])
def test_returns_in_the_papers_domains(id_):
    pytest.importorskip("prudent.gym")
    env = gymnasium.make(id_)
    plan = prudent.solve(env.unwrapped.model, alpha=0.1)
    agent, totals = prudent.gymnasium_agent(plan, env), []
    for seed in range(400):
        agent.start(env.reset(seed=seed)[0])
        earned = 0.0
        while not agent.done:
            step = env.step(agent.action)
            agent.observe(*step)
            earned += step[1]
        totals.append(-earned)
        assert agent.spent == totals[-1]
    runs = Runs.of(np.array(totals), seed=0)
    assert abs(runs.mean - plan.expected) <= 4 * runs.mean_se


@pytest.mark.parametrize("id_", ["prudent/BettingGame-v0", "prudent/Figure2-v0", "prudent/DeepSeaTreasure-v0"])
@pytest.mark.parametrize("unavailable", ["stay", "error"])
def test_a_table_read_back_has_the_models_optimum(id_, unavailable):
    pytest.importorskip("prudent.gym")
    env = gymnasium.make(id_, unavailable=unavailable)
    model, back = env.unwrapped.model, prudent.from_gymnasium(env)
    if unavailable == "error":
        assert (back.n_states, back.n_actions, back.n_outcomes) == (model.n_states, model.n_actions, model.n_outcomes)
    for alpha in (0.1, 1):
        one, two = prudent.solve(model, alpha=alpha), prudent.solve(back, alpha=alpha)
        assert (one.cvar, one.expected) == pytest.approx((two.cvar, two.expected), rel=1e-12)
    agent = prudent.gymnasium_agent(two, env)
    agent.start(env.reset(seed=3)[0])
    while not agent.done:
        agent.observe(*env.step(agent.action))
