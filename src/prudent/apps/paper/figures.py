"""The report's figures: the trade-off that each method makes, and the paper's histograms, from the simulated runs."""

from typing import Any

from prudent.apps.paper.experiments import Results, Row
from prudent.apps.paper.published import ALPHAS, DOMAINS, METHODS
from prudent.plot.canvas import png, svg
from prudent.plot.panels import TradeOff, histograms, trade_offs
from prudent.plot.tails import common_bins
from prudent.runtime.tables import percent

__all__ = ["BREAK_EVEN", "FIGURES", "ORDER", "draw_figures"]

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

    def here(row: Row) -> tuple[float, float]:
        if row.expected is None or row.cvar is None:
            return row.simulated_expected, row.simulated_cvar
        return row.expected, row.cvar

    panels = []
    for alpha in ALPHAS:
        for domain, title in DOMAINS.items():
            rows = {METHODS[method]: results.row(domain, method, alpha) for method in METHODS}
            published = {
                name: (row.paper_expected, row.paper_cvar)
                for name, row in rows.items()
                if row.paper_expected is not None and row.paper_cvar is not None
            }
            optimal = results.row(domain, "exact", alpha).lower
            known = {name: here(row) for name, row in rows.items()}
            least = min(cvar for _, cvar in known.values()) if optimal is None else optimal
            panels.append(TradeOff(f"{title},\nworst {percent(alpha)} of runs", known, published, least))
    return panels
