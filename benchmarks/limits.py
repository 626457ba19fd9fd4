"""What a time limit buys: verbs on models with cycles of 100 to 100,000 states.

    python benchmarks/limits.py [MOST STATES]

One line for each model, verb and limit: the seconds that it took, and the bounds that it returned.  The seconds that
compiling takes do not count.  An error, or bounds that contradict each other, end the run.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import prudent
from prudent.runtime.limits import now

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from cycles import spread, walk

ALPHA = 0.05
MODELS: tuple[tuple[Callable[..., prudent.SSP], int, bool, float], ...] = (
    (spread, 100, True, 0.5),
    (walk, 1000, False, 0.5),
    (spread, 20_000, True, 2.0),
    (walk, 20_000, True, 1.0),
    (spread, 100_000, False, 1.0),
)
"""Each model, its states, whether its costs are whole numbers, and the time limit in seconds."""


class Answer(NamedTuple):
    """What a verb returned."""

    model: str
    verb: str
    limit: float
    seconds: float
    lower: float
    upper: float
    status: str


def plan(found: prudent.Plan) -> tuple[float, float, str]:
    """Return the bounds and the status of a plan: on its objective, if it has one."""
    about = found if found.objective is None else found.objective
    return about.lower, about.upper, found.status


def verbs(total: float) -> dict[str, Callable[[prudent.SSP, float], tuple[float, float, str]]]:
    """Return every verb; ``total`` is a total cost near the middle of the distribution."""

    def solve(**options: object) -> Callable[[prudent.SSP, float], tuple[float, float, str]]:
        return lambda model, limit: plan(prudent.solve(model, ALPHA, time_limit=limit, **options))  # type: ignore[arg-type]

    def chances(*, worst: bool) -> Callable[[prudent.SSP, float], tuple[float, float, str]]:
        def within(model: prudent.SSP, limit: float) -> tuple[float, float, str]:
            found = prudent.chances(model, [total], worst=worst, time_limit=limit)
            return float(found.lower[0]), float(found.upper[0]), f"{len(found.notes)} notes"

        return within

    return {
        "solve": solve(),
        "solve, gap 0": solve(gap=0),
        "expected": solve(method="expected"),
        "exceedance": solve(objective=prudent.Exceedance(total)),
        "excess": solve(objective=prudent.Excess(total)),
        "VaR": solve(objective=prudent.ValueAtRisk()),
        "mean plus CVaR": solve(objective=prudent.MeanPlusCVaR(1.0)),
        "chances, highest": chances(worst=False),
        "chances, lowest": chances(worst=True),
    }


def answers(most: int = 100_000) -> Iterator[Answer]:
    """Ask each verb about each model of at most so many states."""
    for make, n, whole, limit in MODELS:
        if n > most:
            continue
        model = make(n, whole=whole)
        for verb, ask in verbs(20_000.0).items():
            began = now()
            lower, upper, status = ask(model, limit)
            seconds = now() - began
            assert lower <= upper, f"{verb} on {model.name}: the bounds are {lower!r} and {upper!r}"
            yield Answer(model.name, verb, limit, seconds, lower, upper, status)


if __name__ == "__main__":
    print(f"{'model':<14} {'verb':<17} {'limit':>6} {'took':>7} {'lower':>12} {'upper':>12}  status")
    late = []
    for answer in answers(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000):
        print(
            f"{answer.model:<14} {answer.verb:<17} {answer.limit:>5g}s {answer.seconds:>6.2f}s {answer.lower:>12.6g} "
            f"{answer.upper:>12.6g}  {answer.status}",
            flush=True,
        )
        late.append(answer.seconds - max(1.2 * answer.limit, answer.limit + 1))
    print(f"{len(late)} answers; latest beyond a second or a fifth: {max(np.max(late), 0.0):.2f} s")
