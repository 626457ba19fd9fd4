"""Models that stormpy built, taken over from memory."""

from pathlib import Path

import pytest

import prudent
from prudent import PrudentError

stormpy = pytest.importorskip("stormpy")

SHIPPED = Path(stormpy.__path__[0]) / "examples" / "files"


def test_transition_rewards_of_a_model_in_memory():
    """Each outcome keeps its own cost: Storm's mean, and a distribution that Storm does not tell."""
    explicit = {
        "transitions": SHIPPED / "dtmc/die.tra",
        "labeling": SHIPPED / "dtmc/die.lab",
        "transition_rewards": SHIPPED / "rew/die.coin_flips.trans.rew",
    }
    model = prudent.from_storm(stormpy.build_model_from_explicit(**explicit), 'Rmin=? [F "done"]')
    assert prudent.solve(model, 1.0).expected == pytest.approx(11 / 3, rel=1e-12)
    assert (model.state_names, model.action_names) == (None, None)


def two_ways(kind=float):
    """0 leads to 1 and to the goal 2 at different rewards; 1 leads on, or back."""
    number = kind if kind is float else stormpy.Rational

    def matrix(entries):
        builder = stormpy.datastructures.SparseMatrixBuilder[kind](
            rows=4, columns=3, entries=len(entries), has_custom_row_grouping=True, row_groups=3
        )
        for row, column, value in entries:
            if row in (0, 1, 3) and (row, column) == min(e[:2] for e in entries if e[0] == row):
                builder.new_row_group(row)
            builder.add_next_value(row, column, number(value))
        return builder.build()

    labels = stormpy.models.StateLabeling(3)
    for label, state in (("init", 0), ("goal", 2)):
        labels.add_label(label)
        labels.add_label_to_state(label, state)
    rewards = stormpy.models.SparseRewardModel[kind](
        optional_state_reward_vector=[number(value) for value in (1, 2, 50)],
        optional_state_action_reward_vector=[number(value) for value in (10, 20, 30, 50)],
        optional_transition_reward_matrix=matrix([(0, 1, 100), (0, 2, 200), (1, 2, 300), (2, 0, 400), (3, 2, 50)]),
    )
    parts = stormpy.models.SparseModelComponents[kind](
        transition_matrix=matrix([(0, 1, 0.5), (0, 2, 0.5), (1, 2, 1.0), (2, 0, 1.0), (3, 2, 1.0)]),
        state_labeling=labels,
        reward_models={"all": rewards},
    )
    return stormpy.models.SparseMdp[kind](parts)


@pytest.mark.parametrize("kind", [float, stormpy.Rational])
def test_all_three_kinds_of_rewards_add_up(kind):
    model = prudent.from_storm(two_ways(kind), name="two-ways")
    assert model.cost.tolist() == [111, 211, 322, 432]
    assert model.successor.tolist() == [1, 2, 2, 0]
    assert model.action_start.tolist() == [0, 1, 3, 3]
    assert (model.name, model.state(0), model.action(2)) == ("two-ways", 0, 1)


def test_a_property_may_be_storms_own_and_exact_numbers_become_the_nearest():
    program = stormpy.parse_prism_program(SHIPPED / "dtmc/die.pm")
    asked = stormpy.parse_property('R{"coin_flips"}min=? [F s=7 & d>2]', program)
    built = stormpy.build_model[stormpy.Rational](program, [asked])
    model = prudent.from_storm(built, asked)
    assert int(model.is_goal.sum()) == 4
    with pytest.raises(PrudentError, match=r"property R.*: Storm: "):
        prudent.from_storm(built, "Rmin=? [F s=7]")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (5, "model is a int; it must be a sparse DTMC or MDP that stormpy built"),
        (None, "model is a NoneType"),
        (stormpy.parse_prism_program(SHIPPED / "dtmc/die.pm"), "model is a PrismProgram; it must be a sparse DTMC"),
    ],
)
def test_not_a_model(model, words):
    with pytest.raises(PrudentError, match=words):
        prudent.from_storm(model)


def test_symbolic_and_parametric_models_are_refused():
    program = stormpy.parse_prism_program(SHIPPED / "dtmc/die.pm")
    with pytest.raises(PrudentError, match="symbolic"):
        prudent.from_storm(stormpy.build_symbolic_model(program), 'Rmin=? [F "done"]')
    with pytest.raises(PrudentError, match="has parameters for probabilities"):
        prudent.from_storm(stormpy.build_model[stormpy.RationalFunction](program), 'Tmin=? [F "done"]')
