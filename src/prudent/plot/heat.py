"""Heat maps: the action over two coordinates of the state."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from prudent.errors import PrudentError, as_number, needed
from prudent.models.ssp import SSP
from prudent.plot.actions import actions_of
from prudent.plot.canvas import FADED, PALE, PAPER, Axes, axes_for, in_order, ink_on, name_of, scale, short
from prudent.plot.strips import check_plan
from prudent.results.plan import Plan
from prudent.results.policy_map import Played, cells_of, is_number

NUMBERED = 330
"""The most cells of a map that have their action written into them."""


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

    Parameters
    ----------
    plan : Plan
        The plan.
    budget : float, optional
        The remaining budget; cells that no run of the plan can be in with it are faded.  Without it, the mean action
        of the plan's runs in each cell that they visit.
    x, y : int
        The coordinates of the state that run to the right and up.
    where : mapping, optional
        Values of other coordinates, ``{2: 10}``: only states with these values are shown.
    names : sequence of str, optional
        The names of x, y and the action, then of the other coordinates in their order.
    ax : Axes, optional
        The axes to draw on; by default new ones.

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
    ax = axes_for(ax, (6.0, 4.6))
    across, up = (in_order([cell[i] for cell in cells]) for i in (0, 1))
    grid = np.full((len(up), len(across)), np.nan)
    unmet = np.zeros(grid.shape, dtype=bool)
    column, row = ({value: i for i, value in enumerate(values)} for values in (across, up))
    for (i, j), played in cells.items():
        grid[row[j], column[i]], unmet[row[j], column[i]] = played.mean, not played.met
    edges = edges_of(across), edges_of(up)
    mesh = _coloured(ax, plan.model, edges, grid, unmet)
    if unmet.any():
        veil = needed("matplotlib.colors", "plot").ListedColormap([PAPER])
        ax.pcolor(*edges, np.ma.masked_equal(1.0 * unmet, 0), cmap=veil, alpha=1 - FADED, linewidth=0)
    called = (*names, *("x", "y", "action")[len(names) :])
    ax.set(facecolor=PALE)
    name_axes(ax, called, across, up)
    figure: Any = ax.figure
    bar = figure.colorbar(mesh, ax=ax, label=called[2] if budget is not None else f"{called[2]} (mean over visits)")
    bar.outline.set_visible(False)
    if isinstance(mesh.norm, needed("matplotlib.colors", "plot").BoundaryNorm):
        bar.set_ticks((mesh.norm.boundaries[:-1] + mesh.norm.boundaries[1:]) / 2)
    ax.set_title(heading(plan, budget, where, called, x, y), fontsize=9.5, loc="left")
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
    check_plan(plan)
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
    parts = [f"{others.get(i, f'coordinate {i}')} {name_of(value)}" for i, value in where.items()]
    if budget is not None:
        whole = plan.policy.budget
        left = "any remaining budget" if whole is None else f"{short(budget)} of the budget of {short(whole)} left"
        parts = [left, *parts, "faded: no run is there"]
    return ", ".join(parts)


def _coloured(ax: Any, model: SSP, edges: Any, grid: Any, unmet: Any) -> Any:
    """Draw the cells and the numbers in them; actions that are few whole numbers get one colour each."""
    colors = needed("matplotlib.colors", "plot")
    actions = np.array([action for action in actions_of(model) if is_number(action)], dtype=np.float64)
    low, high = float(actions[0]), float(actions[-1])  # of the model, so that colours are those of other pictures
    known = grid[np.isfinite(grid)]
    whole = (known == known.round()).all()
    if whole and low < high < low + 12 and (actions == actions.round()).all():
        norm: Any = colors.BoundaryNorm(np.arange(low - 0.5, high + 1), 256)
    else:
        norm = colors.Normalize(low, max(high, low + 1e-9))
    mesh = ax.pcolormesh(*edges, np.ma.masked_invalid(grid), cmap=scale(), norm=norm, edgecolors="face", linewidth=0.2)
    if grid.size <= NUMBERED:
        for j, i in np.argwhere(np.isfinite(grid) & ~unmet).tolist():
            middle = (edges[0][i] + edges[0][i + 1]) / 2, (edges[1][j] + edges[1][j + 1]) / 2
            text = f"{grid[j, i]:g}" if whole else f"{grid[j, i]:.1f}"
            colour = ink_on(mesh.cmap(norm(grid[j, i])))
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
        axis.set_ticks(range(len(values)), [name_of(value, 12) for value in values])
    else:  # every one, every other one, every fifth ...
        apart = next(k * 10**i for i in range(10) for k in (1, 2, 5) if len(values) <= 12 * k * 10**i)
        shown = values[::apart]
        axis.set_ticks([float(value) for value in shown], [f"{value:g}" for value in shown])  # type: ignore[arg-type]
