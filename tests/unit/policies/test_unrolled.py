"""A policy with a memory: its own states, how it is packed, and what it is refused as."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.policies.unrolled import UnrolledPolicy
from strategies import cases, examples, solved

STARTS = prudent.build(
    {"s": 0.5, "t": 0.5},
    {
        "s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "walk": [(1, "t", 1)]},
        "t": {"go": [(0.9, "g", 1), (0.1, "s", 5)], "back": [(1, "s", 0)]},
    },
)


def unpacked(policy, **changes):
    plain = prudent.engine.prepare.prepare(policy.prepared.model, policy.prepared.scale.step)
    return UnrolledPolicy.unpacked(plain, policy.packed() | changes, 0)


@settings(max_examples=examples(40))
@given(case=cases(), alpha=st.sampled_from([0.5, 0.1]), method=st.sampled_from(["cvar-wc", "cvar-ev"]))
def test_packed_and_unpacked_it_is_the_same(case, alpha, method):
    policy = solved(case, alpha, method=method).policy
    packed = policy.packed()
    assert packed.keys() == UnrolledPolicy.tensors.keys()
    again = unpacked(policy)
    for name, table in again.packed().items():
        assert np.array_equal(table, packed[name]), name
    for name in ("action_start", "outcome_start", "successor", "cost", "fine", "probability", "model_action", "start"):
        assert np.array_equal(getattr(again.prepared, name), getattr(policy.prepared, name)), name
    assert np.array_equal(again.origin, policy.origin) and np.array_equal(again.memory, policy.memory)
    one, other = (prudent.evaluate(case.model, each) for each in (policy, again))
    assert np.array_equal(one.probabilities, other.probabilities)


@pytest.mark.parametrize("method", ["cvar-wc", "cvar-ev"])
def test_its_states_are_the_plain_ones_and_pairs_with_a_memory(method):
    policy = prudent.solve(STARTS, 0.3, method=method).policy
    plain = int((policy.memory == 0).sum())
    assert policy.remembers
    assert policy.plain_state[:plain].tolist() == list(range(plain))
    assert (policy.memory[plain:] > 0).all() and (policy.memory <= 1 + 1e-12).all()
    assert policy.memory[policy.prepared.start] == pytest.approx(0.3)
    pairs = list(zip(policy.origin[plain:].tolist(), policy.memory[plain:].round(9).tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert (np.diff(policy.prepared.action_start)[plain:] <= 1).all()


@pytest.mark.parametrize("method", ["cvar-wc", "cvar-ev"])
def test_an_agent_goes_through_its_states_from_every_start(method):
    policy = prudent.solve(STARTS, 0.3, method=method).policy
    prepared = policy.prepared
    for name in ("s", "t"):
        node = policy.first_node(STARTS.index(name))
        assert policy.plain_state[node] == prepared.members.state_of[STARTS.index(name)]
        assert policy.memory[node] > 0
        agent = policy.start(name)
        action = int(prepared.model_action[prepared.action_start[node] + policy.choices.at(node, 0)])
        assert agent.action == STARTS.action(action)


def test_what_costs_differently_is_remembered_differently():
    """Both outcomes lead to t; after the dear one the memory is another, and so is the action."""
    table = {
        "s": {"go": [(0.5, "t", 0), (0.5, "t", 10)]},
        "t": {"bold": [(0.8, "g", 0), (0.2, "g", 10)], "safe": [(1, "g", 4)]},
    }
    policy = prudent.solve(prudent.build("s", table), 0.1, method="cvar-ev").policy
    prepared, start = policy.prepared, policy.prepared.start
    go, target = int(prepared.action_start[start]), prepared.model.index("t")
    first, last = (int(prepared.outcome_start[go + more]) for more in (0, 1))
    after = {int(gain): policy.next_node(start, go, target, int(gain)) for gain in prepared.fine[first:last]}
    assert len(after) == len(set(after.values())) == 2
    assert list(after.values()) == prepared.successor[first:last].tolist()
    assert policy.next_node(start, go, target, 10**9) == start  # nothing of that cost: nothing has changed


def test_it_is_refused_where_state_and_cost_are_all_there_is():
    policy = prudent.solve(STARTS, 0.3, method="cvar-wc").policy
    with pytest.raises(prudent.PrudentError, match=r"more than the cost so far is no table; use method='exact'$"):
        policy.refuse_as("is no table")
    with pytest.raises(prudent.PrudentError, match=r"run it with policy\.start\(\)"):
        policy("s")


def nudged(at, by):
    def change(table):
        table = table.copy()
        table[at] += by
        return table

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("node_memory", nudged(0, 1.0), "node_memory is not above 0 and at most 1"),
        ("node_memory", nudged(0, -1.0), "node_memory is not above 0 and at most 1"),
        ("node_acts", lambda acts: 1 - acts, "node_acts is not 1 exactly where the node's state has actions"),
        ("node_action", lambda action: action[::-1], "node_action has an action that its node's state has not"),
        ("node_successor", lambda successor: successor[::-1], "node_successor leads to another state"),
        ("node_successor", lambda successor: successor[1:], r"node_successor has \d+ entries, not \d+"),
        ("start", lambda start: start + 1, r"start is node \d+, which is not at the start"),
        ("start", lambda start: start - 2, r"start is node \d+, which is not at the start"),
        ("choice", lambda choice: choice + 9, "tensor choice has an action that prepared state"),
    ],
)
def test_what_does_not_fit_is_refused(name, change, message):
    policy = prudent.solve(STARTS, 0.3, method="cvar-wc").policy
    with pytest.raises(prudent.PrudentError, match=message):
        unpacked(policy, **{name: change(policy.packed()[name])})


def test_no_nodes_at_all_are_refused():
    policy = prudent.solve(STARTS, 0.3, method="cvar-wc").policy
    none = {name: table[:0] for name, table in policy.packed().items() if name.startswith("node_")}
    with pytest.raises(prudent.PrudentError, match="for each of one or more nodes"):
        unpacked(policy, **none, start=np.array([0]))


@pytest.mark.parametrize("step", [None, 0.3])
def test_walks_cost_what_was_charged_and_what_rounding_left_out(step):
    table = {"s": {"a": [(0.5, "t", 1.0), (0.5, "t", 2.0)]}, "t": {"b": [(0.5, "g", 0.5), (0.5, "g", 3)]}}
    model = prudent.build("s", table)
    policy = prudent.solve(model, 0.3, method="cvar-wc", step=step).policy
    runs = prudent.simulate(model, policy, episodes=200, paths=200)
    assert set(runs.costs.round(9)) == {1.5, 2.5, 4.0, 5.0}
    assert [sum(cost for _, _, cost in path) for path in runs.paths] == pytest.approx(runs.costs.tolist(), abs=1e-9)
    assert {(s, a) for path in runs.paths for s, a, _ in path} == {("s", "a"), ("t", "b")}


ROUTED = {
    0: {"stay": [(1, 0, 0)], "on": [(1, 1, 0)], "aside": [(1, 2, 0)]},
    1: {"try": [(0.5, 3, 0), (0.5, 0, 0)], "back": [(1, 0, 0)]},
    2: {"back": [(0.5, 0, 0), (0.5, 2, 0)], "out": [(0.5, 3, 5), (0.5, 0, 1)]},
}


@pytest.mark.parametrize("start", [{0: 1.0}, {0: 0.25, 2: 0.75}])
def test_paths_can_be_replayed_in_the_model_and_with_the_agent(start):
    plan = prudent.solve(prudent.build(start, ROUTED.get, goals=[3]), 0.05, method="cvar-ev")
    runs = prudent.simulate(plan.model, plan.policy, episodes=50, seed=3, paths=50)
    assert {path[0][0] for path in runs.paths} == set(start)
    for path, total in zip(runs.paths, runs.costs, strict=True):
        agent = plan.policy.start(path[0][0])
        for (state, action, cost), after in zip(path, [*(state for state, *_ in path[1:]), 3], strict=True):
            assert (agent.state, agent.action) == (state, action)
            assert (after, cost) in [(t, c) for _, t, c in ROUTED[state][action]]
            agent.observe(after, cost)
        assert agent.done and agent.spent == total


@settings(max_examples=examples(20), deadline=None)
@given(case=cases(acyclic=True), alpha=st.sampled_from([0.5, 0.1]), method=st.sampled_from(["cvar-wc", "cvar-ev"]))
def test_walks_have_the_costs_that_are_evaluated(case, alpha, method):
    plan = solved(case, alpha, method=method)
    walk, ended = plan.policy.walk(), Counter[int]()
    left = (walk.level - walk.first_charge).tolist()
    waiting = list(zip(walk.first_state.tolist(), left, walk.first_probability.tolist(), strict=True))
    for s, b, p in waiting:  # grows while it is read
        if walk.offset[s] < 0:
            ended[walk.level - b] += p
            continue
        a = walk.offset[s] + walk.choices.at(s, b)
        own = slice(walk.begin[a], walk.end[a])
        chances, targets, charges = (each[own].tolist() for each in (walk.probability, walk.successor, walk.charge))
        waiting += [(t, b - c, p * q) for q, t, c in zip(chances, targets, charges, strict=True) if q > 0]
    known = prudent.evaluate(plan.model, plan.policy)
    assert plan.policy.prepared.scale.totals(np.array(sorted(ended))) == pytest.approx(known.values, abs=1e-9)
    assert [ended[cost] for cost in sorted(ended)] == pytest.approx(known.probabilities, abs=1e-12)
