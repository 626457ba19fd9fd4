"""How long reading a UMB file of three million branches takes, as a ratio to Storm's own reading of the same file.

    python benchmarks/umb_reading.py [STATES]

Plain and gzipped; both read to a model that can be solved, in turns.  Needs the extra ``storm``.
"""

import gzip
import sys
import tempfile
from pathlib import Path

import stormpy

import prudent
from large_model import large_model
from timing import interleaved


def main(n_states: int) -> None:
    """Write a random model, and read it."""
    model = large_model(n_states, 0.05)
    with tempfile.TemporaryDirectory() as folder:
        packed, plain = Path(folder) / "packed.umb", Path(folder) / "plain.umb"
        prudent.save(model, packed)
        plain.write_bytes(gzip.decompress(packed.read_bytes()))
        if prudent.load(packed).fingerprint != model.fingerprint:
            raise AssertionError("what is read is not what was written")
        for path in (plain, packed):
            found = interleaved(
                {"prudent": lambda path=path: prudent.load(path), "Storm": lambda path=path: storm_reads(path)}
            )
            ratio = found["prudent"].over(found["Storm"])
            print(
                f"{path.stem}: {model.n_outcomes:,} outcomes, {path.stat().st_size / 1e6:.0f} MB: "
                f"prudent {found['prudent'].median:.2f} s, Storm {found['Storm'].median:.2f} s, "
                f"ratio {ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
            )


def storm_reads(path: Path) -> object:
    """Read a file as Storm's sparse model."""
    return stormpy.build_model_from_umb(path)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300_001)
