"""The map of a policy that suits its model, and the one of Deep Sea Treasure."""

from typing import Any

import numpy as np

from prudent.domains.treasure import DIRECTIONS, MOVE_COST, SIZE, TREASURE
from prudent.errors import PrudentError, as_number
from prudent.plot import canvas
from prudent.plot.canvas import Axes
from prudent.plot.grid import grid, heat_map
from prudent.plot.network import routes
from prudent.plot.strips import budget_strip
from prudent.results.map_data import are_pairs, arrows_at, domain_of, is_sea, other_parts
from prudent.results.plan import Plan


def policy(plan: Plan, budget: float | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the actions of a plan in the way that suits its model.

    Each domain has its picture: Deep Sea Treasure is a map with arrows (:func:`sea_map`), the Betting Game and
    Inventory Control are heat maps over stage and money or stock (:func:`heat_map`), Autonomous Navigation is a network
    with routes (:func:`routes`).  Other models are grids if their states are pairs (:func:`grid`); otherwise they are
    strips along the remaining budget, one for each of the states visited most (:func:`budget_strip`).

    Parameters
    ----------
    budget : float, optional
        The remaining budget; without it, the mean over the runs of the plan.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.inventory_control(stages=3), alpha=0.02)
    >>> ax = prudent.plot.policy(plan, budget=40)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('stage', 'stock')
    """
    canvas.check_kind("plan", plan, Plan, "solve")
    model, known = plan.model, domain_of(plan.model)
    if known.drawn == "heat":
        where = {} if budget is None else other_parts(model)
        names = (*known.parts[:2], known.action, *known.parts[2:])
        return heat_map(plan, budget, where=where, names=names, ax=ax)
    if known.drawn == "sea":
        return sea_map(plan, budget, ax=ax)
    if known.drawn == "network":
        return routes(plan, budget=budget, ax=ax)
    if are_pairs(model):
        return grid(plan, budget, ax=ax)
    if budget is not None:
        raise PrudentError(
            f"budget is {budget!r}; {model.name} is drawn for all budgets at once: leave it out, or use heat_map or "
            "routes"
        )
    return budget_strip(plan, ax=ax)


def sea_map(plan: Plan, budget: float | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw a plan for Deep Sea Treasure as arrows on the map, in the colours of the actions.

    Parameters
    ----------
    budget : float, optional
        The remaining budget, which gives the number of moves made; arrows are grey in cells that no run of the plan
        can be in by then.  Without it, all moves of the plan's runs are drawn, the frequent ones more opaque.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.deep_sea_treasure(horizon=6), alpha=0.02)
    >>> ax = prudent.plot.sea_map(plan, budget=plan.policy.budget - 10)
    >>> ax.get_title(loc="left").partition(":")[0]
    'after 2 moves'
    """
    canvas.check_kind("plan", plan, Plan, "solve")
    if not is_sea(plan.model):
        raise PrudentError(f"{plan.model.name} is not Deep Sea Treasure; use policy, heat_map, routes or budget_strip")
    arrows = _sailed(plan) if budget is None else _steered(plan, budget)
    ax = canvas.axes_for(ax, (6.0, 5.4))
    _draw_sea(ax)
    moves = sorted(arrows, key=arrows.__getitem__)  # the frequent ones on top
    spots = np.array([(column, row, *DIRECTIONS[action]) for column, row, action in moves], dtype=float)
    toward = spots[:, 2:] / np.hypot(*spots[:, 2:].T)[:, None]
    often = np.array([arrows[move] for move in moves])
    rgba, colour = canvas.part("colors").to_rgba_array, canvas.colours_of(plan.model)
    opaque = _opacity(often) if budget is None else None
    known = [colour[move[2]] if budget is None or arrows[move] > 0 else canvas.FAINT for move in moves]
    # Several moves from one cell start at its middle; a single one is centred there.
    scale, pivot = (1.7, "tail") if budget is None else (1.25, "mid")
    ax.quiver(
        *spots[:, :2].T, *toward.T, color=rgba(known, opaque), edgecolor=rgba([canvas.INK] * len(moves), opaque),
        angles="xy", scale_units="xy", scale=scale, pivot=pivot, units="xy", width=0.09, headwidth=4, headlength=4.5,
        headaxislength=4, linewidth=0.3, zorder=4,
    )  # fmt: skip
    if budget is None:
        Line = canvas.part("lines").Line2D
        look: dict[str, Any] = {"marker": r"$\rightarrow$", "markersize": 13, "linestyle": "none", "color": canvas.INK}
        shown = [Line([], [], alpha=_opacity(x), label=f"{x:g}", **look) for x in (1.0, 0.1, 0.01)]
        words = Line([], [], linestyle="none", label="moves per run:")
        canvas.name_above(ax, [words, *shown], ncols=4, handletextpad=0.4, columnspacing=1.2)
    else:
        made = round((plan.policy.whole - budget) / MOVE_COST)
        left = f"{budget:g} of the budget of {plan.policy.whole:g} left"
        canvas.entitle(ax, f"after {made} move{'' if made == 1 else 's'}: {left}; grey: no run is there")
    return ax


def _opacity(often: Any) -> Any:
    """Return how opaque an arrow is: rare moves stay visible."""
    return 0.4 + 0.6 * np.sqrt(np.minimum(often, 1.0))


def _sailed(plan: Plan) -> dict[tuple[int, int, str], float]:
    """Return how often runs make each move in each cell."""
    model, played = plan.model, plan.visits().played
    found: dict[tuple[int, int, str], float] = {}
    for row in np.flatnonzero(played).tolist():
        state: Any = model.state(model.state_of_action(row))
        key: Any = *state[:2], model.action(row)
        found[key] = found.get(key, 0.0) + float(played[row])
    return {key: often for key, often in found.items() if key[2] != "stop"}


def _steered(plan: Plan, budget: float) -> dict[tuple[int, int, str], float]:
    """Return the move in each cell at a remaining budget: 1 where runs can be, else 0."""
    budget = as_number("budget", budget, "a finite number", np.isfinite)
    model, whole = plan.model, plan.policy.whole
    states: list[Any] = [model.state(index) for index in model.acting]
    moves, horizon = (whole - budget) / MOVE_COST, max(state[2] for state in states) - 1
    if abs(moves - round(moves)) > 1e-9 or not 0 <= round(moves) <= horizon:
        raise PrudentError(
            f"budget is {budget:g}; a move costs {MOVE_COST}, so it must be {whole:g} at the start, "
            f"{whole - MOVE_COST:g} after a move, ..., {whole - MOVE_COST * horizon:g} before the last one"
        )
    visits = plan.visits()
    return {(*s[:2], action): float(visits.of(s) > 0) for s, action in arrows_at(plan, round(moves)).items()}


def _draw_sea(ax: Any) -> None:
    column, row = np.array(list(TREASURE)).T  # rock is below each treasure
    ax.bar(column, SIZE - 1 - row, 1, row + 0.5, color=canvas.ROAD, linewidth=0, zorder=1)
    ax.bar(column, 1, 1, row - 0.5, color="#F4C95D", edgecolor=canvas.PAPER, linewidth=0.5, zorder=2)
    for (column, row), value in TREASURE.items():
        ax.text(column, row, str(value), ha="center", va="center", fontsize=7.5, zorder=5, color=canvas.ON_LIGHT)
    ax.set(facecolor=canvas.SEA, xlim=(-0.5, SIZE - 0.5), ylim=(SIZE - 0.5, -0.5), aspect="equal")
    ax.set(xticks=range(SIZE), yticks=range(SIZE), xlabel="column", ylabel="row")
    ax.set_xticks(np.arange(SIZE) - 0.5, minor=True)
    ax.set_yticks(np.arange(SIZE) - 0.5, minor=True)
    ax.grid(which="minor", color=canvas.PAPER, linewidth=0.8)
    ax.tick_params(which="both", length=0, labelsize=8)
