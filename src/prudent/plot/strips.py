"""Strips along the budget left: what a plan plays in a state, depending on what is left."""

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.plot.canvas import HATCHES, INK, Axes, axes_for, in_order, ink_on, name_of, ordered
from prudent.results.decisions import Decision
from prudent.results.plan import Plan
from prudent.results.policy_map import is_number
from prudent.runtime.optional import needed

__all__ = ["budget_strip", "check_plan", "most_visited"]

MOST = 20
"""The most states that are drawn unless they are named."""

FILLS = ("#0072B2", "#F0E442", "#009E73", "#E69F00", "#CC79A7", "#56B4E9")
"""Okabe and Ito's colours for bars, neighbours far apart in lightness."""

LONG = 36
"""The most characters of an action's name, where there is room."""

NAMED = 12
"""The most actions of a legend."""


def budget_strip(plan: Plan, *states: Hashable, ax: "Axes | None" = None) -> "Axes":
    """Draw what a plan plays in a state for every budget left; the line below shows where its runs can be.

    Parameters
    ----------
    plan : Plan
        The plan.
    *states : hashable
        The states, a strip for each; by default those with a choice that the plan's runs meet most often.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> ax = prudent.plot.budget_strip(plan, "s1")
    >>> [text.get_text() for text in ax.texts]
    ['d', 'e', 'c']
    """
    check_plan(plan)
    decisions = plan.decisions()
    chosen = list(states) or most_visited(plan)
    strips = [(state, plan.bands(state), [row for row in decisions.rows if row.state == state]) for state in chosen]
    own = ax is None
    ax = axes_for(ax, (6.8, 1.5 + 0.42 * len(strips)))
    budget, step = plan.policy.whole, plan.policy.prepared.scale.level_size
    actions = in_order([band.action for _, bands, _ in strips for band in bands])
    colour, hatch = _looks(actions)
    low, high = _range(strips, budget, step)
    ax.set(xlim=(high, low), ylim=(len(strips) - 0.4, -0.6))  # the budget falls from left to right
    spelt: set[Hashable] = set()
    for row, (_, bands, met) in enumerate(strips):
        for span in _spans(bands, budget, step, low, high):
            if _draw_band(ax, row, span, colour[span[2]], hatch[span[2]]):
                spelt.add(span[2])
        for begin, end, _ in _spans(met, budget, step, low, high, apart=True):
            ax.plot([begin, end], [row + 0.39] * 2, color=INK, linewidth=2.2, solid_capstyle="butt", zorder=3)
    ax.set_yticks(range(len(strips)), [name_of(state) for state, _, _ in strips])
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    _name_budget(ax, plan, chosen, 0 if states else len({row.state for row in decisions.rows} - set(chosen)))
    if len(actions) > 1 and spelt != set(actions) and len(actions) <= NAMED:
        Patch = needed("matplotlib.patches", "plot").Patch
        handles = [
            Patch(facecolor=colour[action], edgecolor="white", hatch=hatch[action], label=name_of(action, LONG))
            for action in actions
        ]
        _legend(ax, handles, own=own)
    return ax


def _draw_band(ax: Any, row: int, span: tuple[float, float, Hashable], colour: str, hatch: str) -> bool:
    """Draw where one action is played, with its name if there is room; return whether the whole name fits."""
    begin, end, action = span
    ax.broken_barh(
        [(end, begin - end)], (row - 0.32, 0.64), facecolor=colour, edgecolor="white", linewidth=0.6, hatch=hatch,
        zorder=2,
    )  # fmt: skip
    high, low = ax.get_xlim()
    room = (begin - end) * ax.bbox.width * 72 / ax.figure.dpi / (high - low)  # in points, about
    names = name_of(action, LONG), name_of(action)
    text = next((name for name in names if room > 6.5 * len(name) + 6), None)
    if text is not None:
        ax.text(
            (begin + end) / 2, row, text, ha="center", va="center", fontsize=9, zorder=3,
            color="black" if hatch else ink_on(colour),
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5} if hatch else None,
        )  # fmt: skip
    return text == names[0]


def _name_budget(ax: Any, plan: Plan, states: list[Hashable], more: int) -> None:
    """Label the axis, and say how many states are not shown."""
    if plan.policy.budget is None:
        ax.set_xticks([])
        what = "whatever is left: this plan looks at the state alone"
    else:
        ax.axvline(0, color=INK, linewidth=1, linestyle=":", zorder=4)
        luck = plan.policy.prepared.scale.luck
        back = any(luck[plan.model.index(state)] < 0 for state in states)  # negative costs may follow
        what = "budget left" if back else "budget left (below 0: the total exceeds the budget)"
    words = "line below a strip: where runs can be" + (f"; states not shown: {more:,}" if more else "")
    ax.set_xlabel(f"{what}\n{words}")


def _legend(ax: "Axes", handles: list[Any], *, own: bool) -> None:
    """Put a legend above, in as many columns as fit; a figure made here grows with the rows."""
    figure: Any = ax.figure
    state = max(len(label.get_text()) for label in ax.get_yticklabels())
    action = max(len(each.get_label()) for each in handles)
    room = (figure.bbox.width if own else ax.bbox.width) * 72 / figure.dpi - (6.5 * state + 20 if own else 0)
    columns = max(1, min(len(handles), 6, int(room / (6 * action + 40))))
    if own:
        figure.set_figheight(figure.get_figheight() + 0.19 * (-(-len(handles) // columns) - 1))
    ax.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, fontsize=9,
        borderaxespad=0.2,
    )  # fmt: skip


def _looks(actions: list[Hashable]) -> tuple[dict[Hashable, str], dict[Hashable, str]]:
    """Return a colour and a hatch for each action; numbers, and names too many for hatches, go along cividis."""
    few = len(actions) <= len(FILLS) and not all(map(is_number, actions))
    fills = FILLS if few else [ordered(i / max(len(actions) - 1, 1)) for i in range(len(actions))]
    hatches = ("", *HATCHES) if few else [""] * len(actions)
    return dict(zip(actions, fills, strict=False)), dict(zip(actions, hatches, strict=False))


def check_plan(plan: object) -> None:
    """Refuse anything but a plan."""
    if not isinstance(plan, Plan):
        raise PrudentError(f"plan is a {type(plan).__name__}; give what prudent.solve returned")


def most_visited(plan: Plan) -> list[Hashable]:
    """Return the states that the plan's runs meet most often, in the model's order.

    Only states whose action depends on the budget, if there are any, else only states with a choice.
    """
    model, played = plan.model, plan.visits().played
    met = np.add.reduceat(np.append(played, 0.0), model.action_start[:-1]) * (np.diff(model.action_start) > 1)
    most = np.argsort(-met, kind="stable")[: 10 * MOST]
    most = most[met[most] > 0]
    turning = [s for s in most.tolist() if len(plan.bands(model.state(s))) > 1]
    found: list[Hashable] = [model.state(s) for s in sorted((turning or most.tolist())[:MOST])]
    if not found:
        raise PrudentError(f"no state of {model.name} that the plan meets has a choice: there is nothing to draw")
    return found


def _range(strips: Sequence[Any], budget: float, step: float) -> tuple[float, float]:
    """Return the least and the largest budget left to draw: they enclose what runs meet and where actions change."""
    met = [budget - x for _, _, rows in strips for row in rows for x in (row.at_least, row.at_most) if np.isfinite(x)]
    turns = [budget - after.at_least for _, bands, _ in strips for after in bands[1:]]
    low, high = min([*met, *turns, 0.0]), max([*met, *turns])
    room = max(0.06 * (high - low), step)
    return low - room, high + room


def _spans(
    rows: Sequence[Decision], budget: float, step: float, low: float, high: float, *, apart: bool = False
) -> list[tuple[float, float, Hashable]]:
    """Return (largest budget, least budget, action); a value stands for half a step to either side."""
    ends = [(row.at_most + after.at_least) / 2 for row, after in pairwise(rows)]
    spans = []
    for i, row in enumerate(rows):
        first = row.at_least - step / 2 if apart or i == 0 else ends[i - 1]
        last = row.at_most + step / 2 if apart or i == len(rows) - 1 else ends[i]
        begin, end = min(budget - first, high), max(budget - last, low)
        if begin > end:
            spans.append((begin, end, row.action))
    return spans
