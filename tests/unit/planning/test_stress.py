"""Stress: a plan on models that the counts allow."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import prudent
from prudent.planning.stress import run_draws

ROW = {"state": "s", "action": "a", "next_state": "m"}
LOG = [
    {**ROW, "cost": 1, "n": 9},
    {**ROW, "cost": 5, "n": 3},
    {"state": "m", "action": "b", "next_state": "g", "cost": 0, "n": 500},
    {"state": "m", "action": "b", "next_state": "g", "cost": 1, "n": 500},
]
DATA = prudent.from_episodes(LOG, count="n", initial="s")
PLAN = prudent.solve(DATA.model, alpha=0.2)


def test_numbers_are_those_of_the_models_drawn():
    result = prudent.stress(PLAN, DATA, samples=4, seed=3)
    for i in range(4):
        weight = np.random.default_rng([3, i]).standard_gamma(DATA.counts + 0.5)
        p = weight[:2] / weight[:2].sum(), weight[2:] / weight[2:].sum()
        table = {"s": {"a": [(p[0][0], "m", 1), (p[0][1], "m", 5)]}, "m": {"b": [(p[1][0], "g", 0), (p[1][1], "g", 1)]}}
        drawn = prudent.evaluate(prudent.build("s", lambda s, table=table: table.get(s, {})), {"s": "a", "m": "b"})
        assert result.cvar[i] == pytest.approx(drawn.cvar(0.2))
        assert result.var[i] == drawn.var(0.2)
        assert result.expected[i] == pytest.approx(drawn.mean)


def test_the_answer_does_not_depend_on_the_executor():
    with ThreadPoolExecutor(2) as pool:
        shared = prudent.stress(PLAN, DATA, samples=60, executor=pool)
    alone = prudent.stress(PLAN, DATA.model, samples=60)
    assert np.array_equal(shared.cvar, alone.cvar)
    assert np.array_equal(shared.exceeds, alone.exceeds)


def test_the_action_seen_seldom_matters_most():
    result = prudent.stress(PLAN, DATA, samples=300)
    first = result.matters[0]
    assert (first.state, first.action, first.seen) == ("s", "a", 12)
    assert first.share > 0.5
    assert 0 < first.doubled < result.quantiles()[0.95] - result.quantiles()[0.05]
    assert result.to_dict()["cvar"]["0.5"] == pytest.approx(np.median(result.cvar))


def test_actions_that_the_plan_never_plays_do_not_matter():
    other = [{"state": "m", "action": f"c{i}", "next_state": "g", "cost": c, "n": 2} for i in range(40) for c in (8, 9)]
    data = prudent.from_episodes(LOG + other, count="n", initial="s")
    result = prudent.stress(prudent.solve(data.model, alpha=0.2), data, samples=40)
    assert {each.action for each in result.matters} <= {"a", "b"}


def test_a_free_loop_is_drawn_too():
    rows = [
        {"state": "s", "action": "a", "next_state": "s", "cost": 0, "n": 5},
        {"state": "s", "action": "a", "next_state": "g", "cost": 1, "n": 5},
        {"state": "s", "action": "a", "next_state": "g", "cost": 3, "n": 5},
    ]
    data = prudent.from_episodes(rows, count="n", initial="s")
    result = prudent.stress(prudent.solve(data.model, alpha=1.0), data, samples=3)
    weight = np.random.default_rng([0, 0]).standard_gamma(data.counts + 0.5)
    assert result.expected[0] == pytest.approx((weight[1] + 3 * weight[2]) / weight[1:].sum())


def test_what_cannot_be_stressed_is_refused():
    plain = prudent.domains.figure_2()
    with pytest.raises(prudent.PrudentError, match="figure-2 has no counts"):
        prudent.stress(prudent.solve(plain, alpha=0.2), plain)
    with pytest.raises(prudent.PrudentError, match="the policy was made for"):
        prudent.stress(prudent.solve(plain, alpha=0.2), DATA)
    with pytest.raises(prudent.PrudentError, match="plan is a SSP"):
        prudent.stress(plain, DATA)
    with pytest.raises(prudent.PrudentError, match="data is a int"):
        prudent.stress(PLAN, 3)
    with pytest.raises(prudent.PrudentError, match="samples is 1"):
        prudent.stress(PLAN, DATA, samples=1)
    with pytest.raises(prudent.PrudentError, match="executor is a int"):
        prudent.stress(PLAN, DATA, executor=3)


def test_processes_and_a_plan_from_a_file_give_the_same_answer(tmp_path):
    prudent.save(PLAN, tmp_path / "plan.safetensors")
    loaded = prudent.load_plan(tmp_path / "plan.safetensors", DATA.model)
    sent = pickle.loads(pickle.dumps((run_draws, loaded.policy, DATA.counts, 0.2, 0, np.array([1.0]), range(3))))
    drawn, found = sent[0](*sent[1:])
    assert drawn.shape == (3, 4)
    assert np.array_equal(found[:, 0], prudent.stress(PLAN, DATA, samples=3).cvar)
