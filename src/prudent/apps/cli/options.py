"""The options of all commands in one table; an option means the same wherever it stands.

Options that a verb of :mod:`prudent.planning` takes have its names there (:mod:`prudent.planning.options`).
"""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from prudent.errors import PrudentError, numeral
from prudent.methods.registry import METHODS

Verb = TypeVar("Verb", bound=Callable[..., Any])


def _reader(kind: type[float], name: str) -> Callable[[Any], float]:
    """Return what reads an option's number: as click does, but what only Python takes for one, as 1_000, is refused."""

    def read(given: Any) -> float:
        try:
            return kind(numeral(str(given)))
        except ValueError:
            raise click.BadParameter(f"{given!r} is not a valid {name}.") from None

    read.__name__ = name  # shown in the help
    return read


def _uncertainty(ctx: click.Context, param: click.Parameter, text: str | None) -> float | str | None:
    if text is None or text == "own":
        return text
    try:
        return float(numeral(text))
    except ValueError:
        raise PrudentError(f"--uncertainty {text}: must be a confidence, such as 0.95, or own") from None


def _methods(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in METHODS if name.startswith(incomplete)]


REAL, WHOLE = _reader(float, "float"), _reader(int, "integer")
FILE = click.Path(dir_okay=False)
COLUMNS = ("episode", "state", "action", "next_state", "cost", "count")

TABLE: dict[str, dict[str, Any]] = {
    # what MODEL is
    "settings": {
        "flag": "--set", "multiple": True, "metavar": "KEY=VALUE", "help": "A parameter of the domain; repeatable.",
    },
    "asked": {
        "flag": "--property", "metavar": "TEXT",
        "help": 'The goals and costs of a file: R{"cost"}min=? [F "goal"], or the name of a property in it, or '
        "FILE.props:NAME for one in a file of properties.",
    },
    "constants": {
        "flag": "--const", "multiple": True, "metavar": "NAME=VALUE",
        "help": "Values of undefined constants: N=3,p=0.25; repeatable.",
    },
    "initial": {
        "metavar": "STATE",
        "help": "The initial state.  [default: that of the file; if there are several, each with equal probability]",
    },
    "problem": {"type": FILE, "metavar": "FILE", "help": "The problem file, if MODEL is a PPDDL domain."},
    "dead_end_cost": {"type": REAL, "help": "Cost of getting stuck in a state from which no goal can be reached."},
    "goal": {
        "type": click.Choice(["sure", "likeliest"]), "default": "sure",
        "help": "sure: plans reach a goal with probability 1; likeliest: with the highest possible probability, and "
        "--dead-end-cost is the cost of a run that does not reach a goal.",
    },
    "horizon": {"type": WHOLE, "help": "End every run after this many actions."},
    "horizon_cost": {"type": REAL, "help": "Cost of not reaching a goal within the horizon."},
    # what to plan for
    "alpha": {"type": REAL, "required": True, "help": "The worst fraction of runs, above 0 and at most 1."},
    "alphas": {"metavar": "A,B,...", "help": "Print these, in this order.  [default: round ones]"},
    "alpha_min": {"type": REAL, "default": 0.01, "show_default": True, "help": "The smallest alpha."},
    "budgets": {"metavar": "A,B,...", "required": True, "help": "Budgets for the total cost, in any order."},
    "worst": {"is_flag": True, "help": "The lowest probability over all policies, instead of the highest."},
    "slack": {
        "type": REAL,
        "help": "Minimise the expected cost with a CVaR above the optimum by at most this fraction: 0.01 for 1%.",
    },
    "absolute_slack": {"type": REAL, "help": "As --slack, in the units of the costs."},
    "max_cvar": {"type": REAL, "help": "Minimise the expected cost with a CVaR of at most this."},
    "randomise": {
        "is_flag": True,
        "help": "With --slack, --absolute-slack or --max-cvar: allow a plan that draws one of two policies.",
    },
    "objective": {
        "metavar": "WHAT",
        "help": "Minimise this instead of CVaR: var, worst-case, exceed:BUDGET (probability of a cost above it), "
        "excess:BUDGET (expected excess over it) or mean+cvar:WEIGHT.",
    },
    "uncertainty": {
        "metavar": "LEVEL", "callback": _uncertainty,
        "help": "Consider the worst of a set of models: a confidence, such as 0.95, if MODEL has counts; or own, for "
        "the low and high in its file.",
    },
    # how to plan
    "method": {
        "default": "exact", "show_default": True, "metavar": "METHOD", "shell_complete": _methods,
        "help": f"How to plan: {', '.join(METHODS)}.",
    },
    "methods": {"metavar": "A,B,...", "help": f"The methods, in this order.  [default: {','.join(METHODS)}]"},
    "points": {
        "type": WHOLE, "help": "Grid points of cvar-wc and cvar-ev.  [default: 30; deep-sea-treasure: 80]",
    },
    "gap": {
        "type": REAL, "help": "The largest gap between the bounds on the optimal value; 0 requires the optimum.",
    },
    "relative_gap": {
        "type": REAL,
        "help": "The same, relative to the optimal value.  [default: 0 if the model is small enough, else 0.001]",
    },
    "tolerance": {
        "type": REAL, "default": 5e-3, "show_default": True,
        "help": "The largest gap, as a share of the range of the expected cost.",
    },
    "most": {"type": WHOLE, "default": 100, "show_default": True, "help": "The most weights of CVaR to try."},
    "blind": {"is_flag": True, "help": "Use no heuristic; PPDDL files have one."},
    "fallback": {"type": REAL, "metavar": "PRICE", "help": "Cost of ending a run that leaves the explored part."},
    "step": {"type": REAL, "help": "Round the costs to multiples of this."},
    "memory": {
        "metavar": "BYTES", "help": "The memory limit for tables, such as 2GB.  [default: 80% of the free memory]",
    },
    "time_limit": {"type": REAL, "metavar": "SECONDS", "help": "Stop after this time."},
    "threads": {
        "type": WHOLE, "help": "The number of threads; the result does not depend on it.  [default: all cores]",
    },
    "device": {
        "type": click.Choice(["cpu", "gpu"]), "default": "cpu", "show_default": True,
        "help": "gpu: an NVIDIA GPU (needs CuPy, extra gpu); prudent check reports whether it is faster.",
    },
    "checkpoint": {
        "type": FILE, "metavar": "FILE",
        "help": "Save the progress of a long solve here; the same command resumes from it.",
    },
    "workers": {
        "type": WHOLE,
        "help": "The number of processes; 1 starts none.  [default: one for each core; on a GPU 1]",
    },
    # runs and samples
    "episodes": {"type": WHOLE, "default": 20_000, "show_default": True, "help": "The number of runs."},
    "samples": {"type": WHOLE, "default": 1000, "show_default": True, "help": "The number of models to draw."},
    "seed": {"type": WHOLE, "default": 0, "show_default": True, "help": "The seed of the random numbers."},
    "paths": {"type": WHOLE, "default": 0, "help": "The number of runs to print step by step."},
    "columns": {
        "flag": "--column", "multiple": True, "metavar": "MEANING=NAME",
        "help": f"The name of a column in LOG: {', '.join(COLUMNS)}; repeatable.",
    },
    "seldom": {
        "type": WHOLE, "default": 10, "show_default": True, "help": "List actions seen fewer times than this.",
    },
    # what to write and print
    "decisions": {"is_flag": True, "help": "Print the plan as a table: state, cost so far, action."},
    "decisions_csv": {"type": FILE, "metavar": "FILE", "help": "Write that table (.csv)."},
    "save": {"type": FILE, "metavar": "PLAN", "help": "Write the plan (.safetensors)."},
    "save_model": {
        "type": FILE, "metavar": "FILE",
        "help": "Write the explored part of the model, to which the plan belongs.",
    },
    "keep": {
        "type": FILE, "metavar": "FILE",
        "help": "Add each row to this file (.jsonl); the same command resumes from it.",
    },
    "csv": {"type": FILE, "metavar": "FILE", "help": "Write the table (.csv)."},
    "as_json": {"flag": "--json", "is_flag": True, "help": "Print one JSON object and nothing else."},
}  # fmt: skip
"""Every option by the name of its parameter."""


def with_options(*names: str, **other: dict[str, Any]) -> Callable[[Verb], Verb]:
    """Return a decorator that gives a verb options of the table, in this order; ``other`` has what differs there."""

    def decorated(verb: Verb) -> Verb:
        for name in reversed(names):
            settings = {"flag": "--" + name.replace("_", "-"), **TABLE[name], **other.get(name, {})}
            verb = click.option(settings.pop("flag"), name, **settings)(verb)
        return verb

    return decorated


def numbers(option: str, given: str) -> list[float]:
    """Return the numbers of an option that takes several, with commas between them."""
    found = []
    for text in given.split(","):
        try:
            found.append(float(numeral(text)))
        except ValueError:
            raise PrudentError(f"{option} {text!r}: must be numbers with commas between them") from None
    return found
