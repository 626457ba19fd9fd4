"""The command: ``prudent solve MODEL --alpha A`` and its kin."""

import inspect
import json
import math
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import prudent
from prudent.errors import PrudentError

if TYPE_CHECKING:
    from prudent.model import SSP

__all__ = ["main"]

DOMAINS = {
    "betting-game": "betting_game",
    "inventory-control": "inventory_control",
    "deep-sea-treasure": "deep_sea_treasure",
    "figure-2": "figure_2",
}
METHODS = ("exact", "expected", "worst-case")


class Verbs(click.Group):
    """Turns what a user can mend into one message and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb."""
        try:
            return super().invoke(ctx)
        except PrudentError as error:
            click.echo(f"prudent: {error}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("prudent: stopped", err=True)
            ctx.exit(130)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(prudent.__version__, prog_name="prudent")
def main() -> None:
    r"""Plan for the bad tail first, then for the average.

    \b
    prudent solve betting-game --alpha 0.2
    prudent solve my-model.json --alpha 0.05 --json
    """


@main.command()
@click.argument("model")
@click.option("--alpha", type=float, required=True, help="The fraction of worst runs, above 0 and at most 1.")
@click.option("--method", type=click.Choice(METHODS), default="exact", show_default=True, help="How to plan.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A parameter of the domain; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def solve(model: str, alpha: float, method: str, settings: tuple[str, ...], as_json: bool) -> None:
    r"""Find a plan for MODEL, a domain or a file.

    \b
    Domains: betting-game, inventory-control, deep-sea-treasure, figure-2.
    Files:   .json, .json.gz

    \b
    prudent solve betting-game --alpha 0.2
    prudent solve betting-game --alpha 0.2 --set stages=5 --json
    """
    plan = prudent.solve(_model(model, settings), alpha, method=method)
    if as_json:
        _print_json(plan.to_dict())
        return
    rows = [
        ("CVaR", f"{plan.cvar:,.6f}", f"mean of the worst {plan.alpha:.4g} of runs"),
        ("VaR", f"{plan.var:,.6f}", "where that tail begins"),
        ("expected cost", f"{plan.expected:,.6f}", "mean of all runs"),
        ("optimal CVaR", f"{plan.lower:,.6f}", "at least"),
        ("", f"{plan.upper:,.6f}", "at most"),
        ("least worst case", f"{plan.worst_case:,.6f}", "over all plans"),
    ]
    found = plan.model
    title = f"{found.name}, alpha {plan.alpha:g}, method {plan.method}: {plan.status}"
    caption = f"{found.n_states:,} states, {found.n_outcomes:,} outcomes, {plan.seconds:.3g} s. {plan.message}."
    _print_table(title, rows, caption)


def _print_table(title: str, rows: list[tuple[str, str, str]], caption: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, caption=caption, show_header=False, title_justify="left", caption_justify="left")
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _print_json(content: dict[str, Any]) -> None:
    clean = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in content.items()}
    click.echo(json.dumps(clean, allow_nan=False))


def _model(name: str, settings: tuple[str, ...]) -> "SSP":
    """Return the domain or the file that a MODEL argument means."""
    if name in DOMAINS:
        function = getattr(prudent.domains, DOMAINS[name])
        made: SSP = function(**_settings(function, name, settings))
        return made
    if settings:
        raise PrudentError(f"--set {settings[0]}: only domains have parameters, and {name} is not one")
    if not Path(name).exists() and not Path(name).suffix:
        near = get_close_matches(name, DOMAINS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}? " if near else ""
        raise PrudentError(f"{name}: neither a domain nor a file; {hint}domains are {', '.join(DOMAINS)}")
    return prudent.load(name)


def _settings(function: Callable[..., Any], name: str, settings: tuple[str, ...]) -> dict[str, Any]:
    known = inspect.signature(function).parameters
    chosen: dict[str, Any] = {}
    for item in settings:
        key, equals, text = item.partition("=")
        if not equals or key not in known:
            takes = ", ".join(known) or "none"
            raise PrudentError(f"--set {item}: {name} has no such parameter; write KEY=VALUE with KEY one of: {takes}")
        if key in chosen:
            raise PrudentError(f"--set {item}: {key} is set twice")
        chosen[key] = _value(text, known[key], item)
    return chosen


def _value(text: str, parameter: inspect.Parameter, item: str) -> Any:
    if isinstance(parameter.default, bool):
        if text.lower() not in ("true", "false"):
            raise PrudentError(f"--set {item}: must be true or false")
        return text.lower() == "true"
    if isinstance(parameter.default, int | float):
        kind = type(parameter.default)
        try:
            return kind(text)
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            raise PrudentError(f"--set {item}: must be {what}") from None
    return text


if __name__ == "__main__":
    sys.exit(main())
