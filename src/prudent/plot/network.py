"""A network and the routes of a plan through it."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from prudent.domains.navigation import place_of_junctions
from prudent.errors import PrudentError
from prudent.models.amend import is_amended
from prudent.models.rows import FloatArray, IntArray
from prudent.models.ssp import SSP
from prudent.plot import canvas
from prudent.plot.canvas import Axes
from prudent.results.map_data import place_states, played_in, ways_of
from prudent.results.plan import Plan
from prudent.runtime.tables import worst

FEW = 12
"""Up to this many states, all are named."""

SHOWN = 0.005
"""Connections that runs take less often than this are left out."""


def routes(
    plan: Plan,
    *,
    budget: float | None = None,
    positions: Mapping[Hashable, tuple[float, float]] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the model as a network; line width shows how often runs of the plan take each connection.

    Parallel connections, such as two actions that lead from one state to the same successor, are drawn as one.

    Parameters
    ----------
    plan : Plan
        The plan; its model has at most 600 states, unless positions are given.
    budget : float, optional
        Draw instead the actions that the plan plays in each state at this remaining budget; if they are few, in the
        colours of the actions.
    positions : mapping, optional
        The position (x, y) of each state; the goals that :func:`prudent.amend` adds need none.  By default the
        positions of the invented road network; for other models, positions whose distances match the costs between
        states as closely as possible, with the start on the left.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> ax = prudent.plot.routes(plan, positions={"s0": (0, 0), "s1": (1, 1), "s2": (1, -1), "g": (2, 0)})
    >>> ax.get_title(loc="left")
    'exact, the worst 10% of runs; line width: how often runs take a connection'
    """
    canvas.check_kind("plan", plan, Plan, "solve")
    model = plan.model
    place = _places(model, positions)
    played = played_in(plan, model.acting, budget)
    pairs, total = ways_of(model, played)
    tall, wide = np.ptp(place[:, 1]), max(np.ptp(place[:, 0]), 1e-9)
    ax = canvas.axes_for(ax, (6.8, float(np.clip(6.4 * tall / wide, 2.2, 6.4)) + 0.4))
    apart = np.insert(place[pairs], 2, np.nan, axis=1).reshape(-1, 2)  # one path with gaps: files stay small
    ax.plot(*apart.T, color=canvas.ROAD, linewidth=0.5, zorder=1)
    ax.plot(place[:, 0], place[:, 1], "o", color=canvas.FAINT, markersize=2.5, zorder=2)
    taken = np.flatnonzero((total >= SHOWN) & (pairs[:, 0] != pairs[:, 1]))
    taken = taken[np.argsort(total[taken], kind="stable")]
    if budget is None:
        often, shades, forks = np.minimum(total[taken], 1.0), [canvas.BLUE] * len(taken), _forks(pairs, total)
        shown = "line width: how often runs take a connection"
        _key(ax)
    else:
        often, shades, forks = np.full(len(taken), 0.3), _shades(ax, model, pairs[taken, 0], played), []
        shown = f"actions played with a remaining budget of {budget:g}"
    _draw_ways(ax, place[pairs[taken]], often, shades)
    _name_places(ax, model, place, forks)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.06)
    ax.set_axis_off()
    what = plan.method if plan.objective is None else plan.objective
    canvas.entitle(ax, f"{what}, {worst(plan.alpha)}; {shown}")
    return ax


def _shades(ax: Any, model: SSP, sources: IntArray, played: FloatArray) -> list[str]:
    """Return the colour of what is played in each state, and name the actions; one colour where they are many."""
    colour = canvas.colours_of(model)
    if len(colour) > len(canvas.FILLS):
        return [canvas.INK] * len(sources)
    chosen = {model.state_of_action(row): model.action(row) for row in np.flatnonzero(played).tolist()}
    found = [chosen[source] for source in sources.tolist()]
    ax.legend(handles=canvas.keys(model, found), framealpha=0.8, edgecolor="none", fontsize=8.5)
    return [colour[action] for action in found]


def _draw_ways(ax: Any, ways: FloatArray, often: FloatArray, shades: list[str]) -> None:
    """Draw ways, (n, 2, 2), at once: lines that end in triangles, each a little to the right of the way back."""
    many = canvas.part("collections")
    along = ways[:, 1] - ways[:, 0]
    long = np.maximum(np.hypot(*along.T), 1e-300)  # two states may be in one place
    size = 0.02 * np.ptp(ways.reshape(-1, 2), axis=0).max()
    head = along * np.minimum(0.3, size / long)[:, None]
    aside = 0.5 * np.column_stack([-head[:, 1], head[:, 0]])
    ways = ways - 0.4 * aside[:, None]
    tip, back = ways[:, 1], ways[:, 1] - head
    look = _look(often) | {"zorder": 3}
    ax.add_collection(many.LineCollection(ways, colors=shades, **look))
    heads = np.stack([tip, back + aside, back - aside], axis=1)
    ax.add_collection(many.PolyCollection(heads, facecolors=shades, **(look | {"linewidth": 0})))


def _places(model: SSP, positions: Mapping[Hashable, tuple[float, float]] | None) -> FloatArray:
    given: Mapping[Any, Any] | None = place_of_junctions(model) if positions is None else positions
    if given is None:
        return place_states(model)
    if not isinstance(given, Mapping):
        raise PrudentError(f"positions is a {type(given).__name__}; it must be a mapping from states to (x, y)")
    found, below = np.zeros((model.n_states, 2)), []
    for index in range(model.n_states):
        state = model.state(index)
        if state not in given and is_amended(model, index):
            below.append(index)
            continue
        if state not in given:
            raise PrudentError(f"positions has no place for state {state!r}; give (x, y) for every state")
        try:
            across, up = given[state]
            found[index] = float(across), float(up)
        except (TypeError, ValueError):
            raise PrudentError(f"positions has {given[state]!r} for state {state!r}; it must be (x, y)") from None
    if not np.isfinite(found).all():
        raise PrudentError("positions must be finite numbers")
    others = np.delete(found, below, axis=0)  # the ends that amend added: below all others, in the middle
    found[below] = np.median(others[:, 0]), others[:, 1].min() - 0.15 * np.ptp(others, axis=0).max()
    return found


def _name_places(ax: Any, model: SSP, place: FloatArray, forks: list[int]) -> None:
    """Name the start, the goal, and the states where routes part, as far as there is room."""
    size = np.ptp(place, axis=0).max()
    named: list[FloatArray] = []
    start, goal = model.initial_state.tolist(), np.flatnonzero(model.is_goal).tolist()
    for which, marker, large in ((start, "s", 9), (goal, "*", 15)):
        ax.plot(*place[which].T, marker, color=canvas.ORANGE, markersize=large, markeredgecolor=canvas.INK, zorder=6)
    for index in [*start, *goal, *(range(model.n_states) if model.n_states <= FEW else forks)]:
        spot = place[index]
        if any(abs(spot[0] - x) < 0.11 * size and abs(spot[1] - y) < 0.05 * size for x, y in named):
            continue
        named.append(spot)
        bold = index in start or index in goal
        ax.annotate(
            canvas.name_of(model.state(index), 14), spot, xytext=(0, 9 if bold else 7), textcoords="offset points",
            ha="center", fontsize=9.5 if bold else 8, fontweight="bold" if bold else "normal", zorder=7,
            bbox={"facecolor": canvas.PAPER, "edgecolor": "none", "alpha": 0.75, "pad": 0.8},
        )  # fmt: skip


def _forks(pairs: IntArray, total: FloatArray) -> list[int]:
    """Return where a plan's routes part, the busiest first."""
    used = total >= 0.02
    count, leaving = np.bincount(pairs[used, 0]), np.bincount(pairs[used, 0], total[used])
    busy = np.flatnonzero(count > 1)
    return list(busy[np.argsort(-leaving[busy], kind="stable")][:FEW])


def _look(often: Any) -> dict[str, Any]:
    return {"linewidth": 0.7 + 2.8 * often, "alpha": 0.4 + 0.6 * often}


def _key(ax: Any) -> None:
    """Explain the widths in a legend below the picture."""
    Line = canvas.part("lines").Line2D
    handles = [Line([], [], color=canvas.BLUE, label=f"{x:.0%} of runs", **_look(x)) for x in (1.0, 0.5, 0.1)]
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": len(handles)}
    ax.legend(handles=handles, frameon=False, fontsize=8.5, handlelength=3, **below)
