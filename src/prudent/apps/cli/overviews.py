"""The verbs that show more than one plan, and those for estimated models."""

from pathlib import Path
from typing import Any

import click

import prudent
from prudent.apps.cli.options import (
    COLUMNS,
    FILE,
    PLAN,
    WHOLE,
    Make,
    keep_picture,
    with_model,
    with_options,
    with_plot,
)
from prudent.apps.cli.terminal import answer, print_comparison, print_json, show
from prudent.domains.registry import DOMAINS, grid
from prudent.errors import PrudentError
from prudent.methods.registry import METHODS, with_grid
from prudent.runtime.atomic_files import check_place
from prudent.runtime.progress import announce, announce_if_long

__all__ = ["chances", "compare", "curve", "frontier", "learn", "reproduce", "serve", "stress", "study"]


@click.command()
@with_model
@with_options("alpha", "points", "methods", "time_limit", time_limit={"help": "The time limit for each method."})
def compare(
    make: Make, alpha: float, points: int | None, methods: str | None, time_limit: float | None, as_json: bool
) -> None:
    """Solve MODEL with every method and compare the plans.

    \b
    Examples:
      prudent compare betting-game --alpha 0.2
      prudent compare deep-sea-treasure --alpha 0.02 --points 600
      prudent compare inventory-control --alpha 0.1 --methods exact,expected
    """
    chosen = tuple(METHODS) if methods is None else tuple(name.strip() for name in methods.split(","))
    for name in chosen:
        if name not in METHODS or chosen.count(name) > 1:
            problem = "is given twice" if name in METHODS else f"is no method; methods are {', '.join(METHODS)}"
            raise PrudentError(f"--methods {methods}: {name!r} {problem}")
    made = make()
    plans = []
    for i, name in enumerate(chosen):
        with announce_if_long(f"{name} is running, method {i + 1} of {len(chosen)}; choose some with --methods"):
            plans.append(prudent.solve(made, alpha, method=with_grid(name, points), time_limit=time_limit))
        if plans[-1].status == "interrupted":
            raise KeyboardInterrupt
    if as_json:
        print_json({"model": made.name, "alpha": alpha, "rows": [plan.to_dict() for plan in plans]})
    else:
        print_comparison(plans)


@click.command()
@with_model
@with_options("alphas", "alpha_min", "step", "memory", "time_limit", "device", "uncertainty")
@with_plot("the curve")
def curve(
    make: Make, alphas: list[float] | None, alpha_min: float, plot: str | None, as_json: bool, **asked: Any
) -> None:
    """Print the optimal CVaR of MODEL, its VaR and the lowest expected cost for all alphas.

    The table has round alphas, --json all breakpoints.

    \b
    Examples:
      prudent curve betting-game --plot curve.pdf
      prudent curve betting-game --alphas 0.02,0.1,0.2 --json
      prudent curve learned.json --uncertainty 0.95
    """
    found = prudent.curve(make(), alpha_min=min([alpha_min, *(alphas or [])]), **asked)
    keep_picture(plot, lambda: prudent.plot.curve(found))
    answer(as_json, found, alphas)


@click.command()
@with_model
@with_options("alpha", "tolerance", "most", "step", "memory", "time_limit")
@with_plot("the trade-off")
def frontier(make: Make, plot: str | None, as_json: bool, **asked: Any) -> None:
    """Print the trade-off between expected cost and CVaR of MODEL.

    \b
    Example:
      prudent frontier betting-game --alpha 0.2
    """
    found = prudent.frontier(make(), **asked)
    keep_picture(plot, lambda: prudent.plot.frontier(found))
    answer(as_json, found)


@click.command()
@with_model
@with_options("budgets", "worst", "step", "memory", "time_limit", "threads", "device")
def chances(make: Make, as_json: bool, **asked: Any) -> None:
    """Print the highest probability that the total cost of MODEL is within each budget, or with --worst the lowest.

    \b
    Examples:
      prudent chances betting-game --budgets 60,80,95
      prudent chances betting-game --budgets 60,80,95 --worst --json
    """
    answer(as_json, prudent.chances(make(), **asked))


@click.command()
@click.argument("domain", shell_complete=lambda ctx, param, part: [name for name in DOMAINS if name.startswith(part)])
@with_options(
    "settings", "alphas", "workers", "keep", "csv", "method", "gap", "relative_gap", "memory", "time_limit", "threads",
    "device",
    settings={"metavar": "KEY=VALUE,...", "help": "Values for a parameter of DOMAIN; repeatable."},
    alphas={"flag": "--alpha", "required": True, "help": "The fractions of worst runs."},
    gap={"help": "As in solve, for each combination."},
    relative_gap={"help": "As in solve, for each combination."},
    memory={"help": "The memory limit for one solve.  [default: 80% of the free memory, shared]"},
    time_limit={"help": "The time limit for one solve."},
    threads={"help": "The number of threads of each solve.  [default: all cores, shared]"},
)  # fmt: skip
@with_plot("CVaR against the first parameter with several values")
@with_options("as_json")
def study(
    domain: str,
    settings: tuple[str, ...],
    csv: str | None,
    plot: str | None,
    as_json: bool,
    **asked: Any,  # options of prudent.study, under its names
) -> None:
    """Solve DOMAIN for every combination of parameters and alphas and print one row for each.

    If a combination fails, its row has the error message.  Ctrl-C prints the rows finished so far.

    \b
    Examples:
      prudent study inventory-control --set capacity=10,20,50 --alpha 0.02,0.2 --workers 2
      prudent study betting-game --set stages=5,10 --set cap=50,100 --alpha 0.1 --keep study.jsonl --csv study.csv
    """
    found = prudent.study(domain, grid(domain, settings), **asked)
    if csv is not None:
        found.to_csv(csv)
        announce(f"table written to {csv}")
    keep_picture(plot, lambda: prudent.plot.study(found))
    answer(as_json, found)
    if not found.complete:
        click.get_current_context().exit(130)
    if len(found.failed) == found.asked:
        raise PrudentError(f"all {found.asked:,} combinations failed, the first with: {found.failed[0]['error']}")


@click.command()
@click.option(
    "--out", type=click.Path(file_okay=False), default="report", show_default=True, help="The folder to write to."
)
@with_options("episodes", episodes={"help": "The number of simulated runs for each cell."})
@click.option("--traffic", type=click.Path(dir_okay=False), help="The paper's traffic data, a CSV file.")
def reproduce(out: str, episodes: int, traffic: str | None) -> None:
    """Reproduce the tables and figures of the paper, with the exact optimum beside them.

    Writes results.json, results.csv, the figures and one page, index.html.

    \b
    Examples:
      prudent reproduce --out report
      prudent reproduce --traffic la_traffic.csv
    """
    from prudent.apps.paper import report

    for table in report.tables(report.reproduce(Path(out), episodes=episodes, traffic=traffic)):
        show(table)
        print()
    announce(f"the report is {Path(out) / 'index.html'}")


@click.command()
@click.argument("log", type=FILE)
@with_options(
    "save", "columns", "initial", "seldom", "as_json",
    save={"metavar": "MODEL", "callback": None, "help": "Write the model, with its counts (.json, .json.gz)."},
    initial={"help": "The state in which runs start.  [default: as the episodes do]"},
)  # fmt: skip
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
    answer(as_json, data)
    if save is not None:
        announce(f"model written to {save}")


@click.command()
@with_model
@PLAN
@with_options("samples", "seed")
@with_plot("the fan of tails")
def stress(make: Make, plan: str, plot: str | None, as_json: bool, **asked: Any) -> None:
    """Evaluate PLAN, made for the learned MODEL, on other models that fit its counts.

    \b
    Example:
      prudent stress model.json plan.safetensors --samples 200 --plot fan.png
    """
    loaded = prudent.load_plan(plan, make())
    result = prudent.stress(loaded, loaded.model, **asked)
    keep_picture(plot, lambda: prudent.plot.stress(result))
    answer(as_json, result)


@click.command()
@click.option("--port", type=WHOLE, default=8000, show_default=True, help="The port; 0 takes any free one.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on; with another one, others can use the page.",
)
def serve(port: int, host: str) -> None:
    """Serve a page on this machine: drag alpha and watch the plan change.

    \b
    Example:
      prudent serve --port 8080
    """
    from prudent.errors import needed

    for module in ("starlette", "uvicorn", "plotly"):
        needed(module, "web")
    from prudent.apps.web.server import serve as listen

    listen(host, port)
