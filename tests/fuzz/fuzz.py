"""The long hunt, with atheris: ``python tests/fuzz/fuzz.py json --runs 50000``; ``make fuzz`` hunts in every format.

An input may take 10 seconds and the process 2 GiB; warnings are errors; the kernels are compiled to notice an index
out of bounds, which otherwise may pass unseen.  An input that breaks a promise is left in ``tests/fuzz/corpus/FORMAT``,
where the daily run finds it again, and the exit status is not 0.
"""

import argparse
import os
import sys
import tempfile
import warnings
from pathlib import Path

os.environ["NUMBA_BOUNDSCHECK"] = "1"
os.environ["NUMBA_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / "prudent-fuzz-kernels")  # apart from the unchecked

try:
    import atheris
except ImportError:
    sys.exit("the long hunt needs atheris; install it with: .venv/bin/python -m pip install --editable '.[fuzz]'")

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

import prudent.planning.evaluate  # first, and as they are: numba cannot compile what atheris has changed
import prudent.planning.solve

for loaded in tuple(sys.modules):  # the readers came along with the solver
    if loaded.partition(".")[0] == "json" or loaded.startswith("prudent.io."):
        del sys.modules[loaded]
with atheris.instrument_imports(include=["prudent", "json"]):
    import json  # noqa: F401

    import prudent.domains.navigation
    import prudent.io.json
    import prudent.io.plan
    import prudent.io.umb.read  # noqa: F401

import targets  # noqa: E402

SECONDS, MEGABYTES, LENGTH = 10, 2048, 8192


def main() -> None:
    """Hunt in one format."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format", choices=targets.TARGETS)
    parser.add_argument("--runs", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    warnings.simplefilter("error")
    target, count = targets.TARGETS[asked.format], 0

    def once(data: bytes) -> None:
        nonlocal count
        count += 1
        target(data)
        if count == asked.runs:
            taken = targets.accepted[asked.format]
            print(f"{asked.format}: {count:,} inputs, {taken:,} files accepted, no bug", flush=True)

    home = targets.CORPUS / asked.format
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as grown:  # what the fuzzer finds interesting is not kept
        for i, raw in enumerate(targets.seeds()[asked.format]):
            (Path(grown) / f"seed-{i}").write_bytes(raw)
        flags = [
            f"-runs={asked.runs}",
            f"-seed={asked.seed}",
            f"-timeout={SECONDS}",
            f"-rss_limit_mb={MEGABYTES}",
            f"-max_len={LENGTH}",
            f"-artifact_prefix={home}/",
            "-verbosity=0",
        ]
        atheris.Setup([sys.argv[0], *flags, grown, str(home)], once)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
