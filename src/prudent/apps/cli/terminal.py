"""Results for a terminal: tables that line up, bars, and the same numbers as JSON."""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from prudent.apps.paper.experiments import Results
from prudent.apps.paper.published import ALPHAS, DOMAINS, METHODS
from prudent.errors import printable
from prudent.policies.distribution import GROUPED, Distribution
from prudent.policies.runs import Runs
from prudent.results.plan import Plan
from prudent.runtime.tables import Table, number

__all__ = ["answer", "print_comparison", "print_distribution", "print_json", "print_reproduction", "print_runs", "show"]

BINS = 16
WIDE = 124  # columns that a table with a head may take; a narrower terminal wraps it rather than losing digits
DIGITS = 8  # of the largest number in a comparison, which makes it fit 80 columns


def show(table: Table) -> None:
    """Print a table; its title and notes are wrapped only on a terminal."""
    console = Console(highlight=False)
    if table.head:
        console.width = max(console.width, WIDE)
    for part in table.parts(console.encoding):
        console.print(part, soft_wrap=isinstance(part, Text) and not console.is_terminal)


def print_json(content: dict[str, Any]) -> None:
    """Print what ``to_dict`` returned."""
    print(json.dumps(content, allow_nan=False))


def answer(as_json: bool, content: Callable[[], dict[str, Any]], shown: Callable[[], Table]) -> None:
    """Print what a result's ``to_dict`` returns, or else its table."""
    if as_json:
        print_json(content())
    else:
        show(shown())


def print_histogram(result: Distribution, tail: float) -> None:
    """Print the distribution as bars; costs above VaR have another colour and another character."""
    low, high = float(result.values[0]), result.quantile(0.999) if result.missing < 0.001 else float(result.values[-1])
    if not low < high:
        return
    bars = "█▒"
    try:
        bars.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        bars = "#:"
    console = Console(highlight=False)
    edges = np.linspace(low, high, BINS + 1)
    place = np.minimum(np.searchsorted(edges, result.values, side="right") - 1, BINS - 1)
    mass = np.bincount(place, weights=result.probabilities, minlength=BINS)
    beyond = np.bincount(place, weights=result.probabilities * (result.values > tail), minlength=BINS)
    width = max(min(console.width - 36, 40), 5)
    console.print()
    for i, height in enumerate(mass.tolist()):
        end = "more" if i == BINS - 1 and result.values[-1] > high else f"{edges[i + 1]:,.5g}"
        long, shaded = (round(width * part / mass.max()) for part in (height, float(beyond[i])))
        console.print(f"{edges[i]:>10,.5g} to {end:>9}  {height:7.2%} ", end="")
        console.print(Text(bars[0] * (long - shaded), style="blue").append(bars[1] * shaded, style="red"))
    if beyond.any():
        console.print(Text(f"{bars[1]} costs more than VaR", style="dim"))


def print_distribution(plan: Plan, result: Distribution) -> None:
    """Print the exact distribution of a plan."""
    title = f"{plan.model.name}, {plan.method} plan for alpha {plan.alpha:g}"
    table = result.table(plan.alpha)
    notes = table.notes if result.grouped else ("exact distribution", *table.notes)
    show(replace(table, title=title, notes=notes))
    print_histogram(result, result.var(plan.alpha))


def print_runs(runs: Runs) -> None:
    """Print simulated runs of a plan beside its exact numbers."""
    show(runs.table())
    for i, path in enumerate(runs.paths, 1):
        print(f"run {i}, total {number(sum(cost for _, _, cost in path))}")
        for state, action, cost in path:
            print(f"  {printable(state)}: {printable(action)}, cost {cost:g}")


def print_comparison(plans: list[Plan]) -> None:
    """Print plans of several methods side by side; each has bounds on the same optimal CVaR."""
    numbers = [(p.cvar, p.var, p.expected, p.lower) for p in plans]
    largest = max((abs(x) for row in numbers for x in row if math.isfinite(x)), default=0.0)
    decimals = min(max(DIGITS - len(f"{largest:.0f}"), 0), 6)

    def cell(value: float) -> str:
        return f"{value:,.{decimals}f}" if math.isfinite(value) else number(value)

    rows = [(p.method, *map(cell, row), p.status, f"{p.seconds:.3g}") for p, row in zip(plans, numbers, strict=True)]
    lower, upper = max(p.lower for p in plans), min(p.upper for p in plans)
    title = f"{plans[0].model.name}, alpha {plans[0].alpha:g}"
    notes = (
        "at least: each method's lower bound on the optimal CVaR",
        f"the optimal CVaR lies between {number(lower)} and {number(upper)}",
        *((GROUPED,) if any(p.policy.prepared.scale.rounded for p in plans) else ()),
        *plans[0].model.notes,
    )
    head = ("", "CVaR", "VaR", "mean", "at least", "status", "seconds")
    show(Table(title, tuple(rows), "lrrrrlr", head=head, notes=notes))


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
                    cells.append("" if getattr(row, what) is None else f"{getattr(row, what):.2f}")
                    for value, error in (row.pair("simulated", what), row.pair("paper", what)):
                        cells.append("" if value is None else f"{value:.2f} ({error:.2f})")
                seconds = "" if row.paper_seconds is None else f"{row.paper_seconds:,g}"
                rows.append((*cells, f"{row.seconds:.3g}", seconds))
            show(Table(title, tuple(rows), "l" + "r" * 8, head=head))
            print()
