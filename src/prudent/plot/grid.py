"""Grids: the action in each cell, for states that are pairs, or tuples of which two coordinates are shown."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.models.rows import FloatArray
from prudent.models.ssp import SSP
from prudent.plot import canvas
from prudent.plot.canvas import Axes
from prudent.results.map_data import Cell, Played, cells_of, goal_cells, is_map, is_number, states_with
from prudent.results.plan import Plan

SMALLEST = 6.0
"""The smallest letters, in points."""

NUMBERED = 330
"""The most cells of a map that have their action written into them."""

Span = tuple[float, float]
"""Where something begins and ends along an axis."""


def grid(
    plan: Plan,
    budget: float | None = None,
    *,
    x: int = 0,
    y: int = 1,
    where: Mapping[int, Hashable] | None = None,
    names: Sequence[str] = (),
    arrows: bool | None = None,
    costs: bool = False,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the action of a plan in each cell, a colour for each action; states are pairs, actions of any kind.

    A cell in which runs of the plan play several actions is divided among them.

    Parameters
    ----------
    budget : float, optional
        The remaining budget; cells that no run of the plan can be in with it are faded.  Without it, the actions that
        runs of the plan play in the cells that they visit.
    x, y : int
        The coordinates of the state that run to the right and up.
    where : mapping, optional
        Values of other coordinates, ``{2: 10}``: only states with these values are shown.
    names : sequence of str, optional
        The names of x and y, then of the other coordinates in their order.
    arrows : bool, optional
        Whether to draw an arrow to the likeliest successor; by default on a map, where actions lead back and forth
        along both coordinates.
    costs : bool
        Whether to write the expected cost of the step into each cell.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.deep_sea_treasure(horizon=4), alpha=0.02)
    >>> ax = prudent.plot.grid(plan, names=("column", "row"))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['SW', 'stop']
    """
    where = {} if where is None else where
    cells, title = _asked(plan, budget, x, y, where, names)
    place = is_map(plan.model, x, y)
    goals = goal_cells(plan.model, x, y, where) if place else []
    every = [*goals, *(cell for _, cell in states_with(plan.model, x, y, where))] if place else list(cells)
    ax = canvas.axes_for(ax, _size(len({x for x, _ in every}), len({y for _, y in every}), place))
    spots = _lay_out(ax, every, (*names, *("x", "y")[len(names) :]))
    _fill(ax, plan.model, cells, spots, arrows=place if arrows is None else arrows, costs=costs)
    star: dict[str, Any] = {"color": canvas.TAIL, "markersize": 13, "markeredgecolor": canvas.INK, "zorder": 4}
    for goal in goals:
        ax.plot(*np.mean(spots[goal], axis=1), "*", **star)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if place:
        ax.set_aspect("equal")
    shown = canvas.keys(plan.model, {action for played in cells.values() for action in played.shares})
    if len(shown) > canvas.NAMED:
        canvas.entitle(ax, title)
    else:
        above: dict[str, Any] = {"handlelength": 1.2, "handleheight": 1.0, "columnspacing": 1.4}
        canvas.name_above(ax, shown, title=title or None, title_fontsize=9, alignment="left", **above)
    return ax


def _size(across: int, up: int, place: bool) -> tuple[float, float]:
    """Return the size of a figure whose cells have room for a word."""
    wide = float(np.clip(0.62 * across + 1.2, 4.4, 8.0))
    tall = (wide - 0.8) * up / across if place else 0.42 * up
    return wide, float(np.clip(tall + 1.1, 2.4, 7.0))


def _lay_out(ax: Any, cells: Sequence[Cell], names: Sequence[str]) -> dict[Cell, tuple[Span, Span]]:
    """Set up axes for some cells; return where each of them begins and ends, across and upwards."""
    ax.set(facecolor=canvas.PALE, xlabel=names[0], ylabel=names[1])
    across, up = (canvas.in_order([cell[i] for cell in cells]) for i in (0, 1))
    columns, rows = _spans(ax.xaxis, across), _spans(ax.yaxis, up)
    ax.set(xlim=(columns[across[0]][0], columns[across[-1]][1]), ylim=(rows[up[0]][0], rows[up[-1]][1]))
    return {cell: (columns[cell[0]], rows[cell[1]]) for cell in cells}


def _spans(axis: Any, values: list[Any]) -> dict[Any, Span]:
    """Label an axis with values that occur; return where the cells of each end: half way between numbers."""
    numbers = all(map(is_number, values))
    known = np.array(values if numbers else range(len(values)), dtype=np.float64)
    # every one, every other one, every fifth ...
    apart = next(k * 10**i for i in range(10) for k in (1, 2, 5) if len(values) <= 12 * k * 10**i) if numbers else 1
    named = [f"{value:g}" if numbers else canvas.name_of(value, 12) for value in values[::apart]]
    axis.set_ticks(known[::apart], named)
    half = np.diff(known) / 2 if len(known) > 1 else np.array([0.5])
    low, high = np.append(half[0], half)[: len(known)], np.append(half, half[-1])[: len(known)]
    return dict(zip(values, zip((known - low).tolist(), (known + high).tolist(), strict=True), strict=True))


def _corners(across: Span, up: Span) -> list[tuple[float, float]]:
    return [(across[0], up[0]), (across[1], up[0]), (across[1], up[1]), (across[0], up[1])]


def _fill(
    ax: Any, model: SSP, cells: dict[Cell, Played], spots: dict[Cell, tuple[Span, Span]], *, arrows: bool, costs: bool
) -> None:
    """Colour the cells; one with several actions is divided from left to right, in the order of the legend."""
    colour, rgba = canvas.colours_of(model), canvas.part("colors").to_rgba
    shapes, shades = [], []
    for cell, played in cells.items():
        (begin, right), up = spots[cell]
        wide, most = right - begin, max(played.shares, key=lambda action: played.shares[action])
        for action in (each for each in colour if each in played.shares):
            across = begin, begin + wide * played.shares[action]
            shapes.append(_corners(across, up))
            shades.append(rgba(colour[action], 1.0 if played.met else canvas.FADED))
            if action == most:
                ink = canvas.ink_on(colour[most]) if played.met else canvas.INK
                _write(ax, played, most, (across, up), ink, arrows=arrows, costs=costs)
            begin = across[1]
    many = canvas.part("collections").PolyCollection
    ax.add_collection(many(shapes, facecolors=shades, linewidths=0, zorder=2))
    frames = {"facecolors": "none", "edgecolors": canvas.PAPER, "linewidths": 1.2 if len(cells) <= 400 else 0.3}
    ax.add_collection(many([_corners(*spots[cell]) for cell in cells], **frames, zorder=2.5))


def _write(
    ax: Any, played: Played, action: Hashable, spot: tuple[Span, Span], ink: str, *, arrows: bool, costs: bool
) -> None:
    """Write the action that is played most, as an arrow or a word, and what it costs, where there is room."""
    middle, (wide, tall) = np.mean(spot, axis=1), np.diff(spot)[:, 0]
    lines = [canvas.name_of(action)]
    if arrows and _arrow(ax, played, middle, np.array([wide, tall]), ink, raised=costs):
        lines, middle, tall = [], (middle[0], spot[1][0] + 0.2 * tall), 0.4 * tall
    if costs:
        lines.append(canvas.short(played.cost))
    size = np.abs(ax.transData.transform((1, 1)) - ax.transData.transform((0, 0))) * 72 / ax.figure.dpi * 0.9
    room = wide * size[0], tall * size[1]  # in points, about
    longest = max(map(len, lines), default=0)
    letters = min(9.0, 1.5 * room[0] / max(longest, 1), 0.72 * room[1] / max(len(lines), 1))
    if lines and letters >= SMALLEST:
        ax.text(*middle, "\n".join(lines), ha="center", va="center", fontsize=letters, color=ink, zorder=4)


def _arrow(ax: Any, played: Played, middle: Any, size: FloatArray, ink: str, *, raised: bool) -> bool:
    """Draw an arrow to the likeliest successor of an action; return whether it leads anywhere."""
    if played.towards is None or played.towards == (0, 0):
        return False
    along = played.towards / size
    half = (0.21 if raised else 0.3) * along / np.hypot(*along) * size
    start = middle + np.array([0.0, 0.15 * size[1] if raised else 0.0])
    head = {"arrowstyle": "-|>,head_width=0.22,head_length=0.42", "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", start + half, start - half, arrowprops=head | {"color": ink, "linewidth": 1.4}, zorder=4)
    return True


def heat_map(
    plan: Plan,
    budget: float | None = None,
    *,
    x: int = 0,
    y: int = 1,
    where: Mapping[int, Hashable] | None = None,
    names: Sequence[str] = (),
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the action as a colour over two coordinates of the state; states are tuples, actions are numbers.

    The parameters are those of :func:`prudent.plot.grid`, without ``arrows`` and ``costs``.  In ``names`` the third
    one is that of the action.  Without ``budget``, a cell has the mean action of the plan's runs that visit it.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.inventory_control(stages=3), alpha=0.02)
    >>> ax = prudent.plot.heat_map(plan, x=1, y=2, where={0: 1}, names=("stock", "demand", "buy", "stage"))
    >>> ax.get_title(loc="left")
    'stage 1'
    """
    where = {} if where is None else where
    cells, title = _asked(plan, budget, x, y, where, names, numbers=True)
    called = (*names, *("x", "y", "action")[len(names) :])
    means = np.array([played.mean for played in cells.values()])
    faded = np.where([played.met for played in cells.values()], 1.0, canvas.FADED)
    whole = bool((means == means.round()).all())
    norm, shade = _norm(plan.model, whole), canvas.scale()
    ax = canvas.axes_for(ax, (6.0, 4.6))
    spots = _lay_out(ax, list(cells), called)
    look = {"array": means, "cmap": shade, "norm": norm, "alpha": faded, "edgecolors": "face", "linewidths": 0.2}
    tiles = canvas.part("collections").PolyCollection([_corners(*spots[cell]) for cell in cells], **look)
    ax.add_collection(tiles)
    for cell, played in cells.items():
        if played.met and len(cells) <= NUMBERED:
            text, ink = f"{played.mean:{'g' if whole else '.1f'}}", canvas.ink_on(shade(norm(played.mean)))
            across, up = np.mean(spots[cell], axis=1)
            ax.text(across, up, text, ha="center", va="center", fontsize=6.5, color=ink)
    figure: Any = ax.figure
    bar = figure.colorbar(tiles, ax=ax, label=called[2] if budget is not None else f"{called[2]} (mean over visits)")
    bar.outline.set_visible(False)
    if isinstance(norm, canvas.part("colors").BoundaryNorm):
        bar.set_ticks((norm.boundaries[:-1] + norm.boundaries[1:]) / 2)
    canvas.entitle(ax, title)
    return ax


def _norm(model: SSP, whole: bool) -> Any:
    """Return the range of colours, that of other pictures of the model; if numbers are few and whole, one for each."""
    colors = canvas.part("colors")
    actions = np.array([action for action in canvas.colours_of(model) if is_number(action)], dtype=np.float64)
    low, high = float(actions[0]), float(actions[-1])
    if whole and low < high < low + 12 and (actions == actions.round()).all():
        return colors.BoundaryNorm(np.arange(low - 0.5, high + 1), 256)
    return colors.Normalize(low, max(high, low + 1e-9))


def _asked(
    plan: Plan,
    budget: float | None,
    x: int,
    y: int,
    where: Mapping[int, Hashable],
    names: Sequence[str],
    *,
    numbers: bool = False,
) -> tuple[dict[Cell, Played], str]:
    """Return what a map shows in each cell, and its title: the remaining budget and the coordinates that are fixed."""
    canvas.check_kind("plan", plan, Plan, "solve")
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise PrudentError(
            f"names is {names!r}; it must be a sequence of strings, for x, y, the action and other coordinates"
        )
    cells = cells_of(plan, budget, x, y, where, numbers=numbers)
    if not cells:
        raise PrudentError(
            f"no state of {plan.model.name} can be reached with budget {budget!r} and where {dict(where)!r}"
        )
    free = (i for i in range(max(where, default=0) + 1) if i not in (x, y))
    others = dict(zip(free, names[3 if numbers else 2 :], strict=False))
    parts = [f"{others.get(i, f'coordinate {i}')} {canvas.name_of(value)}" for i, value in where.items()]
    if budget is not None:
        whole, left = plan.policy.budget, "any remaining budget"
        if whole is not None:
            left = f"{canvas.short(budget)} of the budget of {canvas.short(whole)} left"
        parts = [left, *parts, "faded: no run is there"]
    return cells, ", ".join(parts)
