"""The likeliest goal: what is asked for, refused and kept."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import prudent
from prudent.apps.cli.main import main
from prudent.io.checkpoint import Checkpoint
from prudent.planning import job

CLIFF = {
    "cliff": {
        "jump": [(0.9, "home", 1), (0.1, "ravine", 0)],
        "slide": [(0.5, "home", 0), (0.5, "ravine", 0)],
        "wait": [(1, "cliff", 0)],
    },
    "ravine": {"wait": [(1, "ravine", 0)]},
}


@pytest.fixture
def model():
    return prudent.build("cliff", CLIFF)


def test_the_chance_comes_first_and_a_run_that_fails_has_a_price(model, tmp_path):
    plan = prudent.solve(model, 0.2, goal="likeliest", dead_end_cost=0)
    assert (plan.goal_probability, plan.policy("cliff")) == (pytest.approx(0.9), "jump")
    assert plan.cvar == 1 and plan.table().rows[0] == ("probability of a goal", "0.9", "the highest possible")
    assert prudent.solve(model, 0.2, goal="likeliest", dead_end_cost=100).cvar == pytest.approx(50.5)
    prudent.save(plan, tmp_path / "plan.safetensors")
    assert prudent.load_plan(tmp_path / "plan.safetensors", plan.model).goal_probability == plan.goal_probability


def test_without_a_plan_that_is_sure_the_refusal_offers_it(model):
    with pytest.raises(prudent.PrudentError, match="goal='likeliest'"):
        prudent.solve(model, 0.2)


def test_a_price_is_asked_for_only_where_runs_may_fail(model):
    with pytest.raises(prudent.PrudentError, match=r"a probability above 0.9; give .* dead_end_cost="):
        prudent.solve(model, 0.2, goal="likeliest")
    sure = prudent.build("cliff", {**CLIFF, "cliff": {**CLIFF["cliff"], "walk": [(1, "home", 30)]}})
    plan = prudent.solve(sure, 0.2, goal="likeliest")
    assert (plan.goal_probability, plan.policy("cliff"), plan.cvar) == (1, "walk", 30)


def test_other_objectives_are_sought_among_the_likeliest_plans(model):
    plan = prudent.solve(model, 0.2, goal="likeliest", dead_end_cost=5, objective=prudent.WorstCase())
    assert plan.policy("cliff") == "jump" and plan.goal_probability == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"goal": "perhaps"}, "goal is 'perhaps'; it must be 'sure' or 'likeliest'"),
        ({"dead_end_cost": 5}, "dead_end_cost is the price of a failed run under goal='likeliest'"),
        ({"goal": "likeliest", "dead_end_cost": float("inf")}, "dead_end_cost is inf; it must be a finite number"),
    ],
)
def test_what_cannot_be_asked_is_refused(model, options, told):
    with pytest.raises(prudent.PrudentError, match=told):
        prudent.solve(model, 0.2, **options)


def test_small_chances_are_shown_with_their_digits(tmp_path):
    table = {0: {"try": [(1.2345678e-18, "goal", 1), (1, "trap", 0)]}, "trap": {"wait": [(1, "trap", 0)]}}
    model = prudent.build(0, table)
    plan = prudent.solve(model, 0.2, goal="likeliest", dead_end_cost=0)
    assert plan.table().rows[0][:2] == ("probability of a goal", "1.23457e-18")
    prudent.save(model, tmp_path / "rare.json")
    about = [str(tmp_path / "rare.json"), "--goal", "likeliest", "--dead-end-cost", "0", "--alpha", "0.2", "--json"]
    done = CliRunner().invoke(main, ["solve", *about])
    assert json.loads(done.stdout)["goal_probability"] == 1.2345678e-18
    with pytest.raises(prudent.PrudentError, match=r"a probability above 1.23457e-18; give"):
        prudent.solve(model, 0.2, goal="likeliest")
    table[0] = {"try": [(1, "goal", 1), (1e-13, "trap", 0)]}
    with pytest.raises(prudent.PrudentError, match=r"a probability above 1 - 1e-13; give"):
        prudent.solve(prudent.build(0, table), 0.2, goal="likeliest")


def test_a_checkpoint_is_that_of_one_goal_and_price(model, monkeypatch, tmp_path):
    begun = []
    monkeypatch.setattr(job, "Checkpoint", lambda path, about, _: begun.append(about) or Checkpoint(path, about))
    for price in (5, 6):
        prudent.solve(model, 0.2, goal="likeliest", dead_end_cost=price, checkpoint=tmp_path / "place")
    assert begun[0] != begun[1] and begun[0]["model"] == begun[1]["model"] == model.fingerprint


def test_goals_that_no_run_reaches_are_refused():
    model = prudent.from_arrays([0, 1, 1], [0, 1], [1.0], [0], [1.0])
    with pytest.raises(prudent.PrudentError, match="no plan for model reaches a goal with a probability above 1e-300"):
        prudent.solve(model, 0.2, goal="likeliest", dead_end_cost=1)
    table = {0: {"try": [(1e-200, 1, 1), (1, 3, 1)]}, 1: {"try": [(1e-200, 2, 1), (1, 3, 1)]}, 3: {"wait": [(1, 3, 0)]}}
    with pytest.raises(prudent.PrudentError, match="no plan for model reaches a goal with a probability above 1e-300"):
        prudent.solve(prudent.build(0, table), 0.2, goal="likeliest", dead_end_cost=1)


def test_a_price_that_is_none_is_refused_where_no_run_fails_too():
    model = prudent.build(0, {0: {"go": [(1, 1, 1)]}})
    with pytest.raises(prudent.PrudentError, match="dead_end_cost is nan; it must be a finite number"):
        prudent.solve(model, 0.2, goal="likeliest", dead_end_cost=float("nan"))


def test_the_commands_take_it(model, tmp_path):
    prudent.save(model, tmp_path / "cliff.json")
    about = [str(tmp_path / "cliff.json"), "--goal", "likeliest", "--dead-end-cost", "100", "--json"]
    plan = str(tmp_path / "plan.safetensors")
    done = CliRunner().invoke(main, ["solve", *about, "--alpha", "0.2", "--save", plan])
    assert (done.exit_code, json.loads(done.stdout)["goal_probability"]) == (0, pytest.approx(0.9))
    done = CliRunner().invoke(main, ["evaluate", about[0], plan, *about[1:]])
    assert (done.exit_code, json.loads(done.stdout)["mean"]) == (0, pytest.approx(10.9))
    done = CliRunner().invoke(main, ["solve", *about, "--alpha", "0.2", "--horizon", "5"])
    assert done.exit_code == 2 and "--goal likeliest" in done.stderr


def test_counts_stay_with_the_outcomes_that_are_left():
    model = prudent.build(
        "s",
        {
            "s": {"worse": [(0.5, "g", 1), (0.5, "x", 1)], "better": [(0.8, "g", 1), (0.2, "x", 1)]},
            "x": {"on": [(1, "x", 1)]},
        },
    )
    model = replace(model, count=np.array([50.0, 50.0, 8.0, 2.0, 7.0]))
    plan = prudent.solve(model, 0.1, goal="likeliest", dead_end_cost=9)
    assert plan.model.count.tolist() == [8.0, 2.0, 0.0]  # giving up was never seen
    assert plan.model.action_names[0] == "better"


def test_a_chance_that_is_not_found_in_time_is_no_matter_of_digits():
    n, rng = 20_000, np.random.default_rng(0)
    successor = np.clip(np.arange(n)[:, None] + rng.integers(-100, 101, (n, 3)), 0, n)
    successor[0] = n + 1  # a dead end
    model = prudent.from_arrays(
        np.append(np.arange(n + 1), [n, n + 1]),
        np.append(3 * np.arange(n + 1), 3 * n + 1),
        np.append(rng.dirichlet(np.ones(3), n).ravel(), 1.0),
        np.append(successor.ravel(), n + 1),
        np.ones(3 * n + 1),
        initial=n // 2,
    )
    with pytest.raises(prudent.PrudentError, match="maximal probability of reaching a goal takes longer than the time"):
        prudent.solve(model, 0.05, goal="likeliest", dead_end_cost=100, time_limit=0.05)
