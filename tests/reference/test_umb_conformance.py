"""UMB between prudent, the format's own library umbi, and Storm, both ways."""

from fractions import Fraction

import numpy as np
import pytest

import prudent

umbi = pytest.importorskip("umbi")

PROPERTY = 'R{"cost"}min=? [F "goal"]'

DICE = """
mdp
const int most = 3;
module dice
  x : [-1..6] init 0;
  tired : bool init false;
  [roll] x < 4 & !tired -> 1/3 : (x' = x + 1) + 1/3 : (x' = x + 2) + 1/3 : (x' = -1);
  [roll] x < 4 & tired -> 1/2 : (x' = x + 1) + 1/2 : (tired' = false);
  [rest] !tired & x > 0 -> (tired' = true);
  [] x >= 4 -> 0.25 : (x' = 6) & (tired' = false) + 0.75 : (x' = 5);
  [] x = -1 & !tired -> (x' = 0);
endmodule
label "goal" = x = 6;
rewards "cost"
  x < 0 : 2.5;
  [roll] true : 1;
  [rest] true : 0.75;
endrewards
rewards "steps"
  true : 1;
endrewards
"""

CHAIN = """
dtmc
module walk
  s : [0..5] init 2;
  [] s > 0 & s < 5 -> 0.4 : (s' = s - 1) + 0.6 : (s' = s + 1);
  [] s = 0 -> (s' = 1);
  [] s = 5 -> true;
endmodule
label "goal" = s = 5;
rewards "cost"
  s > 0 : s;
  s = 0 : 10;
endrewards
"""


def odd() -> prudent.SSP:
    """A model with all that UMB or Storm have no place for: costs that differ to one successor, a drawn start."""
    return prudent.build(
        {"a": 0.25, "b": 0.75},
        {
            "a": {"": [(0.5, "g", 1), (0.25, "g", 2), (0.25, "g", 5)], "on": [(0.5, "b", 3), (0.5, "h", 0.5)]},
            "b": {"on": [(1 / 3, "a", 0), (1 / 3, "a", 4), (1 / 3, "g", 1)], "": [(1, "h", 9)]},
        },
    )


def chain() -> prudent.SSP:
    """A Markov chain: one action in each state."""
    return prudent.build("s", {"s": {"x": [(0.3, "s", 1), (0.7, "t", 2)]}, "t": {"y": [(0.5, "s", 4), (0.5, "g", 0)]}})


MODELS = {
    "figure_2": prudent.domains.figure_2,
    "betting_game": prudent.domains.betting_game,
    "deep_sea_treasure": prudent.domains.deep_sea_treasure,
    "odd": odd,
    "chain": chain,
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


def test_umbi_reads_what_is_written_here(tmp_path, model):
    prudent.save(model, tmp_path / "m.umb")
    found = umbi.umb.read(tmp_path / "m.umb")
    plain = umbi.ats.read(tmp_path / "m.umb")
    system = found.index.transition_system
    goals = int(model.is_goal.sum())
    extra = system.num_states - model.n_states
    assert (plain.num_states, plain.num_choices) == (system.num_states, system.num_choices)
    assert system.num_choices == model.n_actions + goals + extra
    if extra == 0:
        at = model.action_start[:-1][model.is_goal]
        loop = model.outcome_start[at]
        assert found.branch_to_target == np.insert(model.successor, loop, np.flatnonzero(model.is_goal)).tolist()
        assert found.branch_to_probability == np.insert(model.probability, loop, 1.0).tolist()
        ((where, paid),) = found.annotations["rewards"]["cost"].items()
        each = model.cost if where == "branches" else model.cost[model.outcome_start[:-1]]
        assert paid == np.insert(each, loop if where == "branches" else at, 0.0).tolist()
        assert found.state_is_initial[: model.n_states].index(True) == model.initial_state[0]
    assert found.annotations["aps"]["goal"]["states"][: model.n_states] == model.is_goal.tolist()
    labels = [found.choice_action_to_string[a] for a in found.choice_to_choice_action]
    acting = np.repeat(~np.array(found.annotations["aps"]["goal"]["states"]), np.diff(found.state_to_choices))
    assert [label for label, acts in zip(labels, acting, strict=True) if acts][: model.n_actions] == list(
        map(str, model.action_names)
    )


def test_what_umbi_writes_is_read_here(tmp_path):
    """A file of umbi's own making, with fractions as probabilities."""
    ats = umbi.ats.ExplicitAts()
    ats.time, ats.num_players = umbi.ats.TimeType.DISCRETE, 1
    for _ in range(3):
        ats.add_state()
    ats.set_initial_states([0])
    ats.num_choice_actions, ats.choice_action_to_name = 2, ["go", "stay"]
    for state, action, branches in (
        (0, 0, [(1, Fraction(1, 3)), (2, Fraction(2, 3))]),
        (0, 1, [(0, Fraction(1, 7)), (2, Fraction(6, 7))]),
        (1, 0, [(2, Fraction(1))]),
        (2, 1, [(2, Fraction(1))]),
    ):
        choice = ats.add_state_choice(state=state)
        choice.action = action
        for target, chance in branches:
            choice.add_branch(target=target, prob=chance)
    goal = umbi.ats.AtomicPropositionAnnotation(name="goal")
    goal.set_values_for(umbi.ats.EntityClass.STATES, [False, False, True])
    time = umbi.ats.RewardAnnotation(name="time")
    time.set_values_for(umbi.ats.EntityClass.CHOICES, [1.5, 2.25, 3.0, 0.0])
    ats.annotations = {"aps": {"goal": goal}, "rewards": {"time": time}}
    umbi.ats.write(ats, tmp_path / "m.umb")
    model = prudent.load(tmp_path / "m.umb")
    assert model.probability.tolist() == [1 / 3, 2 / 3, 1 / 7, 6 / 7, 1.0]
    assert model.successor.tolist() == [1, 2, 0, 2, 2]
    assert model.cost.tolist() == [1.5, 1.5, 2.25, 2.25, 3.0]
    assert model.action_names == ("go", "stay", "go")
    assert model.is_goal.tolist() == [False, False, True]


def storm_value(storm) -> float:
    """Storm's least expected cost from the start, to 12 digits."""
    import stormpy

    from storm_oracle import least_expected

    first = storm.initial_states[0]
    if storm.model_type != stormpy.models.ModelType.DTMC:
        return float(least_expected(storm, "policy iteration", 1e-12)[first])
    environment = stormpy.environments.sound()
    environment.solver().native().precision = stormpy.Rational(1e-12)
    formula = stormpy.parse_property('R{"cost"}=? [F "goal"]')
    return float(
        stormpy.model_checking(storm, formula, environment=environment, only_initial_states=True).get_value(first)
    )


def test_storm_reads_what_is_written_here(tmp_path, model):
    stormpy = pytest.importorskip("stormpy")
    prudent.save(model, tmp_path / "m.umb")
    options = stormpy.io.UmbImportOptions()
    options.build_choice_labeling = True
    storm = stormpy.build_model_from_umb(tmp_path / "m.umb", options=options)
    goals, extra = int(model.is_goal.sum()), storm.nr_states - model.n_states
    assert (extra == 0) == (len(model.initial_state) == 1 and not twins(model))
    assert storm.nr_choices == model.n_actions + goals + extra
    if extra == 0:
        assert storm.nr_transitions == model.n_outcomes + goals
        assert storm.initial_states == model.initial_state.tolist()
        assert list(storm.labeling.get_states("goal")) == np.flatnonzero(model.is_goal).tolist()
        assert_same_rows(storm, model)
    chain = int(np.diff(model.action_start).max()) == 1
    assert storm.model_type == (stormpy.models.ModelType.DTMC if chain else stormpy.models.ModelType.MDP)
    assert storm_value(storm) == pytest.approx(prudent.solve(model, 1, method="expected").expected, rel=1e-9)


def twins(model: prudent.SSP) -> bool:
    seen = {}
    action = np.repeat(np.arange(model.n_actions), np.diff(model.outcome_start))
    for key, cost in zip(zip(action.tolist(), model.successor.tolist(), strict=True), model.cost.tolist(), strict=True):
        if seen.setdefault(key, cost) != cost:
            return True
    return False


def assert_same_rows(storm, model: prudent.SSP) -> None:
    """Every probability, cost and label, row by row."""
    matrix, costs, row = storm.transition_matrix, storm.reward_models["cost"], 0
    on_branches = costs.has_transition_rewards
    paid = costs.transition_rewards if on_branches else costs.state_action_rewards
    for s in range(model.n_states):
        first, last = int(model.action_start[s]), int(model.action_start[s + 1])
        for a in range(first, max(last, first + 1)):
            found = {entry.column: entry.value for entry in matrix.get_row(row)}
            mine = slice(int(model.outcome_start[a]), int(model.outcome_start[a + 1])) if first < last else slice(0)
            to, chance, cost = (x[mine].tolist() for x in (model.successor, model.probability, model.cost))
            assert found == (dict(zip(to, chance, strict=True)) if first < last else {s: 1.0})
            if on_branches:
                assert {e.column: e.value for e in paid.get_row(row)} == (
                    dict(zip(to, cost, strict=True)) if to else {s: 0.0}
                )
            else:
                assert paid[row] == (cost[0] if cost else 0.0)
            assert storm.choice_labeling.get_labels_of_choice(row) == ({str(model.action(a))} if to else set())
            row += 1


@pytest.mark.parametrize("packing", ["NO_COMPRESSION", "GZIP", "XZ"])
@pytest.mark.parametrize("text", [DICE, CHAIN], ids=["mdp", "dtmc"])
def test_what_storm_writes_is_read_here(tmp_path, text, packing):
    stormpy = pytest.importorskip("stormpy")
    (tmp_path / "m.prism").write_text(text)
    storm = stormpy.build_model(
        stormpy.parse_prism_program(tmp_path / "m.prism"), options=full(stormpy.BuilderOptions(build_full=True))
    )
    options = stormpy.io.UmbExportOptions()
    options.compression = getattr(type(options.compression), packing)
    stormpy.io.export_to_umb(storm, tmp_path / "m.umb", options=options)
    model = prudent.load(tmp_path / "m.umb", property=PROPERTY)
    goals = list(storm.labeling.get_states("goal"))
    assert model.n_states == storm.nr_states
    assert np.flatnonzero(model.is_goal).tolist() == goals
    assert model.n_actions == storm.nr_choices - sum(len(list(storm.states[s].actions)) for s in goals)
    assert prudent.solve(model, 1, method="expected").expected == pytest.approx(storm_value(storm), rel=1e-9)
    assert model.state(int(model.initial_state[0])) == ("tired=false, x=0" if "mdp" in text else "s=2")
    if "mdp" in text:
        steps = prudent.load(tmp_path / "m.umb", property='R{"steps"}min=? [F "goal"]')
        assert set(steps.cost.tolist()) == {1.0}
        assert {"roll", "rest"} < set(model.action_names)


def full(options):
    options.set_build_state_valuations(True)
    options.set_build_choice_labels(True)
    return options


def test_what_storm_cannot_take_is_not_written(tmp_path):
    """Storm takes an outcome of probability 0 for a possible one, and refuses costs that differ to one successor."""
    stormpy = pytest.importorskip("stormpy")
    never = prudent.build("s", {"s": {"a": [(1, "g", 1), (0, "t", 1)]}, "t": {"a": [(1, "t", 1)]}})
    with pytest.raises(prudent.PrudentError, match="probability 0"):
        prudent.save(never, tmp_path / "m.umb")
    assert twins(odd())
    prudent.save(odd(), tmp_path / "m.umb")
    assert stormpy.build_model_from_umb(tmp_path / "m.umb").nr_states > odd().n_states
