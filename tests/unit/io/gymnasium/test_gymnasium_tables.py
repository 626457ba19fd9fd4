"""Reading the table of an environment: what becomes of it, and what is refused."""

import numpy as np
import pytest

import prudent
from prudent import PrudentError


class Table:
    """All that is read of an environment; Gymnasium need not be there."""

    def __init__(self, table, initial=None):
        self.P = table
        if initial is not None:
            self.initial_state_distrib = np.array(initial, dtype=float)


WALK = {
    0: {0: [(0.5, 1, -1, False), (0.25, 2, -3, True), (0.25, 2, -3, True)], 1: [(1.0, 2, -9, True)]},
    1: {0: [(1.0, 0, -1, False)], 1: [(1.0, 2, -2, True)]},
    2: {0: [(1.0, 0, -5, False)], 1: [(1.0, 2, 0, True)]},
}


def test_what_a_table_becomes():
    model = prudent.from_gymnasium(Table(WALK, [1, 0, 0]))
    assert model.state_names == (0, 1, 2)
    assert model.is_goal.tolist() == [False, False, True]  # its own rows are not read: runs have ended
    assert (model.n_actions, model.n_outcomes) == (4, 5)  # the two ways to state 2 are one
    assert model.cost.tolist() == [1, 3, 9, 1, 2]
    assert model.probability.tolist() == [0.5, 0.5, 1, 1, 1]
    assert model.name == "Table"


def test_an_initial_distribution_is_a_first_chance_step():
    model = prudent.from_gymnasium(Table(WALK, [0.25, 0.75, 0]))
    assert dict(zip(model.initial_state.tolist(), model.initial_probability.tolist(), strict=True)) == {
        0: 0.25,
        1: 0.75,
    }
    # From 1 the best is 2 for sure; from 0: 9 for sure, or 1 + 2 and 3, each with one half.
    assert prudent.solve(model, alpha=1).expected == 0.25 * 3 + 0.75 * 2
    assert prudent.from_gymnasium(Table(WALK), initial={1: 1.0}).initial_state.tolist() == [0]
    assert prudent.from_gymnasium(Table(WALK), initial=np.int64(1)).state(0) == 1


def test_costs_follow_the_rule_that_is_named():
    env = Table(WALK, [1, 0, 0])
    assert set(prudent.from_gymnasium(env, cost="steps").cost) == {1}
    assert prudent.from_gymnasium(env, cost="as given").cost.tolist() == [-1, -3, -9, -1, -2]
    seen = []

    def price(state, action, reward, after):
        seen.append((state, action, reward, after))
        return 100 if after == 2 else 7

    model = prudent.from_gymnasium(env, cost=price)
    assert model.cost.tolist() == [7, 100, 100, 7, 100]
    assert (0, 1, -9, 2) in seen
    for bad in ("rewards", None, 3):
        with pytest.raises(PrudentError, match=r"cost is .*'negative reward' \(.*'as given' \(.*'steps' \("):
            prudent.from_gymnasium(env, cost=bad)
    with pytest.raises(PrudentError, match=r"cost at state 0, action 0 is the text 'much'; it must be a number"):
        prudent.from_gymnasium(env, cost=lambda *_: "much")


def test_a_state_where_runs_end_and_others_go_on_is_two():
    table = {0: [[(0.5, 1, 0, True), (0.5, 1, 0, False)]], 1: [[(1.0, 0, -4, False)], [(1.0, 1, -6, True)]]}
    model = prudent.from_gymnasium(Table(table, [1, 0]))
    assert set(model.state_names) == {0, 1, (1, "terminated")}
    # From 1: 6, or 4 and again: half of the runs of 0 are over, the others are in 1, so v = min(6, 4 + v / 2) = 6.
    assert prudent.solve(model, alpha=1).expected == 3


def test_impossible_transitions_are_not_followed():
    table = {0: {0: [(0.0, 99, 0, False), (1.0, 1, -1, True)]}}
    assert prudent.from_gymnasium(Table(table, [1])).n_states == 2


TRAP = {
    0: {"go": [(0.5, 1, -1, True), (0.5, 2, -1, False)], "walk": [(1.0, 1, -9, True)]},
    2: {"wait": [(1, 2, 0, False)]},
}


def test_traps_are_reported():
    model = prudent.from_gymnasium(Table(TRAP, [1, 0, 0]))
    assert (
        "1 of the states can be reached, but no plan goes there because a run could get stuck: 2"
        in prudent.check(model).notes
    )
    assert prudent.solve(model, alpha=0.1).policy(0) == "walk"
    sure = {**TRAP, 0: {"go": TRAP[0]["go"]}}
    with pytest.raises(PrudentError, match=r"every policy may end in state 2, from which no goal can be reached"):
        prudent.solve(prudent.from_gymnasium(Table(sure, [1, 0, 0])), alpha=0.1)
    priced = prudent.amend(prudent.from_gymnasium(Table(sure, [1, 0, 0])), dead_end_cost=50)
    assert prudent.solve(priced, alpha=1).expected == 26


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({0: {0: [(1.0, 1, 0, False)]}}, r"has no state 1, which a run can reach"),
        ({0: {0: [(1.0, 0, 0, False)]}}, r"no transition of Table that a run can take terminates"),
        ({0: {0: [(1.0, 0, 0)]}}, r"P\[0\]\[0\] of Table holds \(1.0, 0, 0\); it must hold \(probability, next state"),
        ({0: {0: [(1.0, 0, "much", True)]}}, r"holds \(1.0, 0, 'much', True\)"),
        ({0: {0: [(1.0, 0, np.array([1.0, 2.0]), True)]}}, r"holds \(1.0, 0, array\(\[1., 2.\]\), True\); it must"),
        ({0: {0: [("1", 0, 0, True)]}}, r"holds \('1', 0, 0, True\)"),
        ({0: {0: 5}}, r"P\[0\]\[0\] of Table holds 5; it must hold"),
        ({0: 5}, r"has no state 0, which a run can reach"),
        ([[[(1.0, -1, 0, False)]]], r"has no state -1, which a run can reach"),
        ({0: {0: [(1.0, {}, 0, True)]}}, r"holds \(1.0, {}, 0, True\)"),
        ({0: {0: [(0.7, 1, 0, True)]}}, r"probabilities of state 0, action 0 sum to 0.7; they must sum to 1"),
        ({0: {0: [(1, 1, 0, False)]}, 1: {}}, r"state 1 of Table has no actions in P, and no run ends there"),
        ({0: {0: [(1.0, 1, float("nan"), True)]}}, r"state 0, action 0 has an outcome of cost nan"),
    ],
)
def test_tables_that_are_refused(table, message):
    with pytest.raises(PrudentError, match=message):
        prudent.from_gymnasium(Table(table, [1]))


def test_environments_that_are_refused():
    with pytest.raises(PrudentError, match=r"has no table P of its transitions"):
        prudent.from_gymnasium(object())
    with pytest.raises(PrudentError, match=r"pass the environment, gymnasium.make\('Taxi-v4'\)"):
        prudent.from_gymnasium("Taxi-v4")
    with pytest.raises(PrudentError, match=r"has no initial_state_distrib, .*; give initial="):
        prudent.from_gymnasium(Table(WALK))
    with pytest.raises(PrudentError, match=r"initial is \{1\}; it must be a state"):
        prudent.from_gymnasium(Table(WALK), initial={1})
    env = Table(WALK)
    for env.initial_state_distrib in (["a"], ["1"], [[1], [1, 2]], 5, {0: 1}, [1j], "ab"):
        with pytest.raises(PrudentError, match=r"initial_state_distrib of Table is .*; it must list .* initial="):
            prudent.from_gymnasium(env)
    with pytest.raises(PrudentError, match=r"initial probabilities sum to 0.5"):
        prudent.from_gymnasium(Table(WALK, [0.5, 0, 0]))


def test_horizons():
    env = Table(WALK, [0, 1, 0])
    with pytest.raises(PrudentError, match=r"horizon is True, but Table has no TimeLimit"):
        prudent.from_gymnasium(env, horizon=True)
    with pytest.raises(PrudentError, match=r"horizon is 0; it must be a whole number of actions, at least 1"):
        prudent.from_gymnasium(env, horizon=0)
    assert prudent.from_gymnasium(env, horizon=False).horizon is None
    with pytest.raises(PrudentError, match=r"horizon_cost is the cost .*; give horizon= with it"):
        prudent.from_gymnasium(env, horizon_cost=3)
    model = prudent.from_gymnasium(env, horizon=1, horizon_cost=0.5)
    assert set(model.state_names) == {2, "late", (1, 0)}
    assert prudent.solve(model, alpha=1).expected == 1.5  # one step away from the end, and time is up


def test_wrappers():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=30)
    assert prudent.from_gymnasium(env).horizon is None
    assert prudent.from_gymnasium(env, horizon=True).horizon == 30
    shorter = gymnasium.wrappers.TimeLimit(gymnasium.wrappers.RecordEpisodeStatistics(env), 20)
    assert prudent.from_gymnasium(shorter, horizon=True).horizon == 20
    doubled = gymnasium.wrappers.TransformReward(env, lambda reward: 2 * reward)
    with pytest.raises(PrudentError, match=r"wrapped in TransformReward, so its table P may be wrong; pass"):
        prudent.from_gymnasium(doubled)
    assert prudent.from_gymnasium(doubled.unwrapped).name == "FrozenLake-v1"
    with pytest.raises(PrudentError, match=r"Taxi with fickle_passenger=True"):
        prudent.from_gymnasium(gymnasium.make("Taxi-v4", fickle_passenger=True))


def test_a_time_limit_that_the_model_lacks_is_noted():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=30)
    words = "FrozenLake-v1 ends every run after 30 actions, by its TimeLimit, and this model"
    model = prudent.from_gymnasium(env)
    (note,) = model.notes
    assert note.startswith(f"{words} has no limit: ") and note.endswith("horizon=True includes the TimeLimit")
    assert isinstance(model, type(prudent.from_gymnasium(env.unwrapped)))
    plan = prudent.solve(model, alpha=0.5)
    assert note in plan.notes and note in prudent.check(model).notes
    (longer,) = prudent.from_gymnasium(env, horizon=40).notes
    assert longer.startswith(f"{words} ends them after 40: ")
    for free in (
        prudent.from_gymnasium(env, horizon=True),
        prudent.from_gymnasium(env, horizon=20),
        prudent.from_gymnasium(env.unwrapped),
        prudent.from_gymnasium(gymnasium.make("FrozenLake-v1", max_episode_steps=-1)),
    ):
        assert free.notes == ()
