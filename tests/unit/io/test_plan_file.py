import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import prudent
from plans import in_ranges, same_policy
from prudent.io import plan as plan_file
from prudent.io.sealed import seal, unseal
from prudent.methods.registry import METHODS


@pytest.fixture
def plan():
    return prudent.solve(prudent.domains.figure_2(), 0.1)


def test_round_trip(tmp_path, plan):
    path = tmp_path / "plan.safetensors"
    prudent.save(plan, path)
    again = prudent.load_plan(path, prudent.domains.figure_2())
    assert again.to_dict() == plan.to_dict()
    assert same_policy(again.policy, plan.policy)
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
    with pytest.raises(prudent.PrudentError, match=r"plans are read and written as .safetensors$"):
        prudent.save(plan, tmp_path / "plan.txt")
    for name in ("plan.json", "plan.umb", "plan.DRN"):
        with pytest.raises(prudent.PrudentError, match=r"as .safetensors; a plan's .*: prudent.save\(plan.chain\(\), "):
            prudent.save(plan, tmp_path / name)
    with pytest.raises(prudent.PrudentError, match="there is no folder"):
        prudent.save(plan, tmp_path / "none" / "plan.safetensors")
    with pytest.raises(prudent.PrudentError, match="no such file"):
        prudent.load_plan(tmp_path / "none.safetensors", plan.model)
    with pytest.raises(prudent.PrudentError, match="content is a dict"):
        prudent.save({}, tmp_path / "x.json")
    with pytest.raises(prudent.PrudentError, match="load_plan takes the path, then the model"):
        prudent.load_plan(tmp_path / "none.safetensors", "figure-2")
    assert list(tmp_path.iterdir()) == []


def test_the_methods_whose_plans_are_read_are_those_there_are(tmp_path, plan, monkeypatch):
    path = forged(tmp_path, plan, field("method", "new"))
    with pytest.raises(prudent.PrudentError, match="method is 'new'; it must be one of exact"):
        prudent.load_plan(path, plan.model)
    monkeypatch.setitem(METHODS, "new", METHODS["exact"])
    assert prudent.load_plan(path, plan.model).method == "new"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["figure_2", "betting_game", "slow"])
def test_every_method_makes_plans_that_are_read_again(tmp_path, name, method):
    model = SLOW if name == "slow" else getattr(prudent.domains, name)()
    plan = prudent.solve(model, 0.3, method=method)
    prudent.save(plan, tmp_path / "p.safetensors")
    again = prudent.load_plan(tmp_path / "p.safetensors", model)
    assert same_policy(again.policy, plan.policy)
    assert again.to_dict() | {"cvar": 0} == plan.to_dict() | {"cvar": 0}


# A way out that may take long, a wait without end, and two starts.
SLOW = prudent.build(
    {"s": 0.5, "t": 0.5},
    {
        "s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "walk": [(1, "t", 1)], "wait": [(1, "s", 1)]},
        "t": {"go": [(0.9, "g", 1), (0.1, "s", 5)], "back": [(1, "s", 0)]},
    },
)


def forged(tmp_path, plan, change):
    """Return the path of a plan's file whose content and tensors were changed and whose digest is right."""
    path = tmp_path / "forged.safetensors"
    prudent.save(plan, path)
    content, tensors = unseal(plan_file.FORMAT, path.read_bytes())
    tensors = {name: table.copy() for name, table in tensors.items()}
    change(content, tensors)
    path.write_bytes(seal(plan_file.FORMAT, content, tensors))
    return path


def field(name, value):
    return lambda content, tensors: content.update({name: value})


def tensor(name, value):
    def change(content, tensors):
        tensors[name] = value(tensors[name]) if callable(value) else np.array(value)

    return change


def nested(depth=900):
    value = []
    for _ in range(depth):
        value = [value]
    return value


CONTRADICTIONS = [
    ({"lower": 9.0, "upper": 8.0}, "lower is 9.0, which is above upper, 8.0"),
    ({"lower": 1e300, "cvar": "inf"}, "lower is 1e+300, which is above upper"),
    ({"upper": -1e300}, "which is above upper, -1e+300"),
    ({"cvar": 0.0}, "which is above cvar, 0.0"),
    ({"cvar": 1000.0}, "cvar is 1000.0, which is above upper"),
    ({"cvar": "inf"}, "cvar is inf, which is above upper"),
    ({"cvar": "-inf"}, "which is above cvar, -inf"),
    ({"expected": -1.0}, "which is above expected, -1.0"),
    ({"expected_lower": 1e9}, "expected_lower is 1000000000.0, which is above expected"),
    ({"objective": ["var", 5.0, 6.0, 4.0, None]}, "its lower bound is 6.0, which is above its upper bound, 4.0"),
    ({"objective": ["var", 3.0, 4.0, 6.0, None]}, "its lower bound is 4.0, which is above its value, 3.0"),
]
FORGED = [
    (field("version", 2), "is of version 2; this release reads version 1"),
    (field("version", True), "is of version true"),
    (field("version", nested(500)), "is of version a list"),
    (lambda content, _: content.pop("version"), "is of version null"),
    (lambda content, _: content.pop("method"), "the field 'method' is missing or unknown"),
    (field("more", 1), "the field 'more' is missing or unknown"),
    (field("prudent", 1), "prudent is 1; it must be a string"),
    (field("model", None), "model is null; it must be a string"),
    (field("fingerprint", []), "fingerprint is a list; it must be a string"),
    (field("fingerprint", "0"), "was made for another model, model, not for"),
    (field("prepared", "0"), "prepares models differently"),
    (field("method", "magic"), "method is 'magic'; it must be one of exact"),
    (field("status", "fine"), "status is 'fine'; it must be one of optimal"),
    (field("status", {}), "status is an object; it must be a string"),
    (field("notes", "text"), "notes must be a list of printable strings"),
    (field("notes", [1]), "notes must be a list of printable strings"),
    (field("notes", ["\ud800"]), "notes must be a list of printable strings"),
    (field("notes", ["\x1b[2J"]), "notes must be a list of printable strings"),
    (field("alpha", 0), "alpha must be above 0"),
    (field("alpha", 1.5), "alpha must be above 0"),
    (field("alpha", True), "alpha is true; it must be a finite number"),
    (field("alpha", "nan"), 'alpha is "nan"; it must be a finite number'),
    (field("alpha", nested(500)), "alpha is a list; it must be a finite number"),
    (field("step", 0), "step above 0"),
    (field("step", "inf"), 'step is "inf"; it must be a finite number'),
    (field("step", 1e-12), "prepares models differently"),
    (field("step", 5e-324), "it is outside the range of floats"),
    (field("step", 0.5), "prepares models differently"),
    (field("seconds", -1), "seconds at least 0"),
    (field("cvar", 10**400), "cvar is too large"),
    (field("cvar", "7"), 'cvar is "7"; it must be a finite number or "'),
    (field("cvar", "infinity"), 'cvar is "infinity"; it must be a finite number or "'),
    (field("cvar", None), "cvar is null"),
    (field("lower", "nan"), 'lower is "nan"'),
    (field("upper", "-inf"), 'upper is "-inf"'),
    (field("cvar", float("nan")), "is damaged or is not a plan"),
    *(
        (field("objective", objective), "objective is not valid")
        for objective in (
            "var",
            [],
            ["var", 1.0, 1.0, 1.0],
            ["var", 1.0, 1.0, 1.0, None, None],
            ["magic", 1.0, 1.0, 1.0, 1.0],
            ["var", 1.0, 1.0, 1.0, 2.0],
            ["exceedance", 1.0, 1.0, 1.0, None],
            ["worst-case", 1, 1.0, 1.0, None],
            ["mean-plus-cvar", 1.0, "1", 1.0, 2.0],
            ["var", None, 1.0, 1.0, None],
            ["var", 1.0, None, 1.0, None],
        )
    ),
    *((lambda content, _, wrong=wrong: content.update(wrong), message) for wrong, message in CONTRADICTIONS),
    (lambda _, tensors: tensors.pop("choice"), "they must be choice"),
    (tensor("other", [1]), "its tensors are choice, other"),
    (tensor("node_state", [1]), "its tensors are choice, node_state; they must be choice, node_state, node_memory"),
    (tensor("choice", lambda t: t.astype(float)), "tensor choice has 2 dimensions of float64"),
    (tensor("choice", lambda t: t > 0), "tensor choice has 2 dimensions of bool"),
    (tensor("choice", lambda t: t[0]), "tensor choice has 1 dimensions"),
    (tensor("choice", lambda t: t[None]), "tensor choice has 3 dimensions"),
    (tensor("choice", lambda t: t[:0]), "tensor choice has shape (0, "),
    (tensor("choice", lambda t: t[:, 1:]), "tensor choice has shape"),
    (tensor("choice", lambda t: np.hstack([t, t])), "tensor choice has shape"),
    (tensor("choice", lambda t: t + 3), "tensor choice has an action that prepared state"),
    (tensor("choice", lambda t: t.astype(np.int32) - 1), "tensor choice has an action that prepared state"),
    (tensor("choice", lambda t: t.astype(np.uint64) + 2**63), "tensor choice has an action that prepared state"),
    (tensor("choice", lambda t: np.where(np.arange(t.shape[1]) == 0, 2, t)), "its policy may never reach a goal"),
]


@pytest.mark.parametrize(("change", "message"), FORGED)
def test_a_forged_plan_is_refused(tmp_path, change, message):
    path = forged(tmp_path, prudent.solve(SLOW, 0.5), change)
    with pytest.raises(prudent.PrudentError) as caught:
        prudent.load_plan(path, SLOW)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


def nudged(i, by):
    def change(table):
        table = table.astype(np.int64)
        table[i] += by
        return table

    return change


FORGED_NODES = [
    (tensor("choice", lambda t: t + 7), "tensor choice has an action"),
    (tensor("node_state", nudged(0, 1000)), "node_state has entries from"),
    (tensor("node_state", nudged(0, -1000)), "node_state has entries from"),
    (tensor("node_state", nudged(1, 1)), "node_"),
    (tensor("node_state", lambda t: t[:0]), "node_memory is not above 0 and at most 1 for each of one or more"),
    (tensor("node_state", lambda t: t.astype(float)), "tensor node_state has 1 dimensions of float64"),
    (tensor("node_memory", lambda t: t * 0), "node_memory is not above 0"),
    (tensor("node_memory", lambda t: t + 1), "node_memory is not above 0"),
    (tensor("node_memory", lambda t: t * np.nan), "node_memory is not above 0"),
    (tensor("node_memory", lambda t: t[1:]), "node_memory is not above 0"),
    (tensor("node_acts", lambda t: t + 1), "node_acts has entries from"),
    (tensor("node_acts", lambda t: t * 0), "node_acts is not 1 exactly where"),
    (tensor("node_acts", lambda t: t[1:]), "node_acts has"),
    (tensor("node_action", nudged(0, 2**40)), "node_action has entries from"),
    (tensor("node_action", lambda t: t * 0 - 1), "node_action has an action that its node's state has not"),
    (tensor("node_action", lambda t: t * 0), "node_action has an action that its node's state has not"),
    (tensor("node_action", lambda t: t[1:]), "node_action has"),
    (tensor("node_successor", nudged(0, 2**40)), "node_successor has entries from"),
    (tensor("node_successor", nudged(0, -(2**40))), "node_successor has entries from"),
    (tensor("node_successor", lambda t: t[::-1]), "node_successor leads to another state"),
    (tensor("node_successor", lambda t: np.append(t, 0)), "node_successor has"),
    (tensor("start", [-1]), "start has entries from -1"),
    (tensor("start", [10**6]), "start has entries from"),
    (tensor("start", [0, 0]), "start has 2 entries, not 1"),
    (tensor("start", []), "tensor start has 1 dimensions of float64"),
    (tensor("start", [0]), "start is node 0, which is not at the start"),
]


@pytest.mark.parametrize(("change", "message"), FORGED_NODES)
def test_a_forged_plan_that_remembers_more_is_refused(tmp_path, change, message):
    path = forged(tmp_path, prudent.solve(SLOW, 0.5, method="cvar-ev"), change)
    with pytest.raises(prudent.PrudentError) as caught:
        prudent.load_plan(path, SLOW)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


def by_ranges(plan):
    """Return the plan with a table of a few budgets in two states, and of none in the others."""
    level = plan.policy.level
    return replace(plan, policy=in_ranges(plan.policy, {0: (level - 1, level), 1: (1, 2)}))


def test_a_table_by_rows_is_one_tensor_any_other_its_parts(tmp_path, plan):
    for each, names in ((plan, {""}), (by_ranges(plan), {"_entry", "_low", "_high", "_without", "_level"})):
        prudent.save(each, tmp_path / "p.safetensors")
        tensors = unseal(plan_file.FORMAT, (tmp_path / "p.safetensors").read_bytes())[1]
        assert set(tensors) == {f"choice{name}" for name in names}
        assert same_policy(prudent.load_plan(tmp_path / "p.safetensors", plan.model).policy, each.policy)


FORGED_RANGES = [
    (lambda _, tensors: tensors.pop("choice_low"), "they must be choice_entry, choice_low"),
    (tensor("choice", [[0]]), "its tensors are choice, choice_entry"),
    (tensor("choice_low", nudged(0, -1)), "choice_entry and choice_without have not one entry for each"),
    (tensor("choice_low", nudged(0, -(2**40))), "choice_low has entries from -1099"),
    (tensor("choice_low", nudged(0, 2**40)), "choice_low has entries from"),
    (tensor("choice_low", lambda t: t.astype(np.uint64) + 2**63), "choice_low has entries from"),
    (tensor("choice_low", lambda t: t[1:]), "choice_low has 3 entries, not 4"),
    (tensor("choice_low", lambda t: t.astype(float)), "tensor choice_low has 1 dimensions of float64"),
    (tensor("choice_high", nudged(0, 1)), "choice_high has entries from 0 to"),
    (tensor("choice_high", lambda t: t[::-1]), "choice_"),
    (tensor("choice_entry", lambda t: t[1:]), "choice_entry and choice_without have not one entry for each"),
    (tensor("choice_entry", lambda t: np.append(t, 0)), "choice_entry and choice_without have not one entry for each"),
    (tensor("choice_entry", nudged(0, 3)), "tensor choice has an action that prepared state 0 has not"),
    (tensor("choice_entry", nudged(3, -9)), "tensor choice has an action that prepared state 1 has not"),
    (tensor("choice_entry", lambda t: t.reshape(1, -1)), "tensor choice_entry has 2 dimensions"),
    (tensor("choice_without", lambda t: t[1:]), "choice_entry and choice_without have not one entry for each"),
    (tensor("choice_without", nudged(2, 7)), "tensor choice has an action that prepared state 2 has not"),
    (tensor("choice_without", lambda t: np.where(np.arange(len(t)) == 0, 2, t)), "its policy may never reach a goal"),
    (tensor("choice_level", [-1]), "choice_level has entries from -1"),
    (tensor("choice_level", [2**28]), "choice_level has entries from 268435456"),
    (tensor("choice_level", [0]), "choice_low has entries from"),
    (tensor("choice_level", [5, 5]), "choice_level has 2 entries, not 1"),
]


@pytest.mark.parametrize(("change", "message"), FORGED_RANGES)
def test_a_forged_plan_with_ranges_of_budgets_is_refused(tmp_path, change, message):
    path = forged(tmp_path, by_ranges(prudent.solve(SLOW, 0.01)), change)
    with pytest.raises(prudent.PrudentError) as caught:
        prudent.load_plan(path, SLOW)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_odd_types_of_tensors_are_refused(tmp_path, plan):
    path = tmp_path / "odd.safetensors"
    for kind, size in (("BF16", 2), ("F8_E4M3", 1), ("F8_E5M2", 1), ("BOOL", 1), ("F4", 1), ("C64", 8), ("X", 1)):
        header = {"choice": {"dtype": kind, "shape": [1, 4], "data_offsets": [0, 4 * size]}}
        header["__metadata__"] = {plan_file.FORMAT: "{}"}
        raw = json.dumps(header).encode()
        path.write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(4 * size))
        with pytest.raises(prudent.PrudentError, match="is damaged or is not a plan"):
            prudent.load_plan(path, plan.model)


@pytest.mark.parametrize(
    "plan_text", ["", "{", "[]", '"x"', "7", "null", "[" * 5000, "9" * 5000, '{"digest": 1}', "NaN"]
)
def test_odd_metadata_is_refused(tmp_path, plan, plan_text):
    raw = json.dumps({"__metadata__": {plan_file.FORMAT: plan_text}}).encode()
    path = tmp_path / "odd.safetensors"
    path.write_bytes(len(raw).to_bytes(8, "little") + raw)
    with pytest.raises(prudent.PrudentError, match="is damaged or is not a plan"):
        prudent.load_plan(path, plan.model)


def test_memory_is_in_proportion_to_the_file(tmp_path, plan):
    model = plan.model
    tall = forged(tmp_path, plan, tensor("choice", lambda t: np.repeat(t, 20_000, axis=0)))
    cases = {"tall": tall.read_bytes()}
    long = in_ranges(replace(plan.policy, level=10**5), {0: (1, 10**5)})
    prudent.save(replace(plan, policy=long), tmp_path / "long.safetensors")
    cases["long"] = (tmp_path / "long.safetensors").read_bytes()
    refused = {"lists": "is damaged", "deep": "is damaged", "no notes": "notes must be a list of printable strings"}
    for name, text in (("lists", "[" + ",".join(["[]"] * 20_000) + "]"), ("deep", "[" + "[" * 800 + "]" * 801)):
        raw = json.dumps({"__metadata__": {plan_file.FORMAT: text}}).encode()
        cases[name] = len(raw).to_bytes(8, "little") + raw
    for name, change in (("notes", field("notes", [""] * 20_000)), ("no notes", field("notes", [[]] * 20_000))):
        cases[name] = forged(tmp_path, plan, change).read_bytes()
    for name, raw in cases.items():
        path = tmp_path / "greedy.safetensors"
        path.write_bytes(raw)
        tracemalloc.start()
        try:
            if name in refused:
                with pytest.raises(prudent.PrudentError, match=f"greedy.safetensors: {refused[name]}"):
                    prudent.load_plan(path, model)
            else:
                assert prudent.load_plan(path, model).cvar == plan.cvar
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak <= 64 * len(raw) + 2**20, name


def test_a_step_too_small_to_divide_by(tmp_path):
    model = prudent.build("s", {"s": {"a": [(1, "g", 0)]}})
    path = forged(tmp_path, prudent.solve(model, 0.5), field("step", 5e-324))
    with pytest.raises(prudent.PrudentError, match="it is outside the range of floats"):
        prudent.load_plan(path, model)


def test_a_plan_for_a_set_of_models_keeps_it(tmp_path):
    model = prudent.domains.figure_2()
    p = model.probability
    plan = prudent.solve(model, 0.1, uncertainty=prudent.Intervals(p - 0.1 * p * (1 - p), p + 0.1 * p * (1 - p)))
    path = tmp_path / "plan.safetensors"
    prudent.save(plan, path)
    again = prudent.load_plan(path, model)
    assert again.to_dict() == plan.to_dict()
    assert again.nominal == plan.nominal
    assert np.array_equal(again.intervals.low, plan.intervals.low)
    content, tensors = unseal(plan_file.FORMAT, path.read_bytes())
    for name, change, message in (
        ("low", None, "the bounds of its set of models, is missing"),
        ("low", np.full(8, 2.0), "both must lie between 0 and 1, with low <= high"),
        ("high", np.ones(3), "low has 8 entries, high has 3"),
    ):
        forged = {key: value for key, value in tensors.items() if key != name}
        forged |= {} if change is None else {name: change}
        path.write_bytes(seal(plan_file.FORMAT, content, forged))
        with pytest.raises(prudent.PrudentError, match=message):
            prudent.load_plan(path, model)
