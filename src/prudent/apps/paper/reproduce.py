"""Everything at once: results.json, results.csv, pictures, and the page."""

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path

from prudent.apps.paper.experiments import Results, run_experiments
from prudent.apps.paper.page import draw_figures, render_page
from prudent.errors import PrudentError
from prudent.runtime.atomic_files import write_bytes


def reproduce(out: Path, *, episodes: int = 20_000, traffic: str | None = None) -> Results:
    """Run the paper's experiments and write the report into a folder."""
    if episodes < 2:
        raise PrudentError(f"episodes is {episodes}; standard errors need at least 2")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrudentError(f"{out}: cannot be created as a folder: {error.strerror or error}") from None
    results = run_experiments(episodes, traffic)
    pictures = draw_figures(results)
    for name, picture in pictures.items():
        write_bytes(out / name, picture)
    write_bytes(out / "results.json", json.dumps(results.to_dict(), indent=1, allow_nan=False).encode())
    text = io.StringIO()
    writer = csv.DictWriter(text, list(asdict(results.rows[0])), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in results.rows)
    write_bytes(out / "results.csv", text.getvalue().encode())
    write_bytes(out / "index.html", render_page(results, pictures).encode())
    return results
