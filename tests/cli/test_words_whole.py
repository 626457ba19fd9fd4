"""No verb cuts a word, on terminals of 80 and 100 columns and in a pipe: names, numbers and notes stay whole."""

import re
import sys

import pytest
from click.testing import CliRunner

import prudent
from prudent.apps.cli import terminal
from prudent.apps.cli.main import main

LONG = "a_state_with_a_name_of_forty-one_letters_"
CODES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a model with long names and costs without a common step, a plan for it, and a log."""
    place = tmp_path_factory.mktemp("words")
    names = [f"{LONG}{i}" for i in range(3)]
    table = {
        names[0]: {
            "the-first-of-the-long-actions": [(0.5, names[1], 2**0.5), (0.5, names[2], 3.25)],
            "wait": [(0.9, names[0], 0.1), (0.1, names[2], 1)],
        },
        names[1]: {"go-on-as-far-as-you-can": [(0.9, names[2], 1.75), (0.1, "the end", 1234.56789)]},
        names[2]: {
            "take the slow road": [(1, "the end", 7**0.5)],
            "take the fast road": [(0.9, "the end", 1), (0.1, "the end", 9)],
        },
    }
    model = prudent.build(names[0], table.get, goals=["the end"], name="a_model-with-a-long-name")
    prudent.save(model, place / "model.json")
    prudent.save(prudent.solve(prudent.load(place / "model.json"), 0.2), place / "plan.safetensors")
    log = [{"episode": i, "state": names[0], "action": "ask", "next_state": "the end", "cost": i} for i in range(1, 4)]
    rows = [",".join(log[0]), *(",".join(map(str, row.values())) for row in log)]
    (place / "log.csv").write_text("\n".join(rows))
    prudent.save(prudent.from_episodes(log).model, place / "learned.json")
    return place


VERBS = [
    ("solve", "model.json", "--alpha", 0.1, "--decisions", "--save", "a_plan_in_a_file-with-a-long-name.safetensors"),
    ("solve", "model.json", "--alpha", 0.1, "--slack", 0.05),
    ("solve", "learned.json", "--alpha", 0.1, "--uncertainty", 0.9),
    ("search", "model.json", "--alpha", 0.1),
    ("evaluate", "model.json", "plan.safetensors"),
    ("simulate", "model.json", "plan.safetensors", "--episodes", 50, "--paths", 2),
    ("curve", "model.json"),
    ("compare", "betting-game", "--alpha", 0.1, "--set", "stages=2"),
    ("frontier", "model.json", "--alpha", 0.1),
    ("chances", "model.json", "--budgets", "3,123456.5"),
    ("study", "betting-game", "--set", "stages=2,-1", "--alpha", "0.2", "--workers", 1),
    ("check", "model.json"),
    ("learn", "log.csv"),
    ("stress", "learned.json", "--alpha", 0.1, "--samples", 5),
    ("solve", "model.json", "--alpha", 2),
    ("solve", "nowhere-to-be-found.json", "--alpha", 0.1),
    *((verb, "--help") for verb in main.commands),
]


@pytest.mark.parametrize("width", [80, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("asked", VERBS, ids=lambda asked: " ".join(map(str, asked))[:40])
def test_no_word_is_cut(asked, width, files, monkeypatch):
    monkeypatch.chdir(files)
    shown = []
    show = terminal.show
    monkeypatch.setattr(terminal, "show", lambda table: (shown.append(table), show(table)))

    def lines(columns, **more):
        result = CliRunner().invoke(main, list(map(str, asked)), env={"COLUMNS": str(columns), **more})
        assert result.exit_code in (0, 2), result.output
        return [CODES.sub("", line) for line in result.stdout.splitlines()]

    whole = set(" ".join(lines(100_000, FORCE_COLOR="1")).split())
    on_a_terminal, piped = lines(width, FORCE_COLOR="1"), lines(width)
    for found in (on_a_terminal, piped):
        cut = set(" ".join(found).split()) - whole
        assert not {word for word in cut if not re.fullmatch(r"[0-9.e-]+|[█▒]+", word)}  # seconds and bars differ
    for line in on_a_terminal:
        assert len(line) <= width or len(line.split()) == 1
    for table in shown:
        given = " ".join([table.title, *table.notes, *(cell for row in (table.head, *table.rows) for cell in row)])
        for in_a_pipe in (True, False):
            text = " ".join(line.plain for line in table.lines("utf-8", width, piped=in_a_pipe))
            assert set(text.split()) == set(given.split())


def test_messages_of_a_terminal_break_between_words(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with pytest.raises(SystemExit):
        main(["solve", "figure-2", "--alpha", "0.1", "--objective", "of a kind that nobody has ever heard of"])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 1 and max(map(len, lines)) <= 80
    with pytest.raises(SystemExit):
        main(
            [
                "solve",
                "figure-2",
                "--alpha",
                "0.1",
                "--device",
                "a device of a kind that nobody has ever heard of at all",
            ]
        )
    assert max(map(len, capsys.readouterr().err.splitlines())) <= 80
