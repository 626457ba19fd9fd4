"""The paper's histograms, drawn from the simulated runs."""

from prudent.apps.paper.experiments import Results
from prudent.apps.paper.published import DOMAINS, METHODS
from prudent.plot.canvas import png
from prudent.plot.tails import common_bins, distribution
from prudent.runtime.optional import needed

__all__ = ["FIGURES", "draw_figures"]

FIGURES = {
    "inventory-control": (0.02,),
    "betting-game": (0.2,),
    "deep-sea-treasure": (0.02, 0.2),
    "autonomous-navigation": (0.02, 0.2),
}
"""Which histograms the paper shows."""

BREAK_EVEN = {"inventory-control": 400.0}


def draw_figures(results: Results) -> dict[str, bytes]:
    """Return PNG pictures by name: one for each domain and alpha, a row of bars for each method."""
    Figure = needed("matplotlib.figure", "plot").Figure
    pictures = {}
    for domain, alphas in FIGURES.items():
        runs = {key[1:]: runs for key, runs in results.runs.items() if key[0] == domain}
        bins = common_bins([each.distribution for each in runs.values()])
        for alpha in alphas:
            figure = Figure(figsize=(7, 8.6), layout="constrained")
            axes = figure.subplots(4, 1, sharex=True, sharey=True)
            tops = []
            for axis, method in zip(axes, ("cvar-wc", "cvar-ev", "expected", "exact"), strict=True):
                distribution(runs[method, alpha], alpha=alpha, labels=[METHODS[method]], bins=bins.tolist(), ax=axis)
                tops.append(axis.get_ylim()[1])
                if domain in BREAK_EVEN:
                    axis.axvline(BREAK_EVEN[domain], color="black", lw=1.2, ls="--")
                axis.get_legend().set_title(None)
                axis.set_ylabel("share of runs")
                axis.label_outer()
            axes[0].set_ylim(0, max(tops))
            figure.suptitle(f"{DOMAINS[domain]}, {results.episodes:,} runs; shaded: the worst {alpha:g}", fontsize=12)
            pictures[f"{domain}-{alpha:g}.png"] = png(figure)
    return pictures
