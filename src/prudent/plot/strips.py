"""Strips along the remaining budget: the action that a plan plays in a state."""

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.plot import canvas
from prudent.plot.canvas import Axes
from prudent.results.decisions import bands_of, met_of
from prudent.results.plan import Plan

STATES = 20
"""The most states that are drawn unless they are named."""

LONG = 36
"""The most characters of an action's name, where there is room."""

Span = tuple[float, float]
"""The largest and the least remaining budget at which an action is played."""


def budget_strip(plan: Plan, *states: Hashable, ax: "Axes | None" = None) -> "Axes":
    """Draw the action of a plan in a state for every remaining budget, in full colour where its runs can be.

    Parameters
    ----------
    *states : hashable
        The states, with a strip for each; by default the states with a choice that the plan's runs visit most often.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> ax = prudent.plot.budget_strip(plan, "s1")
    >>> [text.get_text() for text in ax.texts]
    ['d', 'e', 'c']
    """
    canvas.check_kind("plan", plan, Plan, "solve")
    decisions = met_of(plan.policy)
    chosen = list(states) or most_visited(plan)
    strips = [
        (state, bands_of(plan.policy, state), [row for row in decisions if row.state == state]) for state in chosen
    ]
    own = ax is None
    ax = canvas.axes_for(ax, (6.8, 1.5 + 0.42 * len(strips)))
    figure: Any = ax.figure
    budget, scale = plan.policy.whole, plan.policy.prepared.scale
    found = {band.action for _, bands, _ in strips for band in bands}
    colour = canvas.colours_of(plan.model)
    low, high = _range(strips, budget, scale.level_size)
    ax.set(xlim=(high, low), ylim=(len(strips) - 0.4, -0.6))  # the budget falls from left to right
    spelt: set[Hashable] = set()
    half = scale.level_size / 2  # a cost stands for half a step to either side, if ranges do not cover all costs
    apart = 0.0 if scale.rounded else half
    for row, (_, bands, met) in enumerate(strips):
        there = [(budget - each.at_least + half, budget - each.at_most - half) for each in met]
        for band in bands:
            begin, end = min(budget - band.at_least + apart, high), max(budget - band.at_most - apart, low)
            inside = [(min(begin, first), max(end, last)) for first, last in there if first > end and last < begin]
            if begin > end and _draw_band(ax, row, band.action, (begin, end), inside, colour[band.action]):
                spelt.add(band.action)
    ax.set_yticks(range(len(strips)), [canvas.name_of(state) for state, _, _ in strips])
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    _name_budget(ax, plan, chosen, 0 if states else len({row.state for row in decisions} - set(chosen)))
    if len(found) > 1 and spelt != found and len(found) <= canvas.NAMED:
        rows = canvas.name_above(ax, canvas.keys(plan.model, found, LONG))
        if own:
            figure.set_figheight(figure.get_figheight() + 0.19 * (rows - 1))
    return ax


def _draw_band(ax: Any, row: int, action: Hashable, span: Span, met: Sequence[Span], colour: str) -> bool:
    """Draw where one action is played, with its name if there is room; return whether the whole name fits."""
    for (begin, end), opaque in [(span, canvas.FADED), *((piece, 1.0) for piece in met)]:
        look = {"facecolor": colour, "alpha": opaque, "linewidth": 0, "zorder": 2}
        ax.broken_barh([(end, begin - end)], (row - 0.36, 0.72), **look)
    border = {"color": canvas.PAPER, "linewidth": 1.2, "zorder": 2.5}  # where the next begins
    ax.plot([span[1]] * 2, [row - 0.36, row + 0.36], **border)
    high, low = ax.get_xlim()
    point = (high - low) * ax.figure.dpi / ax.bbox.width / 72  # about
    cuts = [span[0], *chain(*met), span[1]]
    between = list(zip(cuts[::2], cuts[1::2], strict=True))
    for text in (canvas.name_of(action, LONG), canvas.name_of(action)):
        for parts, ink in ((met, canvas.ink_on(colour)), (between, canvas.INK)):  # where runs can be, first
            begin, end = max(parts, key=lambda piece: piece[0] - piece[1], default=(0.0, 0.0))
            if begin - end > point * (6.5 * len(text) + 6):
                ax.text((begin + end) / 2, row, text, ha="center", va="center", fontsize=9, zorder=3, color=ink)
                return text == canvas.name_of(action, LONG)
    return False


def _name_budget(ax: Any, plan: Plan, states: list[Hashable], more: int) -> None:
    """Label the axis, and show how many states are left out."""
    if plan.policy.budget is None:
        ax.set_xticks([])
        what = "any remaining budget: the action depends on the state alone"
    else:
        ax.axvline(0, color=canvas.INK, linewidth=1, linestyle=":", zorder=4)
        luck = plan.policy.prepared.scale.luck
        back = any(luck[plan.model.index(state)] < 0 for state in states)  # negative costs may follow
        what = "remaining budget" if back else "remaining budget (below 0: the total exceeds the budget)"
    words = "full colour: where runs can be" + (f"; states not shown: {more:,}" if more else "")
    ax.set_xlabel(f"{what}\n{words}")


def most_visited(plan: Plan) -> list[Hashable]:
    """Return the states that the plan's runs visit most often, in the model's order.

    These are states whose action depends on the budget, or states with a choice if there are none.
    """
    model, played = plan.model, plan.visits().played
    met = np.add.reduceat(np.append(played, 0.0), model.action_start[:-1]) * (np.diff(model.action_start) > 1)
    most = np.argsort(-met, kind="stable")[: 10 * STATES]
    most = most[met[most] > 0]
    turning = [s for s in most.tolist() if len(bands_of(plan.policy, model.state(s))) > 1]
    found: list[Hashable] = [model.state(s) for s in sorted((turning or most.tolist())[:STATES])]
    if not found:
        raise PrudentError(
            f"no state of {model.name} that runs of the plan visit has a choice; there is nothing to draw"
        )
    return found


def _range(strips: Sequence[Any], budget: float, step: float) -> tuple[float, float]:
    """Return the least and the largest remaining budget to draw: around what runs meet and where actions change."""
    met = [budget - x for _, _, rows in strips for row in rows for x in (row.at_least, row.at_most) if np.isfinite(x)]
    turns = [budget - after.at_least for _, bands, _ in strips for after in bands[1:]]
    low, high = min([*met, *turns, 0.0]), max([*met, *turns])
    room = max(0.06 * (high - low), step)
    return low - room, high + room
