"""Warming up: everything is asked once, with one bar and without a word; the command says where kernels are kept."""

import pytest
from click.testing import CliRunner

from prudent.apps import warm_up
from prudent.apps.cli.main import main
from prudent.kernels import cache_folder, compiler
from prudent.runtime.progress import Progress


def test_all_tasks_run_and_are_counted(monkeypatch, capsys):
    at = []
    monkeypatch.setattr(Progress, "at", lambda self, done, total=None: at.append((self.label, done, self.total)))
    tell = compiler.tell
    assert warm_up.warm_up() >= 0
    own = [(count, total) for label, count, total in at if label == "compiling"]
    assert own == [(count, warm_up.TASKS) for count in range(warm_up.TASKS + 1)]
    assert compiler.tell is tell
    assert capsys.readouterr().err == ""


def test_the_command_says_where_kernels_are_kept_and_how_long_it_took(monkeypatch):
    monkeypatch.setattr(warm_up, "tasks", lambda: [])
    answer = CliRunner().invoke(main, ["warm-up"])
    assert answer.exit_code == 0
    assert answer.output == f"ready: compiling took 0 s; the kernels are kept in {cache_folder()}\n"


def test_after_an_error_compilation_is_told_again(monkeypatch):
    tell = compiler.tell
    monkeypatch.setattr(warm_up, "tasks", lambda: iter([lambda: 1 / 0]))
    with pytest.raises(ZeroDivisionError):
        warm_up.warm_up()
    assert compiler.tell is tell
