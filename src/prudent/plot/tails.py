"""Distributions of the total cost: histograms with the tail shaded, and cumulative ones."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.models.rows import FloatArray
from prudent.plot import canvas
from prudent.plot.canvas import Axes
from prudent.policies.distribution import Distribution, check_alpha
from prudent.results.plan import Plan
from prudent.results.runs import Runs
from prudent.runtime.tables import percent, worst

BINS = 60
"""The most bars."""

PARTS = 12
"""The most parts into which the least distance of two values is divided to find a step that all share."""

BEYOND = 1e-4
"""The most probability gathered in the last bar, if the picture would be mostly empty otherwise."""

LETTER = 5.2
"""About the width of a letter of the legend, in points."""

Result = Plan | Distribution | Runs

MEAN, VAR, CVAR = r"$\bullet$", r"$\vert$", r"$\blacksquare$"  # mathtext works in every installation, whatever the font


@dataclass(frozen=True)
class _Drawn:
    """One result to be drawn."""

    found: Distribution
    alpha: float | None
    label: str
    colour: str
    style: Any
    hatch: str
    tail: tuple[float, ...]  # the colour of the worst runs

    @property
    def marks(self) -> dict[str, float]:
        """The values that are marked, by their signs."""
        marks = {MEAN: self.found.mean}
        if self.alpha is not None:
            marks |= {VAR: self.found.var(self.alpha), CVAR: self.found.cvar(self.alpha)}
        return marks

    @property
    def text(self) -> str:
        """The text of the legend."""
        names = {MEAN: "expected", VAR: "VaR", CVAR: "CVaR"}
        if self.found.grouped:
            names |= {VAR: "VaR about", CVAR: "CVaR at least"}
        words = [f"{sign} {names[sign]} {canvas.short(x)}" for sign, x in self.marks.items()]
        return (f"{self.label}:  " if self.label else "") + "   ".join(words)


def distribution(
    *results: Result,
    alpha: float | None = None,
    labels: Sequence[str] | None = None,
    bins: int | Sequence[float] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the distribution of the total cost as a histogram, with the worst runs shaded.

    Above the bars, a row for each result marks the expected cost, VaR and CVaR.

    Parameters
    ----------
    *results : Plan, Distribution or Runs
        The results to draw.  A plan is evaluated exactly, or simulated if it is too large for that.
    alpha : float, optional
        The worst fraction of runs to shade.  By default the alpha of each plan; other results take that of the first
        plan.
    labels : sequence of str, optional
        Names for the legend; by default the methods of plans.
    bins : int or sequence of float, optional
        The largest number of bars, or their edges; costs outside the edges go into the first and the last bar.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.betting_game(), alpha=0.2)
    >>> ax = prudent.plot.distribution(plan)  # ax.figure.savefig("tail.pdf") keeps it
    >>> ax.get_xlabel()
    'total cost'
    """
    shown = _shown(results, alpha, labels, bars=True)
    edges = common_bins([each.found for each in shown], bins)
    ax = canvas.axes_for(ax)
    peak = max([_draw_bars(ax, each, edges, alone=len(shown) == 1) for each in shown])
    _mark_rows(ax, shown, edges, peak)
    values = np.concatenate([each.found.values for each in shown])
    beyond = values.max() >= edges[-1] or any(each.found.missing > 0 for each in shown)
    last = values[values >= edges[-2]]
    rest = f" (last bar: {canvas.short(float(last.min()))} or more)" if beyond and len(last) else ""
    canvas.name_axes(ax, f"total cost{rest}", "probability")
    return ax


def cdf(
    *results: Result, alpha: float | None = None, labels: Sequence[str] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the cumulative distribution of the total cost, with VaR and CVaR marked.

    The parameters are those of :func:`prudent.plot.distribution`, without ``bins``.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> ax = prudent.plot.cdf(plan, prudent.simulate(plan.model, plan.policy))
    >>> ax.get_ylabel()
    'probability of this cost or less'
    """
    shown = _shown(results, alpha, labels, bars=False)
    edges = common_bins([each.found for each in shown], None)
    ax = canvas.axes_for(ax)
    for each in shown:
        values, rises = each.found.values, np.cumsum(each.found.probabilities)
        end = max(edges[-1], values[-1])
        x, y = np.concatenate([[edges[0]], values, [end]]), np.concatenate([[0.0], rises, [rises[-1]]])
        look = {"color": each.colour, "linestyle": each.style, "linewidth": 1.6, "label": each.text}
        ax.step(x, y, where="post", **look, zorder=3)
    for level in sorted({1 - each.alpha for each in shown if each.alpha is not None}):
        ax.axhline(level, color=canvas.FAINT, linewidth=1, linestyle=":", zorder=1)
        name = percent(level)  # outside the axes, where there is room
        ax.text(1.01, level, name, transform=ax.get_yaxis_transform(), va="center", fontsize=8.5)
    _mark_rows(ax, shown, edges, 1.0)
    canvas.name_axes(ax, "total cost", "probability of this cost or less")
    return ax


def common_bins(found: Sequence[Distribution], bins: int | Sequence[float] | None = None) -> FloatArray:
    """Return edges of bars that suit several distributions, whole cost steps wide if there is a common step."""
    most = BINS if bins is None else int(bins) if isinstance(bins, int | np.integer) else 0
    if most < 1 or isinstance(bins, bool):
        try:
            edges = np.asarray(bins, dtype=np.float64)
        except (TypeError, ValueError):
            edges = np.zeros(0)
        if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all() or not np.isfinite(edges).all():
            raise PrudentError(f"bins is {bins!r}; it must be a number of bars, at least 1, or rising edges of bars")
        return edges
    low = min(float(each.values[0]) for each in found)
    high = max(float(each.values[-1]) for each in found)
    near = max(each.quantile(1 - BEYOND) if each.missing < BEYOND else float(each.values[-1]) for each in found)
    if high - low > 1.5 * (near - low) > 0:
        high = near
    values = np.unique(np.concatenate([each.values for each in found]))
    values = values[values <= high]
    gap = float(np.diff(values).min(initial=np.inf))
    if not np.isfinite(gap):  # one value
        return np.array([low - 0.5, low + 0.5])
    for parts in range(1, PARTS + 1):
        step = gap / parts
        steps = (values - low) / step
        if steps[-1] < 1e5 and np.abs(steps - steps.round()).max() < 1e-6:
            width = step * max(-(-int(round(steps[-1]) + 1) // most), 1)
            n = int(np.ceil((high - low + step) / width - 1e-9))
            return np.asarray(low - step / 2 + width * np.arange(n + 1))
    return np.linspace(low, high + 1e-9 * max(1.0, abs(high)), most + 1)


def _binned(found: Distribution, weights: FloatArray, edges: FloatArray, missing: float) -> FloatArray:
    """Return probability by bar; values beyond the bars go into the last, and values before them into the first."""
    mass, _ = np.histogram(np.clip(found.values, edges[0], edges[-1]), edges, weights=weights)
    mass[-1] += missing
    return mass


def _shown(
    results: tuple[Result, ...], alpha: float | None, labels: Sequence[str] | None, *, bars: bool
) -> list[_Drawn]:
    """Check what is to be drawn; return it with its alpha, its name and its looks."""
    if not results:
        raise PrudentError("no result is given; give plans, distributions or simulated runs")
    for i, result in enumerate(results, 1):
        if not isinstance(result, Result):
            raise PrudentError(f"result {i} is a {type(result).__name__}; give plans, distributions or simulated runs")
        if isinstance(result, Distribution) and len(result.values) == 0:
            raise PrudentError(f"result {i} is a distribution without values: there is nothing to draw")
    if labels is not None and (not isinstance(labels, list | tuple) or len(labels) != len(results)):
        raise PrudentError(
            f"labels is {labels!r}; it must be a list with a name for each of the {len(results)} results"
        )
    alpha = None if alpha is None else check_alpha(alpha)
    usual = next((result.alpha for result in results if isinstance(result, Plan)), None)
    methods = [result.method for result in results if isinstance(result, Plan)]
    several = len(set(methods)) < len(methods)
    to_rgba = canvas.part("colors").to_rgba
    shown = []
    for i, (result, hue) in enumerate(zip(results, canvas.hues(len(results)), strict=True)):
        own, simulated = usual, False
        if isinstance(result, Plan):
            own, simulated, found = result.alpha, math.isnan(result.var), result.total_cost()
            name = result.method + (f", {worst(own)}" if several else "") + (" (simulated)" if simulated else "")
        elif isinstance(result, Runs):
            found, name = result.distribution, f"{result.episodes:,} runs"
        else:
            found, name = result, "distribution"
        if labels is not None:
            name = canvas.name_of(labels[i], 40)
        elif len(results) == 1 and not simulated:
            name = ""
        style, hatch = canvas.STYLES[i % len(canvas.STYLES)], canvas.HATCHES[i % len(canvas.HATCHES)]
        looks = (hue, style, hatch, to_rgba(hue, 0.4))
        if bars and len(results) == 1:
            looks = (canvas.INK, style, "", to_rgba(canvas.TAIL))
        shown.append(_Drawn(found, alpha or own, name, *looks))
    return shown


def _draw_bars(ax: Any, each: _Drawn, edges: FloatArray, *, alone: bool) -> float:
    """Draw a histogram with the tail on top, filled if it is alone, else as an outline; return its largest bar."""
    mass = _binned(each.found, each.found.probabilities, edges, each.found.missing)
    worst = np.zeros(len(mass))
    if each.alpha is not None:
        worst = _binned(each.found, each.found.tail(each.alpha), edges, min(each.found.missing, each.alpha))
    if alone:
        ax.stairs(mass - worst, edges, fill=True, facecolor=canvas.BODY, linewidth=0, zorder=2)
    tail = {"baseline": mass - worst, "fill": True, "linewidth": 0}
    ax.stairs(mass, edges, **tail, facecolor=each.tail, zorder=2)
    ax.stairs(mass, edges, **tail, facecolor="none", edgecolor=each.colour, hatch=each.hatch, zorder=2.1)
    ax.stairs(mass, edges, color=each.colour, linestyle=each.style, linewidth=1.2, zorder=2.2, label=each.text)
    return float(mass.max())


def _mark_rows(ax: Any, shown: Sequence[_Drawn], edges: FloatArray, peak: float) -> None:
    """Draw a row for each result above the rest, with its expected cost, VaR and CVaR, and the legend that names them.

    Values outside are marked at the edge.
    """
    row, on_bars = 0.075, bool(ax.patches)
    lines, patches = canvas.part("lines"), canvas.part("patches")
    room, handles = ax.bbox.width * 72 / ax.figure.dpi + 16, []  # in points, about
    for i, each in enumerate(shown):
        height = 1 - row * (i + 0.5)  # in axes coordinates: they may share an axis with others
        cramped = LETTER * len(re.sub(r"\$.*?\$", ".", each.text)) > room
        text = each.text.replace(":  ", ":\n", 1) if cramped else each.text
        look = {"linestyle": each.style, "label": text, "edgecolor" if on_bars else "color": each.colour}
        at = {sign: float(np.clip(x, edges[0], edges[-1])) for sign, x in each.marks.items()}
        above = {"color": each.colour, "transform": ax.get_xaxis_transform(), "clip_on": False}
        ax.plot([min(at.values()), max(at.values())], [height] * 2, **above, linewidth=1, zorder=3)
        for sign, marker, size in ((MEAN, "o", 5.5), (VAR, "|", 12), (CVAR, "s", 5.5)):
            if sign in at:
                ax.plot([at[sign]], [height], marker, **above, markersize=size, markeredgewidth=1.6, zorder=4)
        if on_bars:
            handles.append(patches.Patch(facecolor=each.tail if each.alpha else "none", hatch=each.hatch, **look))
        else:
            handles.append(lines.Line2D([], [], linewidth=1.6, **look))
    ax.set(xlim=(edges[0], edges[-1]), ylim=(0, peak / (1 - row * (len(shown) + 0.4))))
    if ax.get_ylim()[1] > 1:  # no probability is above 1
        ax.set_yticks(np.linspace(0, 1, 6))
    alphas = {each.alpha for each in shown if each.alpha is not None}
    shaded = f"shaded: {worst(alphas.pop())}" if len(alphas) == 1 and on_bars else None
    canvas.name_above(ax, handles, ncols=1, handlelength=2.4, title=shaded, title_fontsize=9, alignment="left")
