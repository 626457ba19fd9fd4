"""The report as one self-contained page: summary, tables, figures, and where the paper's policies are not optimal.

The figures are the trade-off that each method makes, and the paper's histograms, from the simulated runs.
"""

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import prudent
from prudent.apps.paper.experiments import ALPHAS, DOMAINS, FLOOR, METHODS, TABLE_1, Results, Row, run_experiments
from prudent.errors import PrudentError
from prudent.plot.canvas import png, svg
from prudent.plot.panels import TradeOff, histograms, trade_offs
from prudent.plot.tails import common_bins
from prudent.runtime.atomic_files import refusing, write_bytes
from prudent.runtime.tables import Table, csv_text, percent

HERE = files("prudent.apps.paper")

FIGURES = {
    "inventory-control": (0.02,),
    "betting-game": (0.2,),
    "deep-sea-treasure": (0.02, 0.2),
    "autonomous-navigation": (0.02, 0.2),
}
"""Which histograms the paper shows."""

ORDER = ("cvar-wc", "cvar-ev", "expected", "exact")
"""The order of the histograms, from the top."""

BREAK_EVEN = {"inventory-control": 400.0}

NAVIGATION = {
    True: """Autonomous Navigation uses the paper's traffic data. Its durations have no common step, so they are rounded
        for planning. The bounds cover the rounding, and the optimum is known to a thousandth (status <em>within_gap</em>).
        The costs of the policies are those of the true durations.""",
    False: """Autonomous Navigation here is an invented network of the same kind, because the paper's traffic data are not
        part of Prudent. So there are no published numbers to compare with. <code>prudent reproduce --traffic FILE</code>
        uses the data.""",
}
"""What the page says of Autonomous Navigation, with the paper's traffic data and without."""

HEADING = re.compile(r'<h2 id="(.*?)">(.*?)</h2>')


def render_page(results: Results, pictures: dict[str, bytes]) -> str:
    """Return the page."""
    page, rings = (HERE / "page.html").read_text(encoding="utf-8"), any(row.paper_cvar for row in results.rows)
    best = results.row("deep-sea-treasure", "exact", 0.02)
    off = (row.off(what) for row in results.rows for what in ("cvar", "expected"))
    return Template(page).substitute(
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        version=escape(prudent.__version__),
        episodes=f"{results.episodes:,}",
        links="".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in HEADING.findall(page)),
        narrow=_image(pictures["summary-narrow.svg"]),
        wide=_image(pictures["summary.svg"]),
        rings="; a ring of the same colour is what the paper reports" if rings else "",
        table_1="".join(_domain_table(results, domain, title) for domain, title in DOMAINS.items()),
        navigation=NAVIGATION[results.traffic],
        table_2=_time_table(results),
        figures="".join(_figures(pictures)),
        bracket=_bracket(results),
        best_cvar=_number(best.cvar),
        best_expected=_number(best.expected),
        grids=_grids(results),
        floor=f"{FLOOR:g}",
        furthest=f"{max(abs(each) for each in off if each is not None):.1f}",  # a cell of Table 1 from the paper
    )


def draw_figures(results: Results) -> dict[str, bytes]:
    """Return pictures by name, each as PNG and as SVG: the summary, wide and narrow, and the histograms."""
    figures: dict[str, Any] = {
        name: trade_offs(_panels(results), columns) for name, columns in (("summary", 4), ("summary-narrow", 2))
    }
    for domain, alphas in FIGURES.items():
        runs = {key[1:]: runs for key, runs in results.runs.items() if key[0] == domain}
        bins = common_bins([each.distribution for each in runs.values()]).tolist()
        for alpha in alphas:
            shown = {METHODS[method]: runs[method, alpha] for method in ORDER}
            figures[f"{domain}-{alpha:g}"] = histograms(shown, alpha, bins=bins, mark=BREAK_EVEN.get(domain))
    return {f"{name}.{kind.__name__}": kind(figure) for name, figure in figures.items() for kind in (png, svg)}


def _panels(results: Results) -> list[TradeOff]:
    """Return a panel for each domain and alpha: exact numbers, simulated ones where a policy is too large for that."""
    panels = []
    for alpha in ALPHAS:
        for domain, title in DOMAINS.items():
            here, published = {}, {}
            for method, name in METHODS.items():
                row = results.row(domain, method, alpha)
                here[name] = row.simulated_expected, row.simulated_cvar
                if row.expected is not None and row.cvar is not None:
                    here[name] = row.expected, row.cvar
                if row.paper_expected is not None and row.paper_cvar is not None:
                    published[name] = row.paper_expected, row.paper_cvar
            optimal = results.row(domain, "exact", alpha).lower
            least = min(cvar for _, cvar in here.values()) if optimal is None else optimal
            panels.append(TradeOff(f"{title},\nworst {percent(alpha)} of runs", here, published, least))
    return panels


def _image(picture: bytes) -> str:
    return "data:image/svg+xml;base64," + b64encode(picture).decode()


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _pair(value: float | None, error: float | None) -> str:
    return "" if value is None else f"{value:,.2f} ({error:.2f})"


def _table(head: list[str], rows: Iterable[list[str]], caption: str = "") -> str:
    """Return a table for the page: a dash where a number is unknown, standard errors in small print."""
    names = [cell.replace("<br>", " ") for cell in head]  # what a narrow page shows above each number
    body = ""
    for row in rows:
        numbers = (re.sub(r"(\(.*\))", r"<small>\1</small>", cell) or "&ndash;" for cell in row[1:])
        cells = zip(names, (row[0], *numbers), strict=True)
        inside = "".join(f'<td data-head="{name}">{cell}</td>' for name, cell in cells)
        body += f'<tr class="{"exact" if row[0] == METHODS["exact"] else ""}">{inside}</tr>'
    above = f"<caption>{caption}</caption>" if caption else ""
    across = 4 if len(head) > 6 else 3  # numbers side by side on a narrow page
    top = "".join(f"<th>{cell}</th>" for cell in head)
    return f'<div class="wide"><table style="--across: {across}">{above}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _decimals(row: Row) -> int:
    """Return how many decimals of a CVaR its bounds support, at most two."""
    if row.status != "within_gap" or row.lower is None or row.upper is None:
        return 2
    return int(min(max(-math.log10(max(row.upper - row.lower, 1e-9)), 0), 2))


def _cells(row: Row) -> list[str]:
    """Return the numbers of a row of Table 1, CVaR before expected cost: exact, simulated, the paper's, how far apart."""
    cells = []
    for what, digits in (("cvar", _decimals(row)), ("expected", 2)):
        off = row.off(what)
        cells += [
            _number(getattr(row, what), digits),
            *(_pair(*row.pair(whose, what)) for whose in ("simulated", "paper")),
        ]
        cells.append("" if off is None else f"{off:+.1f}")
    return cells


def _domain_table(results: Results, domain: str, title: str) -> str:
    more = ["simulated", "paper", "apart"]
    head = ["", "CVaR<br>exactly", *more, "expected cost<br>exactly", *more]
    parts = [f"<h3>{escape(title)}</h3>"]
    for alpha in ALPHAS:
        rows = [[METHODS[method], *_cells(results.row(domain, method, alpha))] for method in METHODS]
        parts.append(_table(head, rows, f"worst {percent(alpha)} of runs"))
    return "".join(parts)


def _time_table(results: Results) -> str:
    rows = []
    for domain, title in DOMAINS.items():
        cells = [escape(title)]
        for method in METHODS:
            found = [results.row(domain, method, alpha) for alpha in ALPHAS]
            cells.append(f"{max(row.seconds for row in found):,.3g}")
            if method != "exact":
                theirs = found[0].paper_seconds
                cells.append("" if theirs is None else f"{theirs:,g}")
        rows.append(cells)
    head = [cell for name in METHODS.values() for cell in (f"{name}<br>here", "paper")][:-1]
    return _table(["seconds", *head], rows)


def _figures(pictures: dict[str, bytes]) -> Iterable[str]:
    methods = ", ".join(METHODS[method] for method in ORDER)
    for domain, alphas in FIGURES.items():
        for alpha in alphas:
            title = f"{escape(DOMAINS[domain])}, worst {percent(alpha)} of runs"
            caption = f"From the top: {methods}. Orange: the worst {percent(alpha)} of runs."
            if domain in BREAK_EVEN:
                caption += f" Dashed: {BREAK_EVEN[domain]:g}, where the store breaks even."
            image = (
                f'<img src="{_image(pictures[f"{domain}-{alpha:g}.svg"])}" alt="Histograms of the total cost, {title}">'
            )
            yield f"<figure><h3>{title}</h3>{image}<figcaption>{caption}</figcaption></figure>"


def _bracket(results: Results) -> str:
    """Return the table of game values, optimal CVaRs and those of the paper's policies."""
    rows = []
    for domain, title in DOMAINS.items():
        for alpha in ALPHAS:
            best, careful, _ = plans = [results.row(domain, m, alpha) for m in ("exact", "cvar-wc", "cvar-ev")]
            if careful.cvar is None or best.status != "optimal":
                continue
            numbers = [careful.lower, *(plan.cvar for plan in plans), *(plan.expected for plan in plans)]
            rows.append([f"{escape(title)}, {percent(alpha)}", *(_number(x, 3) for x in numbers)])
    head = ["", "game value", "optimal CVaR", "CVaR of<br>CVaR-WC", "CVaR of<br>CVaR-EV"]
    return _table(
        [*head, "expected cost<br>at the optimum", "expected cost<br>of CVaR-WC", "expected cost<br>of CVaR-EV"], rows
    )


def _grids(results: Results) -> str:
    """Return the table of Deep Sea Treasure on several grids."""
    tried = []
    for g in results.grids:
        cells = [_number(g[m][what]) for m in ("cvar_wc", "cvar_ev") for what in ("cvar", "expected")]
        floor = f"{g['floor']:g}" if g["floor"] else "none"
        tried.append([f"{g['points']}, {g['ties']}, {floor}", _number(g["game_value"], 3), *cells])
    published = (TABLE_1["deep-sea-treasure", method, 0.02] for method in ("cvar-wc", "cvar-ev"))
    tried.append(["the paper (80)", "", *(_number(cell[i]) for cell in published for i in (0, 2))])
    columns = [f"{method}:<br>{what}" for method in ("CVaR-WC", "CVaR-EV") for what in ("CVaR", "expected")]
    return _table(["points, tie, floor", "game value", *columns], tried)


def tables(results: Results) -> Iterator[Table]:
    """Yield Table 1 of the paper as it came out, for a terminal."""
    numbers = ("CVaR", "simulated", "paper", "expected cost", "simulated", "paper", "seconds", "paper")
    for domain, title in DOMAINS.items():
        for alpha in ALPHAS:
            rows = []
            for method in METHODS:
                row = results.row(domain, method, alpha)
                cells = _cells(row)
                seconds = "" if row.paper_seconds is None else f"{row.paper_seconds:,g}"
                rows.append((method, *cells[:3], *cells[4:7], f"{row.seconds:.3g}", seconds))
            yield Table(title, tuple(rows), "l" + "r" * 8, head=(f"alpha {alpha:g}", *numbers))


def reproduce(out: Path, *, episodes: int = 20_000, traffic: str | None = None) -> Results:
    """Run the paper's experiments and write the report into a folder."""
    if episodes < 2:
        raise PrudentError(f"episodes is {episodes}; standard errors need at least 2")
    with refusing(out, "cannot be created as a folder"):
        out.mkdir(parents=True, exist_ok=True)
    results = run_experiments(episodes, traffic)
    pictures = draw_figures(results)
    for name, picture in pictures.items():
        write_bytes(out / name, picture)
    write_bytes(out / "results.json", json.dumps(results.to_dict(), indent=1, allow_nan=False).encode())
    rows = [asdict(row) for row in results.rows]
    write_bytes(out / "results.csv", csv_text(list(rows[0]), [list(row.values()) for row in rows]).encode())
    write_bytes(out / "index.html", render_page(results, pictures).encode())
    return results
