import json
import subprocess
import sys

import numpy as np
import pytest

import prudent


@pytest.fixture
def plan():
    return prudent.solve(prudent.domains.figure_2(), 0.1)


def test_round_trip(tmp_path, plan):
    path = tmp_path / "plan.safetensors"
    prudent.save(plan, path)
    again = prudent.load_plan(path, prudent.domains.figure_2())
    assert again.to_dict() == plan.to_dict()
    assert np.array_equal(again.policy.choice, plan.policy.choice)
    assert again.explain("s1") == plan.explain("s1")
    prudent.save(again, tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_infinite_numbers_survive(tmp_path):
    model = prudent.build("s", lambda s: {"try": [(0.5, "s", 1), (0.5, "g", 1)]} if s == "s" else {})
    plan = prudent.solve(model, 0.5)
    prudent.save(plan, tmp_path / "p.safetensors")
    assert prudent.load_plan(tmp_path / "p.safetensors", model).worst_case == float("inf")


@pytest.mark.parametrize(
    ("costs", "step"), [((2, 6), 1), ((1 / 3, 1.0), None), ((0.1, 0.7), None), ((2**0.5, 1), 0.25)]
)
def test_the_step_that_was_planned_on_is_kept(tmp_path, costs, step):
    model = prudent.build("s", {"s": {"a": [(0.5, "g", costs[0]), (0.5, "g", costs[1])]}})
    plan = prudent.solve(model, 0.5, step=step)
    prudent.save(plan, tmp_path / "p.safetensors")
    again = prudent.load_plan(tmp_path / "p.safetensors", model)
    assert again.to_dict() == plan.to_dict()
    assert again.policy.budget == plan.policy.budget


PROGRAM = """
import json, sys, prudent
model = getattr(prudent.domains, sys.argv[1])()
plan = prudent.load_plan(sys.argv[2], model)
result = prudent.evaluate(model, plan.policy)
actions = plan.policy.model_actions.tolist()
print(json.dumps([actions, result.values.tolist(), result.probabilities.tolist(), plan.cvar]))
"""


@pytest.mark.parametrize("name", ["betting_game", "deep_sea_treasure"])
def test_a_new_process_acts_the_same(tmp_path, name):
    plan = prudent.solve(getattr(prudent.domains, name)(), 0.2)
    path = tmp_path / "plan.safetensors"
    prudent.save(plan, path)
    done = subprocess.run([sys.executable, "-c", PROGRAM, name, path], check=True, capture_output=True, text=True)
    actions, values, probabilities, cvar = json.loads(done.stdout)
    assert actions == plan.policy.model_actions.tolist()
    result = prudent.evaluate(plan.model, plan.policy)
    assert values == result.values.tolist()
    assert probabilities == result.probabilities.tolist()
    assert cvar == plan.cvar


def test_one_flipped_byte_anywhere_is_refused(tmp_path, plan):
    path = tmp_path / "plan.safetensors"
    prudent.save(plan, path)
    whole = path.read_bytes()
    for position in range(len(whole)):
        for flip in (0x01, 0x20, 0x80):
            damaged = bytearray(whole)
            damaged[position] ^= flip
            path.write_bytes(damaged)
            with pytest.raises(prudent.PrudentError, match=r"plan.safetensors: (is damaged|was made for another)"):
                prudent.load_plan(path, plan.model)


def test_cut_extended_and_foreign_files_are_refused(tmp_path, plan):
    path = tmp_path / "plan.safetensors"
    prudent.save(plan, path)
    whole = path.read_bytes()
    for content in (b"", whole[:7], whole[:100], whole[:-1], whole + b"\0", b"{}", b"\xff" * 64, whole[8:]):
        path.write_bytes(content)
        with pytest.raises(prudent.PrudentError, match="is damaged or is not a plan"):
            prudent.load_plan(path, plan.model)


def test_another_model_is_refused(tmp_path, plan):
    prudent.save(plan, tmp_path / "p.safetensors")
    with pytest.raises(prudent.PrudentError, match="was made for another model, figure-2"):
        prudent.load_plan(tmp_path / "p.safetensors", prudent.domains.betting_game())


def test_paths(tmp_path, plan):
    with pytest.raises(prudent.PrudentError, match=r"plans are read and written as .safetensors"):
        prudent.save(plan, tmp_path / "plan.json")
    with pytest.raises(prudent.PrudentError, match="there is no folder"):
        prudent.save(plan, tmp_path / "none" / "plan.safetensors")
    with pytest.raises(prudent.PrudentError, match="no such file"):
        prudent.load_plan(tmp_path / "none.safetensors", plan.model)
    with pytest.raises(prudent.PrudentError, match="cannot save a dict"):
        prudent.save({}, tmp_path / "x.json")
    with pytest.raises(prudent.PrudentError, match="load_plan takes the path, then the model"):
        prudent.load_plan(tmp_path / "none.safetensors", "figure-2")
    assert list(tmp_path.iterdir()) == []
