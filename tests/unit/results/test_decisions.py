import csv
import io
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

import prudent
from strategies import cases, examples, noisy_table, solved


def test_ranges_of_cost_so_far():
    table = {
        "s": {"slow": [(0.5, "t", 0), (0.5, "t", 6)]},
        "t": {"bold": [(0.9, "g", 1), (0.1, "g", 9)], "safe": [(1, "g", 4)]},
    }
    plan = prudent.solve(prudent.build("s", lambda s: table.get(s, {})), 0.05)
    assert str(plan.decisions()).splitlines() == [
        "state  spent  action",
        "s      0      slow",
        "t      0      bold",
        "t      6      safe",
    ]
    assert plan.decisions().to_csv().splitlines()[0] == '"state","at_least","at_most","action"'


def test_parts_of_states_in_columns_of_their_own():
    plan = prudent.solve(prudent.domains.betting_game(stages=2), 0.2)
    rows = list(csv.DictReader(io.StringIO(plan.decisions().to_csv(names=("stage", "money")))))
    assert [(int(row["stage"]), int(row["money"])) for row in rows] == [row.state for row in plan.decisions().rows]
    assert list(rows[0]) == ["stage", "money", "at_least", "at_most", "action"]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("ab", "a sequence of texts"),
        (5, "a sequence of texts"),
        ({"stage", "money"}, "a sequence of texts"),
        (("stage",), "no tuple of as many parts"),
        (("stage", "action"), "'action' would name two columns"),
    ],
)
def test_names_that_do_not_fit_are_refused_and_nothing_is_written(names, told, tmp_path):
    decisions = prudent.solve(prudent.domains.betting_game(stages=2), 0.2).decisions()
    with pytest.raises(prudent.PrudentError, match=told):
        decisions.to_csv(tmp_path / "plan.csv", names=names)
    with pytest.raises(prudent.PrudentError, match="no tuple"):
        prudent.solve(prudent.domains.figure_2(), 0.1).decisions().to_csv(names=("a", "b"))
    assert list(tmp_path.iterdir()) == []


def test_an_open_end():
    table = {"s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "pay": [(1, "g", 9)]}}
    plan = prudent.solve(prudent.build("s", lambda s: table.get(s, {})), 0.4)
    rows = plan.decisions().rows
    assert rows[-1].at_most == np.inf
    assert "or more" in str(plan.decisions())
    parsed = list(csv.DictReader(io.StringIO(plan.decisions().to_csv())))
    assert parsed[-1]["at_most"] == ""
    assert len(parsed) == len(plan.decisions())


@settings(max_examples=examples(60))
@given(cases(negative=False))
def test_the_table_is_the_policy(case):
    """Playing by the table alone gives the plan's distribution."""
    plan = solved(case, 0.3)
    rules = {}
    for row in plan.decisions().rows:
        rules.setdefault(row.state, []).append(row)

    def by_table(state, spent):
        (row,) = [r for r in rules[state] if r.at_least - 1e-9 <= spent <= r.at_most + 1e-9]
        return row.action

    one = prudent.evaluate(plan.model, plan.policy, tolerance=1e-9)
    other = prudent.evaluate(plan.model, by_table, tolerance=1e-9)
    assert one.mean == pytest.approx(other.mean, abs=1e-5)
    shared = min(len(one.values), len(other.values))
    assert one.probabilities[:shared] == pytest.approx(other.probabilities[:shared], abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("step", [None, 0.13])
def test_on_rounded_costs_rows_leave_no_gap_and_say_what_the_policy_says(seed, step):
    model = prudent.build(0, noisy_table(np.random.default_rng(seed)))
    plan = prudent.solve(model, 0.2, step=step)
    table = plan.decisions()
    for state in {row.state for row in table.rows}:
        rows = table.of(state)
        for row, after in pairwise(rows):
            assert row.at_most == after.at_least
        for row in rows:
            end = row.at_least + 1.0 if np.isinf(row.at_most) else row.at_most
            for share in (0.01, 0.5, 0.99):
                assert plan.policy(state, row.at_least + share * (end - row.at_least)) == row.action


@settings(max_examples=examples(60))
@given(cases())
def test_bands_say_what_the_policy_says_at_every_cost(case):
    plan = solved(case, 0.3)
    step = plan.policy.prepared.scale.level_size
    for state in {row.state for row in plan.decisions().rows}:
        bands = plan.bands(state)
        assert bands[-1].at_most == np.inf
        for band, after in pairwise(bands):
            assert after.at_least == pytest.approx(band.at_most + step)
            assert after.action != band.action
        for band in bands:
            for spent in (band.at_least, band.at_least + step if np.isinf(band.at_most) else band.at_most):
                assert plan.policy(state, spent) == band.action
        for row in plan.decisions().of(state):  # what is met is part of it
            assert any(b.at_least - 1e-9 <= row.at_least <= b.at_most + 1e-9 and b.action == row.action for b in bands)


def test_bands_are_refused_where_there_is_nothing_to_play():
    plan = prudent.solve(prudent.domains.figure_2(), 0.1)
    with pytest.raises(prudent.PrudentError, match="'g' is a goal"):
        plan.bands("g")
    with pytest.raises(prudent.PrudentError, match="not a state"):
        plan.bands("nowhere")
    memory = prudent.solve(prudent.domains.figure_2(), 0.1, method="cvar-ev")
    with pytest.raises(prudent.PrudentError, match="use method='exact'"):
        memory.bands("s1")


def test_bands_without_a_budget_and_with_rounded_costs():
    plan = prudent.solve(prudent.domains.figure_2(), 0.1, method="expected")
    assert [(b.at_least, b.at_most, b.action) for b in plan.bands("s1")] == [(0, np.inf, "c")]
    rounded = prudent.solve(prudent.build(0, noisy_table(np.random.default_rng(3))), 0.2, step=0.13)
    for state in {row.state for row in rounded.decisions().rows}:
        for band, after in pairwise(rounded.bands(state)):
            assert band.at_most == after.at_least
