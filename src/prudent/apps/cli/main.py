"""The command: ``prudent solve MODEL --alpha A`` and the other verbs.

Answers go to stdout, everything else to stderr.  Exit codes: 0 for an answer, 2 for invalid input, 130 after Ctrl-C,
1 otherwise.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

import prudent
from prudent.apps.cli import overviews
from prudent.apps.cli.options import (
    PLAN,
    Make,
    complete_model,
    explorable,
    keep_picture,
    with_model,
    with_options,
    with_plot,
)
from prudent.apps.cli.terminal import Context, answer, print_distribution, print_json, print_runs, say, show
from prudent.domains.registry import DOMAINS
from prudent.errors import ModelError, PrudentError
from prudent.methods.registry import with_grid
from prudent.runtime.lines import for_stream
from prudent.runtime.progress import announce, announce_if_long
from prudent.runtime.ranks import launched, speaks

if TYPE_CHECKING:
    pass


class Verbs(click.Group):
    """Turns a PrudentError into one message and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            said = for_stream(f"Error: {error.format_message()}", sys.stderr)  # as click puts it
            raise click.UsageError(said.removeprefix("Error: "), error.ctx) from None
        except PrudentError as error:
            announce(str(error))
            ctx.exit(2)
        except KeyboardInterrupt:
            announce("stopped")
            ctx.exit(130)


ABOUT = f"""Minimise CVaR, the mean cost of the worst runs, and then the expected cost.

MODEL is a domain ({", ".join(DOMAINS)}) or a
file (.json, .json.gz, .umb; through Storm .prism, .nm, .pm, .jani, .drn, .drn.gz; with --problem .pddl).

\b
Examples:
  prudent check my-model.json
  prudent solve betting-game --alpha 0.2 --save plan.safetensors
  prudent evaluate betting-game plan.safetensors
  prudent simulate betting-game plan.safetensors --episodes 20000 --seed 1
"""
SOONER = {"help": "Return the best plan and bounds found within this time."}
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=Verbs, help=ABOUT, context_settings=SETTINGS)
@click.version_option(prudent.__version__, prog_name="prudent")
def main() -> None:
    """Run a verb."""
    if not speaks():
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")


@main.command()
@with_model
@click.pass_context
@with_options(
    "alpha", "method", "gap", "relative_gap", "slack", "absolute_slack", "max_cvar", "randomise", "objective",
    "uncertainty", "step", "memory", "time_limit", "threads", "device", "checkpoint", "points", "decisions",
    "decisions_csv", "save",
    step={"help": "Round the costs to multiples of this, and do not refine."}, time_limit=SOONER,
)  # fmt: skip
@with_plot("the distribution of the total cost")
def solve(
    ctx: click.Context,
    /,
    make: Make,
    method: str,
    points: int | None,
    decisions: bool,
    decisions_csv: str | None,
    save: str | None,
    plot: str | None,
    as_json: bool,
    **asked: Any,  # options of prudent.solve, under its names
) -> None:
    """Find a plan for MODEL.

    By default the plan has the optimal CVaR at --alpha and, among all such plans, the lowest expected cost.
    With --objective, --alpha sets only the alpha of the CVaR and VaR that are printed.
    Ctrl-C prints the best plan and the bounds found so far.

    \b
    Examples:
      prudent solve betting-game --alpha 0.2
      prudent solve betting-game --alpha 0.2 --set stages=5 --json
      prudent solve my-model.json --alpha 0.05 --dead-end-cost 1000 --save plan.safetensors
      prudent solve my-model.json --alpha 0.05 --goal likeliest --dead-end-cost 1000
      prudent solve my-model.json --alpha 0.05 --gap 0.05 --checkpoint place
      prudent solve betting-game --alpha 0.2 --slack 0.01
      prudent solve betting-game --alpha 0.2 --max-cvar 93 --randomise
      prudent solve betting-game --alpha 0.2 --objective exceed:90
      prudent solve learned.json --alpha 0.2 --uncertainty 0.95
      mpiexec -n 4 prudent solve my-model.umb --alpha 0.05 --checkpoint place
    """
    from prudent.runtime.ranks import on_first

    if asked["randomise"] and (decisions or decisions_csv):
        raise PrudentError(
            "--decisions: a plan that draws one of two policies has no single table; leave out --randomise"
        )
    comm = launched()
    plan = prudent.solve(on_first(comm, make), method=with_grid(method, points), comm=comm, **asked)
    if not speaks():
        return
    table = plan.decisions() if decisions or decisions_csv else None
    if save is not None:
        prudent.save(plan, save)
    if table is not None and decisions_csv is not None:
        table.to_csv(decisions_csv)
    keep_picture(plot, lambda: prudent.plot.distribution(plan))
    if as_json:
        print_json(plan.to_dict() | (table.to_dict() if table is not None and decisions else {}))
    else:
        show(plan.table())
        if decisions and table is not None:
            show(table.whole())
        for what, path in (("plan", save), ("decisions", decisions_csv)):
            if path is not None:
                announce(f"{what} written to {path}")
        if table is not None and decisions_csv is not None and not decisions:
            for note in table.notes:
                announce(note)
    checkpoint = asked["checkpoint"]
    if checkpoint is not None and Path(checkpoint).exists():
        announce(f"progress saved in {checkpoint}; the same command resumes from it")
    if plan.status == "interrupted":
        ctx.exit(130)


@main.command()
@click.argument("model", shell_complete=complete_model)
@with_options(
    "alpha", "settings", "problem", "blind", "dead_end_cost", "fallback", "gap", "relative_gap", "step", "memory",
    "time_limit", "threads", "device", "save", "save_model", "as_json",
    gap={"help": "The largest gap between the bounds on the optimal CVaR."},
    relative_gap={"help": "The same, relative to the optimal CVaR."}, time_limit=SOONER,
)  # fmt: skip
def search(
    model: str,
    settings: tuple[str, ...],
    problem: str | None,
    blind: bool,
    save: str | None,
    save_model: str | None,
    as_json: bool,
    **asked: Any,  # options of prudent.search, under its names
) -> None:
    """Find a plan for MODEL and explore only the states that a good plan visits.

    The plan is as good as that of solve. Use it for a model too large to build, such as a PPDDL domain with its
    problem.
    Ctrl-C prints the best plan and the bounds found so far.

    \b
    Examples:
      prudent search tireworld.pddl --problem triangle.pddl --alpha 0.1 --dead-end-cost 100
      prudent search betting-game --alpha 0.2
    """
    found = explorable(model, settings, problem)
    if blind:
        found.pop("heuristic", None)
    plan = prudent.search(**found, **asked)
    for content, path in ((plan, save), (plan.model, save_model)):
        if path is not None:
            prudent.save(content, path)
            announce(f"written to {path}")
    answer(as_json, plan)


@main.command()
@with_model
@PLAN
@with_options(
    "step", "memory", "time_limit", "device", "uncertainty",
    step={"help": "Round the costs to multiples of this, if PLAN has no budget."},
)  # fmt: skip
@with_plot("the distribution")
def evaluate(make: Make, plan: str, plot: str | None, uncertainty: Any, as_json: bool, **asked: Any) -> None:
    """Print the exact distribution of the total cost of PLAN, which was made for MODEL.

    A PLAN for a set of models is also evaluated in the worst of them; for other plans, add --uncertainty.

    Repeat the options that shape MODEL as for solve: --set, --property, --const, --initial, --dead-end-cost,
    --horizon.

    \b
    Example:
      prudent evaluate betting-game plan.safetensors --plot tail.png
    """
    loaded = prudent.load_plan(plan, make())
    sets = loaded.intervals if uncertainty is None else uncertainty
    result = prudent.evaluate(loaded.model, loaded.policy, uncertainty=sets, **asked)
    keep_picture(plot, lambda: prudent.plot.distribution(result, alpha=loaded.alpha))
    if as_json:
        about = {"model": loaded.model.name, "method": loaded.method, "device": asked["device"]}
        print_json({**about, **result.to_dict(loaded.alpha)})
    else:
        print_distribution(loaded, result)


@main.command()
@with_model
@PLAN
@with_options("episodes", "seed", "threads", "time_limit", "paths")
def simulate(make: Make, plan: str, as_json: bool, **asked: Any) -> None:
    """Simulate runs of PLAN, which was made for MODEL, as a cross-check.

    Repeat the options that shape MODEL as for solve: --set, --property, --const, --initial, --dead-end-cost,
    --horizon.

    \b
    Examples:
      prudent simulate betting-game plan.safetensors --episodes 200000 --seed 1
      prudent simulate betting-game plan.safetensors --paths 2
    """
    loaded = prudent.load_plan(plan, make())
    runs = prudent.simulate(loaded.model, loaded, **asked)
    if as_json:
        print_json({"model": loaded.model.name, "method": loaded.method, **runs.to_dict()})
    else:
        print_runs(runs)


@main.command()
@with_model
@with_options(
    "alpha", "step", "time_limit",
    alpha={
        "required": False, "default": 0.05, "show_default": True,
        "help": "The alpha for which time and memory are estimated.",
    },
    step={"help": "Estimate for costs rounded to multiples of this."},
    time_limit={"help": "Leave out estimates that take longer."},
)  # fmt: skip
@click.pass_context
def check(ctx: click.Context, /, make: Make, as_json: bool, **asked: Any) -> None:
    """Describe MODEL and estimate the effort of solving it, or list all of its problems.

    \b
    Examples:
      prudent check my-model.json
      prudent check betting-game --json
      prudent check my-model.json --alpha 0.01 --step 0.5
    """
    from prudent.results.report import Report

    model = ctx.params["model"]
    try:
        with announce_if_long(f"checking {model}"):
            report = prudent.check(make(), **asked)
    except ModelError as error:
        report = Report(model, problems=error.problems)
    except PrudentError as error:
        if model in DOMAINS or not Path(model).exists():
            raise
        report = Report(model, problems=(str(error),))
    answer(as_json, report)
    ctx.exit(0 if report.ok else 2)


@main.command("warm-up")
def warm_up() -> None:
    """Compile all kernels now instead of at their first use, and keep them.

    This takes a minute or two, once for each installation: for example in an image, or before a talk.

    \b
    Example:
      prudent warm-up
    """
    from prudent.apps.warm_up import warm_up
    from prudent.kernels import cache_folder

    say(f"ready: compiling took {warm_up():.3g} s; the kernels are kept in {cache_folder()}")


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a SHELL.

    \b
    Example, for bash:
      eval "$(prudent completion bash)"
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise PrudentError(f"there is no completion for {shell}")
    click.echo(kind(main, {}, "prudent", "_PRUDENT_COMPLETE").source())


for verb in overviews.__all__:
    main.add_command(getattr(overviews, verb))
for command in (main, *main.commands.values()):
    command.context_class = Context


if __name__ == "__main__":
    main()
