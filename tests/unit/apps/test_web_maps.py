"""Maps of the live page that need no browser."""

import prudent
from prudent.apps.web.maps import ROWS, policy_map
from prudent.apps.web.sessions import Session


def test_a_table_says_how_many_states_it_leaves_out():
    """Goals are numbered first here: only states that act count."""
    goals, states = 10, ROWS + 100
    start = {f"goal {i}": 0.0 for i in range(goals)} | {i: 1 / states for i in range(states)}
    table = {i: {"go": [(1, f"goal {i % goals}", 1)]} for i in range(states)}
    model = prudent.build(start, table)
    assert model.is_goal[:goals].all()
    found = policy_map(Session(model, {}, 10**9), prudent.solve(model, 0.5), None, None)
    assert (found["kind"], len(found["rows"]), found["more"]) == ("table", ROWS, 100)
