"""Policies of least expected cost against linear programs, on random cyclic models with many ties and dead ends."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

import prudent
from oracles import OPTIONS, Raw
from strategies import examples, solvable

COSTS, SHARES = (0, 1, 1, 2), ((1.0,), (0.5, 0.5), (0.25, 0.75), (0.5, 0.25, 0.25))


def tied(rng: np.random.Generator, n: int) -> Raw:
    """A model with few costs and few probabilities, and with actions that come twice; some states are dead ends."""
    raw: Raw = {n: []}
    for s in range(n):
        raw[s] = []
        if s > 0 and rng.random() < 0.1:
            raw[s].append([(1.0, s, 1)])
            continue
        near = rng.random() < 0.5  # chains as well as well-mixed components
        for _ in range(rng.integers(1, 4)):
            share = SHARES[rng.integers(len(SHARES))]
            steps = rng.integers(-2, 3, len(share)) if near else rng.integers(0, n + 1, len(share))
            targets = np.clip(s + steps, 0, n) if near else steps
            costs = rng.choice(COSTS, len(share))
            raw[s].append([(p, int(t), int(c)) for p, t, c in zip(share, targets, costs, strict=True)])
        if rng.random() < 0.5:
            raw[s].append(list(reversed(raw[s][rng.integers(len(raw[s]))])))
    return raw


def priced(raw: Raw, price: int) -> Raw:
    """The model with a price for every state from which no goal can be reached."""
    alive = {s for s, actions in raw.items() if not actions}
    while more := {s for s in raw if s not in alive and any(t in alive for o in raw[s] for _, t, _ in o)}:
        alive |= more
    return {s: actions if s in alive else [[(1.0, len(raw) - 1, price)]] for s, actions in raw.items()}


def least_by_lp(raw: Raw) -> tuple[float, dict[int, int]]:
    """The least expected cost from state 0, as a flow to the goal, and the action with the largest flow by state."""
    pairs = [(s, a) for s, actions in raw.items() for a in range(len(actions))]
    rows, columns, values, cost = [], [], [], np.zeros(len(pairs))
    for j, (s, a) in enumerate(pairs):
        cost[j] = sum(p * c for p, _, c in raw[s][a])
        arcs = [(s, 1.0), *((t, -p) for p, t, _ in raw[s][a] if raw[t])]
        rows += [t for t, _ in arcs]
        columns += [j] * len(arcs)
        values += [v for _, v in arcs]
    supply = np.zeros(len(raw) - 1)
    supply[0] = 1.0
    balance = csr_array((values, (rows, columns)), shape=(len(supply), len(pairs)))
    found = linprog(cost, A_eq=balance, b_eq=supply, method="highs-ds", options=OPTIONS)
    assert found.status == 0, found.message
    flow: dict[int, tuple[float, int]] = {}
    for (s, a), x in zip(pairs, found.x.tolist(), strict=True):
        flow[s] = max(flow.get(s, (0.0, a)), (x, a))
    return float(found.fun), {s: a for s, (_, a) in flow.items()}


def cost_of(raw: Raw, choice: dict[int, int]) -> float:
    """The expected cost of a policy from state 0, by one dense system over the states that it meets."""
    met = [0]
    for s in met:
        met += dict.fromkeys(t for p, t, _ in raw[s][choice[s]] if p > 0 and raw[t] and t not in met)
    place = {s: i for i, s in enumerate(met)}
    system, mean = np.eye(len(met)), np.zeros(len(met))
    for i, s in enumerate(met):
        for p, t, c in raw[s][choice[s]]:
            mean[i] += p * c
            if t in place:
                system[i, place[t]] -= p
    return float(np.linalg.solve(system, mean)[0])


def check(raw: Raw, price: int) -> None:
    table = {s: dict(enumerate(actions)) for s, actions in raw.items()}
    with solvable():
        model = prudent.amend(prudent.build(0, table), dead_end_cost=price)
    plan = prudent.solve(model, 1.0, method="expected")
    raw = priced(raw, price)
    optimum, flow = least_by_lp(raw)
    best = cost_of(raw, flow)
    assert abs(best - optimum) <= 1e-7 * max(best, 1.0)  # the program's own tolerance
    played = {
        s: int(a - model.action_start[i])
        for i, a in enumerate(plan.policy.model_actions[0].tolist())
        if a >= 0 and (s := model.state(i)) in raw
    }
    own = cost_of(raw, played)
    assert own <= best * (1 + 1e-9) + 1e-12
    assert abs(plan.expected - own) <= 1e-9 * max(own, 1e-3)
    assert plan.expected_lower <= best * (1 + 1e-12) and plan.lower <= best * (1 + 1e-12)
    assert best * (1 - 1e-12) <= plan.upper < np.inf
    assert plan.status == "optimal"


@settings(max_examples=examples(80))
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.sampled_from([0, 2, 80, 5000]))
def test_no_policy_is_worse_than_that_of_a_linear_program(seed, n, price):
    check(tied(np.random.default_rng(seed), n), price)


@settings(max_examples=examples(20))
@given(st.integers(0, 2**32 - 1), st.integers(60, 150), st.sampled_from([0, 2, 80, 5000]))
def test_nor_in_large_components(seed, n, price):
    check(tied(np.random.default_rng(seed), n), price)
