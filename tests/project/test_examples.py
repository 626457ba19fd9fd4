"""The scripts in examples/ run as they are and print what they promise."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import prudent

EXAMPLES = Path(__file__).parents[2] / "examples"
ANNOUNCED = re.compile(r"(prudent: compiling kernels for |.* - distributed\.[\w.]+ - ).*\n")
"""What may be said beside: compilation, and what Dask logs on a busy machine."""


@pytest.fixture
def folder(tmp_path):
    """Return a copy of the folder of the scripts."""
    return shutil.copytree(EXAMPLES, tmp_path / "examples")


@pytest.fixture
def printed(folder, monkeypatch, capsys):
    """Return what runs a script in a copy of its folder, as a program."""

    def run(name):
        monkeypatch.chdir(folder)
        runpy.run_path(name, run_name="__main__")
        out, err = capsys.readouterr()
        assert ANNOUNCED.sub("", err) == ""
        return out

    return run


def started(folder, *command):
    """Return what a program prints that starts others."""
    done = subprocess.run([*command], cwd=folder, capture_output=True, text=True, timeout=300)
    assert (done.returncode, ANNOUNCED.sub("", done.stderr)) == (0, "")
    return done.stdout


def numbers(text):
    return [float(found) for found in re.findall(r"\d+\.\d+", text)]


def test_own_model(printed):
    assert printed("own_model.py") == (
        "optimal: worst 1% of days 49.0 minutes, all days 29.2\n"
        "state    spent  action\nhome     0      train\nstation  10     bus\nstation  25     taxi\n"
    )


def test_inventory_from_a_spreadsheet(printed):
    first, bold, second, careful = printed("inventory_from_a_spreadsheet.py").splitlines()
    (bold_mean, bold_tail), (mean, tail) = numbers(first), numbers(second)
    assert first.startswith("expected-cost plan: expected cost ")
    assert second.startswith("risk-averse plan: expected cost ")
    assert bold_mean < mean < tail < bold_tail
    assert all(re.fullmatch(r"  first order: 12; \d+ decisions in all", each) for each in (bold, careful))
    # The mean again, by recursion over the same file and nothing of the package.
    assert bold_mean == pytest.approx(least_mean(1, 0), abs=0.005)


def least_mean(week, stock):
    lines = [line.split(",") for line in (EXAMPLES / "demand.csv").read_text().split()[2:]]
    seen = [(int(demand), int(times)) for when, demand, times in lines if int(when) == week]
    if not seen:
        return 0.0
    total, best = sum(times for _, times in seen), float("inf")
    for order in range(0, min(12, 16 - stock) + 1, 2):
        mean = 0.0
        for demand, times in seen:
            left = max(stock + order - demand, 0)
            paid = 3 * order + left + 9 * max(demand - stock - order, 0)
            mean += times / total * (paid + least_mean(week + 1, left))
        best = min(best, mean)
    return best


def test_route_in_a_map(printed):
    pytest.importorskip("networkx")
    lines = printed("route_in_a_map.py").splitlines()
    to = [line.rpartition(" ")[2] for line in lines]
    assert to[1:4] == ["bridge", "airport", "airport"] and to[5:] == ["bridge", "tunnel", "airport"]
    (bold, _), (cvar, mean) = numbers(lines[0].partition("CVaR")[2]), numbers(lines[4].partition("CVaR")[2])
    assert (bold, (cvar, mean)) == (pytest.approx(0.8 * 6 + 0.2 * 15 + 11.5), cheapest_tail())


def cheapest_tail():
    """Return CVaR and mean of the best way over the bridge, by trying all answers to the time it took there."""
    road = {"airport": {10: 0.95, 40: 0.05}, "tunnel": {17: 0.5, 21: 0.5}}
    found = []
    for on_time, late in product(road, repeat=2):
        total = [(t + 6, 0.8 * p) for t, p in road[on_time].items()] + [
            (t + 15, 0.2 * p) for t, p in road[late].items()
        ]
        left, cvar = 0.1, 0.0
        for time, chance in sorted(total, reverse=True):
            cvar, left = cvar + time * min(chance, left) / 0.1, left - min(chance, left)
        found.append((round(cvar, 9), sum(t * p for t, p in total)))
    cvar, mean = min(found)
    return pytest.approx(cvar, abs=0.05), pytest.approx(mean, abs=0.005)


def test_prism_model_and_its_chain(printed):
    pytest.importorskip("stormpy")
    model, plan, chain = printed("prism_model_and_its_chain.py").splitlines()
    assert model == "<SSP packets: 7 states, 9 actions, 15 outcomes>"
    assert plan.startswith("optimal: CVaR ")
    assert numbers(chain) == [numbers(plan)[1]]  # Storm finds the mean that was promised


def test_gymnasium_agent(printed):
    gymnasium = pytest.importorskip("gymnasium")
    plan, runs = printed("gymnasium_agent.py").splitlines()
    assert plan.startswith("optimal: CVaR ")
    env = gymnasium.make("CliffWalking-v1", is_slippery=True, max_episode_steps=-1)
    found = prudent.solve(prudent.from_gymnasium(env), alpha=0.1)
    spread = prudent.evaluate(found.model, found.policy).std
    assert abs(numbers(runs)[0] - numbers(plan)[1]) < 4 * spread / 200**0.5


def test_study_on_dask(folder):
    pytest.importorskip("distributed")
    lines = started(folder, sys.executable, "study_on_dask.py").splitlines()
    assert lines[2:4] == ["10 10 0.02 186.399", "10 10 0.2 164.816"]


def test_study_on_mpi(folder):
    pytest.importorskip("mpi4py")
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if mpiexec is None:
        pytest.skip("there is no MPI here")
    command = mpiexec, "-n", "2", sys.executable, "-m", "mpi4py.futures", "study_on_mpi.py"
    *rows, simulated = started(folder, *command).splitlines()
    assert len(rows) == 8 and rows[2:4] == ["10 10 0.02 186.399", "10 10 0.2 164.816"]
    cvar, error = numbers(simulated)
    assert abs(cvar - 186.399) <= 4 * error
