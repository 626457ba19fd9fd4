"""Answers with ``device="gpu"``: those of the CPU, as certain, and the same bits each time."""

import json
import os

import numpy as np
import pytest
from random_models import random_model

import prudent
from prudent.runtime import gpu
from standin import StandIn

REAL = os.environ.get("PRUDENT_GPU") == "1"
MODELS = 200 if REAL else 64
LONG = 10
"""The number of a model for which the stand-in takes ten seconds."""
"""How many random models."""

DOMAINS = {
    "betting-game": (lambda: prudent.domains.betting_game(), (0.02, 0.2)),
    "deep-sea-treasure": (lambda: prudent.domains.deep_sea_treasure(), (0.02, 0.2)),
    "inventory-control": (lambda: prudent.domains.inventory_control(), (0.02, 0.2)),
    "autonomous-navigation": (lambda: prudent.domains.autonomous_navigation(), (0.2,)),
    "figure-2": (lambda: prudent.domains.figure_2(), (0.1,)),
}

SMALL = {
    "betting-game": (lambda: prudent.domains.betting_game(stages=4, cap=40), (0.2,)),
    "deep-sea-treasure": (lambda: prudent.domains.deep_sea_treasure(horizon=8), (0.2,)),
    "inventory-control": (lambda: prudent.domains.inventory_control(stages=3, capacity=6, demand=3), (0.02, 0.2)),
    "figure-2": (lambda: prudent.domains.figure_2(), (0.1,)),
}


def same(a, b, *, to=1e-10):
    """Whether numbers agree; unknown ones and infinite ones too."""
    return a == b or (np.isnan(a) and np.isnan(b)) or abs(a - b) <= to * max(abs(a), abs(b))


def check_equal(model, alpha, **options):
    cpu, found = prudent.solve(model, alpha, **options), prudent.solve(model, alpha, device="gpu", **options)
    assert (cpu.device, found.device, found.to_dict()["device"]) == ("cpu", "gpu", "gpu")
    assert same(found.cvar, cpu.cvar) and same(found.expected, cpu.expected) and same(found.var, cpu.var)
    assert found.status == cpu.status
    assert found.lower <= cpu.upper and cpu.lower <= found.upper  # both enclose the optimum
    assert same(found.lower, cpu.lower, to=1e-8) and same(found.upper, cpu.upper, to=1e-8)
    assert found.worst_case == cpu.worst_case
    own = prudent.evaluate(model, found.policy)
    if not np.isnan(found.cvar) and own.missing == 0 and not own.grouped:
        assert same(own.cvar(alpha), found.cvar, to=1e-9) and same(own.mean, found.expected, to=1e-9)
    return found


@pytest.mark.parametrize("number", [each for each in range(MODELS) if REAL or each != LONG])
def test_random_models_of_every_kind(opened, number):
    try:
        model = random_model(number)
        prudent.solve(model, 0.3)
    except prudent.PrudentError as error:
        assert "no policy reaches a goal" in str(error) or "has no goal" in str(error)
        pytest.skip("no goal can be reached")
    for alpha in (0.05, 0.5):
        check_equal(model, alpha)


@pytest.mark.parametrize("name", DOMAINS if REAL else SMALL)
def test_domains(opened, name):
    make, alphas = (DOMAINS if REAL else SMALL)[name]
    model = make()
    for alpha in alphas:
        check_equal(model, alpha)


def test_a_search(opened):
    def actions(place):
        x, y = place
        ways = {"n": (x, y + 1), "s": (x, y - 1), "e": (x + 1, y), "w": (x - 1, y)}
        return {way: [(0.8, to, 1), (0.2, place, 2)] for way, to in ways.items()} if place != (0, 0) else {}

    cpu, found = prudent.search((4, 3), actions, 0.1), prudent.search((4, 3), actions, 0.1, device="gpu")
    assert (cpu.device, found.device, len(opened)) == ("cpu", "gpu", 1)
    assert same(found.cvar, cpu.cvar) and same(found.expected, cpu.expected) and found.status == cpu.status
    likely = [prudent.solve(random_model(1), 0.1, goal="likeliest", device=name) for name in ("cpu", "gpu")]
    assert same(likely[0].cvar, likely[1].cvar) and likely[0].goal_probability == likely[1].goal_probability == 1


def test_two_runs_give_the_same_bits(opened):
    for number in (0, 1, 2, 3):
        model = random_model(number)
        one, two = (prudent.solve(model, 0.1, device="gpu") for _ in range(2))
        assert (one.cvar, one.expected, one.lower, one.upper) == (two.cvar, two.expected, two.lower, two.upper)
        assert (one.policy.choices.entry == two.policy.choices.entry).all()


def test_curve_chances_and_evaluate(opened):
    for number in (0, 1, 8, 9):
        model = random_model(number)
        cpu, found = prudent.curve(model), prudent.curve(model, device="gpu")
        assert found.to_dict()["device"] == "gpu"
        for alpha in (0.01, 0.1, 0.7):
            assert same(cpu.at(alpha).cvar, found.at(alpha).cvar) and same(cpu.at(alpha).var, found.at(alpha).var)
        budgets = [0, 1, 3, 8, 20]
        for worst in (False, True):
            cpu = prudent.chances(model, budgets, worst=worst)
            found = prudent.chances(model, budgets, worst=worst, device="gpu")
            assert found.to_dict()["device"] == "gpu"
            assert np.allclose(cpu.chance, found.chance, rtol=1e-10, atol=1e-14)
            assert (found.lower <= cpu.upper).all() and (cpu.lower <= found.upper).all()
        plan = prudent.solve(model, 0.1)
        one, two = prudent.evaluate(model, plan.policy), prudent.evaluate(model, plan.policy, device="gpu")
        assert same(one.mean, two.mean) and same(one.cvar(0.1), two.cvar(0.1))
        assert np.allclose(one.probabilities, two.probabilities, rtol=1e-9, atol=1e-15)


def test_a_study_is_solved_by_this_process(opened):
    cpu = prudent.study("betting-game", {"stages": [2, 3]}, [0.2], workers=1)
    found = prudent.study("betting-game", {"stages": [2, 3]}, [0.2], device="gpu")
    assert len(opened) == 3  # for what is refused at once, and for two solves
    assert [(row["device"], row["error"]) for row in found.rows] == [("gpu", None)] * 2
    assert all(same(one["cvar"], two["cvar"]) for one, two in zip(cpu.rows, found.rows, strict=True))


def test_cycles_at_no_cost_are_swept_on_the_cpu_and_the_plan_says_so(opened):
    table = {
        "s": {"go": [(0.5, "t", 0.0), (0.5, "g", 2.0)], "pay": [(1.0, "g", 3.0)]},
        "t": {"back": [(0.5, "s", 0.0), (0.5, "g", 1.0)]},
    }
    model = prudent.build("s", lambda state: table.get(state, {}))
    plan = check_equal(model, 0.3)
    assert any("the sweep ran on the CPU" in note for note in plan.notes)


def test_a_model_that_does_not_fit_is_refused_before_it_takes_memory(monkeypatch):
    for number, what in ((0, "the model"), (1, "the model")):
        monkeypatch.setattr(gpu, "open_gpu", lambda: StandIn(free=100))
        with pytest.raises(
            prudent.PrudentError, match=rf"{what} would take .* of the GPU's memory, but 0.1 kB are free"
        ):
            prudent.solve(random_model(number), 0.1, device="gpu")


def test_a_checkpoint_is_resumed(opened, tmp_path):
    for number in (0, 1, 2):
        model, file = random_model(number), tmp_path / f"place-{number}"
        whole = prudent.solve(model, 0.1, device="gpu")
        kept = prudent.solve(model, 0.1, device="gpu", checkpoint=file)
        assert (whole.cvar, whole.expected) == (kept.cvar, kept.expected)


def test_a_device_that_is_not_there_is_named_with_the_remedy(monkeypatch):
    with pytest.raises(prudent.PrudentError, match="device is 'tpu'; it must be 'cpu' or 'gpu'"):
        prudent.solve(random_model(0), 0.1, device="tpu")
    if not REAL:
        with pytest.raises(prudent.PrudentError, match=r"needs CuPy.*pip install 'prudent\[gpu\]'"):
            prudent.solve(random_model(0), 0.1, device="gpu")


def test_the_command(opened, tmp_path):
    from click.testing import CliRunner

    from prudent.apps.cli.main import main

    plan = str(tmp_path / "plan.safetensors")
    for verb in (
        ["solve", "figure-2", "--alpha", "0.1", "--save", plan],
        ["evaluate", "figure-2", plan],
        ["curve", "figure-2"],
        ["chances", "figure-2", "--budgets", "9"],
    ):
        found = CliRunner().invoke(main, [*verb, "--device", "gpu", "--json"])
        assert found.exit_code == 0, found.output
        assert json.loads(found.stdout)["device"] == "gpu"
