"""What commands are given: their options, in one table, and MODEL with the options that shape it, PLAN and pictures.

An option means the same wherever it stands.  Options that a verb of :mod:`prudent.planning` takes have its names there
(:mod:`prudent.planning.options`).
"""

import functools
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click
from click.shell_completion import CompletionItem

import prudent
from prudent.domains.registry import DOMAINS, make
from prudent.errors import PrudentError, numeral
from prudent.methods.registry import METHODS
from prudent.planning.options import Options, taken_by
from prudent.runtime.progress import announce

if TYPE_CHECKING:
    from prudent.methods.objectives import Objective
    from prudent.models.ssp import SSP
    from prudent.plot.canvas import Axes

Verb = TypeVar("Verb", bound=Callable[..., Any])

Make: TypeAlias = "Callable[[], SSP]"
"""What verbs receive for MODEL: a function that makes it."""


def _reader(kind: type[float], name: str) -> Callable[[Any], float]:
    """Return what reads an option's number: as click does, but what only Python takes for one, as 1_000, is refused."""

    def read(given: Any) -> float:
        try:
            return kind(numeral(str(given)))
        except ValueError:
            raise click.BadParameter(f"{given!r} is not a valid {name}.") from None

    read.__name__ = name  # shown in the help
    return read


def _number(text: str, problem: str) -> float:
    """Return a number that is a part of an option, or say what is wrong."""
    try:
        return float(numeral(text))
    except ValueError:
        raise PrudentError(problem) from None


def _given(read: Callable[[str, str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """Return a callback that reads the text of an option, by its flag and that text, if it was given."""
    return lambda ctx, param, text: None if text is None else read(param.opts[0], text)


@_given
def _numbers(name: str, text: str) -> list[float]:
    problem = "must be numbers with commas between them"
    return [_number(each, f"{name} {each!r}: {problem}") for each in text.split(",")]


@_given
def _uncertainty(name: str, text: str) -> float | str:
    return text if text == "own" else _number(text, f"{name} {text}: must be a confidence, such as 0.95, or own")


@_given
def _objective(name: str, text: str) -> "Objective":
    from prudent.methods.objectives import OBJECTIVES

    word, colon, number = text.partition(":")
    kind = next((each for each in OBJECTIVES.values() if each.word == word and (each.sought or not colon)), None)
    if kind is None:
        words = [f"{each.word}:{each.sought.upper()}" if each.sought else each.word for each in OBJECTIVES.values()]
        raise PrudentError(f"{name} {text}: must be {', '.join(words[:-1])} or {words[-1]}")
    problem = f"{name} {text}: must be followed by a number, as in {word}:90"
    return kind(_number(number, problem)) if kind.sought else kind()  # type: ignore[call-arg]


def _place(module: str, check: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Return what refuses a path where nothing can be written, before anything is computed; it is loaded only then."""

    def checked(name: str, path: str) -> str:
        getattr(import_module(module), check)(path)
        return path

    return _given(checked)


def _methods(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in METHODS if name.startswith(incomplete)]


def _option(text: str, kind: Any = None, **more: Any) -> dict[str, Any]:
    """Return an option of the command: its help, its type, and what else click is told of it."""
    return {"help": text, "type": kind, **more}


REAL, WHOLE = _reader(float, "float"), _reader(int, "integer")
FILE = click.Path(dir_okay=False)
PLAN = click.argument("plan", type=FILE)
COLUMNS = ("episode", "state", "action", "next_state", "cost", "count")

TABLE: dict[str, dict[str, Any]] = {
    # what MODEL is
    "settings": _option("A parameter of the domain; repeatable.", flag="--set", multiple=True, metavar="KEY=VALUE"),
    "asked": _option(
        'The goals and costs of a file: R{"cost"}min=? [F "goal"], or the name of a property in it, or '
        "FILE.props:NAME for one in a file of properties.",
        flag="--property",
        metavar="TEXT",
    ),
    "constants": _option(
        "Values of undefined constants: N=3,p=0.25; repeatable.", flag="--const", multiple=True, metavar="NAME=VALUE"
    ),
    "initial": _option(
        "The initial state.  [default: that of the file; if there are several, each with equal probability]",
        metavar="STATE",
    ),
    "problem": _option("The problem file, if MODEL is a PPDDL domain.", FILE),
    "dead_end_cost": _option("Cost of getting stuck in a state from which no goal can be reached.", REAL),
    "goal": _option(
        "sure: plans reach a goal with probability 1; likeliest: with the highest possible probability, and "
        "--dead-end-cost is the cost of a run that does not reach a goal.",
        click.Choice(["sure", "likeliest"]),
        default="sure",
    ),
    "horizon": _option("End every run after this many actions.", WHOLE),
    "horizon_cost": _option("Cost of not reaching a goal within the horizon.", REAL),
    # what to plan for
    "alpha": _option("The worst fraction of runs, above 0 and at most 1.", REAL, required=True),
    "alphas": _option("Print these, in this order.  [default: round ones]", metavar="A,B,...", callback=_numbers),
    "alpha_min": _option("The smallest alpha.", REAL, default=0.01, show_default=True),
    "budgets": _option(
        "Budgets for the total cost, in any order.", metavar="A,B,...", callback=_numbers, required=True
    ),
    "worst": _option("The lowest probability over all policies, instead of the highest.", is_flag=True),
    "slack": _option(
        "Minimise the expected cost with a CVaR above the optimum by at most this fraction: 0.01 for 1%.", REAL
    ),
    "absolute_slack": _option("As --slack, in the units of the costs.", REAL),
    "max_cvar": _option("Minimise the expected cost with a CVaR of at most this.", REAL),
    "randomise": _option(
        "With --slack, --absolute-slack or --max-cvar: allow a plan that draws one of two policies.", is_flag=True
    ),
    "objective": _option(
        "Minimise this instead of CVaR: var, worst-case, exceed:BUDGET (probability of a cost above it), "
        "excess:BUDGET (expected excess over it) or mean+cvar:WEIGHT.",
        metavar="WHAT",
        callback=_objective,
    ),
    "uncertainty": _option(
        "Consider the worst of a set of models: a confidence, such as 0.95, if MODEL has counts; or own, for "
        "the low and high in its file.",
        metavar="LEVEL",
        callback=_uncertainty,
    ),
    # how to plan
    "method": _option(
        f"How to plan: {', '.join(METHODS)}.",
        default="exact",
        show_default=True,
        metavar="METHOD",
        shell_complete=_methods,
    ),
    "methods": _option(f"The methods, in this order.  [default: {','.join(METHODS)}]", metavar="A,B,..."),
    "points": _option("Grid points of cvar-wc and cvar-ev.  [default: 30; deep-sea-treasure: 80]", WHOLE),
    "gap": _option("The largest gap between the bounds on the optimal value; 0 requires the optimum.", REAL),
    "relative_gap": _option(
        "The same, relative to the optimal value.  [default: 0 if the model is small enough, else 0.001]", REAL
    ),
    "tolerance": _option(
        "The largest gap, as a share of the range of the expected cost.", REAL, default=5e-3, show_default=True
    ),
    "most": _option("The most weights of CVaR to try.", WHOLE, default=100, show_default=True),
    "blind": _option("Use no heuristic; PPDDL files have one.", is_flag=True),
    "fallback": _option("Cost of ending a run that leaves the explored part.", REAL, metavar="PRICE"),
    "step": _option("Round the costs to multiples of this.", REAL),
    "memory": _option("The memory limit for tables, such as 2GB.  [default: 80% of the free memory]", metavar="BYTES"),
    "time_limit": _option("Stop after this time.", REAL, metavar="SECONDS"),
    "threads": _option("The number of threads; the result does not depend on it.  [default: all cores]", WHOLE),
    "device": _option(
        "gpu: an NVIDIA GPU (needs CuPy, extra gpu); prudent check reports whether it is faster.",
        click.Choice(["cpu", "gpu"]),
        default="cpu",
        show_default=True,
    ),
    "checkpoint": _option("Save the progress of a long solve here; the same command resumes from it.", FILE),
    "workers": _option("The number of processes; 1 starts none.  [default: one for each core; on a GPU 1]", WHOLE),
    # runs and samples
    "episodes": _option("The number of runs.", WHOLE, default=20_000, show_default=True),
    "samples": _option("The number of models to draw.", WHOLE, default=1000, show_default=True),
    "seed": _option("The seed of the random numbers.", WHOLE, default=0, show_default=True),
    "paths": _option("The number of runs to print step by step.", WHOLE, default=0),
    "columns": _option(
        f"The name of a column in LOG: {', '.join(COLUMNS)}; repeatable.",
        flag="--column",
        multiple=True,
        metavar="MEANING=NAME",
    ),
    "seldom": _option("List actions seen fewer times than this.", WHOLE, default=10, show_default=True),
    # what to write and print
    "decisions": _option("Print the plan as a table: state, cost so far, action.", is_flag=True),
    "decisions_csv": _option(
        "Write that table (.csv).", FILE, callback=_place("prudent.results.decisions", "check_csv_path")
    ),
    "save": _option(
        "Write the plan (.safetensors).", FILE, metavar="PLAN", callback=_place("prudent.io.formats", "check_plan_path")
    ),
    "save_model": _option("Write the explored part of the model, to which the plan belongs.", FILE),
    "keep": _option("Add each row to this file (.jsonl); the same command resumes from it.", FILE),
    "csv": _option("Write the table (.csv).", FILE, callback=_place("prudent.results.study", "check_csv_path")),
    "plot": _option("", FILE, callback=_place("prudent.plot.canvas", "check_picture_path")),
    "as_json": _option("Print one JSON object and nothing else.", flag="--json", is_flag=True),
}
"""Every option by the name of its parameter."""


def flag(name: str) -> str:
    """Return how an option is written."""
    return str(TABLE[name].get("flag", "--" + name.replace("_", "-")))


def with_options(*names: str, **other: dict[str, Any]) -> Callable[[Verb], Verb]:
    """Return a decorator that gives a verb options of the table, in this order; ``other`` has what differs there."""

    def decorated(verb: Verb) -> Verb:
        for name in reversed(names):
            settings = {**TABLE[name], "flag": flag(name), **other.get(name, {})}
            verb = click.option(settings.pop("flag"), name, **settings)(verb)
        return verb

    return decorated


def complete_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the domains, or else files (click's script for bash takes one kind or the other)."""
    domains = [CompletionItem(name) for name in DOMAINS if name.startswith(incomplete)]
    return domains or [CompletionItem(incomplete, type="file")]


def with_model(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the MODEL argument and the options that shape a model, as ``make``; and ``--json``."""

    @click.argument("model", shell_complete=complete_model)
    @with_options(
        "settings", "asked", "constants", "initial", "problem", "dead_end_cost", "goal", "horizon", "horizon_cost",
        "as_json",
    )  # fmt: skip
    @functools.wraps(verb)
    def wrapped(model: str, settings: Any, goal: str, **options: Any) -> Any:
        shape = {name: options.pop(name) for name in ("asked", "constants", "initial", "problem")}
        changes = {name: options.pop(name) for name in ("dead_end_cost", "horizon", "horizon_cost")}
        if goal == "likeliest" and (changes["horizon"], changes["horizon_cost"]) != (None, None):
            raise PrudentError(
                "--goal likeliest: every run that ends at the horizon counts as at a goal; leave out --horizon"
            )
        price = changes.pop("dead_end_cost") if goal == "likeliest" else None
        takes_goal = "goal" in taken_by(verb.__name__)  # then it asks for it itself
        if takes_goal:
            options |= {"goal": goal, "dead_end_cost": price}

        def make() -> "SSP":
            made = prudent.amend(_model(model, settings, **shape), **changes)
            if goal == "sure" or takes_goal:
                return made
            from prudent.planning.likeliest import likeliest

            return likeliest(made, Options("solve", goal=goal, dead_end_cost=price).dead_end_cost)[0]

        return verb(make=make, **options)

    return wrapped


def with_plot(what: str) -> Callable[[Verb], Verb]:
    """Return a decorator for the option ``--plot FILE``, which draws ``what``."""
    return with_options("plot", plot={"help": f"Draw {what} (.png, .svg, .pdf; needs matplotlib)."})


def keep_picture(plot: str | None, draw: "Callable[[], Axes]") -> None:
    """Draw and write a picture if ``--plot`` is given, and say so."""
    if plot is not None:
        from prudent.plot.canvas import save

        save(draw(), plot)
        announce(f"picture written to {plot}")


def _model(name: str, settings: tuple[str, ...], **shape: Any) -> "SSP":
    """Return the domain or the file that a MODEL argument means; ``shape`` has the options for files."""
    if name in DOMAINS:
        for option, given in shape.items():
            if given not in (None, ()):
                raise PrudentError(f"{flag(option)}: {name} is a domain, and this option is for files; use --set")
        return make(name, settings)
    if settings:
        raise PrudentError(f"--set {settings[0]}: {name} is not a domain, and only domains have parameters")
    if not Path(name).exists() and not Path(name).suffix:
        return make(name, settings)
    known = _constants(shape.pop("constants", ())) or None
    return prudent.load(name, property=shape.pop("asked", None), constants=known, **shape)


def explorable(name: str, settings: tuple[str, ...], problem: str | None) -> dict[str, Any]:
    """Return what can be explored of a MODEL argument, as arguments of ``prudent.search``.

    A domain in PPDDL with its problem is never built; any other model is, and then explored as if it were not.
    """
    if Path(name).suffix.lower() == ".pddl":
        from prudent.io.pddl import Problem
        from prudent.runtime.atomic_files import read_bytes

        task = Problem(read_bytes(Path(name)), Path(name), problem)
        about = {"initial": task.initial, "actions": task.actions, "name": task.name}
        return {**about, "heuristic": task.heuristic}
    from prudent.models.build import as_function

    model = _model(name, settings, problem=problem)
    initial, actions = as_function(model)
    return {"initial": initial, "actions": actions, "name": model.name}


def _constants(items: tuple[str, ...]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for item in (part.strip() for each in items for part in each.split(",")):
        key, equals, text = item.partition("=")
        if not equals or not key or key in chosen:
            problem = f"{key} is given twice" if key in chosen else "write NAME=VALUE, with commas between several"
            raise PrudentError(f"--const {item}: {problem}")
        chosen[key] = text
    return chosen
