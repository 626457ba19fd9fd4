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
    assert plan.decisions().to_csv().splitlines()[0] == "state,at_least,at_most,action"


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
