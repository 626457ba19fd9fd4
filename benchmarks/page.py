"""One page with the table and the log-log plots; everything is in the file."""

import io
from html import escape
from typing import Any

from table import Row, Series

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-size: 13px; width: 100%; }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid #e3e3e3; vertical-align: top; }
th { border-bottom: 2px solid #888; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.part td { font-weight: 600; padding-top: 1rem; border-bottom: 1px solid #888; }
tr.met td.aim { color: #00694b; }
tr.missed td.aim { color: #a8480a; font-weight: 600; }
figure { margin: 1.5rem 0; }
svg { max-width: 100%; height: auto; }
"""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # Okabe and Ito's palette: safe for the colour-blind
CLASS = {True: "met", False: "missed", None: ""}


def page(about: dict[str, Any], rows: list[Row], series: list[Series]) -> str:
    """Return the page."""
    machine = "".join(f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in about.items())
    missed = sum(row.met is False for row in rows)
    aims = sum(row.aim is not None for row in rows)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Prudent: make bench</title><style>{STYLE}</style></head><body>
<h1>Prudent: make bench</h1>
<p>Medians, with quartiles beside them; every ratio is of measurements taken in turns in one run.
{aims - missed} of {aims} aims are met. docs/scaling.md explains the numbers.</p>
<table>{machine}</table>
{_plots(series)}
<table><tr><th>model</th><th>what</th><th>value</th><th>quartiles</th><th>aim</th><th>note</th></tr>
{_body(rows)}
</table></body></html>
"""


def _body(rows: list[Row]) -> str:
    lines, part = [], ""
    for row in rows:
        if row.part != part:
            part = row.part
            lines.append(f'<tr class="part"><td colspan="6">{escape(part)}</td></tr>')
        model, what, value, spread, aim, note = map(escape, row.shown)
        lines.append(
            f'<tr class="{CLASS[row.met]}"><td>{model}</td><td>{what}</td><td class="number">{value}</td>'
            f'<td class="number">{spread}</td><td class="aim">{aim}</td><td>{note}</td></tr>'
        )
    return "\n".join(lines)


def _plots(series: list[Series]) -> str:
    titles = list(dict.fromkeys(line.plot for line in series))
    try:
        pictures = [_plot([line for line in series if line.plot == title]) for title in titles]
    except ImportError:
        return "<p>The plots need matplotlib: pip install 'prudent[plot]'.</p>"
    return "".join(f"<figure>{picture}</figure>" for picture in pictures)


def _plot(lines: list[Series]) -> str:
    """Return a log-log plot as SVG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    for line, colour in zip(lines, COLOURS, strict=False):
        axes.plot(line.x, line.y, "o-", color=colour, label=line.name)
        if line.low:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for name, place in lines[0].marks.items():
        axes.axvline(place, color="#888", lw=1, ls=":")
        axes.text(place, 1.01, name, transform=axes.get_xaxis_transform(), ha="center", fontsize=9)
    axes.set_title(lines[0].plot, loc="left", fontsize=11, pad=16)
    axes.set_xlabel(lines[0].x_label)
    axes.set_ylabel(lines[0].y_label)
    axes.grid(alpha=0.3, which="both", lw=0.5)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    return text[text.index("<svg") :]
