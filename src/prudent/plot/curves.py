"""Numbers against numbers: values for every alpha, trade-offs, studies of parameters, the fan of a stress test."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.planning.curve import Curve, CurvePoint
from prudent.planning.frontier import Frontier, FrontierPoint
from prudent.plot import canvas
from prudent.plot.canvas import Axes
from prudent.results.map_data import is_number
from prudent.results.plan import Plan
from prudent.results.stress import QUANTILES, Stress
from prudent.results.study import FIELDS, Study
from prudent.runtime.tables import percent, worst

POINTS = 40
"""The number of alphas that a curve is drawn through, besides its breakpoints."""

BOX = {"facecolor": canvas.PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 1.5}
"""The box behind a text, which keeps it readable."""

FEW = 15
"""Up to this many stretches of a curve have a dot at the end that counts where they meet."""

SHOWN = {"cvar": "CVaR", "var": "VaR", "expected": "expected cost", "worst_case": "minimal worst-case cost"}
"""What numbers are called in pictures, if not as in a study."""


def curve(curve: Curve, *, alpha: float | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the optimal CVaR, its VaR and the lowest expected cost at that CVaR against alpha.

    VaR and expected cost are constant between two breakpoints and jump there; no line leads across a jump.

    Parameters
    ----------
    alpha : float, optional
        An alpha to mark, with its numbers.

    Examples
    --------
    >>> import prudent
    >>> ax = prudent.plot.curve(prudent.curve(prudent.domains.betting_game()), alpha=0.2)
    >>> ax.get_title(loc="left")
    'the worst 20% of runs:  CVaR 91.34, VaR 86, expected cost 75.49'
    """
    canvas.check_kind("curve", curve, Curve, "curve")
    marked = None if alpha is None else curve.at(alpha)
    ax = canvas.axes_for(ax)
    # Where costs are rounded, or for a set of models, breakpoints are many and slow, and little changes between them.
    exact = not curve.notes and curve.intervals is None
    alphas = np.append(np.geomspace(curve.alpha_min, 1.0, POINTS), [0.95, 0.98, 0.99, 0.999])
    points = [curve.at(x) for x in np.sort(np.clip(alphas, curve.alpha_min, 1.0)).tolist()]
    if exact:
        points = sorted([*curve.points, *points[1:-1]], key=lambda point: point.alpha)
    x = [point.alpha for point in points]
    if any(point.upper - point.lower > 0.002 * abs(point.upper) for point in points):
        bounds = [p.lower for p in points], [p.upper for p in points]
        ax.fill_between(x, *bounds, color=canvas.FAINT, alpha=0.6, linewidth=0, label="bounds on the optimal CVaR")
    prefix = "" if curve.intervals is None else "worst-case "
    names = {"cvar": f"{prefix}CVaR", "var": "budget" if prefix else "VaR", "expected": f"{prefix}expected cost"}
    colours = {"cvar": canvas.BLACK, "var": canvas.BLUE, "expected": canvas.ORANGE}
    ax.plot(x, [point.cvar for point in points], color=canvas.BLACK, linewidth=1.8, label=names["cvar"])
    for what, width, marker in (("var", 1.4, "."), ("expected", 2.6, "o")):
        look = {"color": colours[what], "linewidth": width, "marker": marker, "label": names[what]}
        _draw_stretches(ax, points if not exact else list(curve.points), what, look, curve.at if exact else None)
    if prefix:
        own = [point.nominal.cvar if point.nominal else np.nan for point in points]
        ax.plot(x, own, color=canvas.BLACK, linestyle=":", linewidth=1.4, label="CVaR in the model itself")
    if marked is not None:
        mark: dict[str, Any] = {"markersize": 7, "markeredgecolor": canvas.PAPER, "zorder": 4}
        for what, colour in colours.items():
            ax.plot([marked.alpha], [getattr(marked, what)], "o", color=colour, **mark)
        numbers = ", ".join(f"{name} {canvas.short(getattr(marked, what))}" for what, name in names.items())
        ax.axvline(marked.alpha, color=canvas.INK, linewidth=0.9, linestyle=":", zorder=0)
        canvas.entitle(ax, f"{worst(marked.alpha)}:  {numbers}")
    if curve.alpha_min < 1:
        steps = (1, 2, 5) if curve.alpha_min > 0.004 else (1,)
        ticks = [k * 10.0**-n for n in range(6, -1, -1) for k in steps if curve.alpha_min <= k * 10.0**-n <= 1]
        ax.set(xscale="log", xlim=(curve.alpha_min, 1))
        ax.set_xticks(ticks, [percent(tick) for tick in ticks])
        ax.set_xticks([], minor=True)
    canvas.name_axes(ax, "\N{GREEK SMALL LETTER ALPHA}: the worst fraction of runs", "total cost")
    ax.legend(loc="best", frameon=False, fontsize=9, handlelength=2.5)
    return ax


def _draw_stretches(
    ax: Any, points: list[CurvePoint], what: str, look: dict[str, Any], at: Callable[[float], CurvePoint] | None
) -> None:
    """Draw where a number stays the same, with nothing across its jumps, and a dot where it is known at one alpha.

    If points are breakpoints, each number stays the same up to the next, and ``at`` says which one counts there.
    """
    stretches: list[list[float]] = []  # begin, end, number
    for point, after in zip(points, [*points[1:], points[-1]], strict=True):
        value, end = getattr(point, what), point.alpha if at is None else after.alpha
        if stretches and math.isclose(stretches[-1][2], value, rel_tol=1e-9):
            stretches[-1][1] = end
        else:
            stretches.append([point.alpha, end, value])
    x = [each for begin, end, _ in stretches for each in (begin, end, np.nan)]
    y = [each for *_, value in stretches for each in (value, value, np.nan)]
    dots = [3 * i for i, (begin, end, _) in enumerate(stretches) if begin == end]
    if at is not None and len(stretches) <= FEW:
        for i, (meet, _, _) in list(enumerate(stretches))[1:]:
            counts = getattr(at(meet), what)
            dots += [k for k in (3 * i - 2, 3 * i) if math.isclose(y[k], counts, rel_tol=1e-9)]
    ax.plot(x, y, **look, markevery=sorted({*dots}), markersize=4.5, solid_capstyle="butt")


def frontier(frontier: Frontier, *, chosen: "Plan | FrontierPoint | None" = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the trade-off between expected cost and CVaR, and the region where no plan can be.

    Parameters
    ----------
    chosen : Plan or point, optional
        A plan, or one of the frontier's points, to mark.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.domains.betting_game()
    >>> frontier, plan = prudent.frontier(model, 0.2), prudent.solve(model, 0.2, slack=0.01)
    >>> ax = prudent.plot.frontier(frontier, chosen=plan)
    >>> ax.get_xlabel()
    'expected cost'
    """
    canvas.check_kind("frontier", frontier, Frontier, "frontier")
    _check_chosen(frontier, chosen)
    if np.isnan(frontier.points[0].cvar):
        raise PrudentError("the frontier has no point whose CVaR is known; raise time_limit= in prudent.frontier")
    ax = canvas.axes_for(ax)
    x, y = [point.expected for point in frontier.points], [point.cvar for point in frontier.points]
    every_x, every_y = [*x, *([chosen.expected] if chosen else [])], [*y, *([chosen.cvar] if chosen else [])]
    wide, high = (max((max(v) - min(v)), 1e-3 * abs(v[0]), 1e-9) for v in (every_x, every_y))
    low_x, high_x = min(every_x) - 0.12 * wide, max(every_x) + 0.1 * wide
    low_y, top_y = min(every_y) - 0.16 * high, max(every_y) + (0.22 if chosen else 0.1) * high  # room for the legend
    cvar = np.unique(np.concatenate([np.linspace(frontier.lower, top_y, 200), y]))
    least = np.array([frontier.least_expected(float(c)) for c in cvar])
    corners = [(low_x, top_y), (low_x, low_y), (high_x, low_y), (high_x, frontier.lower)]
    ax.fill(
        *np.concatenate([np.column_stack([least, cvar]), corners]).T, facecolor=canvas.PALE, edgecolor=canvas.FAINT,
        hatch="...", linewidth=0, zorder=0,
    )  # fmt: skip
    ax.plot(x, y, "-o", color=canvas.BLACK, linewidth=1.4, markersize=5, zorder=3)
    ax.text(0.02, 0.03, "no plan can be here", transform=ax.transAxes, fontsize=9, va="bottom", bbox=BOX)
    if len(x) > 1:
        beside: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9, "bbox": BOX}
        ax.annotate(f"lowest expected cost {canvas.short(x[0])}", (x[0], y[0]), (8, 2), ha="left", **beside)
        ax.annotate(f"minimal CVaR {canvas.short(y[-1])}", (x[-1], y[-1]), (4, -15), ha="right", **beside)
    if chosen is not None:
        text = f"chosen: expected cost {canvas.short(chosen.expected)}, CVaR {canvas.short(chosen.cvar)}"
        how: dict[str, Any] = {"color": canvas.TAIL, "markersize": 15, "markeredgecolor": canvas.INK, "zorder": 5}
        ax.plot([chosen.expected], [chosen.cvar], "*", **how, label=text)
        ax.legend(loc="upper right", frameon=False, fontsize=9)  # always free: the frontier is falling and convex
    ax.set(xlim=(low_x, high_x), ylim=(low_y, top_y))
    canvas.name_axes(ax, "expected cost", f"CVaR: mean cost of {worst(frontier.alpha)}")
    return ax


def _check_chosen(frontier: Frontier, chosen: object) -> None:
    if not isinstance(chosen, Plan | FrontierPoint | None):
        raise PrudentError(f"chosen is a {type(chosen).__name__}; give a plan or one of the frontier's points")
    if isinstance(chosen, Plan):
        if chosen.alpha != frontier.alpha:
            raise PrudentError(
                f"chosen is a plan for alpha {chosen.alpha:g}; the frontier is for {frontier.alpha:g}; solve for that"
            )
        chosen.policy.check_model(frontier.model)
        if math.isnan(chosen.cvar):
            raise PrudentError(
                "chosen is a plan whose CVaR is unknown, so it cannot be drawn; estimate it with prudent.simulate"
            )


def study(study: Study, *, x: str | None = None, y: str = "cvar", ax: "Axes | None" = None) -> "Axes":
    """Draw a result of each plan against a parameter or alpha, with a line for each combination of the others.

    Rows that failed are left out.

    Parameters
    ----------
    x : str, optional
        A parameter, or ``"alpha"``; by default the first of them that has several values.
    y : str
        The result to draw: ``"cvar"``, ``"var"``, ``"expected"``, ``"seconds"`` and others.

    Examples
    --------
    >>> import prudent
    >>> study = prudent.study("betting-game", {"stages": [2, 4, 6]}, alphas=[0.1, 0.5], workers=1)
    >>> ax = prudent.plot.study(study)
    >>> ax.get_xlabel(), [line.get_label() for line in ax.get_lines()]
    ('stages', ['alpha 0.1', 'alpha 0.5'])
    """
    canvas.check_kind("study", study, Study, "study")
    names = (*study.parameters, "alpha")
    if x is None:
        x = next((name for name in names if len(study.values(name)) > 1), names[0])
    if x not in names:
        raise PrudentError(f"x is {x!r}; it must be one of {', '.join(names)}")
    if FIELDS.get(y) not in ("number", "count") or y == "alpha":
        numbers = [name for name, kind in FIELDS.items() if kind in ("number", "count") and name != "alpha"]
        raise PrudentError(f"y is {y!r}; it must be one of {', '.join(numbers)}")
    others = [name for name in names if name != x and len(study.values(name)) > 1]
    lines: dict[tuple[Any, ...], list[tuple[Any, Any]]] = {}
    for row in study.rows:
        if row["error"] is None:
            lines.setdefault(tuple(row[name] for name in others), []).append((row[x], row[y]))
    ax = canvas.axes_for(ax)
    at: list[Any] = canvas.in_order(study.values(x))
    place = {value: value if all(map(is_number, at)) else i for i, value in enumerate(at)}
    for i, ((key, points), colour) in enumerate(zip(lines.items(), canvas.hues(len(lines)), strict=True)):
        label = ", ".join(f"{name} {canvas.name_of(value)}" for name, value in zip(others, key, strict=True))
        where = sorted((place[value], number) for value, number in points)
        style = canvas.STYLES[i % len(canvas.STYLES)]
        ax.plot(*zip(*where, strict=True), "o", linestyle=style, color=colour, label=label)
    if not all(map(is_number, at)):
        ax.set_xticks(range(len(at)), [canvas.name_of(value) for value in at])
    canvas.name_axes(ax, canvas.name_of(x), SHOWN.get(y, y))
    if others and 0 < len(lines) <= canvas.NAMED:
        ax.legend(loc="best", frameon=False, fontsize=9, handlelength=3)
    return ax


def stress(result: Stress, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the probability of exceeding each total cost over the sampled models: median, middle 50% and 90%.

    Examples
    --------
    >>> import prudent
    >>> row = {"state": "s", "action": "a", "next_state": "g"}
    >>> data = prudent.from_episodes([{**row, "cost": 1, "n": 9}, {**row, "cost": 5, "n": 1}], count="n", initial="s")
    >>> ax = prudent.plot.stress(prudent.stress(prudent.solve(data.model, alpha=0.2), data, samples=50))
    >>> ax.get_ylabel()
    'probability of a higher cost'
    """
    canvas.check_kind("result", result, Stress, "stress")
    ax = canvas.axes_for(ax)
    low, lower, middle, upper, high = np.quantile(result.exceeds, QUANTILES, axis=0)
    band: dict[str, Any] = {"color": canvas.BODY, "linewidth": 0, "step": "post"}
    ax.fill_between(result.levels, low, high, alpha=0.35, label="90% of the models", **band)
    ax.fill_between(result.levels, lower, upper, alpha=0.7, label="50% of the models", **band)
    ax.plot(result.levels, middle, color=canvas.INK, drawstyle="steps-post", label="median of the models")
    ax.axhline(result.alpha, color=canvas.TAIL, linestyle="--", linewidth=1, label=worst(result.alpha))
    ax.set(xlabel="total cost", ylabel="probability of a higher cost", ylim=(0, None))
    ax.margins(x=0)
    ax.legend(frameon=False)
    return ax
