"""How seconds grow with states, with budgets and with threads, on random finite-horizon models.

The rate falls where what a stage reads, the rows of the next stage for both objectives, outgrows a cache: so rates are
drawn against the bytes of those rows, with the sizes of this machine's caches marked.
"""

from pathlib import Path

import prudent
from cases import ONE_CORE, Case, fifty_thousand, staged, wide
from table import Found, Row, Series
from timing import Spread, interleaved

PART = "growth"
STAGES = 20
WIDTHS = (3, 10, 30, 100, 300, 1000, 3000)
COSTS = (5, 20, 80, 320, 1280, 5120)
"""Largest costs, at 30 states a stage: the number of budgets grows with them."""

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def caches() -> dict[str, float]:
    """Return the bytes of this machine's data caches by name, as far as the system tells."""
    found = {}
    for index in sorted(CACHES.glob("index*")):
        kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
        if kind != "Instruction" and size.endswith("K"):
            found[f"L{level}"] = float(size[:-1]) * 1024
    return found


def run(quick: bool) -> Found:
    """Measure models of growing size, then threads."""
    found = Found()
    widths, costs = (WIDTHS[1:4], COSTS[:3]) if quick else (WIDTHS, COSTS)
    families = {
        "more states": [(width, 20) for width in widths],
        "more budgets": [(30, most) for most in costs],
    }
    for name, sizes in families.items():
        work, reads, seconds = [], [], []
        for width, most in sizes:
            case = Case(f"{STAGES} x {width:,}, costs to {most:,}", staged(STAGES, width, most), 0.05)
            time = interleaved({"solve": lambda case=case: case.solve(**ONE_CORE)}, turns=5, limit=10.0)["solve"]
            work.append(float(case.naive) / 2)
            reads.append(16.0 * width * case.levels)
            seconds.append(time)
            size = f"{len(case.prepared.cost):,} outcomes x {case.levels:,} levels"
            note = f"{size}; a stage reads {reads[-1] / 1024:,.0f} KiB"
            rate = Spread(tuple(value / 1e9 for value in time.per(case.naive).values))
            found.rows += [
                Row.of(PART, f"{name}: {case.name}", "solve, one core", time, " s", note=note),
                Row.of(PART, f"{name}: {case.name}", "naive rate", rate, " G/s"),
            ]
        found.series += drawn(name, work, reads, seconds)
    return Found([*found.rows, *threads(fifty_thousand(quick), quick), *threads(wide(quick), quick)], found.series)


def drawn(name: str, work: list[float], reads: list[float], seconds: list[Spread]) -> list[Series]:
    """Return the lines of the two plots."""
    rates = [time.per(2 * amount) for time, amount in zip(seconds, work, strict=True)]

    def line(plot: str, x_label: str, y_label: str, x: list[float], y: list[Spread], marks: dict[str, float]) -> Series:
        low, high = [value.low for value in y], [value.high for value in y]
        return Series(plot, name, x_label, y_label, x, [value.median for value in y], low, high, marks)

    return [
        line("Seconds of a solve on one core", "outcomes x budgets", "seconds", work, seconds, {}),
        line(
            "Naive multiply-adds a second on one core",
            "bytes of the rows that a stage reads",
            "multiply-adds a second",
            reads,
            rates,
            caches(),
        ),
    ]


def threads(case: Case, quick: bool) -> list[Row]:
    """Measure two threads against one."""
    tasks = {f"{n}": lambda n=n: prudent.solve(case.model, case.alpha, threads=n) for n in (1, 2)}
    seconds = interleaved(tasks, turns=3 if quick else 7)
    return [
        Row.of(PART, case.about, "one thread", seconds["1"], " s"),
        Row.of(PART, case.about, "two threads", seconds["2"], " s"),
        Row.of(PART, case.about, "one thread / two", seconds["1"].over(seconds["2"]), "x", note="2 would be perfect"),
    ]
