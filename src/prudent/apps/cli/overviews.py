"""The verbs that show more than one plan: compare, curve, frontier, chances, study, reproduce, serve."""

from pathlib import Path
from typing import Any

import click

import prudent
from prudent.apps.cli.arguments import (
    ALPHA,
    DEVICE,
    FILE,
    MEMORY,
    POINTS,
    REAL,
    STEP,
    THREADS,
    TIME_LIMIT,
    UNCERTAINTY,
    WHOLE,
    Make,
    keep_picture,
    with_model,
    with_plot,
)
from prudent.domains.registry import DOMAINS, grid
from prudent.errors import PrudentError, numeral
from prudent.methods.registry import METHODS, with_grid
from prudent.runtime.progress import announce, announce_if_long

__all__ = ["chances", "compare", "curve", "frontier", "reproduce", "serve", "study"]


@click.command()
@with_model
@ALPHA
@POINTS
@click.option("--methods", metavar="A,B,...", help=f"The methods, in this order.  [default: {','.join(METHODS)}]")
@click.option("--time-limit", type=REAL, metavar="SECONDS", help="The time limit for each method.")
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
    from prudent.apps.cli.terminal import print_comparison, print_json

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
@click.option("--alphas", metavar="A,B,...", help="Print these, in this order.  [default: round ones]")
@click.option("--alpha-min", type=REAL, default=0.01, show_default=True, help="The smallest alpha.")
@STEP
@MEMORY
@TIME_LIMIT
@DEVICE
@UNCERTAINTY
@with_plot("the curve")
def curve(make: Make, alphas: str | None, alpha_min: float, plot: str | None, as_json: bool, **asked: Any) -> None:
    """Print the optimal CVaR of MODEL, its VaR and the lowest expected cost for all alphas.

    The table has round alphas, --json all breakpoints.

    \b
    Examples:
      prudent curve betting-game --plot curve.pdf
      prudent curve betting-game --alphas 0.02,0.1,0.2 --json
      prudent curve learned.json --uncertainty 0.95
    """
    from prudent.apps.cli.terminal import answer

    chosen = None if alphas is None else _numbers("--alphas", alphas)
    found = prudent.curve(make(), alpha_min=min([alpha_min, *(chosen or [])]), **asked)
    keep_picture(plot, lambda: prudent.plot.curve(found))
    answer(as_json, lambda: found.to_dict(chosen), lambda: found.table(chosen))


@click.command()
@with_model
@ALPHA
@click.option(
    "--tolerance",
    type=REAL,
    default=5e-3,
    show_default=True,
    help="The largest gap, as a share of the range of the expected cost.",
)
@click.option("--most", type=WHOLE, default=100, show_default=True, help="The most weights of CVaR to try.")
@STEP
@MEMORY
@TIME_LIMIT
@with_plot("the trade-off")
def frontier(make: Make, plot: str | None, as_json: bool, **asked: Any) -> None:
    """Print the trade-off between expected cost and CVaR of MODEL.

    \b
    Example:
      prudent frontier betting-game --alpha 0.2
    """
    from prudent.apps.cli.terminal import answer

    found = prudent.frontier(make(), **asked)
    keep_picture(plot, lambda: prudent.plot.frontier(found))
    answer(as_json, found.to_dict, found.table)
    if found.status == "interrupted":
        click.get_current_context().exit(130)


@click.command()
@with_model
@click.option("--budgets", metavar="A,B,...", required=True, help="Budgets for the total cost, in any order.")
@click.option("--worst", is_flag=True, help="The lowest probability over all policies, instead of the highest.")
@STEP
@MEMORY
@TIME_LIMIT
@THREADS
@DEVICE
def chances(make: Make, budgets: str, as_json: bool, **asked: Any) -> None:
    """Print the highest probability that the total cost of MODEL is within each budget, or with --worst the lowest.

    \b
    Examples:
      prudent chances betting-game --budgets 60,80,95
      prudent chances betting-game --budgets 60,80,95 --worst --json
    """
    from prudent.apps.cli.terminal import answer

    wanted = _numbers("--budgets", budgets)
    found = prudent.chances(make(), wanted, **asked)
    answer(as_json, found.to_dict, found.table)


@click.command()
@click.argument("domain", shell_complete=lambda ctx, param, part: [name for name in DOMAINS if name.startswith(part)])
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE,...", help="Values for a parameter of DOMAIN; repeatable."
)
@click.option("--alpha", "alphas", metavar="A,B,...", required=True, help="The fractions of worst runs.")
@click.option(
    "--workers", type=WHOLE, help="The number of processes; 1 starts none.  [default: one for each core; on a GPU 1]"
)
@click.option(
    "--keep", type=FILE, metavar="FILE", help="Add each row to this file (.jsonl); the same command resumes from it."
)
@click.option("--csv", type=FILE, metavar="FILE", help="Write the table (.csv).")
@click.option("--method", default="exact", show_default=True, help=f"How to plan: {', '.join(METHODS)}.")
@click.option("--gap", type=REAL, help="As in solve, for each combination.")
@click.option("--relative-gap", type=REAL, help="As in solve, for each combination.")
@click.option(
    "--memory", metavar="BYTES", help="The memory limit for one solve.  [default: 80% of the free memory, shared]"
)
@click.option("--time-limit", type=REAL, metavar="SECONDS", help="The time limit for one solve.")
@click.option("--threads", type=WHOLE, help="The number of threads of each solve.  [default: all cores, shared]")
@DEVICE
@with_plot("CVaR against the first parameter with several values")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def study(
    domain: str,
    settings: tuple[str, ...],
    alphas: str,
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
    from prudent.apps.cli.terminal import answer
    from prudent.results.study import check_csv_path

    if csv is not None:
        check_csv_path(csv)
    found = prudent.study(domain, grid(domain, settings), _numbers("--alpha", alphas), **asked)
    if csv is not None:
        found.to_csv(csv)
        announce(f"table written to {csv}")
    keep_picture(plot, lambda: prudent.plot.study(found))
    answer(as_json, found.to_dict, found.table)
    if not found.complete:
        click.get_current_context().exit(130)
    if len(found.failed) == found.asked:
        raise PrudentError(f"all {found.asked:,} combinations failed, the first with: {found.failed[0]['error']}")


@click.command()
@click.option(
    "--out", type=click.Path(file_okay=False), default="report", show_default=True, help="The folder to write to."
)
@click.option(
    "--episodes", type=WHOLE, default=20_000, show_default=True, help="The number of simulated runs for each cell."
)
@click.option("--traffic", type=click.Path(dir_okay=False), help="The paper's traffic data, a CSV file.")
def reproduce(out: str, episodes: int, traffic: str | None) -> None:
    """Reproduce the tables and figures of the paper, with the exact optimum beside them.

    Writes results.json, results.csv, the figures and one page, index.html.

    \b
    Examples:
      prudent reproduce --out report
      prudent reproduce --traffic la_traffic.csv
    """
    from prudent.apps.cli.terminal import print_reproduction
    from prudent.apps.paper.reproduce import reproduce as run

    print_reproduction(run(Path(out), episodes=episodes, traffic=traffic))
    announce(f"the report is {Path(out) / 'index.html'}")


def _numbers(option: str, given: str) -> list[float]:
    numbers = []
    for text in given.split(","):
        try:
            numbers.append(float(numeral(text)))
        except ValueError:
            raise PrudentError(f"{option} {text!r}: must be numbers with commas between them") from None
    return numbers


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
    from prudent.runtime.optional import needed

    for module in ("starlette", "uvicorn", "plotly"):
        needed(module, "web")
    from prudent.apps.web.server import serve as listen

    listen(host, port)
