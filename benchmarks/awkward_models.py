"""Awkward models against Storm: the least expected cost where runs are long, loops hardly ever left, and actions tie.

Storm's time is that of its model checking alone, on a model that it has already built, by the fastest of its sound
methods whose value is right to the precision it was told.  Ours is from the user's arrays, with bounds far closer.  The
models are those of the tests, where each mean is checked in exact arithmetic.
"""

import sys
from pathlib import Path
from typing import Any

import prudent
from against_storm import CERTIFIED, storm_expected, storm_is_there, values_alone
from child import ask, tell
from table import Found, Row
from timing import Spread, interleaved, median, standing

PART = "awkward models"
PRECISION = 1e-6
"""Relative: Storm's usual one."""

LIMIT = 15
"""Seconds for one method of Storm's on one model, its building and our turns included."""

OURS = ("values and bounds", "solve(method='expected')")

SLOWEST = 0.1
"""Storm's time is to be at least this share of ours."""

MODELS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "coin, 2 processes, K=2": ("shared_coin", (2, 2), {}),
    "coin, 2 processes, K=4": ("shared_coin", (2, 4), {}),
    "coin, 2 processes, K=9": ("shared_coin", (2, 9), {}),
    "coin, 3 processes, K=2": ("shared_coin", (3, 2), {}),
    "coin, 3 processes, K=9": ("shared_coin", (3, 9), {}),
    "coin, 4 processes, K=2": ("shared_coin", (4, 2), {}),
    "election in step, 4 processes": ("election", (4, 4), {}),
    "election in any order, 4 processes": ("election", (4, 4), {"ordered": False}),
    "asynchronous election, 3 processes": ("asynchronous_election", (3,), {}),
    "asynchronous election, 4 processes": ("asynchronous_election", (4,), {}),
    "uphill, 10 places": ("uphill", (10,), {}),
    "uphill, 30 places": ("uphill", (30,), {}),
    "uphill, 60 places, choices": ("uphill", (60,), {"choices": True}),
    "loops left with 1e-3": ("sticky", (100, 1e-3), {}),
    "loops left with 1e-6": ("sticky", (100, 1e-6), {}),
    "loops left with 1e-9": ("sticky", (100, 1e-9), {}),
    "fallback, side by side": ("fallback", (), {}),
    "fallback, in turn": ("fallback", (), {"in_turn": True}),
    "gambler, fair": ("gambler", (100, 0.5), {}),
    "gambler, bold": ("gambler", (100, 0.45), {"bold": True}),
    "4 blocks, price 80": ("exploding_blocks", (4, 80), {"seed": 7}),
    "4 slippery blocks, price 5000": ("exploding_blocks", (4, 5000), {"slip": 0.25, "seed": 3}),
    "5 slippery blocks, price 80": ("exploding_blocks", (5, 80), {"slip": 0.1, "seed": 1}),
    "doors": ("doors", (40, 50, 4), {}),
    "doors, an ulp better": ("doors", (40, 50, 4), {"nudge": 0.5000000000000001}),
    "detours": ("detours", (10, 4), {}),
}
QUICK = ("coin, 2 processes, K=4", "asynchronous election, 4 processes", "4 blocks, price 80", "doors")


def run(quick: bool) -> Found:
    """Ask a child for each model and method."""
    found = Found()
    if not storm_is_there(found, PART):
        return found
    for name in QUICK if quick else MODELS:
        answers, troubles = [], []
        for method in CERTIFIED:
            told, trouble = ask("awkward_models.py", name, method, limit=LIMIT)
            answers += told
            troubles += [f"{method} {trouble}"] if trouble else []
        found.rows += rows_of(name, answers, troubles)
    return found


def rows_of(name: str, answers: list[dict[str, Any]], troubles: list[str]) -> list[Row]:
    """Return the rows for one model."""
    theirs = [answer for answer in answers if "storm" in answer]
    right = sorted((a for a in theirs if a["off"] <= PRECISION), key=lambda a: median(a["storm"]))
    said = [f"{a['method']} {median(a['storm']):.2g} s" for a in right]
    said += [f"{a['method']} is {a['off']:.0e} off" for a in theirs if a not in right]
    note = "; ".join([*said, *troubles])
    if not answers:
        return [Row(PART, name, "not measured", None, note=note)]
    best, query = (right or answers)[0], f"Storm, precision {PRECISION:g}"
    about, rows = f"{name}: {best['states']:,} states", list[Row]()
    for what in OURS:
        ours = Spread(tuple(best[what]))
        rows.append(Row.of(PART, about, what, ours, " s", note=f"bounds {best['gap']:.0e} apart"))
        if right:
            storm = Spread(tuple(best["storm"]))
            ratio, ahead = storm.over(ours), standing(storm, ours)
            rows.append(Row.of(PART, about, f"Storm / {what}", ratio, "x", aim=SLOWEST, note=ahead))
    if right:
        return [Row.of(PART, about, query, storm, " s", note=note), *rows]
    return [Row(PART, about, query, None, note=f"none of its sound methods: {note}"), *rows]


def compare(name: str, method: str) -> None:
    """Tell how long we take on a model, then how long we and a method of Storm's, which may not end, take in turns."""
    import awkward
    from storm_oracle import storm_model

    make, arguments, options = MODELS[name]
    model: prudent.SSP = getattr(awkward, make)(*arguments, **options)
    plan, value = prudent.solve(model, 1.0, method="expected"), float("nan")
    ours = dict(
        zip(OURS, (lambda: values_alone(model), lambda: prudent.solve(model, 1.0, method="expected")), strict=True)
    )
    about = {"states": model.n_states, "gap": (plan.expected - plan.expected_lower) / plan.expected}
    tell(**about, **{what: spread.values for what, spread in interleaved(ours, turns=3).items()})
    storm = storm_model(model)

    def query() -> None:
        nonlocal value
        value = storm_expected(storm, method, PRECISION)

    seconds = interleaved({"storm": query, **ours}, turns=9, limit=5.0)
    off = abs(value - plan.expected) / plan.expected
    tell(**about, method=method, off=off, **{what: spread.values for what, spread in seconds.items()})


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    compare(*sys.argv[1:])
