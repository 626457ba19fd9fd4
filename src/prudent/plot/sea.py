"""Deep Sea Treasure as a map."""

from typing import Any

import numpy as np

from prudent.domains.treasure import DEPTH, DIRECTIONS, MOVE_COST, SIZE, TREASURE
from prudent.errors import PrudentError, as_number
from prudent.plot.canvas import FAINT, ON_LIGHT, PAPER, Axes, axes_for
from prudent.plot.strips import check_plan
from prudent.results.plan import Plan
from prudent.results.policy_map import arrows_at, is_sea
from prudent.runtime.optional import needed

__all__ = ["sea_map"]

SEA, UNMET = "#E3F0FA", "#AEB9C4"
"""The sea and arrows where no run is: the same on dark pages, since dark arrows are drawn on it."""


def sea_map(plan: Plan, budget: float | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw a plan for Deep Sea Treasure as arrows on the map.

    Parameters
    ----------
    plan : Plan
        The plan.
    budget : float, optional
        The remaining budget, which gives the number of moves made; arrows are grey in cells that no run of the plan
        can be in by then.  Without it, all moves of the plan's runs are drawn, the frequent ones darker.
    ax : Axes, optional
        The axes to draw on; by default new ones.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.deep_sea_treasure(horizon=6), alpha=0.02)
    >>> ax = prudent.plot.sea_map(plan, budget=plan.policy.budget - 10)
    >>> ax.get_title(loc="left").partition(":")[0]
    'after 2 moves'
    """
    check_plan(plan)
    if not is_sea(plan.model):
        raise PrudentError(f"{plan.model.name} is not Deep Sea Treasure; use policy, heat_map, routes or budget_strip")
    arrows = _sailed(plan) if budget is None else _steered(plan, budget)
    ax = axes_for(ax, (6.0, 5.4))
    _draw_sea(ax)
    spots = [(column, row, *DIRECTIONS[action], often) for (column, row, action), often in arrows.items()]
    often = np.array([spot[4] for spot in spots])
    column, row, right, down = (np.array([spot[i] for spot in spots], dtype=float) for i in range(4))
    size = np.hypot(right, down)
    order = np.argsort(often, kind="stable")
    colours, maps = needed("matplotlib.colors", "plot"), needed("matplotlib", "plot").colormaps
    dark = colours.ListedColormap(maps["cividis_r"](np.linspace(0.15, 1, 256)))  # rare moves stay visible
    scaled = needed("matplotlib.cm", "plot").ScalarMappable(colours.PowerNorm(0.5, 0, max(1.0, often.max())), dark)
    shade = scaled.to_rgba(often)
    if budget is not None:
        shade = np.where(often[:, None] > 0, colours.to_rgba(ON_LIGHT), colours.to_rgba(UNMET))
    # Several moves from one cell start at its middle; a single one is centred there.
    scale, pivot, width = (1.9, "tail", 0.07) if budget is None else (1.25, "mid", 0.09)
    ax.quiver(
        column[order], row[order], (right / size)[order], (down / size)[order], color=shade[order], angles="xy",
        scale_units="xy", scale=scale, pivot=pivot, units="xy", width=width, headwidth=4, headlength=4.5,
        headaxislength=4, zorder=4,
    )  # fmt: skip
    if budget is None:
        figure: Any = ax.figure
        bar = figure.colorbar(
            scaled, ax=ax, label="expected moves per run", ticks=[0, 0.02, 0.1, 0.3, 0.6, 1], shrink=0.85
        )
        bar.outline.set_visible(False)
    else:
        moves = round((plan.policy.whole - budget) / MOVE_COST)
        left = f"{budget:g} of the budget of {plan.policy.whole:g} left"
        ax.set_title(
            f"after {moves} move{'' if moves == 1 else 's'}: {left}; grey: no run is there", fontsize=9.5, loc="left"
        )
    return ax


def _sailed(plan: Plan) -> dict[tuple[int, int, str], float]:
    """Return how often runs make each move in each cell."""
    found: dict[tuple[int, int, str], float] = {}
    visits = plan.visits()
    for row in np.flatnonzero(visits.played).tolist():
        state: Any = plan.model.state(plan.model.state_of_action(row))
        action: Any = plan.model.action(row)
        if action != "stop":
            key = state[0], state[1], action
            found[key] = found.get(key, 0.0) + float(visits.played[row])
    return found


def _steered(plan: Plan, budget: float) -> dict[tuple[int, int, str], float]:
    """Return the move in each cell at a remaining budget: 1 where runs can be, else 0."""
    budget = as_number("budget", budget, "a finite number", np.isfinite)
    model, whole = plan.model, plan.policy.whole
    states: list[Any] = [model.state(index) for index in np.flatnonzero(~model.is_goal).tolist()]
    moves, horizon = (whole - budget) / MOVE_COST, max(state[2] for state in states) - 1
    if abs(moves - round(moves)) > 1e-9 or not 0 <= round(moves) <= horizon:
        raise PrudentError(
            f"budget is {budget:g}; a move costs {MOVE_COST}, so it must be {whole:g} at the start, "
            f"{whole - MOVE_COST:g} after a move, ..., {whole - MOVE_COST * horizon:g} before the last one"
        )
    visits = plan.visits()
    return {(*s[:2], action): float(visits.of(s) > 0) for s, action in arrows_at(plan, round(moves)).items()}


def _draw_sea(ax: Any) -> None:
    Rectangle = needed("matplotlib.patches", "plot").Rectangle
    for column, depth in DEPTH.items():
        ax.add_patch(
            Rectangle(
                (column - 0.5, depth + 0.5), 1, SIZE - depth - 1, facecolor=FAINT, linewidth=0, zorder=1,
            )
        )  # fmt: skip
    for (column, row), value in TREASURE.items():
        ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor="#F4C95D", edgecolor=PAPER, lw=0.5, zorder=2))
        ax.text(column, row, str(value), ha="center", va="center", fontsize=7.5, zorder=5, color=ON_LIGHT)
    ax.set(facecolor=SEA, xlim=(-0.5, SIZE - 0.5), ylim=(SIZE - 0.5, -0.5), aspect="equal")
    ax.set(xticks=range(SIZE), yticks=range(SIZE), xlabel="column", ylabel="row")
    ax.set_xticks(np.arange(SIZE) - 0.5, minor=True)
    ax.set_yticks(np.arange(SIZE) - 0.5, minor=True)
    ax.grid(which="minor", color=PAPER, linewidth=0.8)
    ax.tick_params(which="both", length=0, labelsize=8)
