"""A route through a networkx graph whose travel times are uncertain."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from prudent.errors import PrudentError, as_number
from prudent.io.durations import Grid, durations
from prudent.models.build import build
from prudent.models.ssp import SSP
from prudent.runtime.optional import needed


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
    chance = _chances(start)
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

    def actions(node: Hashable) -> dict[Hashable, list[tuple[float, Hashable, float]]]:
        if node in goals:
            return {}
        return {
            action: [(p, target, t) for t, p in durations(_time(data, time, where), grid, f"{time!r} of {where}")]
            for action, target, data, where in _edges(graph, node)
            if target in leads
        }

    return build(first, actions, name=name, max_states=len(graph))


def _chances(start: Any) -> list[tuple[Any, float]]:
    """Return the nodes where a route may begin, each with its probability."""
    if not isinstance(start, Mapping):
        return [(start, 1.0)]
    wanted = "a probability, a number from 0 to 1"
    found = [
        (node, as_number(f"the probability of start {node!r}", p, wanted, lambda x: 0 <= x <= 1))
        for node, p in start.items()
    ]
    if not any(p > 0 for _, p in found):
        raise PrudentError(
            f"start is {start!r}; it must be a node, or {{node: probability}} with probabilities that sum to 1"
        )
    return found


def _edges(graph: Any, node: Hashable) -> Iterator[tuple[Hashable, Hashable, Mapping[str, Any], str]]:
    """Yield action, next node, attributes and a name of each edge that leaves a node."""
    for target, data in graph.adj[node].items():
        if graph.is_multigraph():
            for key, attributes in data.items():
                yield (target, key), target, attributes, f"edge {(node, target, key)!r}"
        else:
            yield target, target, data, f"edge {(node, target)!r}"


def _time(data: Mapping[str, Any], attribute: str, where: str) -> Any:
    if attribute not in data:
        some = ", ".join(map(repr, list(data)[:5])) or "none"
        raise PrudentError(
            f"{where} has no attribute {attribute!r}; it has {some}: name the one with the times as time="
        )
    return data[attribute]
