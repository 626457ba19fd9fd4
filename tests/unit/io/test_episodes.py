"""Logs of runs: what is counted, and what is refused."""

from decimal import Decimal

import numpy as np
import pandas
import pytest

import prudent

ROWS = [
    {"episode": 1, "state": "home", "action": "walk", "next_state": "stop", "cost": 1},
    {"episode": 1, "state": "stop", "action": "bus", "next_state": "work", "cost": 2},
    {"episode": 2, "state": "home", "action": "walk", "next_state": "stop", "cost": 1},
    {"episode": 2, "state": "stop", "action": "bus", "next_state": "work", "cost": 9},
    {"episode": 3, "state": "stop", "action": "taxi", "next_state": "work", "cost": 6},
]
COUNTED = [
    {"state": "s", "action": "a", "next_state": "g", "cost": 1, "n": 3},
    {"state": "s", "action": "a", "next_state": "s", "cost": 1, "n": 1},
]


def changed(row: int, **values: object) -> list[dict[str, object]]:
    return [{**each, **values} if i == row else each for i, each in enumerate(ROWS)]


def written(tmp_path, text: str) -> str:
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_shares_counts_and_start_are_those_of_the_log():
    data = prudent.from_episodes(ROWS)
    model = data.model
    assert data.episodes == 3
    assert model.state_names == ("home", "stop", "work")
    assert model.initial_probability.tolist() == pytest.approx([2 / 3, 1 / 3])
    assert data.counts.tolist() == [2, 1, 1, 1]
    assert model.probability.tolist() == [1, 0.5, 0.5, 1]
    assert data.seldom_seen[0] == ("stop", "taxi", 1.0)
    assert any("seen fewer than 10 times: 'taxi' in 'stop' (1)" in note for note in model.notes)


def test_every_kind_of_table_gives_the_same_model(tmp_path):
    frame = pandas.DataFrame(ROWS)
    path = written(tmp_path, frame.to_csv(index=False))
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    prints = [prudent.from_episodes(table).model.fingerprint for table in (ROWS, frame, path, columns)]
    assert len(set(prints)) == 1
    renamed = frame.rename(columns={"state": "from", "next_state": "to"})
    named = prudent.from_episodes(renamed, state="from", next_state="to")
    assert named.model.fingerprint == prints[0]


def test_counts_in_a_column():
    data = prudent.from_episodes(COUNTED, count="n", initial="s")
    assert data.model.probability.tolist() == [0.75, 0.25]
    assert data.episodes == 0


def test_outcomes_known_to_be_possible_have_a_chance():
    known = prudent.build("s", lambda s: {"a": [(0.5, "g", 1), (0.25, "g", 9), (0.25, "s", 1)]} if s == "s" else {})
    data = prudent.from_episodes(COUNTED, count="n", initial="s", possible=known)
    assert data.counts.tolist() == [3, 0, 1]
    assert data.model.probability.tolist() == pytest.approx([3.5 / 5.5, 0.5 / 5.5, 1.5 / 5.5])
    odd = [*COUNTED, {"state": "s", "action": "a", "next_state": "g", "cost": 7, "n": 1}]
    with pytest.raises(prudent.PrudentError, match=r"row 3: .*at cost 7, which is not among the possible outcomes"):
        prudent.from_episodes(odd, count="n", initial="s", possible=known)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            changed(1, state="depot"),
            "episode 1 has a gap: row 1 leads to state 'stop', .* row 2, begins in state 'depot'",
        ),
        ([*ROWS, {**ROWS[0], "episode": 4}], "episode 4 ends in state 'stop', in which other steps begin"),
        (changed(2, cost=float("nan")), "row 3 has no cost"),
        (changed(2, cost="dear"), "row 3: cost is 'dear'; it must be a number"),
        (changed(2, cost="1_000"), "row 3: cost is '1_000'; it must be a number"),
        (changed(2, cost=float("inf")), "row 3: cost is inf; it must be a finite number"),
        (changed(2, action=None), "row 3 has no action"),
        (changed(2, state=np.float32("nan")), "row 3 has no state"),
        (changed(2, next_state=pandas.NA), "row 3 has no next_state"),
        (changed(2, cost=pandas.NaT), "row 3 has no cost"),
        (changed(2, action=[1]), "row 3: action is .*hashable"),
        ([], "it has no rows"),
        ({"state": [], "action": [], "next_state": [], "cost": [], "episode": []}, "it has no rows"),
        (7, "table is a int"),
    ],
)
def test_bad_logs_are_refused(table, message):
    with pytest.raises(prudent.PrudentError, match=message):
        prudent.from_episodes(table)


def test_a_missing_column_is_named_with_what_it_may_be():
    frame = pandas.DataFrame(ROWS).rename(columns={"next_state": "nextstate"})
    hint = r"no column 'next_state'.*pass next_state='nextstate' \(--column next_state=nextstate\)"
    with pytest.raises(prudent.PrudentError, match=hint):
        prudent.from_episodes(frame)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": -1}, "row 1: n is -1; it must be a number, at least 0"),
        ({"n": float("nan")}, "row 1 has no n"),
    ],
)
def test_bad_counts_are_refused(change, message):
    with pytest.raises(prudent.PrudentError, match=message):
        prudent.from_episodes([{**COUNTED[0], **change}, COUNTED[1]], count="n", initial="s")


def test_counts_need_a_start_and_an_action_that_was_seen():
    with pytest.raises(prudent.PrudentError, match="counts do not show where runs start"):
        prudent.from_episodes(COUNTED, count="n")
    never = [{**row, "n": 0} for row in COUNTED]
    with pytest.raises(prudent.PrudentError, match="state 's', action 'a' was never seen"):
        prudent.from_episodes(never, count="n", initial="s")
    with pytest.raises(prudent.PrudentError, match="initial is 'x'; the log has no such state"):
        prudent.from_episodes(COUNTED, count="n", initial="x")


def test_goals_are_checked():
    assert prudent.from_episodes(ROWS, goals=["work"]).model.n_states == 3
    with pytest.raises(prudent.PrudentError, match="goals has state 'stop', in which actions are taken"):
        prudent.from_episodes(ROWS, goals=["stop", "work"])
    with pytest.raises(prudent.PrudentError, match="episode 3 ends in state 'work', which is not among goals"):
        prudent.from_episodes(ROWS, goals=["club"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("state,state\n1,2\n", "two columns are called 'state'"),
        ("state,action\n1\n", "row 1 has 1 cells; the first line names 2 columns"),
        ('state,"act\n', "not a CSV file"),
        ("episode;state\n1;2,5\n", "separated by ';'; separate them by commas"),
        ("episode\tstate\n1\t2\n", "separated by '.t'"),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(prudent.PrudentError, match=message) as refused:
        prudent.from_episodes(path)
    assert str(refused.value).startswith(path)


def test_counts_and_bounds_survive_a_file(tmp_path):
    data = prudent.from_episodes(ROWS)
    prudent.save(data.model, tmp_path / "model.json")
    read = prudent.load(tmp_path / "model.json")
    assert np.array_equal(read.count, data.counts)
    assert (
        prudent.solve(read, 0.2, uncertainty=0.9).upper
        == prudent.solve(data.model, 0.2, uncertainty=data.intervals(0.9)).upper
    )


def test_a_file_that_is_not_there_is_named_once(tmp_path):
    with pytest.raises(prudent.PrudentError, match=r"none\.csv: no such file") as refused:
        prudent.from_episodes(tmp_path / "none.csv")
    assert str(refused.value).count("none.csv") == 1


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ({**ROWS[0]}, {}, "column 'episode' is 1; it must be a list or an array"),
        ({name: [value] for name, value in ROWS[0].items()} | {"state": "home"}, {}, "column 'state' is 'home'"),
        (ROWS, {"episode": None}, "episode is None; it must be the name of a column"),
        (ROWS, {"goals": 3}, "goals is 3; it must be a collection of states"),
        (ROWS, {"initial": ["home"]}, r"initial is \['home'\]; it must be a state"),
        (ROWS, {"possible": "home"}, "possible is a str; it must be a model"),
        (ROWS[1:2] + ROWS[:1], {}, "sort its rows"),
    ],
)
def test_arguments_of_another_kind_are_refused(table, options, message):
    with pytest.raises(prudent.PrudentError, match=message):
        prudent.from_episodes(table, **options)


def test_columns_may_be_arrays_and_costs_decimals():
    table = {"episode": np.arange(2), "state": np.zeros(2, int), "action": np.ones(2, int), "next_state": ["g", "g"]}
    data = prudent.from_episodes({**table, "cost": [Decimal("1.5"), 2]})
    assert data.model.cost.tolist() == [1.5, 2]
    assert repr(data.model.state(0)) == "0"


def test_a_series_and_columns_of_one_name_are_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(prudent.PrudentError, match="table is a Series"):
        prudent.from_episodes(pandas.Series([1, 2]))
    with pytest.raises(prudent.PrudentError, match="two columns are called 'cost'"):
        prudent.from_episodes(pandas.DataFrame([[1, 2]], columns=["cost", "cost"]))


@pytest.mark.parametrize("name", ["next", "Next_State", "nextstate", "next state"])
def test_the_column_offered_is_one_that_has_no_meaning_yet(name):
    rows = [{name if key == "next_state" else key: value for key, value in row.items()} for row in ROWS]
    hint = f"is it {name!r}. Then pass next_state={name!r} .--column next_state={name}.$"
    with pytest.raises(prudent.PrudentError, match=hint):
        prudent.from_episodes(rows)
    with pytest.raises(prudent.PrudentError, match=r"pass its name as next_state= .--column next_state=NAME.$"):
        prudent.from_episodes([{("x" if key == name else key): value for key, value in row.items()} for row in rows])
