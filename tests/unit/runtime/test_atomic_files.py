"""Killed in the middle of a write, for real: a file is the old one or the new one, whole."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import prudent

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, so that a kill costs no start")

# A process of its own, since the one of the tests may have threads: it forks writers, kills them, and looks.
RANDOM = """
import json, os, pathlib, random, signal, sys, time
import numpy as np
import prudent
from prudent.io import plan as plan_file

folder, kills = pathlib.Path(sys.argv[1]), int(sys.argv[2])
path, draw = folder / "plan.safetensors", random.Random(7)
model = prudent.domains.betting_game()
plans = [prudent.solve(model, alpha) for alpha in (0.1, 0.2)]
known = set()
for plan in plans:  # what may be there: one plan or the other
    prudent.save(plan, folder / "one.safetensors")
    known.add((folder / "one.safetensors").read_bytes())
found = []
for _ in range(kills):
    if draw.random() < 0.3:
        path.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        while True:
            for plan in plans:
                prudent.save(plan, path)
    time.sleep(draw.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    left = [other.name for other in folder.iterdir() if other.name.endswith(".tmp")]
    if path.exists():
        prudent.load_plan(path, model)
        found.append(["whole" if path.read_bytes() in known else "torn", len(left)])
    else:
        found.append(["absent", len(left)])
prudent.save(plans[0], path)
assert prudent.load_plan(path, model).alpha == 0.1
print(json.dumps(found))
"""


def run(program, *arguments):
    done = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_plan_is_the_old_one_or_the_new_one(tmp_path):
    found = run(RANDOM, tmp_path, 40)
    states = [state for state, _ in found]
    assert set(states) <= {"absent", "whole"}
    assert states.count("whole") >= 20
    assert found[-1][1] > 0  # some kills were in the middle of a write: they left a temporary file
    for path in tmp_path.glob(".*.tmp"):  # which nobody takes for a plan, or a model
        with pytest.raises(prudent.PrudentError, match="plans are read and written as"):
            prudent.load_plan(path, prudent.domains.betting_game())
        with pytest.raises(prudent.PrudentError, match="unknown kind of file"):
            prudent.load(path)


# The same at every step of a write, on purpose.
STEPS = """
import json, os, pathlib, signal, sys
from prudent.runtime import atomic_files as atomic

path, found = pathlib.Path(sys.argv[1]) / "note.json", {}
for module, name in (
    (pathlib.Path, "open"), (os, "fsync"), (os, "chmod"), (os, "replace"), (atomic, "_flush_folder")
):
    for when in ("before", "after"):
        path.write_bytes(b"old")
        child = os.fork()
        if child == 0:
            real = getattr(module, name)

            def killed(*arguments, **options):
                if when == "after":
                    real(*arguments, **options)
                os.kill(os.getpid(), signal.SIGKILL)

            setattr(module, name, killed)
            atomic.write_bytes(path, b"new" * 100_000)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        content = path.read_bytes()
        found[f"{when} {name}"] = {b"old": "old", b"new" * 100_000: "new"}.get(content, "torn")
        atomic.write_bytes(path, b"newer")
        assert path.read_bytes() == b"newer"
print(json.dumps(found))
"""


def test_killed_at_each_step_of_a_write(tmp_path):
    found = run(STEPS, tmp_path)
    assert len(found) == 10
    new = {step for step, content in found.items() if content == "new"}
    assert new == {"after replace", "before _flush_folder", "after _flush_folder"}
    assert set(found.values()) == {"old", "new"}


# The report's files, of invented numbers and pictures, so that all the time goes into writing.
REPORT = """
import json, os, pathlib, random, signal, sys, time
from dataclasses import fields
from prudent.apps.paper import report
from prudent.apps.paper.experiments import ALPHAS, DOMAINS, METHODS, Results, Row

out, kills, draw = pathlib.Path(sys.argv[1]), int(sys.argv[2]), random.Random(7)
numbers = {item.name: 1.0 for item in fields(Row)[3:-1]}
rows = [Row(d, m, a, **numbers, status="optimal") for d in DOMAINS for m in METHODS for a in ALPHAS]
stems = ["summary", "summary-narrow", *(f"{d}-{a:g}" for d, alphas in report.FIGURES.items() for a in alphas)]
pictures = {f"{stem}.{kind}": draw.randbytes(25_000) for stem in stems for kind in ("png", "svg")}
report.draw_figures = lambda results: pictures
names = [*pictures, "results.json", "results.csv", "index.html"]
known = {name: set() for name in names}


def write(episodes):
    report.run_experiments = lambda *_: Results(episodes, False, rows)
    report.reproduce(out, episodes=episodes)


for episodes in (20, 21):
    write(episodes)
    for name in names:
        known[name].add((out / name).read_bytes())
found = []
for _ in range(kills):
    if draw.random() < 0.3:
        for name in names:
            (out / name).unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        while True:
            write(20)
            write(21)
    time.sleep(draw.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for name in names:
        path = out / name
        found.append("absent" if not path.exists() else "whole" if path.read_bytes() in known[name] else "torn")
write(20)
assert json.loads((out / "results.json").read_text())["episodes"] == 20
print(json.dumps(found))
"""


def test_the_report_is_never_half_written(tmp_path):
    found = run(REPORT, tmp_path, 20)
    assert set(found) <= {"absent", "whole"}
    assert found.count("whole") >= 20


@pytest.mark.slow
def test_reproduce_killed_in_the_middle_is_simply_run_again(tmp_path):
    command = [sys.executable, "-m", "prudent.apps.cli.main", "reproduce", "--out", str(tmp_path), "--episodes", "10"]
    for seconds in (2.0, 6.0):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        child.wait()
        if (tmp_path / "results.json").exists():
            json.loads((tmp_path / "results.json").read_text())
    subprocess.run(command, check=True, capture_output=True)
    assert len(json.loads((tmp_path / "results.json").read_text())["rows"]) == 32
    assert (tmp_path / "index.html").read_text().rstrip().endswith("</html>")
