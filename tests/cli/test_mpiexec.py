"""``mpiexec -n N prudent solve``: the same answers on any number of ranks, whatever ends them."""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import prudent

TESTS = Path(__file__).parent.parent
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS / "gpu")]),
    # Open MPI runs for root, and more ranks than there are cores, only if it is told to; ranks that wait give way.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def found():
    """Whether there is an MPI that works."""
    if MPIEXEC is None or importlib.util.find_spec("mpi4py") is None:
        return False
    probe = [MPIEXEC, "-n", "2", sys.executable, "-c", "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"]
    return subprocess.run(probe, capture_output=True, timeout=60, env=ENVIRONMENT).returncode == 0


pytestmark = pytest.mark.skipif(not found(), reason="there is no MPI here, or no mpi4py")


@contextmanager
def begun(size, *arguments):
    child = subprocess.Popen(
        [MPIEXEC, "-n", str(size), sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    with child:
        try:
            yield child
        except BaseException:
            child.terminate()  # the launcher ends the ranks
            raise


def run(size, *arguments):
    with begun(size, *arguments) as child:
        out, err = child.communicate(timeout=300)
    return child.returncode, out, err


def answers(out):
    """Return the lines that are answers: launchers have their say, too."""
    return [json.loads(line) | {"seconds": 0} for line in out.splitlines() if line.startswith("{")]


SOLVES = """
import json, sys, zlib
import numpy as np
from mpi4py import MPI
import prudent
from prudent.apps.cli.main import main
from prudent.domains.registry import DOMAINS
from prudent.engine.sweep import rank_tiles
from prudent.engine.sweep.tile_layout import Tiling
from random_models import random_model

rank_tiles.SMALLEST = 1  # many pieces
Tiling.lanes = lambda tiling, parts, levels, strip, threads: threads  # work for all
for name in DOMAINS:
    main(["solve", name, "--alpha", "0.1", "--threads", "1", "--json"], standalone_mode=False)
sys.stdout = sys.__stdout__
for model in map(random_model, range(16)):
    plan = prudent.solve(model, 0.1, threads=1, comm=MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        plays = zlib.crc32(b"".join(np.ascontiguousarray(each).tobytes() for each in plan.policy.choices))
        print(json.dumps(plan.to_dict() | {"plays": plays}))
    else:
        assert plan is None
"""


@pytest.fixture(scope="module")
def truth():
    code, out, err = run(1, "-c", SOLVES)
    assert (code, len(answers(out))) == (0, 21), err
    return answers(out)


@pytest.mark.parametrize("size", [2, 3])
def test_every_number_of_ranks_finds_the_same(size, truth):
    code, out, err = run(size, "-c", SOLVES)
    assert code == 0, err
    assert answers(out) == truth


def test_rank_0_prints_saves_and_refuses(tmp_path):
    asked = ("solve", "deep-sea-treasure", "--set", "horizon=6", "--alpha", "0.1", "--json")
    code, out, err = run(2, "-m", "prudent.apps.cli.main", *asked, "--save", tmp_path / "plan.safetensors")
    plan = prudent.solve(prudent.domains.deep_sea_treasure(horizon=6), 0.1)
    assert (code, err) == (0, "")
    assert answers(out) == answers(json.dumps(plan.to_dict()))
    assert prudent.load_plan(tmp_path / "plan.safetensors", plan.model).cvar == plan.cvar
    code, out, err = run(2, "-m", "prudent.apps.cli.main", "solve", "no-model", "--alpha", "0.1")
    assert (code, answers(out), err.count("neither a domain nor a file")) == (2, [], 1)


LONG = """
import os, sys, time
import prudent.io.checkpoint
from prudent.apps.cli.main import main
from prudent.engine.sweep.rank_tiles import RankTileSweep, TilePart

def slow(kind):
    advanced = kind.advance

    def advance(self, last, *, final):
        found = advanced(self, last, final=final)
        if last > 20:
            os.write(2, f"at {self.ranks.rank} {os.getpid()}\\n".encode())  # whole lines
            time.sleep(0.02)  # so that it is not over before it is stopped
        return found

    kind.advance = advance

prudent.io.checkpoint.EVERY = 0.0
RankTileSweep.batch = 10_000  # a few levels at a time
slow(TilePart)
main(["solve", "betting-game", "--alpha", "0.2", "--threads", "1", "--json", *sys.argv[1:]])
"""


def under_way(child, rank):
    """Wait until the sweep is under way; return the process of a rank."""
    while not (found := re.fullmatch(rf"at {rank} (\d+)\n", line := child.stderr.readline())):
        assert line, "it ended before it swept"
    return int(found[1])


def test_ctrl_c_prints_what_is_known():
    with begun(2, "-c", LONG) as child:
        first = under_way(child, 0)
        version = subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True, env=ENVIRONMENT).stdout
        # Open MPI's launcher does not pass it on, but ends the job.
        os.kill(first if "open" in version.lower() or "prte" in version.lower() else child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=120)
    (plan,) = answers(out)
    assert (child.returncode, plan["status"]) == (130, "interrupted"), err
    assert plan["lower"] <= plan["cvar"] <= plan["upper"] * (1 + 1e-9)
    assert "Traceback" not in err


def test_a_rank_that_is_killed_ends_all_and_the_place_is_kept(tmp_path):
    place = tmp_path / "place"
    with begun(2, "-c", LONG, "--checkpoint", place) as child:
        os.kill(under_way(child, 1), signal.SIGKILL)
        out, err = child.communicate(timeout=120)
    assert child.returncode != 0 and not answers(out)
    assert (out + err).strip()  # the launcher says so
    assert place.exists()
    quick = re.sub(r"slow\(\w+\)\n", "", LONG)
    code, out, err = run(3, "-c", quick, "--checkpoint", place)  # on more ranks
    truth = prudent.solve(prudent.domains.betting_game(), 0.2)
    assert code == 0 and not place.exists()
    assert "place was saved by 2 ranks; 3 resume from it" in err
    assert answers(out) == answers(json.dumps(truth.to_dict()))
