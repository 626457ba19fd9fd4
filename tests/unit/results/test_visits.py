"""Visits against simulation, against the mean, and against the flow into each state."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, reject, settings

import prudent
from strategies import cases, examples, noisy_table, solved


def mean_cost(model):
    return np.add.reduceat(model.probability * model.cost, model.outcome_start[:-1])


def check_flow(visits):
    """What leaves a state has come into it: visits solve the equations of the chain, whatever the plan remembers."""
    model = visits.model
    entered = np.zeros(model.n_states)
    entered[model.initial_state] = model.initial_probability
    played = np.repeat(visits.played, np.diff(model.outcome_start))
    np.add.at(entered, model.successor, played * model.probability)
    left = np.add.reduceat(np.append(visits.played, 0.0), model.action_start[:-1]) * ~model.is_goal
    left[model.is_goal] = entered[model.is_goal]
    assert left == pytest.approx(entered, abs=1e-9)
    assert entered[model.is_goal].sum() == pytest.approx(1, abs=1e-9)


@settings(max_examples=examples(100))
@given(cases())
def test_the_mean_is_what_is_visited_times_what_it_costs(case):
    plan = solved(case, 0.3)
    try:
        visits = plan.visits()
    except prudent.PrudentError as error:
        assert "at no cost" in str(error)
        reject()
    assert visits.played @ mean_cost(plan.model) == pytest.approx(plan.expected, abs=1e-8)
    check_flow(visits)


@pytest.mark.parametrize("seed", range(6))
def test_rounded_costs(seed):
    plan = prudent.solve(prudent.build(0, noisy_table(np.random.default_rng(seed))), 0.2, step=0.13)
    visits = plan.visits()
    assert visits.played @ mean_cost(plan.model) == pytest.approx(plan.expected, abs=1e-9)
    check_flow(visits)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *(("deep_sea_treasure", method) for method in ("exact", "expected", "cvar-wc", "cvar-ev")),
        *(("autonomous_navigation", method) for method in ("exact", "expected")),
    ],
)
def test_against_simulation(name, method):
    model = getattr(prudent.domains, name)()
    plan = prudent.solve(model, 0.1, method=method, relative_gap=0.02)
    visits, n = plan.visits(), 1000
    check_flow(visits)
    runs = prudent.simulate(model, plan.policy, episodes=n, seed=1, paths=n)
    counts = [Counter((state, action) for state, action, _ in path) for path in runs.paths]
    met = set().union(*counts)
    for row in visits.to_dict()["visits"]:
        assert 0 < row["times"] < 100
    for state, action in met:
        sample, times = np.array([count[state, action] for count in counts]), visits.of(state, action)
        assert times > 0
        error = max(float(sample.std(ddof=1)), np.sqrt(times)) / np.sqrt(n)  # rare ones: as a Poisson's
        assert abs(sample.mean() - times) < 5 * error
    played = [(model.state(model.state_of_action(a)), model.action(a)) for a in np.flatnonzero(visits.played)]
    assert all(visits.of(*pair) < 0.015 for pair in set(played) - met)


def test_a_draw_of_two_policies():
    plan = prudent.solve(prudent.domains.betting_game(), 0.2, max_cvar=93, randomise=True)
    visits = plan.visits()
    check_flow(visits)
    assert visits.played @ mean_cost(plan.model) == pytest.approx(plan.expected, abs=1e-9)


def test_free_loops_are_played_again():
    table = {"s": {"try": [(0.75, "s", 0), (0.25, "t", 1)]}, "t": {"go": [(1, "g", 2)]}}
    visits = prudent.solve(prudent.build("s", lambda s: table.get(s, {})), 0.1).visits()
    assert visits.of("s", "try") == pytest.approx(4)
    assert visits.of("t") == pytest.approx(1)
    check_flow(visits)


def test_free_cycles_are_refused():
    table = {
        "s": {"move": [(1, "t", 0)], "go": [(0.5, "g", 1), (0.5, "g", 3)]},
        "t": {"back": [(1, "s", 0)], "go": [(1, "g", 1)]},
    }
    plan = prudent.solve(prudent.build("s", lambda s: table.get(s, {})), 0.1)
    with pytest.raises(prudent.PrudentError, match="round at no cost, as in state 's'"):
        plan.visits()


def test_results_in_every_form():
    plan = prudent.solve(prudent.domains.figure_2(), 0.1)
    visits = plan.visits()
    assert repr(visits) == "<Visits for figure-2: 3 actions, 2 plays>"
    assert [(r["state"], r["action"]) for r in visits.to_dict()["visits"]] == [("s0", "a"), ("s1", "d"), ("s2", "b")]
    assert str(visits.table()).splitlines()[1:3] == ["state  action  times", "s0     a         1"]
    assert "s1" in visits._repr_html_()
    with pytest.raises(prudent.PrudentError, match="no action 'z'"):
        visits.of("s1", "z")
    more = prudent.solve(prudent.domains.betting_game(), 0.2).visits().table()
    assert len(more.rows) == 50
    assert "more rows" in more.notes[0]
