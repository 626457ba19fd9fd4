"""The verbs for estimated models: learn, stress."""

from typing import Any

import click

import prudent
from prudent.apps.cli.arguments import FILE, PLAN, WHOLE, Make, keep_picture, with_model, with_plot
from prudent.errors import PrudentError
from prudent.runtime.atomic_files import check_place
from prudent.runtime.progress import announce

__all__ = ["learn", "stress"]

COLUMNS = ("episode", "state", "action", "next_state", "cost", "count")


@click.command()
@click.argument("log", type=FILE)
@click.option("--save", type=FILE, metavar="MODEL", help="Write the model, with its counts (.json, .json.gz).")
@click.option(
    "--column", "columns", multiple=True, metavar="MEANING=NAME",
    help=f"The name of a column in LOG: {', '.join(COLUMNS)}; repeatable.",
)  # fmt: skip
@click.option("--initial", metavar="STATE", help="The state in which runs start.  [default: as the episodes do]")
@click.option("--seldom", type=WHOLE, default=10, show_default=True, help="List actions seen fewer times than this.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def learn(log: str, save: str | None, columns: tuple[str, ...], as_json: bool, **asked: Any) -> None:
    """Estimate a model from LOG, a CSV file of logged runs with one row for each step.

    Its columns are episode, state, action, next_state and cost.  With a column count, each row has the number of times
    that a step was seen, and there is no column episode.

    \b
    Examples:
      prudent learn log.csv --save model.json
      prudent learn log.csv --column state=stock --column next_state=stock_after --save model.json
      prudent solve model.json --alpha 0.1 --uncertainty 0.95
    """
    from prudent.apps.cli.terminal import answer

    if save is not None:
        suffix = ".json.gz" if save.endswith(".json.gz") else ".json"
        check_place(save, suffix, "models with counts are written", hint=" or .json.gz")
    named: dict[str, Any] = {}
    for item in columns:
        meaning, equals, name = item.partition("=")
        if not equals or meaning not in COLUMNS or meaning in named:
            raise PrudentError(f"--column {item}: write MEANING=NAME, once for each of {', '.join(COLUMNS)}")
        named[meaning] = name
    data = prudent.from_episodes(log, **named, **asked)
    if save is not None:
        prudent.save(data.model, save)
    answer(as_json, data.to_dict, data.table)
    if save is not None:
        announce(f"model written to {save}")


@click.command()
@with_model
@PLAN
@click.option("--samples", type=WHOLE, default=1000, show_default=True, help="The number of models to draw.")
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="The seed of the random numbers.")
@with_plot("the fan of tails")
def stress(make: Make, plan: str, plot: str | None, as_json: bool, **asked: Any) -> None:
    """Evaluate PLAN, made for the learned MODEL, on other models that fit its counts.

    \b
    Example:
      prudent stress model.json plan.safetensors --samples 200 --plot fan.png
    """
    from prudent.apps.cli.terminal import answer

    loaded = prudent.load_plan(plan, make())
    result = prudent.stress(loaded, loaded.model, **asked)
    keep_picture(plot, lambda: prudent.plot.stress(result))
    answer(as_json, result.to_dict, result.table)
