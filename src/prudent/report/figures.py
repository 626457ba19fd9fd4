"""The paper's histograms, drawn from the simulated runs."""

import base64
import io
from typing import Any

import numpy as np

from prudent.extras import needed
from prudent.report.experiments import Results
from prudent.report.paper import DOMAINS

__all__ = ["FIGURES", "draw_figures", "embedded"]

FIGURES = {
    "inventory-control": (0.02,),
    "betting-game": (0.2,),
    "deep-sea-treasure": (0.02, 0.2),
    "autonomous-navigation": (0.02, 0.2),
}
"""Which histograms the paper shows."""

LABEL = {"expected": "Expected Value", "cvar-wc": "CVaR-Worst-Case", "cvar-ev": "CVaR-Expected-Value", "exact": "exact"}
BODY, TAIL, INK = "#0072B2", "#D55E00", "#222222"  # Okabe and Ito's palette: safe for the colour-blind
BREAK_EVEN = {"inventory-control": 400.0}


def draw_figures(results: Results) -> dict[str, bytes]:
    """Return PNG pictures by name: one for each domain and alpha, a row of bars for each method."""
    Figure = needed("matplotlib.figure", "plot").Figure
    pictures = {}
    for domain, alphas in FIGURES.items():
        every = np.concatenate([costs for (name, _, _), costs in results.costs.items() if name == domain])
        bins = _bins(every)
        for alpha in alphas:
            figure = Figure(figsize=(7, 8.2), layout="constrained")
            axes = figure.subplots(4, 1, sharex=True, sharey=True)
            for axis, method in zip(axes, ("cvar-wc", "cvar-ev", "expected", "exact"), strict=True):
                _histogram(axis, results, domain, method, alpha, bins)
            axes[-1].set_xlabel("total cost")
            figure.suptitle(
                f"{DOMAINS[domain]}, {results.episodes:,} runs, \N{GREEK SMALL LETTER ALPHA} = {alpha:g}", fontsize=12
            )
            file = io.BytesIO()
            figure.savefig(file, dpi=130, metadata={"Software": None})
            pictures[f"{domain}-{alpha:g}.png"] = file.getvalue()
    return pictures


def _bins(costs: Any) -> Any:
    low, high = float(costs.min()), float(np.quantile(costs, 0.9999))
    return np.linspace(low, high + 1e-9 * max(1.0, abs(high)), 61)


def _histogram(axis: Any, results: Results, domain: str, method: str, alpha: float, bins: Any) -> None:
    costs = results.costs[domain, method, alpha]
    row = results.row(domain, method, alpha)
    var = float(np.quantile(costs, 1 - alpha, method="inverted_cdf"))
    share = np.full(len(costs), 1 / len(costs))
    shown = np.clip(costs, bins[0], bins[-1])
    tail = costs > var
    parts, weights = [shown[~tail], shown[tail]], [share[~tail], share[tail]]
    axis.hist(parts, bins=bins, weights=weights, stacked=True, color=[BODY, TAIL])
    for patch in axis.patches[len(bins) - 1 :]:
        patch.set_hatch("////")
    axis.axvline(var, color=INK, lw=1, ls=":")
    axis.axvline(row.simulated_cvar, color=TAIL, lw=1.4)
    axis.axvline(row.simulated_expected, color=BODY, lw=1.4)
    if domain in BREAK_EVEN:
        axis.axvline(BREAK_EVEN[domain], color="black", lw=1.2, ls="--")
    numbers = f"mean {row.simulated_expected:.1f}   VaR {var:.1f}   CVaR {row.simulated_cvar:.1f}"
    axis.set_title(f"{LABEL[method]}:  {numbers}", fontsize=9.5, loc="left")
    axis.set_ylabel("share of runs", fontsize=8.5)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8.5)


def embedded(picture: bytes) -> str:
    """Return a PNG as an address that needs no file."""
    return "data:image/png;base64," + base64.b64encode(picture).decode()
