"""Costs as people have them: prices in cents, times in milliseconds.

    python benchmarks/in_cents.py NAME ASKED

Each solve is in a process of its own: its time, its memory on top of the interpreter with the kernels loaded, the step
and the gap it ended with, and the forecast of ``prudent.check`` beside it.  The models are those of the tests.
"""

import sys
from pathlib import Path
from typing import Any

import prudent
from child import ask, tell
from memory import forget_peak, in_memory
from table import Found, Row
from timing import Spread, interleaved

PART = "costs in cents"
ALPHA = 0.05
MODELS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "maintenance, 52 weeks": ("maintenance", ()),
    "three machines, 52 weeks": ("machines", (52, 3)),
    "grid, 60 x 60": ("grid", (60,)),
    "two machines, 13 weeks": ("machines", (13, 2)),
    "grid, 15 x 15": ("grid", (15,)),
}
QUICK = ("maintenance, 52 weeks", "two machines, 13 weeks", "grid, 15 x 15")
ASKED: dict[str, dict[str, float]] = {"a thousandth": {"relative_gap": 0.001}, "the optimum": {"gap": 0.0}}


def run(quick: bool) -> Found:
    """Ask a child for each model and gap; the optimum of models with cycles is left out."""
    found = Found()
    for name in QUICK if quick else MODELS:
        for asked in ASKED:
            if name.startswith("grid") and asked == "the optimum":
                continue
            answers, trouble = ask("in_cents.py", name, asked, limit=300)
            if not answers:
                found.rows.append(Row(PART, f"{name}, {asked}", "not measured", None, note=trouble))
            for answer in answers:
                about = f"{name}, {asked}"
                note = f"{answer['states']:,} states, step {answer['step']:g}, gap {answer['gap']:.1e} of CVaR"
                found.rows.append(Row.of(PART, about, "solve", Spread(tuple(answer["seconds"])), " s", note=note))
                found.rows.append(Row(PART, about, "memory", answer["bytes"] / 1e6, " MB"))
                if asked == "a thousandth":
                    ratio = Spread(tuple(answer["forecast"] / each for each in answer["seconds"]))
                    found.rows.append(Row.of(PART, about, "forecast / solve", ratio, "x", note="by prudent.check"))
    return found


def measure(name: str, asked: str) -> None:
    """Tell what one solve takes."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    import cents

    make, arguments = MODELS[name]
    model: prudent.SSP = getattr(cents, make)(*arguments)
    small = getattr(cents, make)(*((8, *arguments[1:]) if arguments else (8,)))
    prudent.solve(small, ALPHA, **ASKED[asked])  # the kernels are there
    prudent.check(model, alpha=ALPHA)
    forecast = prudent.check(model, alpha=ALPHA).forecast
    before = in_memory("VmRSS")
    forget_peak()
    plan = prudent.solve(model, ALPHA, **ASKED[asked])
    peak = in_memory("VmHWM")
    seconds = interleaved({"solve": lambda: prudent.solve(model, ALPHA, **ASKED[asked])}, turns=3, limit=60.0)["solve"]
    tell(
        states=model.n_states,
        step=plan.step,
        gap=(plan.upper - plan.lower) / plan.upper,
        seconds=seconds.values,
        bytes=max(peak - before, 0.0),
        forecast=0.0 if forecast is None else forecast.seconds,
    )


if __name__ == "__main__":
    measure(*sys.argv[1:])
