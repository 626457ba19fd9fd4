"""Large models on all cores: against the code before, and with more and more threads.

    python benchmarks/cores.py NAME THREADS ...

Each measurement is in a process of its own: the seconds of whole solves with so many threads, in turns, those of the
sweep alone, and the memory on top of the interpreter with the kernels loaded and the model built.  The code before is
that of the commit ``BEFORE``, from this repository's history, or from the folder that ``PRUDENT_BEFORE`` names.
"""

import io
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import prudent
from cases import Case, fifty_thousand, staged, wide
from child import HERE, ask, tell
from large_model import large_model
from memory import forget_peak, in_memory
from prudent.engine.sweep.levels import LevelSweep
from prudent.engine.sweep.tiles import TileSweep
from table import Found, Row
from timing import Spread, interleaved

PART = "all cores"
BEFORE = "80c18b4"
THREADS = (1, 2, 4, 8, 16)
CASES: dict[str, Callable[[], Case]] = {
    "random, 200,000 states": lambda: Case("random", large_model(200_000, 0.05), 0.05),
    "random, 1,000,000 states": lambda: Case("random", large_model(1_000_000, 0.05), 0.05),
    "inventory, capacity 100": lambda: Case("IC", prudent.domains.inventory_control(capacity=100, demand=50), 0.02),
    "staged, 500 x 100": lambda: fifty_thousand(quick=False),
    "staged, 50 x 1,000": lambda: wide(quick=False),
    "random, 10,000 states": lambda: Case("random", large_model(10_000, 0.05), 0.05),
    "staged, 50 x 100": lambda: fifty_thousand(quick=True),
}
QUICK = ("random, 10,000 states", "staged, 50 x 100")
FASTER = {"random, 200,000 states": 10.0}
"""How many times faster than before one core is to be."""

SMALL = {"random": lambda: large_model(300, 0.05), "IC": prudent.domains.inventory_control}
"""Models with which kernels are compiled, by the name of the case."""


def run(quick: bool) -> Found:
    """Ask children for each model: before and now in turns on one core, then now with more threads."""
    found = Found()
    threads = [n for n in THREADS if n <= (os.cpu_count() or 1)]
    with TemporaryDirectory() as folder:
        before, lacking = source_before(Path(folder))
        for name in QUICK if quick else list(CASES)[:5]:
            found.rows += compared(name, before, lacking, quick) + with_threads(name, threads, quick)
    return found


def source_before(folder: Path) -> tuple[Path | None, str]:
    """Return where the code before is, or why it is not here."""
    if given := os.environ.get("PRUDENT_BEFORE"):
        return Path(given), ""
    try:
        archive = subprocess.run(
            ["git", "archive", BEFORE, "src"], cwd=HERE.parent, capture_output=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None, f"commit {BEFORE} is not in this repository; name its sources with PRUDENT_BEFORE=FOLDER"
    tarfile.open(fileobj=io.BytesIO(archive)).extractall(folder, filter="data")
    return folder / "src", ""


def compared(name: str, before: Path | None, lacking: str, quick: bool) -> list[Row]:
    """Measure one core, before and now in turns; the largest model is measured now alone."""
    if before is None or name == "random, 1,000,000 states":
        return [Row(PART, name, "before / now", None, note=lacking)] if lacking else []
    answers: dict[str, list[dict[str, Any]]] = {"before": [], "now": []}
    for _ in range(2):
        for which, source in (("before", before), ("now", None)):
            told, trouble = ask("cores.py", name, 1, limit=600, source=source)
            if not told:
                return [Row(PART, name, f"{which}, not measured", None, note=trouble)]
            answers[which] += told
    seconds = {which: Spread(tuple(min(each["solve"][0]) for each in told)) for which, told in answers.items()}
    memory = {which: min(each["bytes"] for each in told) / 1e6 for which, told in answers.items()}
    old, new = answers["before"][0], answers["now"][0]
    agree = max(abs(new[what] / old[what] - 1) for what in ("cvar", "expected"))
    return [
        Row.of(PART, name, "before, one thread", seconds["before"], " s", note=f"{memory['before']:,.0f} MB"),
        Row.of(PART, name, "now, one thread", seconds["now"], " s", note=f"{memory['now']:,.0f} MB"),
        Row.of(
            PART, name, "before / now", seconds["before"].over(seconds["now"]), "x", aim=FASTER.get(name),
            note=f"answers differ by {agree:.0e}, relatively",
        ),
        Row(PART, name, "memory before / now", memory["before"] / memory["now"], "x", aim=1.0),
    ]  # fmt: skip


def with_threads(name: str, threads: list[int], quick: bool) -> list[Row]:
    """Measure solves with more and more threads, in turns."""
    told, trouble = ask("cores.py", name, *threads, limit=600)
    if not told:
        return [Row(PART, name, "threads, not measured", None, note=trouble)]
    (answer,) = told
    rows = []
    for i, n in enumerate(threads):
        seconds, sweep = Spread(tuple(answer["solve"][i])), Spread(tuple(answer["sweep"][i]))
        said = f"the sweep alone {sweep.median:.3g} s"
        rows.append(Row.of(PART, name, f"solve, {n} threads", seconds, " s", note=said))
        if i > 0:
            gain = Spread(tuple(answer["solve"][0])).over(seconds)
            alone = Spread(tuple(answer["sweep"][0])).over(sweep).median
            aim = {2: 1.7, 16: 6.0}.get(n)
            rows.append(Row.of(PART, name, f"1 thread / {n}", gain, "x", aim=aim, note=f"the sweep alone {alone:.3g}x"))
    takes = answer["forecast"]
    rows += [
        Row(PART, name, "forecast / solve", takes["seconds"] / min(answer["solve"][-1]), "x", note="time, all threads"),
        Row(PART, name, "forecast / memory", takes["memory"] / answer["bytes"], "x", note="by prudent.check"),
    ]
    return rows


def measure(name: str, threads: list[int]) -> None:
    """Tell what solves of one model take."""
    case = CASES[name]()
    small = SMALL.get(case.name, lambda: staged(5, 10))()
    prudent.solve(small, case.alpha)  # the kernels are there
    before = in_memory("VmRSS")
    forget_peak()
    plan = case.solve(threads=threads[-1])
    peak = in_memory("VmHWM")
    report = prudent.check(case.model, alpha=case.alpha)
    spent = watched()
    sweeps: dict[str, list[float]] = {str(n): [] for n in threads}

    def solve(n: int) -> None:
        spent[0] = 0.0
        case.solve(threads=n)
        sweeps[str(n)].append(spent[0])

    turns = 1 if plan.seconds > 20 else 5
    tasks = {str(n): lambda n=n: solve(n) for n in threads}
    seconds = interleaved(tasks, turns=turns, limit=60.0, least=1, warm=turns > 1)
    tell(
        solve=[seconds[str(n)].values for n in threads],
        sweep=[sweeps[str(n)][-len(seconds[str(n)].values) :] for n in threads],
        bytes=max(peak - before, 1.0),
        forecast={"seconds": report.forecast.seconds, "memory": report.forecast.memory} if report.forecast else {},
        cvar=plan.cvar,
        expected=plan.expected,
    )


def watched() -> list[float]:
    """Return a place in which the seconds of sweeps add up."""
    spent = [0.0]
    for kind in (LevelSweep, TileSweep):

        def timed(self: Any, *arguments: Any, advance: Any = kind.advance, **options: Any) -> None:
            began = time.perf_counter()
            advance(self, *arguments, **options)
            spent[0] += time.perf_counter() - began

        kind.advance = timed  # type: ignore[method-assign]
    return spent


if __name__ == "__main__":
    measure(sys.argv[1], [int(each) for each in sys.argv[2:]])
