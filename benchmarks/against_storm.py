"""Storm (https://www.stormchecker.org) on the same models: least expected cost, and all cost-bounded probabilities.

    python benchmarks/against_storm.py expected STATES
    python benchmarks/against_storm.py bounded STATES LARGEST

Each model in a process of its own, with a limit; Storm's own time is that of its model checking alone, on a model that
it has already built, for the initial state only.  Ours is the whole solve from the user's arrays: preparation, values
of all states, bounds, policy; and, beside it, preparation, values and bounds alone.  A method of Storm's counts as
certified only where its value is within the precision that it was told.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

import prudent
from child import ask, tell
from large_model import large_model
from table import Found, Row
from timing import Spread, interleaved, median, once, standing

PART = "against Storm"
PRECISIONS = (1e-6, 1e-12)
"""Relative; Storm's usual one, and one that is still coarser than our bounds."""

HUGE = 1_000_000
"""States from which on one turn has to do."""

CERTIFIED = ("optimistic value iteration", "interval iteration", "sound value iteration")
ABSENT = "stormpy is not installed: pip install 'prudent[storm]'"


def storm_is_there(found: Found, part: str) -> bool:
    """Return whether Storm is installed; if not, say so in a row."""
    try:
        import stormpy  # noqa: F401
    except ImportError:
        found.rows.append(Row(part, "all", "not measured", None, note=ABSENT))
        return False
    return True


def run(quick: bool) -> Found:
    """Ask a child for each size."""
    found = Found()
    if not storm_is_there(found, PART):
        return found
    for n in (1_000, 10_000) if quick else (1_000, 10_000, 100_000, 1_000_000):
        answers, trouble = ask("against_storm.py", "expected", n, limit=60 if quick else 900)
        found.rows += expected_rows(n, answers, trouble)
    n, largest = (500, 40) if quick else (5_000, 200)
    answers, trouble = ask("against_storm.py", "bounded", n, largest, limit=60 if quick else 600)
    found.rows += bounded_rows(n, largest, answers, trouble)
    return found


def expected_rows(n: int, answers: list[dict[str, Any]], trouble: str) -> list[Row]:
    """Return the rows for the least expected cost at one size."""
    about = f"random {n:,}"
    storm = [answer for answer in answers if answer["off"] <= answer["precision"]]
    if not storm:
        return [Row(PART, about, "expected cost", None, note=trouble or "nothing was found")]
    rows = []
    for precision in PRECISIONS:
        best = min((a for a in storm if a["precision"] == precision), key=lambda a: median(a["storm"]), default=None)
        if best is not None:
            rows += compared(about, best)
    others = [f"{a['method']} at {a['precision']:g}: {median(a['storm']):.3g} s" for a in storm]
    off = [f"{a['method']} misses {a['precision']:g}: it is off by {a['off']:.1e}" for a in answers if a not in storm]
    said = "; ".join(filter(None, [*others, *off, trouble]))
    return [*rows, Row(PART, about, "all of Storm's methods", None, note=said)]


def compared(about: str, best: dict[str, Any]) -> list[Row]:
    """Return the rows for Storm's fastest certified method at a precision, and ours in the same run."""
    theirs, precision = Spread(tuple(best["storm"])), f"{best['precision']:g}"
    rows = [Row.of(PART, about, f"Storm, precision {precision}", theirs, " s", note=f"{best['method']}, its fastest")]
    for name, aim in (("solve(method='expected')", 0.5), ("values and bounds alone", 1.0)):
        ours = Spread(tuple(best[name]))
        rows += [
            Row.of(PART, about, name, ours, " s", note=f"bounds {best['gap']:.0e} apart"),
            Row.of(
                PART,
                about,
                f"Storm at {precision} / {name}",
                theirs.over(ours),
                "x",
                aim=aim if best["precision"] == PRECISIONS[-1] else None,
                note=standing(theirs, ours),
            ),
        ]
    return rows


def bounded_rows(n: int, largest: int, answers: list[dict[str, Any]], trouble: str) -> list[Row]:
    """Return the rows for the probabilities of staying within each budget."""
    about = f"random {n:,}, budgets 0 to {largest}"
    if not answers:
        return [Row(PART, about, "cost-bounded probabilities", None, note=trouble)]
    queries = [second for answer in answers for second in answer["storm"]]
    solves, sweeps = (Spread(tuple(answer[name] for answer in answers)) for name in ("solve", "sweep"))
    most = max(answer["deviation"] for answer in answers)
    share = len(queries) / (largest + 1)
    scaled = "" if share == 1 else f"; {len(queries)} of {largest + 1} queries before the limit, scaled up: "
    total = sum(queries) / share
    each = sum(answer["single"] for answer in answers) / len(answers) * (largest + 1)
    tells_one = "a query of Storm's computes the smaller budgets, too, but reports one value"
    return [
        Row(PART, about, "Storm, a query for each", total, " s", note=f"sum over all budgets{scaled}{trouble}"),
        Row.of(PART, about, "one solve", solves, " s", note="objective Exceedance: the plan shows the last value only"),
        Row.of(PART, about, "Storm / one solve", solves.per(total), "x", aim=10.0, note=tells_one),
        Row.of(PART, about, "chances", sweeps, " s", note="prudent.chances: all values, with bounds"),
        Row.of(
            PART,
            about,
            "Storm / chances",
            sweeps.per(total),
            "x",
            aim=10.0,
            note=f"equal: all values within {most:.0e}",
        ),
        Row(PART, about, "Storm / a solve for each", total / each, "x", note=f"ours {each:.3g} s, from {len(answers)}"),
    ]


def storm_expected(storm: Any, method: str, precision: float) -> float:
    """Return Storm's least expected cost from the start."""
    import stormpy
    from stormpy.environments import sound

    from storm_oracle import METHODS

    environment = sound()
    solver = environment.solver()
    solver.force_soundness = True
    settings = solver.min_max()
    settings.method = METHODS[method]
    settings.precision = stormpy.Rational(precision)
    settings.relative_termination_criterion = True
    settings.maximal_number_of_iterations = 10**8
    formula = stormpy.parse_property('R{"cost"}min=? [F "goal"]')
    result = stormpy.model_checking(storm, formula, only_initial_states=True, environment=environment)
    return float(result.get_value(storm.initial_states[0]))


def values_alone(model: prudent.SSP) -> None:
    """Prepare a model and find the least expected cost of all states, with bounds: what Storm's query is about."""
    from prudent.engine.prepare import prepare
    from prudent.engine.values.expected_cost import least_expected_cost

    least_expected_cost(prepare(model))


def all_budgets(model: prudent.SSP, largest: int) -> list[float]:
    """Return the greatest probability of staying within each budget, from one sweep."""
    return prudent.chances(model, range(largest + 1)).chance.tolist()


def expected(n: int) -> None:
    """Tell how long Storm's certified methods and ours take, in turns."""
    from storm_oracle import storm_model

    model = large_model(n, 0.05)
    plan = prudent.solve(model, 1.0, method="expected")
    ours = {
        "solve(method='expected')": lambda: prudent.solve(model, 1.0, method="expected"),
        "values and bounds alone": lambda: values_alone(model),
    }
    gap = (plan.expected - plan.expected_lower) / plan.expected
    storm = storm_model(model)
    for precision in PRECISIONS:
        off: dict[str, float] = {}

        def query(method: str, precision: float = precision, off: dict[str, float] = off) -> None:
            off[method] = abs(storm_expected(storm, method, precision) - plan.expected) / plan.expected

        tasks = {method: lambda method=method, query=query: query(method) for method in CERTIFIED}
        once_only = n >= HUGE
        seconds = interleaved({**tasks, **ours}, turns=7, limit=20.0, least=1 if once_only else 3, warm=not once_only)
        mine = {name: seconds[name].values for name in ours}
        for method in CERTIFIED:
            storm_seconds = seconds[method].values
            tell(method=method, precision=precision, off=off[method], gap=gap, storm=storm_seconds, **mine)


def priced_by_action(n: int, seed: int = 0) -> prudent.SSP:
    """Return a random model as Storm's cost-bounded properties want it: whole costs that depend on the action alone."""
    rng = np.random.default_rng(seed)
    actions, outcomes, ends = 2, 10, 0.05
    successor = rng.integers(0, n, size=(n * actions, outcomes))
    successor[:, 0] = n
    probability = np.empty((n * actions, outcomes))
    probability[:, 0] = ends
    probability[:, 1:] = rng.dirichlet(np.ones(outcomes - 1), size=n * actions) * (1 - ends)
    return prudent.from_arrays(
        np.minimum(np.arange(n + 2) * actions, n * actions),
        np.arange(n * actions + 1) * outcomes,
        probability.ravel(),
        successor.ravel(),
        np.repeat(rng.integers(1, 6, size=n * actions), outcomes).astype(float),
        name=f"priced-{n}",
    )


def bounded(n: int, largest: int) -> None:
    """Tell how long Storm's queries and our solves take, ten budgets at a time, and how far values differ."""
    from storm_oracle import reaches_within, storm_model

    model = priced_by_action(n)
    storm = storm_model(model)

    def exceeds(budget: int) -> float:
        return float(prudent.solve(model, 0.1, objective=prudent.Exceedance(budget)).objective.value)

    def asked(budgets: range) -> tuple[list[float], list[float]]:
        reached: list[float] = []
        return [once(lambda k=k: reached.append(reaches_within(storm, k))) for k in budgets], reached

    exceeds(largest)
    reaches_within(storm, 1)
    ours = all_budgets(model, largest)
    for first in range(0, largest + 1, 10):
        budgets = range(first, min(first + 10, largest + 1))
        queries, reached = asked(budgets)
        pairs = [*zip(reached, ours[first:], strict=False), (reached[-1], 1 - exceeds(budgets[-1]))]
        deviation = max(abs(theirs - mine) for theirs, mine in pairs)
        if deviation > 1e-6:
            raise ValueError(f"budgets {budgets}: our probabilities are up to {deviation:g} off Storm's")
        tell(
            storm=queries,
            solve=once(lambda: exceeds(largest)),
            sweep=once(lambda: all_budgets(model, largest)),
            single=once(lambda k=budgets[-1]: exceeds(k)),
            deviation=deviation,
        )


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    {"expected": expected, "bounded": bounded}[sys.argv[1]](*map(int, sys.argv[2:]))
