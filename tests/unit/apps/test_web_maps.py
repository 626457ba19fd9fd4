"""Maps of the live page that need no browser."""

import prudent
from prudent.apps.web.maps import ROWS, policy_map
from prudent.apps.web.worker import Session


def test_a_table_says_how_many_states_it_leaves_out():
    """Goals are numbered first here: only states that act count."""
    goals, states = 10, ROWS + 100
    start = {f"goal {i}": 0.0 for i in range(goals)} | {i: 1 / states for i in range(states)}
    table = {i: {"go": [(1, f"goal {i % goals}", 1)]} for i in range(states)}
    model = prudent.build(start, table)
    assert model.is_goal[:goals].all()
    found = policy_map(Session(model, {}, 10**9), prudent.solve(model, 0.5), None, None)
    assert (found["kind"], len(found["rows"]), found["more"]) == ("table", ROWS, 100)


def _machine(state):
    week, wear = state
    worn = [(0.5, (week + 1, wear), wear), (0.5, (week + 1, min(wear + 1, 2)), 2 * wear)]
    return {"run": worn, "repair": [(1, (week + 1, 0), 3)]} if week < 3 else {}


def test_states_that_are_pairs_have_a_map_also_from_a_file(tmp_path):
    model = prudent.build((0, 0), _machine)
    prudent.save(model, tmp_path / "machine.json")
    for each in (model, prudent.load(tmp_path / "machine.json")):
        plan = prudent.solve(each, 0.3)
        found = policy_map(Session(each, {}, 10**9), plan, None, None)
        assert (found["kind"], found["actions"]) == ("pairs", ["run", "repair"])
        assert (found["columns"], found["rows"]) == ([0, 1, 2], [0, 1, 2])
        assert found["cells"][2][0] is None  # nothing is worn at the start
        assert found["budget"]["positions"][0] == 0  # the last week may have nothing left
        start = policy_map(Session(each, {}, 10**9), plan, plan.policy.budget, None)
        assert start["actions"][start["cells"][0][0]] == plan.policy((0, 0) if each is model else "(0, 0)")


def test_parts_of_pairs_may_be_words():
    table = {("a", "x"): {"go": [(1, ("b", "y"), 1)]}, ("b", "y"): {"go": [(1, "g", 1)], "stay": [(1, "g", 2)]}}
    model = prudent.build(("a", "x"), table)
    found = policy_map(Session(model, {}, 10**9), prudent.solve(model, 0.5), 2, None)
    assert (found["kind"], found["columns"], found["rows"]) == ("pairs", ["a", "b"], ["x", "y"])
    assert found["cells"] == [[0, None], [None, 0]]
