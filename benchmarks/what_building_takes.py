"""What it takes to build Inventory Control with capacity 100: 17.7 million outcomes.

    python benchmarks/what_building_takes.py [CAPACITY]

In turns: from a step function on arrays (``from_events``, as the domain does), from arrays made by hand for this model
alone, as the domain did before, and from a function of one state (``build``).  All three are equal, row for row.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import prudent
from prudent.domains.inventory import HOLDING, PRICE, REVENUE, SWING
from prudent.models.rows import merge_outcomes, starts

STAGES, TURNS = 10, 3


def by_events(capacity: int) -> prudent.SSP:
    """Return the model as the domain makes it."""
    return prudent.domains.inventory_control(STAGES, capacity, capacity // 2)


def by_hand(capacity: int) -> prudent.SSP:
    """Return the model from arrays that know what this model can reach."""
    level, demand = np.arange(capacity + 1), capacity // 2
    swing = np.clip(level[:, None] + np.arange(-SWING, SWING + 1), 0, capacity)
    chance = np.zeros((capacity + 1, capacity + 1))
    np.add.at(chance, (np.repeat(level, 2 * SWING + 1), swing.ravel()), 1 / (2 * SWING + 1))
    possible = chance > 0
    here = np.zeros((capacity + 1, capacity + 1), dtype=bool)
    here[0, demand] = True
    number, names = np.full((STAGES, capacity + 1, capacity + 1), -1), list[Any]()
    for day in range(STAGES):
        number[day][here] = len(names) + np.arange(here.sum())
        names += [(day, stock, previous) for stock, previous in np.argwhere(here).tolist()]
        arrives = possible[here.any(axis=0)].any(axis=0)
        here = (level[:, None] <= np.maximum(capacity - level, 0)[None, :]) & arrives
    goal = len(names)
    stage, stock, previous = np.argwhere(number >= 0).T
    n_buy = capacity - stock + 1
    action_state = np.repeat(np.arange(goal), n_buy)
    buy = np.arange(len(action_state)) - np.repeat(np.cumsum(n_buy) - n_buy, n_buy)
    action, asked = np.nonzero(possible[previous[action_state]])
    state = action_state[action]
    have = stock[state] + buy[action]
    sold = np.minimum(have, asked)
    left = have - sold
    profit = REVENUE * sold - PRICE * buy[action] - HOLDING * left
    following = number[np.minimum(stage[state] + 1, STAGES - 1), left, asked]
    successor = np.where(stage[state] == STAGES - 1, goal, following)
    action, successor, cost, probability = merge_outcomes(
        action, successor, 2.0 * capacity - profit, chance[previous[state], asked]
    )
    return prudent.from_arrays(
        np.append(np.cumsum(n_buy) - n_buy, [len(buy)] * 2),
        starts(action, len(action_state)),
        probability,
        successor,
        cost,
        state_names=[*names, "end"],
        name="inventory-control",
    )


def by_function(capacity: int) -> prudent.SSP:
    """Return the model from a function of one state."""

    def actions(state: Any) -> dict[Any, Any]:
        if state == "end":
            return {}
        stage, stock, previous = state
        options = dict[Any, Any]()
        for buy in range(capacity - stock + 1):
            options[buy] = []
            for swing in range(-SWING, SWING + 1):
                asked = min(max(previous + swing, 0), capacity)
                sold = min(stock + buy, asked)
                left = stock + buy - sold
                after = "end" if stage == STAGES - 1 else (stage + 1, left, asked)
                cost = 2 * capacity - (REVENUE * sold - PRICE * buy - HOLDING * left)
                options[buy].append((1 / (2 * SWING + 1), after, cost))
        return options

    return prudent.build((0, 0, capacity // 2), actions)


def in_order(model: prudent.SSP) -> list[Any]:
    """Return every outcome, by the names of states, in one order."""
    states = model.names[0]
    rank = np.empty(model.n_states, dtype=np.int64)
    rank[sorted(range(model.n_states), key=lambda s: (states[s] == "end", states[s]))] = np.arange(model.n_states)
    state, action = rank[model.outcome_state], model.outcome_action - model.action_start[model.outcome_state]
    order = np.lexsort((model.cost, rank[model.successor], action, state))
    columns = (state, action, rank[model.successor], model.cost, model.probability)
    return [column[order] for column in columns]


def main() -> None:
    """Print the table."""
    capacity = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    ways: dict[str, Callable[[int], prudent.SSP]] = {"by hand": by_hand, "from_events": by_events}
    taken: dict[str, list[float]] = {way: [] for way in ways}
    by_events(20)  # so that nothing is imported under the clock
    for _ in range(TURNS):
        for way, make in ways.items():
            began = time.perf_counter()
            model = make(capacity)
            taken[way].append(time.perf_counter() - began)
            del model
    assert by_hand(capacity).fingerprint == by_events(capacity).fingerprint
    began = time.perf_counter()
    model = by_function(capacity)
    taken["build"] = [time.perf_counter() - began]
    columns, rows = in_order(by_events(capacity)), in_order(model)
    assert all(np.allclose(one, other, rtol=1e-14, atol=0) for one, other in zip(columns, rows, strict=True))
    least = min(taken["from_events"])
    print(f"{model.n_outcomes:,} outcomes; the least of {TURNS} turns (build: one), and the spread")
    for way, seconds in taken.items():
        print(f"{way:<14}{min(seconds):>8.2f} to {max(seconds):.2f} s{min(seconds) / least:>8.2f} times from_events")


if __name__ == "__main__":
    main()
