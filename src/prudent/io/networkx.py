"""A route through a networkx graph whose travel times are uncertain: numbers, histograms or distributions on a grid.

With a step h, a duration X becomes a multiple X' of h: ``"up"`` the next one, so that X <= X' <= X + h; ``"down"`` the
last one, X - h <= X' <= X; ``"nearest"``, within h/2 of X.  X' is a function of X.  So an agent that sees true
durations can round them up, play the plan of the model rounded up, and pay at most as much as in that model; an agent
in the model rounded down can draw true durations to match.  Hence the bounds that :func:`from_networkx` promises, with
``tail=q`` except for the runs with a duration that was cut off: at most 2q of the runs for each edge taken.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.errors import PrudentError, as_number, must_be_one, needed
from prudent.models.build import build
from prudent.models.rows import FloatArray
from prudent.models.ssp import SSP

ROUNDING = {"up": 1.0, "down": 0.0, "nearest": 0.5}
"""Each direction, with the part of the step below a multiple that is rounded up to it."""

DURATIONS = 100_000
"""The most durations of one edge."""

NOISE = 1e-7
"""By how much a distribution function may fall: SciPy computes some by series or quadrature."""

_WANTED = "a number, {time: probability}, (times, probabilities), or a distribution of scipy.stats with its parameters"


def from_networkx(
    graph: Any,
    start: Hashable | Mapping[Any, float],
    goal: Hashable | Iterable[Hashable],
    *,
    time: str = "time",
    step: float | None = None,
    rounding: str = "up",
    tail: float | None = None,
    name: str = "route",
) -> SSP:
    """Return the model of a route from one node of a graph to another; the cost is the total travel time.

    A state is a node; an action is the next node (in a multigraph, the pair of next node and edge key).  The time of an
    edge is known once the edge has been travelled, and is independent of all others.  Nodes that cannot be reached from
    the start, or from which the goal cannot be reached, are left out, and so are edges to them.

    Parameters
    ----------
    graph : networkx graph
        Directed or not, a multigraph or not.
    start : node or mapping
        The node where the route begins, or ``{node: probability}``.
    goal : node, or list or set of nodes
        The node or nodes where the route ends.  A tuple, or a frozenset that is a node, is one node.
    time : str
        The edge attribute that holds the travel time: a number; a histogram, ``{time: probability}`` or ``(times,
        probabilities)``; or a distribution of ``scipy.stats``, such as ``scipy.stats.gamma(9, scale=2)`` or, from
        samples, ``scipy.stats.rv_histogram(numpy.histogram(samples, bins=50))``.
    step : float, optional
        Durations of distributions are rounded to multiples of this step.  Numbers and histograms are not rounded: if
        they are not multiples of it, the costs have a finer common step or none.  Solving then takes longer, and costs
        without a common step are rounded again (status ``within_gap``, not ``optimal``).  To avoid this, round them
        first: ``round(time / step) * step``.
    rounding : {"up", "down", "nearest"}
        How durations are rounded.  The minimal CVaR and the lowest expected cost of the true problem lie between those
        of the models rounded ``"down"`` and ``"up"``.  No total is off by more than ``step`` (``"nearest"``: half of
        it) for each edge taken.
    tail : float, optional
        Required for distributions without a longest duration: durations beyond the quantile ``1 - tail`` count as that
        quantile, and durations below 0, if their probability is at most ``tail``, count as 0.  The bounds above hold
        except for runs with such a duration.
    name : str
        The name of the model in messages.

    Examples
    --------
    >>> import networkx, prudent
    >>> roads = networkx.DiGraph([("home", "work", {"time": {20: 0.9, 60: 0.1}}), ("home", "path", {"time": 15})])
    >>> roads.add_edge("path", "work", time=15)
    >>> prudent.solve(prudent.from_networkx(roads, "home", "work"), alpha=0.1).policy("home")
    'path'
    """
    networkx = needed("networkx", "graph")
    if not isinstance(graph, networkx.Graph):
        raise PrudentError(f"graph is a {type(graph).__name__}; it must be a networkx graph")
    if not isinstance(time, str):
        raise PrudentError(f"time is {time!r}; it must be the name of an edge attribute, a string")
    grid = Grid(step, rounding, tail)
    wanted, given = "a probability, a number from 0 to 1", start.items() if isinstance(start, Mapping) else [(start, 1)]
    chance = [
        (node, as_number(f"the probability of start {node!r}", p, wanted, lambda x: 0 <= x <= 1)) for node, p in given
    ]
    if not any(p > 0 for _, p in chance):
        raise PrudentError(
            f"start is {start!r}; it must be a node, or {{node: probability}} with probabilities that sum to 1"
        )
    last = list(goal) if isinstance(goal, list | set | frozenset) and goal not in graph else [goal]
    for what, nodes in (("start", [node for node, _ in chance]), ("goal", last)):
        for node in nodes:
            if node not in graph:
                hint = "; give several goals as a list or a set" if what == "goal" and isinstance(node, tuple) else ""
                raise PrudentError(f"{what} is {node!r}, which is not a node of the graph{hint}")
    first = {node: p for node, p in chance if p > 0}
    goals = set(last)
    if not goals:
        raise PrudentError("goal is empty; name the node where the route ends")
    leads = set(goals).union(*(networkx.ancestors(graph, node) for node in goals))
    for node in first:
        if node not in leads:
            raise PrudentError(f"there is no path from start {node!r} to goal {goal!r}")
    keys = {"keys": True} if graph.is_multigraph() else {}

    def actions(node: Hashable) -> dict[Hashable, list[tuple[float, Hashable, float]]]:
        found: dict[Hashable, list[tuple[float, Hashable, float]]] = {}
        for _, target, *key, data in [] if node in goals else graph.edges(node, data=True, **keys):
            if target in leads:
                where = f"edge {(node, target, *key)!r}"
                if time not in data:
                    some = ", ".join(map(repr, list(data)[:5])) or "none"
                    raise PrudentError(
                        f"{where} has no attribute {time!r}; it has {some}: name the one with the times as time="
                    )
                times = durations(data[time], grid, f"{time!r} of {where}")
                found[(target, *key) if key else target] = [(p, target, t) for t, p in times]
        return found

    return build(first, actions, name=name, max_states=len(graph))


@dataclass(frozen=True)
class Grid:
    """How distributions are put on a grid."""

    step: float | None = None
    rounding: str = "up"
    tail: float | None = None

    def __post_init__(self) -> None:
        if self.step is not None:
            as_number("step", self.step, "a number above 0", lambda x: 0 < x < np.inf)
        if not isinstance(self.rounding, str) or self.rounding not in ROUNDING:
            raise PrudentError(f"rounding is {self.rounding!r}; it must be one of {', '.join(map(repr, ROUNDING))}")
        if self.tail is not None:
            as_number("tail", self.tail, "a probability above 0 and below 0.5", lambda x: 0 < x < 0.5)


def durations(time: Any, grid: Grid, where: str) -> list[tuple[float, float]]:
    """Return the durations of an edge, given in any form, as pairs of duration and probability."""
    if callable(getattr(time, "cdf", None)) and callable(getattr(time, "support", None)):
        return _gridded(time, grid, where)
    if isinstance(time, Mapping):
        values, chances = list(time), list(time.values())
    else:
        values, chances = [time], [1.0]
    try:
        if isinstance(time, list | tuple) or np.shape(time) != ():
            values, chances = (list(part) for part in time)
        if any(isinstance(each, str | bytes | bool | np.bool_) for each in (*values, *chances)):
            raise TypeError  # though it may read like a number
        pairs = [(float(t), float(p)) for t, p in zip(values, chances, strict=True)]
    except (TypeError, ValueError, OverflowError):
        raise PrudentError(f"{where} is {time!r}; it must be {_WANTED}") from None
    for t, p in pairs:
        if not 0 <= t < np.inf:
            raise PrudentError(f"{where} can be {t:g}; times must be numbers, at least 0")
        if not 0 <= p <= 1:
            hint = ": divide counts by their sum" if p > 1 else ""
            raise PrudentError(f"{where} is {t:g} with probability {p:g}; probabilities lie between 0 and 1{hint}")
    total = sum(p for _, p in pairs)
    if not abs(total - 1) <= 1e-9:
        raise PrudentError(f"the probabilities of {where} {must_be_one(total)}")
    return pairs


def _gridded(distribution: Any, grid: Grid, where: str) -> list[tuple[float, float]]:
    """Return the distribution of rounded durations."""
    if grid.step is None:
        raise PrudentError(f"{where} is a distribution; give step=, the grid that its durations are rounded to")
    low, high = _ends(distribution, where)
    if not low <= high:
        raise PrudentError(f"{where} is a distribution with invalid parameters; correct them")
    if low < 0:
        below = float(_chance(distribution, np.zeros(1), below=True)[0])
        if not below <= (grid.tail or 0.0):
            hint = "" if grid.tail else "; tail= allows a small probability"
            raise PrudentError(f"{where} is below 0 with probability {below:.3g}; times must be at least 0{hint}")
        low = 0.0
    if high == np.inf:
        if grid.tail is None:
            raise PrudentError(
                f"{where} has no longest duration; give tail=, such as 1e-6: durations beyond the quantile 1 - tail "
                "count as that quantile"
            )
        high = _quantile(distribution, 1 - grid.tail)
    if not high / grid.step < DURATIONS:
        raise PrudentError(
            f"{where} is up to {high:g}, more than {DURATIONS:,} times step={grid.step:g}; give a larger step"
        )
    h, share, up = grid.step, ROUNDING[grid.rounding], grid.rounding == "up"
    # k stands for what lies in [(k - share) h, (k + 1 - share) h); rounded up, in ((k - 1) h, k h]
    first, last = (int(np.ceil(end / h) if up else np.floor(end / h + share)) for end in (low, high))
    k = np.arange(first, last + 1)
    at_most = _chance(distribution, (k + 1 - share) * h, below=not up)
    at_most[-1] = 1.0
    risen = np.maximum.accumulate(np.maximum(at_most, 0.0))
    if not (risen - at_most <= NOISE).all() or not (risen <= 1 + NOISE).all():  # nan is refused, too
        raise PrudentError(f"{where} is a distribution whose cdf does not rise to 1")
    chance = np.diff(np.minimum(risen, 1.0), prepend=0.0)
    return [(float(t), float(p)) for t, p in zip(k * h, chance, strict=True) if p > 0]


def _ends(distribution: Any, where: str) -> tuple[float, float]:
    """Return the least and the longest duration; refuse anything but one distribution."""
    try:
        ends = [np.asarray(end, dtype=np.float64) for end in distribution.support()]
        plain = np.shape(distribution.cdf(0.0)) == ()
    except (TypeError, ValueError):  # such as scipy.stats.gamma itself
        raise PrudentError(f"{where} is a distribution without its parameters; it must be {_WANTED}") from None
    if not plain or any(end.ndim for end in ends):
        raise PrudentError(f"{where} is several distributions at once; its parameters must be numbers, not lists")
    return float(ends[0]), float(ends[1])


def _quantile(distribution: Any, q: float) -> float:
    return float((getattr(distribution, "ppf", None) or distribution.icdf)(q))


def _chance(distribution: Any, x: NDArray[Any], *, below: bool) -> FloatArray:
    """Return the probability of at most x, or of less than x; for discrete durations the two differ.

    SciPy's distribution functions need not be flat between the values of a discrete distribution: some are nan there,
    some keep rising.
    """
    kinds = {kind.__name__ for kind in type(distribution).__mro__}
    discrete = "DiscreteDistribution" in kinds or (hasattr(distribution, "pmf") and not hasattr(distribution, "pdf"))
    listed = hasattr(getattr(distribution, "dist", distribution), "xk")  # a list of any numbers, which SciPy looks up
    if discrete and not listed:
        one = _quantile(distribution, 0.5)
        x = (np.ceil(x - one) - 1 if below else np.floor(x - one)) + one
    elif below:
        x = np.nextafter(x, -np.inf)
    return np.array(distribution.cdf(x), dtype=np.float64)
