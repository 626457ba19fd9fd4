"""Heat maps: the action over two coordinates of the state."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.errors import PrudentError
from prudent.models.ssp import SSP
from prudent.plot.canvas import axes_for, in_order, ink_on, is_number, name_of
from prudent.plot.strips import check_plan, played_at
from prudent.results.decisions import Decision
from prudent.results.plan import Plan
from prudent.runtime.optional import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["has_tuples", "heat_map"]

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
    """Draw the action as a colour over two coordinates of the state; states are tuples, actions numbers.

    Parameters
    ----------
    plan : Plan
        The plan.
    budget : float, optional
        What is left of the budget; cells that no run of the plan meets with it are hatched.  Without it, the mean
        of what the plan's runs play in a cell, and only the cells that they meet.
    x, y : int
        Which coordinates of the state run to the right and up.
    where : mapping, optional
        Values of other coordinates, ``{2: 10}``: only those states are shown.
    names : sequence of str, optional
        What to call x, y, the action, and the other coordinates in their order.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.inventory_control(stages=3), alpha=0.02)
    >>> ax = prudent.plot.heat_map(plan, x=1, y=2, where={0: 1}, names=("stock", "demand", "buy", "stage"))
    >>> ax.get_title(loc="left")
    'stage 1'
    """
    check_plan(plan)
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise PrudentError(f"names is {names!r}; it must be a sequence of texts: x, y, the action, other coordinates")
    cells = _mean_cells(plan, x, y, where or {}) if budget is None else _cells(plan, budget, x, y, where or {})
    if not cells:
        raise PrudentError(f"no state of {plan.model.name} is met with budget {budget!r} and where {where!r}")
    ax = axes_for(ax, (6.0, 4.6))
    across, up = (in_order([cell[i] for cell in cells]) for i in (0, 1))
    grid = np.full((len(up), len(across)), np.nan)
    unmet = np.full(grid.shape, np.nan)
    column, row = ({value: i for i, value in enumerate(values)} for values in (across, up))
    for (i, j), (value, is_met) in cells.items():
        place = row[j], column[i]
        grid[place] = value
        if not is_met:
            unmet[place] = 1.0
    edges = _edges(across), _edges(up)
    mesh = _coloured(ax, edges, grid, np.isfinite(unmet))
    if np.isfinite(unmet).any():
        veil = needed("matplotlib.colors", "plot").ListedColormap([(1.0, 1.0, 1.0, 0.3)])
        ax.pcolor(*edges, np.ma.masked_invalid(unmet), cmap=veil, edgecolor="white", hatch="////", linewidth=0)
    called = (*names, *("x", "y", "action")[len(names) :])
    ax.set_facecolor("#F4F4F4")
    ax.set_xlabel(called[0])
    ax.set_ylabel(called[1])
    _ticks(ax.xaxis, across)
    _ticks(ax.yaxis, up)
    figure: Any = ax.figure
    bar = figure.colorbar(mesh, ax=ax, label=called[2] if budget is not None else f"{called[2]}, mean of runs")
    bar.outline.set_visible(False)
    if isinstance(mesh.norm, needed("matplotlib.colors", "plot").BoundaryNorm):
        bar.set_ticks(np.arange(np.nanmin(grid), np.nanmax(grid) + 1))
    ax.set_title(_heading(plan, budget, where or {}, called, x, y), fontsize=9.5, loc="left")
    return ax


def _heading(
    plan: Plan, budget: float | None, where: Mapping[int, Hashable], names: Sequence[str], x: int, y: int
) -> str:
    others = dict(zip((i for i in range(max(where, default=0) + 1) if i not in (x, y)), names[3:], strict=False))
    parts = [f"{others.get(i, f'coordinate {i}')} {name_of(value)}" for i, value in where.items()]
    if budget is not None:
        whole = plan.policy.budget
        left = "whatever is left" if whole is None else f"{budget:g} of the budget of {whole:g} left"
        parts = [left, *parts, "hatched: not met"]
    return ", ".join(parts)


def _coloured(ax: Any, edges: Any, grid: Any, unmet: Any) -> Any:
    """Draw the cells, with as many colours as there are actions if they are few whole numbers, and numbers in them."""
    colors, maps = needed("matplotlib.colors", "plot"), needed("matplotlib", "plot").colormaps
    known = grid[np.isfinite(grid)]
    low, high = float(known.min()), float(known.max())
    whole = (known == known.round()).all()
    if whole and high - low < 12:
        levels = np.arange(low - 0.5, high + 1)
        norm: Any = colors.BoundaryNorm(levels, 256)
    else:
        norm = colors.Normalize(low, max(high, low + 1e-9))
    mesh = ax.pcolormesh(*edges, np.ma.masked_invalid(grid), cmap=maps["cividis"], norm=norm)
    if grid.size <= NUMBERED:
        for j, i in np.argwhere(np.isfinite(grid) & ~unmet).tolist():
            middle = (edges[0][i] + edges[0][i + 1]) / 2, (edges[1][j] + edges[1][j + 1]) / 2
            text = f"{grid[j, i]:g}" if whole else f"{grid[j, i]:.1f}"
            colour = ink_on(mesh.cmap(norm(grid[j, i])))
            ax.text(*middle, text, ha="center", va="center", fontsize=6.5, color=colour)
    return mesh


def _edges(values: list[Hashable]) -> Any:
    if len(values) == 1 or not all(map(is_number, values)):
        return np.arange(len(values) + 1) - 0.5 + (float(values[0]) if len(values) == 1 and is_number(values[0]) else 0)  # type: ignore[arg-type]
    known = np.array(values, dtype=np.float64)
    half = np.diff(known) / 2
    return np.concatenate([[known[0] - half[0]], known[:-1] + half, [known[-1] + half[-1]]])


def _ticks(axis: Any, values: list[Hashable]) -> None:
    if not all(map(is_number, values)):
        axis.set_ticks(range(len(values)), [name_of(value, 12) for value in values])
    else:  # every one, every other one, every fifth ...
        apart = next(k * 10**i for i in range(10) for k in (1, 2, 5) if len(values) <= 12 * k * 10**i)
        shown = values[::apart]
        axis.set_ticks([float(value) for value in shown], [f"{value:g}" for value in shown])  # type: ignore[arg-type]


def _number(model: SSP, action: Hashable) -> float:
    if not is_number(action):
        raise PrudentError(
            f"action {action!r} of {model.name} is not a number: a heat map has none for it; use budget_strip or routes"
        )
    return float(action)  # type: ignore[arg-type]


def _states(model: SSP, x: int, y: int, where: Mapping[int, Hashable]) -> list[tuple[int, tuple[Any, Any]]]:
    """Return the states with a number among their actions, and the cell of each."""
    if isinstance(x, bool) or isinstance(y, bool) or not isinstance(x, int) or not isinstance(y, int) or x == y:
        raise PrudentError(f"x is {x!r} and y is {y!r}; they must be two coordinates of the state, counted from 0")
    if not isinstance(where, Mapping) or not all(isinstance(i, int) and i not in (x, y) for i in where):
        raise PrudentError(f"where is {where!r}; it must give values of other coordinates, as in {{2: 10}}")
    found = []
    for index in np.flatnonzero(~model.is_goal).tolist():
        name = model.state(index)
        if not isinstance(name, tuple) or max(x, y, *where, 0) >= len(name) or min(x, y, *where, 0) < 0:
            continue
        if all(name[i] == value for i, value in where.items()):
            found.append((index, (name[x], name[y])))
    if not found:
        raise PrudentError(
            f"{model.name} has no state that is a tuple with coordinates {x} and {y}"
            + (f" and {dict(where)!r}" if where else "") + "; use budget_strip or routes"
        )  # fmt: skip
    return found


def _mean_cells(plan: Plan, x: int, y: int, where: Mapping[int, Hashable]) -> dict[Any, tuple[float, bool]]:
    """Return the mean action of each cell, weighted by how often it is played there."""
    model, played = plan.model, plan.visits().played
    sums: dict[Any, list[float]] = {}
    for index, cell in _states(model, x, y, where):
        for action in range(int(model.action_start[index]), int(model.action_start[index + 1])):
            if played[action] > 0 and not _only_way(model, index):
                both = sums.setdefault(cell, [0.0, 0.0])
                both[0] += played[action] * _number(model, model.action(action))
                both[1] += played[action]
    # Rounding must not make a mean of equal actions another one.
    return {cell: (float(np.round(total / times, 9)), True) for cell, (total, times) in sums.items()}


def _cells(plan: Plan, budget: float, x: int, y: int, where: Mapping[int, Hashable]) -> dict[Any, tuple[float, bool]]:
    """Return the action of each cell with so much of the budget left, and whether it is met."""
    model = plan.model
    met: dict[Hashable, list[Decision]] = {}
    for row in plan.decisions().rows:
        met.setdefault(row.state, []).append(row)
    cells: dict[Any, tuple[float, bool]] = {}
    owner: dict[Any, Hashable] = {}
    for index, cell in _states(model, x, y, where):
        if plan.policy.prepared.members.state_of[index] < 0 or _only_way(model, index):
            continue
        state = model.state(index)
        found = played_at(plan, state, budget, met)
        if cell in owner:
            raise PrudentError(
                f"states {owner[cell]!r} and {state!r} share a cell; with a budget, fix the others: where={{2: ...}}"
            )
        owner[cell] = state
        if found is not None:
            cells[cell] = _number(model, found[0]), found[1]
    return cells


def _only_way(model: SSP, index: int) -> bool:
    """Return whether a state has one action, and that is not a number: there is nothing to map."""
    first = int(model.action_start[index])
    return int(model.action_start[index + 1]) - first == 1 and not is_number(model.action(first))


def has_tuples(model: SSP, length: int) -> bool:
    """Return whether states are tuples of numbers, but for goals."""
    names = [model.state(index) for index in np.flatnonzero(~model.is_goal).tolist()]
    return all(isinstance(name, tuple) and len(name) == length and all(map(is_number, name)) for name in names)
