"""Measurements in a process of their own: with a time limit, and a memory that nothing else has used.

A child prints one JSON object on a line for each thing it found, so that what it found before a limit counts.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

HERE = Path(__file__).parent


def ask(script: str, *arguments: object, limit: float, source: Path | None = None) -> tuple[list[dict[str, Any]], str]:
    """Run a script of this folder; return what it printed, and why it ended early, if it did.

    With a ``source`` the package is taken from there.
    """
    environment = os.environ if source is None else {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        trouble = ""
        try:
            code = subprocess.run(
                command, stdout=out, stderr=err, timeout=limit, check=False, env=environment
            ).returncode
            err.seek(0)
            lines = err.read().strip().splitlines()
            if code:
                trouble = f"ended with {code}: {lines[-1][:200] if lines else 'no message'}"
        except subprocess.TimeoutExpired:
            trouble = f"stopped after {limit:g} s"
        out.seek(0)
        found = [json.loads(line) for line in out if line.startswith("{")]
    return found, trouble


def tell(**found: Any) -> None:
    """Print one thing that was found."""
    print(json.dumps(found), flush=True)
