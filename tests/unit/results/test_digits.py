"""Results show the digits that are certain: of money two decimals, of rounded costs those that the bounds support."""

import re
from dataclasses import replace

import pytest

import prudent
from cents import maintenance

AMOUNT = re.compile(r"[0-9,]+[.][0-9]{2}")


@pytest.fixture(scope="module")
def model():
    return maintenance(4)


def read(text):
    return float(text.replace(",", ""))


def test_money_has_two_decimals(model):
    plan = prudent.solve(model, 0.1)
    result = prudent.evaluate(model, plan)
    shown = [row[1] for table in (plan.table(0.3), result.table(0.1)) for row in table.rows]
    for table in (prudent.curve(model).table(), prudent.frontier(model, 0.1).table()):
        shown += [cell for row in table.rows for name, cell in zip(table.head, row, strict=True) if len(name) < 14]
    shown = [text for text in shown if not text.endswith("%")]
    assert len(shown) > 40
    assert [text for text in shown if not AMOUNT.fullmatch(text)] == []
    assert f"CVaR {plan.cvar:.2f} (optimal {plan.cvar:.2f}), VaR {plan.var:.2f}" in repr(plan)
    assert plan.to_dict()["cvar"] == plan.cvar  # all digits
    assert f"the remaining budget is {plan.policy.budget:.2f};" in plan.explain((0, 0)).summary


def test_bounds_decide_about_rounded_costs(model):
    plan = prudent.solve(model, 0.1, step=20)
    assert 10 < plan.upper - plan.lower < 100
    rows = {name: (shown, text) for name, shown, text in plan.table().rows}
    low, high = (read(text) for text in rows["optimal CVaR"][1].removeprefix("between ").split(" and "))
    assert plan.lower - 1 < low <= plan.lower <= plan.upper <= high < plan.upper + 1
    shown, text = rows["CVaR"]
    assert 1 < plan.upper - plan.cvar < 10  # so one decimal is certain
    assert (len(shown.partition(".")[2]), text) == (1, "mean of the worst 10% of runs, at least")
    assert plan.cvar - 0.1 < read(shown) <= plan.cvar
    assert AMOUNT.fullmatch(rows["expected cost"][0])  # it is exact
    assert plan.own_cvar == f"at least {shown}"
    exact = prudent.solve(model, 0.1)
    assert rows["minimal worst-case cost"][0] == f"{exact.worst_case:.2f}"
    assert exact.table().rows[3] == ("optimal CVaR", f"{exact.cvar:.2f}", "known to all digits shown")


def test_bounds_have_columns_only_if_they_say_more(model):
    assert prudent.curve(model).table().head == ("worst runs", "CVaR", "VaR", "expected cost")
    rounded = prudent.curve(model, step=20)
    table = rounded.table(alpha=0.1)
    assert table.head[-2:] == ("lower bound", "upper bound")
    low, high = map(read, table.rows[0][-2:])
    point = rounded.at(0.1)
    assert low <= point.lower <= point.upper <= high
    budgets = [250.5, 400]
    assert prudent.chances(prudent.domains.figure_2(), [1, 9]).table().head == ("budget", "probability")
    assert prudent.chances(model, budgets, step=20).table().head[2:] == ("lower bound", "upper bound")


def test_simulated_numbers_have_two_digits_of_their_error(model):
    plan = prudent.solve(model, 0.1)
    runs = prudent.simulate(model, plan, episodes=4000, seed=0)
    assert 1 < runs.mean_se < 10 < runs.cvar_se(0.1) < 100
    mean, cvar, var = runs.table().rows
    assert mean[1:] == (f"{runs.mean:.1f}", f"± {runs.mean_se:.1f}, exactly {plan.expected:.2f}")
    assert cvar[1] == f"{runs.cvar(0.1):.0f}" and cvar[2].startswith(f"± {runs.cvar_se(0.1):.0f}, ")
    assert AMOUNT.fullmatch(var[1])


def test_no_cvar_is_shown_above_its_own_upper_bound():
    for wait, end in ((31, 5), (40, 3), (94, 64), (8, 30)):  # the CVaR has more than six decimals
        actions = {"s": {"a": [(0.6, "t", 84), (0.4, "g", 63)]}, "t": {"c": [(0.3, "t", wait), (0.7, "g", end)]}}
        model = prudent.build("s", actions)
        p = model.probability
        model = replace(model, intervals=prudent.Intervals(0.9 * p, 0.9 * p + 0.1))
        plan = prudent.solve(model, 0.2, uncertainty="own")
        shown = plan.shown()
        assert plan.lower <= plan.cvar <= plan.upper and len(shown["cvar"].partition(".")[2]) >= 5
        assert read(shown["lower"]) <= read(shown["cvar"]) <= read(shown["upper"])


def test_round_alphas():
    curve = prudent.curve(prudent.domains.figure_2(), alpha_min=0.003)
    shown = [row[0] for row in curve.table().rows]
    assert shown == "0.3% 0.5% 1% 2% 5% 10% 20% 30% 50% 70% 100%".split()
    assert [row[0] for row in prudent.curve(prudent.domains.figure_2(), alpha_min=1).table().rows] == ["100%"]
    least = prudent.curve(prudent.domains.figure_2(), alpha_min=1e-9).table().rows
    assert [row[0] for row in least[:3]] == ["1e-07%", "0.01%", "0.02%"]
