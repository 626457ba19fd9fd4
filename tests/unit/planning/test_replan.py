import pytest

import prudent

TRIP = {
    "home": {"bus": [(0.5, "work", 2), (0.5, "work", 8)]},
    "work": {"bus": [(0.5, "back", 2), (0.5, "back", 8)], "taxi": [(1, "back", 6)]},
}


def trip(**changes):
    return prudent.build("home", {**TRIP, "work": TRIP["work"] | changes}, goals=["back"])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "worst-case"},
        {"objective": prudent.WorstCase()},
        {"objective": prudent.Excess(13)},
        {"objective": prudent.Exceedance(12)},
        {"objective": prudent.ValueAtRisk()},
        {"method": "expected"},
    ],
)
def test_on_the_same_model_the_plan_goes_on_as_it_would(options):
    plan = prudent.solve(trip(), 0.3, **options)
    for spent in (2, 8):
        again = prudent.replan(plan, "work", spent)
        assert again.status == ("approximate" if plan.method == "expected" else "optimal")
        own = prudent.evaluate(again.model, lambda s, more, spent=spent: plan.policy(s, spent + more))
        new = prudent.evaluate(again.model, again)
        assert (new.values.tolist(), new.probabilities.tolist()) == (own.values.tolist(), own.probabilities.tolist())


def test_a_model_that_has_changed_is_planned_for_with_the_budget_left():
    plan = prudent.solve(trip(), 0.3)
    dearer = trip(taxi=[(1, "back", 9)])
    assert [prudent.replan(plan, "work", spent).policy("work") for spent in (2, 8)] == ["bus", "taxi"]
    assert prudent.replan(plan, "work", 8, model=dearer).policy("work") == "bus"  # 1 above the budget, not 3
    assert prudent.solve(dearer, 0.3).policy("work", 8) == "bus"
    measured = prudent.replan(plan, "work", 7.5)
    assert (measured.objective.parameter, measured.policy("work")) == (6.5, "taxi")
    measured = prudent.replan(plan, "work", 200)  # all is excess now
    assert (measured.policy("work"), measured.objective.value) == ("bus", 5 + 200 - 14)


def exactly(model):
    """Return a set of models that has one alone."""
    return prudent.Intervals(model.probability, model.probability)


def test_what_cannot_be_replanned_says_why():
    plan = prudent.solve(trip(), 0.3)
    for arguments, message in (
        ((plan.policy, "work"), "plan is a BudgetPolicy; it must be a plan from prudent.solve"),
        ((plan, "back"), "state 'back' is a goal; the run is over"),
        ((plan, "moon"), "state 'moon' is not a state of model"),
        ((plan, "work", "much"), "spent is 'much'; it must be a finite number"),
        ((prudent.solve(trip(), 0.3, method="cvar-wc"), "work"), "solve the model from the current state instead"),
        ((prudent.solve(trip(), 0.3, slack=0.1), "work"), "not those of the paper's methods, with a limit on CVaR"),
        ((prudent.solve(trip(), 0.3, objective=prudent.MeanPlusCVaR(1)), "work"), "or for MeanPlusCVaR"),
        ((prudent.solve(trip(), 0.3, uncertainty=exactly(trip())), "work"), "from the current state with uncertainty="),
    ):
        with pytest.raises(prudent.PrudentError, match=message):
            prudent.replan(*arguments)


def test_numbers_are_counted_from_there(tmp_path):
    plan = prudent.replan(prudent.solve(trip(), 0.3), "work", 8)
    assert (plan.expected, plan.policy.budget, str(plan.objective)) == (6, 6, "expected excess over 6")
    agent = plan.policy.start()
    assert (agent.state, agent.action, agent.spent) == ("work", "taxi", 0)
    prudent.save(plan, tmp_path / "p.safetensors")
    again = prudent.load_plan(tmp_path / "p.safetensors", plan.model)
    assert (again.to_dict(), again.policy.budget) == (plan.to_dict(), 6)
