"""What belongs to what, against lists of lists; rows may be empty."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prudent.models.rows import Rows, by_state, offsets, owner, ranges, row_of, starts
from strategies import cases, solvable

SIZES = st.lists(st.integers(0, 4), min_size=1, max_size=8)


@given(SIZES)
def test_offsets_owners_and_starts_are_each_others_inverse(sizes):
    start, items = offsets(sizes), [row for row, size in enumerate(sizes) for _ in range(size)]
    assert start.tolist() == [sum(sizes[:row]) for row in range(len(sizes) + 1)]
    assert owner(start).tolist() == items
    assert [row_of(start, item) for item in range(len(items))] == items
    assert starts(np.array(items, dtype=np.int64), len(sizes)).tolist() == start.tolist()
    assert start.dtype == owner(start).dtype == np.int64


@given(SIZES, st.data())
def test_ranges_are_the_items_of_rows_in_any_order(sizes, data):
    start = offsets(sizes)
    rows = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=6))
    wanted = [item for row in rows for item in range(start[row], start[row + 1])]
    assert ranges(start, np.array(rows, dtype=np.int64)).tolist() == wanted


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), max_size=8))
def test_actions_in_the_order_of_their_states_keep_their_outcomes(actions):
    state, size = (np.array([action[i] for action in actions], dtype=np.int64) for i in (0, 1))
    action_start, outcome_start, action, outcome = by_state(state, size, 5)
    assert action.tolist() == sorted(range(len(actions)), key=state.tolist().__getitem__)
    assert owner(action_start).tolist() == sorted(state.tolist())
    assert owner(offsets(size))[outcome].tolist() == [a for a in action.tolist() for _ in range(size[a])]
    assert np.diff(outcome_start).tolist() == size[action].tolist()


def test_flags_are_counted_too():
    assert offsets(np.array([True, False, True])).tolist() == [0, 1, 1, 2]


@given(cases())
def test_the_rows_of_a_model_are_those_it_was_built_from(case):
    with solvable():
        model = case.model
    assert isinstance(model, Rows)
    actions = [(s, a) for s in range(model.n_states) for a in range(len(case.raw[model.state(s)]))]
    assert model.action_state.tolist() == [s for s, _ in actions]
    assert (model.n_states, model.n_actions) == (len(model.is_goal), len(actions))
    assert model.is_goal.tolist() == [not case.raw[model.state(s)] for s in range(model.n_states)]
    for o in range(model.n_outcomes):
        s, a = actions[model.outcome_action[o]]
        assert model.outcome_state[o] == s
        assert model.arc_start[s] <= o < model.arc_start[s + 1]
        known = {(model.index(t), c * case.step) for _, t, c in case.raw[model.state(s)][a]}
        assert (int(model.successor[o]), float(model.cost[o])) in known
