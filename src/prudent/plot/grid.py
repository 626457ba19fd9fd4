"""Grids: the action in each cell, for states that are pairs, or tuples of which two coordinates are shown."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from prudent.errors import needed
from prudent.plot.actions import actions_of, colours_of
from prudent.plot.canvas import FADED, INK, PALE, PAPER, TAIL, Axes, axes_for, in_order, ink_on, name_of, short
from prudent.plot.heat import cells_to_draw, edges_of, heading, name_axes
from prudent.plot.strips import NAMED
from prudent.results.plan import Plan
from prudent.results.policy_map import Played, goal_cells, is_map, states_with

SMALLEST = 6.0
"""The smallest letters, in points."""


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
    across, up = (in_order([cell[i] for cell in every]) for i in (0, 1))
    ax = axes_for(ax, _size(len(across), len(up), place))
    edges = edges_of(across), edges_of(up)
    spots = {
        cell: tuple((edges[i][k], edges[i][k + 1]) for i, k in enumerate((across.index(cell[0]), up.index(cell[1]))))
        for cell in (*cells, *goals)
    }
    ax.set(facecolor=PALE, xlim=edges[0][[0, -1]], ylim=edges[1][[0, -1]])
    _fill(ax, plan, cells, spots)
    _write(ax, plan, cells, spots, arrows=place if arrows is None else arrows, costs=costs)
    for goal in goals:
        ax.plot(*np.mean(spots[goal], axis=1), "*", color=TAIL, markersize=13, markeredgecolor=INK, zorder=4)
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
    colour, order = colours_of(plan.model), actions_of(plan.model)
    rgba = needed("matplotlib.colors", "plot").to_rgba
    shapes, shades, frames = [], [], []
    for cell, played in cells.items():
        (left, right), (low, high) = spots[cell]
        frames.append([(left, low), (right, low), (right, high), (left, high)])
        begin = left
        for action in sorted(played.shares, key=order.index):
            end = begin + played.shares[action] * (right - left)
            shapes.append([(begin, low), (end, low), (end, high), (begin, high)])
            shades.append(rgba(colour[action], 1.0 if played.met else FADED))
            begin = end
    many = needed("matplotlib.collections", "plot").PolyCollection
    ax.add_collection(many(shapes, facecolors=shades, linewidths=0, zorder=2))
    thin = 1.2 if len(cells) <= 400 else 0.3
    ax.add_collection(many(frames, facecolors="none", edgecolors=PAPER, linewidths=thin, zorder=2.5))


def _write(ax: Any, plan: Plan, cells: dict[Any, Played], spots: dict[Any, Any], *, arrows: bool, costs: bool) -> None:
    """Write into each cell what is played most there, as an arrow or a word, and what it costs, where there is room."""
    colour, order = colours_of(plan.model), actions_of(plan.model)
    size = np.abs(ax.transData.transform((1, 1)) - ax.transData.transform((0, 0))) * 72 / ax.figure.dpi * 0.9
    for cell, played in cells.items():
        (left, right), (low, high) = spots[cell]
        most = max(played.shares, key=lambda action: played.shares[action])
        before = sum(share for action, share in played.shares.items() if order.index(action) < order.index(most))
        left, right = (left + (right - left) * share for share in (before, before + played.shares[most]))
        middle, tall = ((left + right) / 2, (low + high) / 2), high - low
        ink = ink_on(colour[most]) if played.met else INK
        lines = [name_of(most)]
        if arrows and _arrow(ax, played, middle, (right - left, tall), ink, raised=costs):
            lines, middle, tall = [], (middle[0], low + 0.2 * tall), 0.4 * tall
        if costs:
            lines.append(short(played.cost))
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
    shown = [action for action in actions_of(plan.model) if action in found]
    if len(shown) > NAMED:
        ax.set_title(title, fontsize=9.5, loc="left")
        return
    Patch = needed("matplotlib.patches", "plot").Patch
    colour = colours_of(plan.model)
    handles = [Patch(facecolor=colour[action], label=name_of(action)) for action in shown]
    room = ax.figure.bbox.width * 72 / ax.figure.dpi
    columns = int(room / (6 * max(len(each.get_label()) for each in handles) + 34))
    ax.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=max(1, min(len(handles), columns)),
        frameon=False, fontsize=9, borderaxespad=0.2, title=title or None,
        title_fontsize=9, alignment="left", handlelength=1.2, handleheight=1.0,
        columnspacing=1.4,
    )  # fmt: skip
