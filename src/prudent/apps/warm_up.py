"""Compile the kernels before they are needed: small tasks of every kind, one after the other.

A kernel is compiled at its first call, for the kinds of arrays that it gets.  Compiled kernels are kept, so warming up
is worthwhile once for each installation: in an image, on the shared file system of a cluster, before a talk.
"""

from collections.abc import Callable, Iterator
from functools import partial

import prudent
from prudent.kernels import compiler
from prudent.runtime.progress import Progress

LOOP = {
    "s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "wade": [(0.6, "s", 3), (0.4, "t", 0)]},
    "t": {"rest": [(0.5, "s", 0), (0.5, "g", 2)]},
}
"""A model with cycles, some of them at no cost."""

ODD = {"s": {"a": [(0.5, "t", 2**0.5), (0.5, "g", 3**0.5)]}, "t": {"a": [(0.5, "s", 1 / 3), (0.5, "g", 0.1)]}}
"""A model with costs that have no common step."""

VERBS: dict[str, Callable[["prudent.SSP", "prudent.Plan"], object]] = {
    "simulate": lambda model, plan: prudent.simulate(model, plan, episodes=100),
    "visits": lambda model, plan: plan.visits(),
    "explain": lambda model, plan: plan.explain(model.state(int(model.initial_state[0]))),
    "chances": lambda model, plan: prudent.chances(model, [plan.var]),
    "curve": lambda model, plan: prudent.curve(model),
    "frontier": lambda model, plan: prudent.frontier(model, plan.alpha),
    "rounded": lambda model, plan: prudent.solve(model, plan.alpha, step=2.5),
    "expected": lambda model, plan: prudent.solve(model, plan.alpha, method="expected"),
    "cvar-ev": lambda model, plan: prudent.solve(model, plan.alpha, method="cvar-ev"),
    "check": lambda model, plan: prudent.check(model),
}
"""The tasks on small models and their plans."""

TASKS = 8 + 3 * len(VERBS)
"""How many there are."""


def walk(place: int) -> dict[int, list[tuple[float, int, float]]]:
    """Return the actions of a walk to 0 on the whole numbers, which may go astray: a large component."""
    back = place + 1 if place < 100 else place
    return {} if place == 0 else {pace: [(0.8, max(place - pace, 0), pace), (0.2, back, 1)] for pace in (1, 2)}


def tasks() -> Iterator[Callable[[], object]]:
    """Yield small tasks that between them call all kernels that one process on a CPU calls (internal)."""
    small = [prudent.domains.betting_game(stages=4), prudent.build("s", LOOP), prudent.build("s", ODD)]
    large = [make() for make in (prudent.domains.betting_game, prudent.domains.inventory_control)]
    large += [prudent.domains.autonomous_navigation(), prudent.build(100, walk)]
    for model in (*small, *large):
        plan = prudent.solve(model, 0.2, relative_gap=0.01)
        yield partial(prudent.evaluate, model, plan)
        for verb in VERBS.values() if model in small else ():
            yield partial(verb, model, plan)
    yield lambda: prudent.search(3, walk, 0.2)


def warm_up() -> float:
    """Compile the kernels for solving, evaluating and simulating models of all kinds; return how many seconds it took.

    That is the time of compiling, or of reading what was compiled before.
    """
    before, tell = compiler.seconds, compiler.tell
    compiler.tell = lambda message: None  # the bar shows it
    try:
        with Progress("compiling", total=TASKS, unit="tasks", patience=0) as bar:
            bar.at(0)
            for done, task in enumerate(tasks(), 1):
                task()
                bar.at(done)
    finally:
        compiler.tell = tell
    return compiler.seconds - before
