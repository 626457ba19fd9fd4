"""Grids: the action in each cell, for states that are pairs, or tuples of which two coordinates are shown."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from prudent.errors import PrudentError, as_number
from prudent.models.ssp import SSP
from prudent.plot import canvas
from prudent.plot.canvas import Axes
from prudent.results.map_data import Played, cells_of, goal_cells, is_map, is_number, states_with
from prudent.results.plan import Plan

SMALLEST = 6.0
"""The smallest letters, in points."""

NUMBERED = 330
"""The most cells of a map that have their action written into them."""


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
    plan : Plan
        The plan.
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
    ax : Axes, optional
        The axes to draw on; by default new ones.

    Examples
    --------
    A machine wears out; each week it runs, or is serviced first:

    >>> import prudent
    >>> def week(state):
    ...     week, wear = state
    ...     if week == 6:
    ...         return {}
    ...     chance = 0.05 + 0.1 * wear
    ...     return {
    ...         "run": [(1 - chance, (week + 1, wear), 0), (chance, (week + 1, min(wear + 1, 3)), 4 * wear)],
    ...         "service": [(1.0, (week + 1, max(wear - 1, 0)), 1)],
    ...     }
    >>> plan = prudent.solve(prudent.build((0, 2), week), alpha=0.05)
    >>> ax = prudent.plot.grid(plan, names=("week", "wear"))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['run', 'service']
    """
    where = {} if where is None else where
    cells = cells_to_draw(plan, budget, x, y, where, names)
    place = is_map(plan.model, x, y)
    goals = goal_cells(plan.model, x, y, where) if place else []
    every = [*goals, *(cell for _, cell in states_with(plan.model, x, y, where))] if place else list(cells)
    across, up = (canvas.in_order([cell[i] for cell in every]) for i in (0, 1))
    ax = canvas.axes_for(ax, _size(len(across), len(up), place))
    edges = edges_of(across), edges_of(up)
    spots = {
        cell: tuple((edges[i][k], edges[i][k + 1]) for i, k in enumerate((across.index(cell[0]), up.index(cell[1]))))
        for cell in (*cells, *goals)
    }
    ax.set(facecolor=canvas.PALE, xlim=edges[0][[0, -1]], ylim=edges[1][[0, -1]])
    _fill(ax, plan, cells, spots)
    _write(ax, plan, cells, spots, arrows=place if arrows is None else arrows, costs=costs)
    star: dict[str, Any] = {"color": canvas.TAIL, "markersize": 13, "markeredgecolor": canvas.INK, "zorder": 4}
    for goal in goals:
        ax.plot(*np.mean(spots[goal], axis=1), "*", **star)
    called = (*names, *("x", "y")[len(names) :])
    name_axes(ax, called, across, up)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if place:
        ax.set_aspect("equal")
    _legend(ax, plan, cells, heading(plan, budget, where, (*called[:2], "", *called[2:]), x, y))
    return ax


def _size(across: int, up: int, place: bool) -> tuple[float, float]:
    """Return the size of a figure whose cells have room for a word."""
    wide = float(np.clip(0.62 * across + 1.2, 4.4, 8.0))
    tall = (wide - 0.8) * up / across if place else 0.42 * up
    return wide, float(np.clip(tall + 1.1, 2.4, 7.0))


def _fill(ax: Any, plan: Plan, cells: dict[Any, Played], spots: dict[Any, Any]) -> None:
    """Colour the cells; one with several actions is divided from left to right, in the order of the legend."""
    colour, rgba = canvas.colours_of(plan.model), canvas.part("colors").to_rgba
    order = list(colour)
    shapes, shades, frames = [], [], []
    for cell, played in cells.items():
        (left, right), (low, high) = spots[cell]
        frames.append([(left, low), (right, low), (right, high), (left, high)])
        begin = left
        for action in sorted(played.shares, key=order.index):
            end = begin + played.shares[action] * (right - left)
            shapes.append([(begin, low), (end, low), (end, high), (begin, high)])
            shades.append(rgba(colour[action], 1.0 if played.met else canvas.FADED))
            begin = end
    many = canvas.part("collections").PolyCollection
    ax.add_collection(many(shapes, facecolors=shades, linewidths=0, zorder=2))
    thin = 1.2 if len(cells) <= 400 else 0.3
    ax.add_collection(many(frames, facecolors="none", edgecolors=canvas.PAPER, linewidths=thin, zorder=2.5))


def _write(ax: Any, plan: Plan, cells: dict[Any, Played], spots: dict[Any, Any], *, arrows: bool, costs: bool) -> None:
    """Write into each cell what is played most there, as an arrow or a word, and what it costs, where there is room."""
    colour = canvas.colours_of(plan.model)
    order = list(colour)
    size = np.abs(ax.transData.transform((1, 1)) - ax.transData.transform((0, 0))) * 72 / ax.figure.dpi * 0.9
    for cell, played in cells.items():
        (left, right), (low, high) = spots[cell]
        most = max(played.shares, key=lambda action: played.shares[action])
        before = sum(share for action, share in played.shares.items() if order.index(action) < order.index(most))
        left, right = (left + (right - left) * share for share in (before, before + played.shares[most]))
        middle, tall = ((left + right) / 2, (low + high) / 2), high - low
        ink = canvas.ink_on(colour[most]) if played.met else canvas.INK
        lines = [canvas.name_of(most)]
        if arrows and _arrow(ax, played, middle, (right - left, tall), ink, raised=costs):
            lines, middle, tall = [], (middle[0], low + 0.2 * tall), 0.4 * tall
        if costs:
            lines.append(canvas.short(played.cost))
        room = (right - left) * size[0], tall * size[1]  # in points, about
        longest = max(map(len, lines), default=0)
        letters = min(9.0, 1.5 * room[0] / max(longest, 1), 0.72 * room[1] / max(len(lines), 1))
        if lines and letters >= SMALLEST:
            ax.text(*middle, "\n".join(lines), ha="center", va="center", fontsize=letters, color=ink, zorder=4)


def _arrow(ax: Any, played: Played, middle: Any, size: tuple[float, float], ink: str, *, raised: bool) -> bool:
    """Draw an arrow to the likeliest successor of an action; return whether it leads anywhere."""
    if played.towards is None or played.towards == (0, 0):
        return False
    along = np.array(played.towards, dtype=np.float64) / size
    half = (0.21 if raised else 0.3) * along / np.hypot(*along) * size
    start = np.array(middle) + np.array([0.0, 0.15 * size[1] if raised else 0.0])
    head = {
        "arrowstyle": "-|>,head_width=0.22,head_length=0.42",
        "color": ink,
        "linewidth": 1.4,
        "shrinkA": 0,
        "shrinkB": 0,
    }
    ax.annotate("", start + half, start - half, arrowprops=head, zorder=4)
    return True


def _legend(ax: Any, plan: Plan, cells: dict[Any, Played], title: str) -> None:
    """Name the actions above the cells, with what the picture shows."""
    found = {action for played in cells.values() for action in played.shares}
    colour = canvas.colours_of(plan.model)
    shown = [action for action in colour if action in found]
    if len(shown) > canvas.NAMED:
        canvas.entitle(ax, title)
        return
    Patch = canvas.part("patches").Patch
    handles = [Patch(facecolor=colour[action], label=canvas.name_of(action)) for action in shown]
    room = ax.figure.bbox.width * 72 / ax.figure.dpi
    columns = int(room / (6 * max(len(each.get_label()) for each in handles) + 34))
    canvas.name_above(
        ax, handles, ncols=max(1, min(len(handles), columns)), title=title or None, title_fontsize=9, alignment="left",
        handlelength=1.2, handleheight=1.0, columnspacing=1.4,
    )  # fmt: skip


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
    cells = cells_to_draw(plan, budget, x, y, where, names, numbers=True)
    ax = canvas.axes_for(ax, (6.0, 4.6))
    across, up = (canvas.in_order([cell[i] for cell in cells]) for i in (0, 1))
    grid = np.full((len(up), len(across)), np.nan)
    unmet = np.zeros(grid.shape, dtype=bool)
    column, row = ({value: i for i, value in enumerate(values)} for values in (across, up))
    for (i, j), played in cells.items():
        grid[row[j], column[i]], unmet[row[j], column[i]] = played.mean, not played.met
    edges = edges_of(across), edges_of(up)
    mesh = _coloured(ax, plan.model, edges, grid, unmet)
    if unmet.any():
        veil = canvas.part("colors").ListedColormap([canvas.PAPER])
        ax.pcolor(*edges, np.ma.masked_equal(1.0 * unmet, 0), cmap=veil, alpha=1 - canvas.FADED, linewidth=0)
    called = (*names, *("x", "y", "action")[len(names) :])
    ax.set(facecolor=canvas.PALE)
    name_axes(ax, called, across, up)
    figure: Any = ax.figure
    bar = figure.colorbar(mesh, ax=ax, label=called[2] if budget is not None else f"{called[2]} (mean over visits)")
    bar.outline.set_visible(False)
    if isinstance(mesh.norm, canvas.part("colors").BoundaryNorm):
        bar.set_ticks((mesh.norm.boundaries[:-1] + mesh.norm.boundaries[1:]) / 2)
    canvas.entitle(ax, heading(plan, budget, where, called, x, y))
    return ax


def cells_to_draw(
    plan: Plan,
    budget: float | None,
    x: int,
    y: int,
    where: Mapping[int, Hashable],
    names: Sequence[str],
    *,
    numbers: bool = False,
) -> dict[Any, Played]:
    """Return what a map shows in each cell; refuse what cannot be drawn."""
    canvas.check_kind("plan", plan, Plan, "solve")
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise PrudentError(
            f"names is {names!r}; it must be a sequence of strings, for x, y, the action and other coordinates"
        )
    if budget is not None:
        budget = as_number("budget", budget, "a finite number", np.isfinite)
    cells = cells_of(plan, budget, x, y, where, numbers=numbers)
    if not cells:
        raise PrudentError(
            f"no state of {plan.model.name} can be reached with budget {budget!r} and where {dict(where)!r}"
        )
    return cells


def heading(
    plan: Plan, budget: float | None, where: Mapping[int, Hashable], names: Sequence[str], x: int, y: int
) -> str:
    """Return what a map shows: the remaining budget and the coordinates that are fixed."""
    others = dict(zip((i for i in range(max(where, default=0) + 1) if i not in (x, y)), names[3:], strict=False))
    parts = [f"{others.get(i, f'coordinate {i}')} {canvas.name_of(value)}" for i, value in where.items()]
    if budget is not None:
        whole, left = plan.policy.budget, "any remaining budget"
        if whole is not None:
            left = f"{canvas.short(budget)} of the budget of {canvas.short(whole)} left"
        parts = [left, *parts, "faded: no run is there"]
    return ", ".join(parts)


def _coloured(ax: Any, model: SSP, edges: Any, grid: Any, unmet: Any) -> Any:
    """Draw the cells and the numbers in them; actions that are few whole numbers get one colour each."""
    colors = canvas.part("colors")
    actions = np.array([action for action in canvas.colours_of(model) if is_number(action)], dtype=np.float64)
    low, high = float(actions[0]), float(actions[-1])  # of the model, so that colours are those of other pictures
    known = grid[np.isfinite(grid)]
    whole = (known == known.round()).all()
    if whole and low < high < low + 12 and (actions == actions.round()).all():
        norm: Any = colors.BoundaryNorm(np.arange(low - 0.5, high + 1), 256)
    else:
        norm = colors.Normalize(low, max(high, low + 1e-9))
    look = {"cmap": canvas.scale(), "norm": norm, "edgecolors": "face", "linewidth": 0.2}
    mesh = ax.pcolormesh(*edges, np.ma.masked_invalid(grid), **look)
    if grid.size <= NUMBERED:
        for j, i in np.argwhere(np.isfinite(grid) & ~unmet).tolist():
            middle = (edges[0][i] + edges[0][i + 1]) / 2, (edges[1][j] + edges[1][j + 1]) / 2
            text = f"{grid[j, i]:g}" if whole else f"{grid[j, i]:.1f}"
            colour = canvas.ink_on(mesh.cmap(norm(grid[j, i])))
            ax.text(*middle, text, ha="center", va="center", fontsize=6.5, color=colour)
    return mesh


def edges_of(values: list[Hashable]) -> Any:
    """Return where cells begin and end: half way between numbers, a step apart for names."""
    if len(values) == 1 or not all(map(is_number, values)):
        return np.arange(len(values) + 1) - 0.5 + (float(values[0]) if len(values) == 1 and is_number(values[0]) else 0)  # type: ignore[arg-type]
    known = np.array(values, dtype=np.float64)
    half = np.diff(known) / 2
    return np.concatenate([[known[0] - half[0]], known[:-1] + half, [known[-1] + half[-1]]])


def name_axes(ax: Any, names: Sequence[str], across: list[Hashable], up: list[Hashable]) -> None:
    """Name the axes of a map, and label them with values that occur."""
    ax.set(xlabel=names[0], ylabel=names[1])
    _set_ticks(ax.xaxis, across)
    _set_ticks(ax.yaxis, up)


def _set_ticks(axis: Any, values: list[Hashable]) -> None:
    if not all(map(is_number, values)):
        axis.set_ticks(range(len(values)), [canvas.name_of(value, 12) for value in values])
    else:  # every one, every other one, every fifth ...
        apart = next(k * 10**i for i in range(10) for k in (1, 2, 5) if len(values) <= 12 * k * 10**i)
        shown = values[::apart]
        axis.set_ticks([float(value) for value in shown], [f"{value:g}" for value in shown])  # type: ignore[arg-type]
