"""Arguments of verbs: MODEL with the options that shape it, PLAN, and pictures."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.shell_completion import CompletionItem

import prudent
from prudent.apps.cli.options import FILE, with_options
from prudent.domains.registry import DOMAINS, make
from prudent.errors import PrudentError
from prudent.planning.options import Options, taken_by
from prudent.runtime.lines import wrapped
from prudent.runtime.progress import announce

if TYPE_CHECKING:
    from prudent.models.ssp import SSP
    from prudent.plot.canvas import Axes

Make: TypeAlias = "Callable[[], SSP]"
"""What verbs receive for MODEL: a function that makes it."""


WHOLE_HYPHEN = "\u2011"
"""A hyphen at which no line breaks; the help has it only while it is laid out."""

PLAN = click.argument("plan", type=FILE)


class Formatter(click.HelpFormatter):
    """Writes help whose lines break only between words; click would break names at their hyphens."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(text.replace("-", WHOLE_HYPHEN))

    def write_dl(self, rows: Any, *widths: Any, **named: Any) -> None:
        """Write a list of options."""
        super().write_dl([tuple(cell.replace("-", WHOLE_HYPHEN) for cell in row) for row in rows], *widths, **named)

    def getvalue(self) -> str:
        """Return what was written."""
        lines = super().getvalue().replace(WHOLE_HYPHEN, "-").split("\n")
        return "\n".join("\n".join(wrapped(line, self.width, "        ")) for line in lines)


class Context(click.Context):
    """A context whose help breaks only between words."""

    formatter_class = Formatter


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


def with_plot(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for the option ``--plot FILE``, which draws ``what``; a bad path is refused at once."""

    def checked(ctx: click.Context, param: click.Parameter, plot: str | None) -> str | None:
        if plot is not None:
            from prudent.plot.canvas import check_picture_path

            check_picture_path(plot)
        return plot

    about = f"Draw {what} (.png, .svg, .pdf; needs matplotlib)."
    return click.option("--plot", type=FILE, metavar="FILE", callback=checked, help=about)


def keep_picture(plot: str | None, draw: "Callable[[], Axes]") -> None:
    """Draw and write a picture if ``--plot`` is given, and say so."""
    if plot is not None:
        from prudent.plot.canvas import save

        save(draw(), plot)
        announce(f"picture written to {plot}")


def _model(
    name: str,
    settings: tuple[str, ...],
    asked: str | None,
    constants: tuple[str, ...],
    initial: str | None,
    problem: str | None,
) -> "SSP":
    """Return the domain or the file that a MODEL argument means."""
    if name in DOMAINS:
        for option, given in (
            ("--property", asked),
            ("--const", constants),
            ("--initial", initial),
            ("--problem", problem),
        ):
            if given not in (None, ()):
                raise PrudentError(f"{option}: {name} is a domain, and this option is for files; use --set")
        return make(name, settings)
    if settings:
        raise PrudentError(f"--set {settings[0]}: {name} is not a domain, and only domains have parameters")
    if not Path(name).exists() and not Path(name).suffix:
        return make(name, settings)
    known = _constants(constants) if constants else None
    return prudent.load(name, property=asked, constants=known, initial=initial, problem=problem)


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

    model = _model(name, settings, None, (), None, problem)
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
