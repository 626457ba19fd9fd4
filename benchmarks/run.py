"""One command, one table: how fast, against what, and how far from what the machine could do.

    python benchmarks/run.py [--quick] [--only NAME ...] [--out FOLDER]

Prints the table, writes results.json and results.html.  Parts: paper, programs, references, savings, streaming, growth,
cores, storm, awkward, cents, others, memory.  A part that fails becomes a row with the reason, and
the command exits with 1.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's products on one core, as all else that is compared

import json
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from rich.console import Console

from table import Found, Row, rich_table

HERE = Path(__file__).parent
PARTS = {
    "paper": "against_paper",
    "programs": "paper_method",
    "references": "references",
    "savings": "savings",
    "streaming": "streaming",
    "growth": "growth",
    "cores": "cores",
    "storm": "against_storm",
    "awkward": "awkward_models",
    "cents": "in_cents",
    "others": "against_others",
    "memory": "memory",
}
COMMIT = ("git", "describe", "--always", "--dirty")
PACKAGES = ("prudent", "numpy", "scipy", "numba", "stormpy", "quantecon", "mdpsolver")


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="Measure Prudent; see the head of this file.")
    parser.add_argument("--quick", action="store_true", help="smaller models, fewer turns: a minute or two")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="NAME", help=", ".join(PARTS))
    parser.add_argument("--out", type=Path, default=HERE, help="the folder to write to")
    options = parser.parse_args()
    about, found, failed = described(options.quick), Found(), False
    for name in options.only:
        began = time.perf_counter()
        part = import_module(PARTS[name])
        try:
            new = part.run(options.quick)
        except Exception as error:
            traceback.print_exc()
            new, failed = Found([Row(part.PART, "all", "failed", None, note=f"{type(error).__name__}: {error}")]), True
        found.rows += new.rows
        found.series += new.series
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        write(options.out, about, found)  # what is there counts, should the rest be stopped
    console = Console() if sys.stdout.isatty() else Console(width=180)
    console.print(rich_table(found.rows))
    print(f"written: {options.out / 'results.json'}, {options.out / 'results.html'}")
    return int(failed)


def write(folder: Path, about: dict[str, Any], found: Found) -> None:
    """Write the results as data and as a page."""
    from page import page

    folder.mkdir(parents=True, exist_ok=True)
    series = [vars(line) for line in found.series]
    results = {"about": about, "rows": [row.to_dict() for row in found.rows], "series": series}
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "results.html").write_text(page(about, found.rows, found.series))


def described(quick: bool) -> dict[str, Any]:
    """Say what was measured where and when."""
    from growth import caches

    installed = {name: version for name in PACKAGES if (version := _version(name))}
    return {
        "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": _said(
            lambda: subprocess.check_output(["git", "describe", "--always", "--dirty"], cwd=HERE, text=True)
        ),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "caches": ", ".join(f"{name} {int(size) // 1024} KiB" for name, size in caches().items()),
        "load": _said(lambda: f"{os.getloadavg()[0]:.1f} when it began"),
        "system": f"{platform.system()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {version}" for name, version in installed.items()),
        "quick": quick,
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _said(ask: Callable[[], str]) -> str:
    try:
        return ask().strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _processor() -> str:
    for line in _said(lambda: Path("/proc/cpuinfo").read_text()).splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
