import csv
import io
import random
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

import prudent
from prudent.apps.web.tasks import played
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
        assert (rows[0].at_least, rows[-1].at_most) == (-np.inf, np.inf)
        least = model_least(plan, state)
        for row in (replace(rows[0], at_least=min(least, rows[0].at_most)), *rows[1:]):
            end = row.at_least + 1.0 if np.isinf(row.at_most) else row.at_most
            for share in (0.01, 0.5, 0.99):
                spent = row.at_least + share * (end - row.at_least)
                assert table(state, spent) == row.action
                if spent >= least:
                    assert plan.policy(state, spent) == row.action


def model_least(plan, state):
    """Return the lowest cost of any path to a state, rounded to the levels above it."""
    prepared = plan.policy.prepared
    index = plan.model.index(state)
    return prepared.scale.total(int(prepared.least_spent[prepared.members.state_of[index]]), index)


def layered(seed, depth=6, digits=3):
    """Return a random model without cycles and with long costs: 2 actions of 2 outcomes in each state."""
    rng = np.random.default_rng(seed)
    table = {}
    for layer in range(depth):
        for place in range(2):
            rows = {}
            for action in ("bold", "safe"):
                p = float(rng.choice([0.1, 0.3, 0.5]))
                costs = rng.gamma(1.0 if action == "bold" else 9.0, 10.0 if action == "bold" else 1.0, 2).round(digits)
                to = [(layer + 1, int(rng.integers(2))) if layer + 1 < depth else "end" for _ in range(2)]
                rows[action] = [(p, to[0], float(3 * costs[0])), (1 - p, to[1], float(costs[1]))]
            table[layer, place] = rows
    return prudent.build((0, 0), table.get, goals=["end"], name="layered"), table


def followed(table, policy):
    """Return the exact distribution of a policy of the true cost so far, history by history; ask it at every cost."""
    ended, ahead = {}, {((0, 0), Fraction(0)): Fraction(1)}
    while ahead:
        (state, spent), mass = ahead.popitem()
        for p, to, cost in table[state][policy(state, float(spent))]:
            after = spent + Fraction(str(cost))
            place = ended if to == "end" else ahead
            key = after if to == "end" else (to, after)
            place[key] = place.get(key, Fraction(0)) + mass * Fraction(p)
    return ended


def tail(ended, alpha):
    return min(w + sum(p * max(c - w, 0) for c, p in ended.items()) / Fraction(alpha) for w in ended)


@pytest.mark.parametrize("seed", range(12))
def test_on_rounded_costs_the_table_is_a_policy_and_its_numbers_stand_beside_the_plans(seed):
    model, listed = layered(seed)
    plan = prudent.solve(model, 0.125, step=5.0)
    table = plan.decisions()

    def by_rows(state, spent):
        (row,) = [row for row in table.of(state) if row.at_least < spent <= row.at_most]
        assert table(state, spent) == plan.policy(state, spent) == row.action
        return row.action

    ended = followed(listed, by_rows)  # each look-up finds exactly one row
    mean, cvar = float(sum(c * p for c, p in ended.items())), float(tail(ended, 0.125))
    found = prudent.evaluate(model, table)
    assert not found.grouped
    assert (found.mean, found.cvar(0.125)) == (pytest.approx(mean), pytest.approx(cvar))
    assert cvar <= plan.upper + 1e-9
    if all(row.at_most == np.inf for row in table.rows):  # then the state alone decides
        assert table.notes == () and mean == pytest.approx(plan.expected)
        return
    first, both = table.notes
    assert "is another policy than the plan" in first and "multiples of 5" in first
    agent, own = both.split("; ")
    assert agent.startswith(f"the plan by its agent: expected cost {plan.shown()['expected']}, CVaR at least ")
    assert own == f"this table: expected cost {prudent_number(mean)}, CVaR {prudent_number(cvar)}"
    assert both in str(table) and both in table.table().notes and table.to_dict()["decisions_notes"] == [first, both]


def prudent_number(value):
    return f"{value:,.6f}".rstrip("0").rstrip(".")


def test_the_table_and_the_agent_do_differ():
    far = []
    for seed in (1, 3, 6, 10, 11):
        model, _ = layered(seed)
        plan = prudent.solve(model, 0.125, step=5.0)
        far.append(abs(prudent.evaluate(model, plan.decisions()).mean - plan.expected) > 0.1)
        exact = prudent.solve(model, 0.125, gap=0)
        assert exact.decisions().notes == () and "decisions_notes" not in exact.decisions().to_dict()
    assert all(far)


def test_a_run_of_the_page_is_one_of_the_plans_agent():
    looked_up = 0
    for layout in (1, 3, 10, 11):
        model, _ = layered(layout)
        plan = prudent.solve(model, 0.125, step=5.0)
        table, names = plan.decisions(), {str(model.state(s)): model.state(s) for s in range(model.n_states)}
        for seed in range(15):
            agent = plan.policy.start()
            for step in played(plan, seed)["steps"]:
                assert step["action"] == agent.action
                looked_up += table(agent.state, agent.spent) != agent.action
                (happened,) = [outcome for outcome in step["outcomes"] if outcome["happened"]]
                agent.observe(names[happened["to"]], happened["cost"])
    assert looked_up > 0  # the table's runs are others


def test_a_plan_that_ignores_the_cost_so_far_is_its_table():
    model, _ = layered(0)
    plan = prudent.solve(model, 0.125, method="expected", step=5.0)
    table = plan.decisions()
    assert table.notes == () and {row[1] for row in table.table().rows} == {"any"}
    assert prudent.evaluate(model, table).mean == pytest.approx(plan.expected)


def test_limits_are_only_promised_where_they_hold(monkeypatch):
    model, _ = layered(3)
    free, _ = layered(0)
    limited = prudent.solve(free, 0.125, step=5.0, max_cvar=1.1 * prudent.solve(free, 0.125, step=5.0).upper)
    notes = limited.decisions().notes
    assert notes and "at most" not in notes[1]
    monkeypatch.setattr("prudent.results.decisions.PATIENCE", 1e-9)
    note = prudent.solve(model, 0.125, step=5.0).decisions().notes[1]
    assert note.endswith("this table: unknown, since evaluating it takes too long")


@pytest.mark.parametrize(("unit", "far"), [(1e-10, 0), (1e-11, 1e-10), (1, 1e10), (2**0.5, -1e10), (0.01, 1e8)])
def test_costs_are_looked_up_whatever_their_size(unit, far):
    """Six units more or less decide, beside a cost that is paid back at the end."""
    listed = {
        "s": {"go": [(0.5, "m", far), (0.5, "m", far + 6 * unit)]},
        "m": {"safe": [(1, "g", 4 * unit - far)], "risky": [(0.5, "g", -far), (0.5, "g", 7 * unit - far)]},
    }
    plan = prudent.solve(prudent.build("s", listed.get, goals=["g"]), 0.5)
    table = plan.decisions()
    assert [table("m", far), table("m", far + 6 * unit)] == ["safe", "risky"]
    assert [plan.policy("m", far), plan.policy("m", far + 6 * unit)] == ["safe", "risky"]


def test_the_bound_of_the_agent_is_not_that_of_the_table():
    draw, listed = random.Random(133), {}
    n = draw.randint(3, 5)
    for k in range(n):
        for i in range(1 if k == 0 else 2):
            actions = listed[k, i] = {}
            for a in range(3):
                count, p = draw.randint(1, 2), draw.choice([0.5, 0.25, 0.125, 0.1])
                actions[a] = [
                    (q, "end" if k == n - 1 else (k + 1, draw.randint(0, 1)), draw.uniform(0, 10))
                    for q in ([1], [p, 1 - p])[count - 1]
                ]
    plan = prudent.solve(prudent.build((0, 0), listed.get, goals=["end"]), 0.1, step=4.0)
    table = plan.decisions()
    agent, own = table.notes[1].split("; ")
    assert prudent.evaluate(plan.model, table).cvar(0.1) > plan.upper + 2
    assert "at most" in agent and "at most" not in own


def test_ranges_have_all_their_digits():
    listed = {
        "s": {"go": [(0.5, "t", 123456.25), (0.5, "t", 123456.75)]},
        "t": {"a": [(0.9, "g", 0), (0.1, "g", 2)], "b": [(1, "g", 1.5)]},
    }
    shown = str(prudent.solve(prudent.build("s", listed.get), 0.05).decisions())
    assert "123456.25" in shown and "123456.75" in shown


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
