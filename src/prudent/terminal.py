"""Results for a terminal: tables that line up, bars, and the same numbers as JSON."""

import json
import math
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prudent.allowance import shown_bytes
from prudent.alphas import Curve, CurvePoint
from prudent.checking import Report
from prudent.errors import printable
from prudent.plan import Plan
from prudent.report.experiments import Results
from prudent.report.paper import ALPHAS, DOMAINS, METHODS
from prudent.risk import Distribution
from prudent.simulation import Runs
from prudent.tradeoff import Frontier

__all__ = [
    "print_comparison",
    "print_curve",
    "print_distribution",
    "print_frontier",
    "print_json",
    "print_plan",
    "print_report",
    "print_reproduction",
    "print_runs",
]

BINS = 16
WIDE = 124  # columns that a comparison takes; a narrower terminal wraps it rather than losing digits


def number(value: float) -> str:
    """Return a cost as text."""
    if math.isnan(value):
        return "unknown"
    return f"{value:,.6f}" if math.isfinite(value) else "unbounded"


def duration(seconds: float) -> str:
    """Return a time as text, to about two digits."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.2g} {unit}" if seconds < 100 * size else f"{seconds / size:,.0f} {unit}"
    return "under 0.1 s" if seconds < 0.1 else f"{seconds:.2g} s" if seconds < 100 else f"{seconds:.0f} s"


def print_plan(plan: Plan) -> None:
    """Print a plan."""
    rows = [
        ("CVaR", number(plan.cvar), f"mean of the worst {plan.alpha:g} of runs"),
        ("VaR", number(plan.var), "where that tail begins"),
        *_mean(plan),
    ]
    if plan.objective is None:  # else it was not looked for
        rows += [("optimal CVaR", number(plan.lower), "at least"), ("", number(plan.upper), "at most")]
    rows += [
        ("least worst case", number(plan.worst_case), "of all plans, not of this one"),
    ]
    if (goal := plan.objective) is not None:
        optimum = f"optimal: {number(goal.lower)} to {number(goal.upper)}"
        rows.insert(0, (str(goal), number(goal.value), optimum))
    found = plan.model
    what = f"method {plan.method}" if plan.objective is None else f"objective {plan.objective}"
    title = f"{found.name}, alpha {plan.alpha:g}, {what}: {plan.status}"
    size = f"{found.n_states:,} states, {found.n_outcomes:,} outcomes, {plan.seconds:.3g} s"
    print_table(title, rows, "\n".join([size, f"{plan.status}: {plan.message}", *plan.notes]))


def _mean(plan: Plan) -> list[tuple[str, str, str]]:
    """Return rows for the second objective."""
    shown, what = number(plan.expected), "mean of all runs"
    if plan.objective is not None:
        sought = plan.objective.objective != "mean-plus-cvar" and not plan.policy.prepared.rounded
        return [("expected cost", shown, f"{what}; the least at that {plan.objective}" if sought else what)]
    if plan.max_cvar == math.inf and plan.status == "optimal" and plan.method == "exact":
        return [("expected cost", shown, f"{what}; the least at that CVaR")]
    those = "of optimal CVaR" if plan.max_cvar == math.inf else f"within CVaR {number(plan.max_cvar)}"
    return [("expected cost", shown, what), ("", _down(plan.expected_lower), f"no plan {those} has less")]


def _down(value: float) -> str:
    """Return a lower bound as text, with as many decimals as :func:`number`; rounded down where it shows."""
    near = round(value, 6)
    return number(near - 1e-6 if near > value + 1e-9 * max(1.0, abs(value)) else near)


def print_report(report: Report) -> None:
    """Print what a check found."""

    def shown(value: Any) -> str:
        return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,g}"

    if report.states is not None:
        horizon = "finite horizon" if report.acyclic else "cyclic"
        rows = [
            ("states", shown(report.states), f"{shown(report.goals)} of them goals; {horizon}"),
            ("actions", shown(report.actions), ""),
            ("outcomes", shown(report.outcomes), f"probabilities off by at most {report.deviation:.1g}"),
            ("cost step", shown(report.step), ""),
            ("least cost", shown(report.least_cost), "with the best of luck"),
            ("worst case", "" if report.worst_case is None else number(report.worst_case), "the least over all plans"),
            ("pruned", shown(report.pruned_states), f"states, and {shown(report.pruned_actions)} actions"),
        ]
        if (takes := report.forecast) is not None:
            rows += [
                ("solving takes", duration(takes.seconds), f"about, at alpha {takes.alpha:g}"),
                ("", shown_bytes(takes.memory), f"for up to {takes.levels:,} levels of {takes.step:g}"),
            ]
            if takes.gap > 0:
                rows.append(("gap", f"{takes.gap:,.3g}", f"about, between the bounds, by rounding to {takes.step:g}"))
        known = [row for row in rows if row[1]]
        print_table(f"{report.model}: {'ready to solve' if report.ok else 'not ready'}", known, "")
    for note in report.notes:
        print(f"note: {note}")
    for problem in report.problems:
        print(f"problem: {problem}")


def print_table(title: str, rows: Iterable[tuple[str, str, str]], caption: str) -> None:
    """Print rows of name, number, remark."""
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column()
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(highlight=False)
    console.print(Text(title, style="bold"))
    console.print(table)
    if caption:
        console.print(Text(caption, style="dim"))


def drawable(text: str) -> bool:
    """Return whether stdout can take these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def print_histogram(result: Distribution, tail: float) -> None:
    """Print the distribution as bars; those beyond VaR in another colour, and with another character."""
    low, high = float(result.values[0]), result.quantile(0.999) if result.missing < 0.001 else float(result.values[-1])
    if not low < high:
        return
    bars = "█▒" if drawable("█▒") else "#:"
    console = Console(highlight=False)
    edges = np.linspace(low, high, BINS + 1)
    place = np.minimum(np.searchsorted(edges, result.values, side="right") - 1, BINS - 1)
    mass = np.bincount(place, weights=result.probabilities, minlength=BINS)
    width = max(min(console.width - 36, 40), 5)
    console.print()
    for i, height in enumerate(mass.tolist()):
        end = "more" if i == BINS - 1 and result.values[-1] > high else f"{edges[i + 1]:,.5g}"
        beyond = bool(edges[i] >= tail)
        bar = bars[beyond] * round(width * height / mass.max())
        console.print(f"{edges[i]:>10,.5g} to {end:>9}  {height:7.2%} ", end="")
        console.print(Text(bar, style="red" if beyond else "blue"))
    if (edges[:-1] >= tail).any():
        console.print(Text(f"{bars[1]} costs more than VaR", style="dim"))


def print_distribution(plan: Plan, result: Distribution) -> None:
    """Print the exact distribution of a plan."""
    alpha = plan.alpha
    rows = [
        ("mean", number(result.mean), f"standard deviation {number(result.std)}"),
        ("CVaR", number(result.cvar(alpha)), f"mean of the worst {alpha:g} of runs"),
        ("VaR", number(result.var(alpha)), "where that tail begins"),
        *((f"{q:.0%}", number(result.quantile(q)), "of runs cost at most this") for q in (0.05, 0.25, 0.5, 0.75, 0.95)),
        ("least", number(result.values[0]), ""),
        ("most", "unbounded" if result.missing else number(result.values[-1]), ""),
    ]
    left = f"; {result.missing:.2g} of probability lies beyond" if result.missing else ""
    kind = "exact mean; runs whose costs round alike are taken together" if result.grouped else "exact distribution"
    print_table(f"{plan.model.name}, {plan.method} plan for alpha {alpha:g}", rows, f"{kind}{left}")
    print_histogram(result, result.var(alpha))


def print_runs(plan: Plan, runs: Runs) -> None:
    """Print simulated runs of a plan beside its exact numbers."""
    alpha, sign = plan.alpha, "±" if drawable("±") else "+/-"
    word = "closely" if plan.policy.prepared.rounded else "exactly"
    rows = [
        ("mean", number(runs.mean), f"{sign} {runs.mean_se:.4f}, exactly {number(plan.expected)}"),
        ("CVaR", number(runs.cvar(alpha)), f"{sign} {runs.cvar_se(alpha):.4f}, {word} {number(plan.cvar)}"),
    ]
    print_table(
        f"{plan.model.name}, {plan.method} plan for alpha {alpha:g}",
        rows,
        f"{runs.episodes:,} runs, seed {runs.seed}; {sign} one standard error",
    )
    for i, path in enumerate(runs.paths, 1):
        print(f"run {i}, total {number(sum(cost for _, _, cost in path))}")
        for state, action, cost in path:
            print(f"  {printable(state)}: {printable(action)}, cost {cost:g}")


def print_comparison(plans: list[Plan]) -> None:
    """Print plans of several methods side by side."""
    first = plans[0]
    head = ("", "CVaR", "VaR", "mean", "optimal CVaR: at least", "at most", "status", "seconds")
    rows = [
        (p.method, *(number(x) for x in (p.cvar, p.var, p.expected, p.lower, p.upper)), p.status, f"{p.seconds:.3g}")
        for p in plans
    ]
    _print_grid(f"{first.model.name}, alpha {first.alpha:g}", head, rows)


def print_curve(curve: Curve, points: tuple[CurvePoint, ...]) -> None:
    """Print what can be had at each alpha."""
    head = ("alpha", "CVaR", "VaR", "mean", "optimal CVaR: at least", "at most")
    rows = [(_up(p.alpha), *(number(value) for value in (p.cvar, p.var, p.expected, p.lower, p.upper))) for p in points]
    _print_grid(f"{curve.model.name}, from alpha {curve.alpha_min:g} to 1, {curve.seconds:.3g} s", head, rows)
    for note in curve.notes:
        print(note)


def _up(alpha: float) -> str:
    """Return an alpha to six digits, rounded up: it is where something begins."""
    text = f"{alpha:.6g}"
    if float(text) < alpha:
        last = 10.0 ** (math.floor(math.log10(alpha)) - 5)
        text = f"{alpha + last:.6g}"
    return text


def print_frontier(frontier: Frontier) -> None:
    """Print the trade-off between expected cost and CVaR, and what each step of safety costs."""
    rows: list[tuple[str, ...]] = []
    before = None
    for point in frontier.points:
        price = "" if before is None else f"{(point.expected - before.expected) / (before.cvar - point.cvar):,.4g}"
        rows.append((number(point.expected), number(point.cvar), price))
        before = point
    title = f"{frontier.model.name}, alpha {frontier.alpha:g}, {frontier.seconds:.3g} s"
    _print_grid(title, ("mean", "CVaR", "mean paid for one less of CVaR"), rows)
    print(f"no plan's mean is below these, or the lines between them, by more than {frontier.gap:.3g}")
    print(f"no plan's CVaR is below {_down(frontier.lower)}")
    for text in (f"{frontier.status}: {frontier.message}", *frontier.notes):
        print(text)


def print_reproduction(results: Results) -> None:
    """Print Table 1 of the paper as it came out."""
    for domain, title in DOMAINS.items():
        for alpha in ALPHAS:
            head = (f"alpha {alpha:g}", "CVaR", "simulated", "paper", "mean", "simulated", "paper", "seconds", "paper")
            rows = []
            for method in METHODS:
                row = results.row(domain, method, alpha)
                cells = [method]
                for what in ("cvar", "expected"):
                    simulated = f"{getattr(row, f'simulated_{what}'):.2f} ({getattr(row, f'simulated_{what}_se'):.2f})"
                    theirs = getattr(row, f"paper_{what}")
                    beside = "" if theirs is None else f"{theirs:.2f} ({getattr(row, f'paper_{what}_se'):.2f})"
                    exactly = getattr(row, what)
                    cells += ["" if exactly is None else f"{exactly:.2f}", simulated, beside]
                seconds = "" if row.paper_seconds is None else f"{row.paper_seconds:,g}"
                rows.append((*cells, f"{row.seconds:.3g}", seconds))
            _print_grid(title, head, rows)


def _print_grid(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for i, name in enumerate(head):
        table.add_column(Text(name), justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(highlight=False, width=max(Console().width, WIDE))
    console.print(Text(title, style="bold"))
    console.print(table)
    console.print()


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object; unknown and infinite numbers become null."""

    def clean(value: Any) -> Any:
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, dict):
            return {name: clean(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [clean(item) for item in value]
        return value

    print(json.dumps(clean(content), allow_nan=False, default=str))
