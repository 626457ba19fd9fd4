"""Routes through graphs: shortest paths, every path tried, gammas that add up, and what is refused."""

import sys
from itertools import product

import numpy as np
import pytest
from scipy import stats

import prudent
from prudent import PrudentError

networkx = pytest.importorskip("networkx")


def test_fixed_times_are_shortest_paths():
    rng = np.random.default_rng(1)
    graph = networkx.gnp_random_graph(40, 0.08, seed=2, directed=True)
    for edge in graph.edges:
        graph.edges[edge]["minutes"] = int(rng.integers(1, 20))
    length = networkx.single_source_dijkstra_path_length(graph, 0, weight="minutes")
    assert len(length) > 30
    for goal, best in length.items():
        if goal:
            plan = prudent.solve(prudent.from_networkx(graph, 0, goal, time="minutes"), alpha=0.2)
            assert (plan.cvar, plan.expected) == (best, best)
    undirected = graph.to_undirected()
    best = networkx.dijkstra_path_length(undirected, 0, 7, weight="minutes")
    assert prudent.solve(prudent.from_networkx(undirected, 0, 7, time="minutes"), alpha=1).expected == best


LAYERS = {("s", "a"): {1: 0.5, 4: 0.5}, ("s", "b"): {2: 0.9, 9: 0.1}, ("a", "c"): {1: 0.8, 6: 0.2}, ("a", "d"): 3}
LAYERS |= {("b", "c"): 2, ("b", "d"): {1: 0.7, 5: 0.3}, ("c", "g"): {0: 0.5, 3: 0.5}, ("d", "g"): {1: 0.9, 8: 0.1}}


def adaptive_plans():
    """Yield every plan that looks at the time so far, as a function of node and time, for the layered graph."""
    graph = networkx.DiGraph(LAYERS.keys())
    pairs = [(node, t) for node in ("a", "b") for t in (1, 4, 2, 9)]
    for first in graph["s"]:
        for later in product(*(list(graph[node]) for node, _ in pairs)):
            table = dict(zip(pairs, later, strict=True))
            yield lambda node, t, first=first, table=table: first if node == "s" else table.get((node, t), "g")


def totals(plan):
    """The distribution of the total time of a plan, path by path."""
    found, queue = {}, [("s", 0, 1.0)]
    for node, t, p in queue:
        if node == "g":
            found[t] = found.get(t, 0.0) + p
            continue
        after = plan(node, t)
        times = LAYERS[node, after]
        queue += [(after, t + d, p * q) for d, q in (times if isinstance(times, dict) else {times: 1.0}).items()]
    return found


def worst(found, alpha):
    left, total = alpha, 0.0
    for t in sorted(found, reverse=True):
        share = min(left, found[t])
        left, total = left - share, total + share * t
    return total / alpha


@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.5, 1.0])
def test_uncertain_times_are_the_best_of_every_plan(alpha):
    graph = networkx.DiGraph()
    for (u, v), times in LAYERS.items():
        graph.add_edge(u, v, time=times)
    every = [totals(plan) for plan in adaptive_plans()]
    best = min(worst(found, alpha) for found in every)
    mean = min(worst(found, 1.0) for found in every if worst(found, alpha) <= best + 1e-12)
    plan = prudent.solve(prudent.from_networkx(graph, "s", "g"), alpha=alpha)
    assert (plan.cvar, plan.expected) == pytest.approx((best, mean), rel=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0])
def test_rounding_encloses_the_truth(alpha):
    """Two gammas of one scale add up to a gamma: its CVaR in closed form, against another road that is sure."""
    graph = networkx.DiGraph()
    graph.add_edge("s", "m", time=stats.gamma(3, scale=2))
    graph.add_edge("m", "g", time=stats.gamma(2, scale=2))
    q = stats.gamma.ppf(1 - alpha, 5, scale=2)
    truth = 10 * stats.gamma.sf(q, 6, scale=2) / alpha
    found = {}
    for step in (0.5, 0.1):
        for rounding in ("down", "nearest", "up"):
            model = prudent.from_networkx(graph, "s", "g", step=step, rounding=rounding, tail=1e-9)
            found[rounding] = prudent.solve(model, alpha=alpha).cvar
        assert found["down"] <= truth <= found["up"] <= found["down"] + 2 * step + 1e-9
        assert abs(found["nearest"] - truth) <= step
    graph.add_edge("s", "g", time=truth - 1)
    model = prudent.from_networkx(graph, "s", "g", step=0.1, tail=1e-9)
    assert prudent.solve(model, alpha=alpha).policy("s") == "g"


def test_multigraphs_several_goals_and_starts():
    graph = networkx.MultiDiGraph()
    graph.add_edge("s", "g", key="bus", time={10: 0.9, 60: 0.1})
    graph.add_edge("s", "g", key="walk", time=30)
    graph.add_edge("s", "h", key="bike", time=40)
    model = prudent.from_networkx(graph, "s", "g")
    assert model.action_names == (("g", "bus"), ("g", "walk"))  # h does not lead to g
    assert prudent.solve(model, alpha=0.1).policy("s") == ("g", "walk")
    assert prudent.solve(model, alpha=1).policy("s") == ("g", "bus")
    assert prudent.from_networkx(graph, "s", ["g", "h"]).n_actions == 3
    graph.add_edge("t", "s", time=5)
    both = prudent.from_networkx(graph, {"s": 0.5, "t": 0.5}, {"g"})
    assert prudent.solve(both, alpha=1).expected == 15 + 2.5
    assert prudent.from_networkx(graph, "s", frozenset("gh")).n_actions == 3
    graph.add_edge("s", frozenset("gh"), time=1)
    assert prudent.from_networkx(graph, "s", frozenset("gh")).state_names == ("s", frozenset("gh"))  # a node itself


def test_a_start_that_never_happens_may_lead_nowhere():
    graph = networkx.DiGraph([("s", "g", {"time": 5}), ("s", "pit", {"time": 1})])
    model = prudent.from_networkx(graph, {"s": 1, "pit": 0}, "g")
    assert model.state_names == ("s", "g") and prudent.solve(model, alpha=1).expected == 5


def test_ways_that_do_not_lead_to_the_goal_are_left_out():
    graph = networkx.DiGraph([("s", "pit", {"time": 0}), ("s", "g", {"time": 5}), ("pit", "hole", {}), ("g", "s", {})])
    model = prudent.from_networkx(graph, "s", "g")
    assert model.state_names == ("s", "g") and model.n_actions == 1


@pytest.mark.parametrize(
    ("edit", "arguments", "message"),
    [
        ({}, ("x", "g"), r"start is 'x', which is not a node of the graph"),
        ({}, ("s", "x"), r"goal is 'x', which is not a node of the graph"),
        ({}, (["s"], "g"), r"start is \['s'\], which is not a node"),
        ({}, ("s", [["g"]]), r"goal is \['g'\], which is not a node"),
        ({}, ("s", []), r"goal is empty"),
        ({}, ("s", frozenset()), r"goal is empty"),
        (
            {},
            ("s", ("g", "s")),
            r"goal is \('g', 's'\), which is not a node of the graph; give several goals as a list",
        ),
        ({}, ({}, "g"), r"start is \{\}; it must be a node, or \{node: probability\}"),
        ({}, ({"s": 0}, "g"), r"start is \{'s': 0\}; it must be a node, or \{node: probability\}"),
        ({}, ({"s": "1"}, "g"), r"the probability of start 's' is '1'; it must be a probability, a number from 0 to 1"),
        ({}, ({"s": 0.5}, "g"), r"initial probabilities sum to 0.5"),
        ({"time": True}, ("s", "g"), r"'time' of edge \('s', 'g'\) is True; it must be a number"),
        ({}, ("g", "s"), r"there is no path from start 'g' to goal 's'"),
        ({"time": -1}, ("s", "g"), r"'time' of edge \('s', 'g'\) can be -1; times must be numbers, at least 0"),
        ({"time": {1: 0.5}}, ("s", "g"), r"the probabilities of 'time' of edge \('s', 'g'\) sum to 0.5"),
        ({"weight": 1}, ("s", "g"), r"edge \('s', 'g'\) has no attribute 'time'; it has 'weight'"),
        ({"time": stats.expon()}, ("s", "g"), r"'time' of edge \('s', 'g'\) is a distribution; give step="),
    ],
)
def test_what_is_refused(edit, arguments, message):
    graph = networkx.DiGraph([("s", "g", edit or {"time": 1})])
    with pytest.raises(PrudentError, match=message):
        prudent.from_networkx(graph, *arguments)


def test_what_is_no_graph():
    with pytest.raises(PrudentError, match=r"graph is a dict; it must be a networkx graph"):
        prudent.from_networkx({}, "s", "g")
    with pytest.raises(PrudentError, match=r"time is \[\]; it must be the name of an edge attribute"):
        prudent.from_networkx(networkx.DiGraph([("s", "g", {"time": 1})]), "s", "g", time=[])
    with pytest.raises(PrudentError, match=r"rounding is 'half'"):
        prudent.from_networkx(networkx.DiGraph([("s", "g", {"time": 1})]), "s", "g", rounding="half")


def test_missing_networkx_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(PrudentError, match=r"needs networkx; install it with: pip install 'prudent\[graph\]'"):
        prudent.from_networkx(None, "s", "g")
