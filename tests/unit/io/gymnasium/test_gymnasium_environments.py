"""Models as environments: Gymnasium's own checks, seeds, masks, and what is refused."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import prudent
from prudent import PrudentError

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402

import prudent.gym  # noqa: E402

IDS = sorted(prudent.gym.ENVIRONMENTS)
COIN = prudent.build("a", {"a": {"toss": [(0.3, "a", 1), (0.7, "b", 2)]}, "b": {"stop": [(1, "end", 0.5)]}})


@pytest.mark.parametrize("id_", IDS)
def test_gymnasiums_checks_pass_without_a_warning(id_):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(id_).unwrapped)
        for seed in range(5):  # the checks draw actions at random; so that they meet unavailable ones, too
            env = gymnasium.make(id_)
            env.action_space.seed(seed)
            check_env(env.unwrapped)


@pytest.mark.parametrize("id_", IDS)
def test_random_runs_end_and_cost_what_the_model_says(id_):
    env = gymnasium.make(id_)
    model = env.unwrapped.model
    rng = np.random.default_rng(0)
    state, info = env.reset(seed=1)
    assert state in model.initial_state
    for _ in range(3000):
        allowed = np.flatnonzero(info["action_mask"])
        names = {model.action(a) for a in range(*model.action_start[state : state + 2])}
        assert {env.unwrapped.actions[i] for i in allowed} == names
        action = int(rng.choice(allowed))
        after, reward, terminated, truncated, info = env.step(action)
        a = model.find_action(state, env.unwrapped.actions[action])
        outcomes = slice(*model.outcome_start[a : a + 2])
        assert (after, -reward) in zip(model.successor[outcomes], model.cost[outcomes], strict=True)
        assert (terminated, truncated) == (bool(model.is_goal[after]), False)
        state = after
        if terminated:
            assert not info["action_mask"].any()
            state, info = env.reset()


def test_ids_need_no_import_when_the_module_is_named():
    code = (
        "import gymnasium, sys; env = gymnasium.make('prudent.gym:prudent/BettingGame-v0', stages=2, money=3)\n"
        "print(env.unwrapped.model.state(env.reset(seed=0)[0]), env.spec.id)"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "(0, 3) prudent/BettingGame-v0"


def test_seeds_and_frequencies():
    env = prudent.to_gymnasium(COIN)

    def run(seed):
        env.reset(seed=seed)
        return [env.step(0)[:2] if env.reset()[0] == 0 else None for _ in range(3000)]

    first = run(5)
    assert first == run(5) != run(6)
    stays = np.mean([step == (0, -1.0) for step in first])
    assert abs(stays - 0.3) < 4 * np.sqrt(0.21 / 3000)
    assert {step for step in first} == {(0, -1.0), (1, -2.0)}


def test_initial_distributions_are_drawn_from():
    model = prudent.build({"a": 0.25, "b": 0.75, "c": 0.0}, {s: {"x": [(1, "end", 0)]} for s in "abc"})
    env = prudent.to_gymnasium(model)
    env.reset(seed=0)
    first = np.array([env.reset()[0] for _ in range(3000)])
    assert set(first) == {0, 1}
    assert abs((first == 1).mean() - 0.75) < 4 * np.sqrt(0.1875 / 3000)
    assert env.initial_state_distrib.tolist() == [0.25, 0.75, 0, 0]


def test_unavailable_actions():
    env = prudent.to_gymnasium(COIN)
    env.reset(seed=0)
    assert env.actions == ("toss", "stop")
    state, reward, terminated, truncated, info = env.step(1)
    assert (state, reward, terminated, truncated, info["unavailable"]) == (0, 0.0, False, False, True)
    assert info["action_mask"].tolist() == [1, 0] == env.action_masks().tolist()
    assert env.P[0][1] == [(1.0, 0, 0.0, False)]
    assert env.P[0][0] == [(0.3, 0, -1.0, False), (0.7, 1, -2.0, False)]
    strict = prudent.to_gymnasium(COIN, unavailable="error")
    strict.reset(seed=0)
    with pytest.raises(PrudentError, match=r"state 'a' has no action 1; its actions are 0 \('toss'\)"):
        strict.step(1)
    assert list(strict.P[0]) == [0]
    for nonsense in (2, "toss", 0.5, ((0, 1), 0), None):
        with pytest.raises(PrudentError, match=r"give the number of an action: 0 \('toss'\)"):
            env.step(nonsense)


def test_what_is_refused():
    env = prudent.to_gymnasium(COIN)
    with pytest.raises(PrudentError, match=r"has not begun: call reset\(\)"):
        env.step(0)
    env.reset(seed=0)
    while env.step(0)[0] == 0:
        pass
    assert env.step(1)[2]
    with pytest.raises(PrudentError, match=r"the run is over"):
        env.step(1)
    with pytest.raises(PrudentError, match=r"unavailable is 'maybe'; it must be one of 'stay', 'error'"):
        prudent.to_gymnasium(COIN, unavailable="maybe")
    with pytest.raises(PrudentError, match=r"model is a str"):
        prudent.to_gymnasium("betting-game")
    over = prudent.build({"a": 0.5, "end": 0.5}, {"a": {"x": [(1, "end", 0)]}})
    with pytest.raises(PrudentError, match=r"a run may start in 'end', a goal"):
        prudent.to_gymnasium(over)
    with pytest.raises(PrudentError, match=r"betting_game has no parameter 'stage'; its parameters are: stages, money"):
        gymnasium.make("prudent/BettingGame-v0", stage=3)
    with pytest.raises(PrudentError, match=r"stages is 0"):
        gymnasium.make("prudent/BettingGame-v0", stages=0)
    with pytest.raises(PrudentError, match=r"render_mode is 'ansi'"):
        prudent.gym.SSPEnv(COIN, render_mode="ansi")


def test_missing_gymnasium_says_what_to_install(monkeypatch):
    for name in ("prudent.gym", "prudent.io.gymnasium.environments"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(PrudentError, match=r"needs gymnasium; install it with: pip install 'prudent\[gym\]'"):
        prudent.to_gymnasium(COIN)
