"""Peak memory of a whole solve, in a process of its own, and bytes for each outcome of the model.

    python benchmarks/memory.py NAME

The bytes count what a solve has in memory at most on top of the interpreter with the kernels loaded: the model, its
preparation and the tables.  On Linux they exclude the memory that building the model took.
"""

import resource
import sys
from contextlib import suppress
from pathlib import Path

import prudent
from cases import Case, fifty_thousand, inventory_control, traffic
from child import ask, tell
from large_model import large_model
from table import Found, Row

PART = "memory"


def in_memory(name: str) -> float:
    """Return the bytes in memory now (``VmRSS``), or the most since the last reset (``VmHWM``).

    Elsewhere than on Linux it is always the most so far; on Linux that figure would begin with the parent's.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return float(most) * (1 if sys.platform == "darwin" else 1024)
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def forget_peak() -> None:
    """Let the peak begin anew, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def measured(name: str) -> Case | None:
    """Return a case by name."""
    if name == "IC":
        return inventory_control()
    if name == "AN":
        return traffic()
    if name == "staged":
        return fifty_thousand(quick=False)
    return Case(f"random {int(name):,}", large_model(int(name), 0.05), 0.05)


def run(quick: bool) -> Found:
    """Ask a child for each model."""
    found = Found()
    for name in ("IC", "10000") if quick else ("IC", "AN", "staged", "100000"):
        answers, trouble = ask("memory.py", name, limit=300)
        if not answers:
            found.rows.append(Row(PART, name, "not measured", None, note=trouble))
        for answer in answers:
            size = f"{answer['outcomes']:,} outcomes, {answer['states']:,} states"
            found.rows += [
                Row(PART, answer["about"], "peak of the process", answer["peak"] / 1e6, " MB", note=size),
                Row(
                    PART,
                    answer["about"],
                    "bytes per outcome",
                    answer["solving"],
                    " B",
                    note=f"on top of {answer['idle'] / 1e6:.0f} MB; the model alone {answer['model']:.0f} B",
                ),
            ]
    return found


def main(name: str) -> None:
    """Solve one model and tell what that took."""
    prudent.solve(prudent.domains.figure_2(), 0.5)
    idle = in_memory("VmRSS")
    case = measured(name)
    if case is None:
        return
    model, building, size = in_memory("VmRSS") - idle, in_memory("VmHWM"), case.model.n_outcomes
    forget_peak()
    case.solve()
    solving = in_memory("VmHWM")
    tell(
        about=case.about,
        idle=idle,
        model=model / size,
        solving=(solving - idle) / size,
        peak=max(building, solving),
        outcomes=size,
        states=case.model.n_states,
    )


if __name__ == "__main__":
    main(sys.argv[1])
