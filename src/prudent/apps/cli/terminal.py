"""Results for a terminal: tables that line up, bars, and the same numbers as JSON; and the layout of the help."""

import json
import math
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.text import Text

from prudent.errors import printable
from prudent.models.rows import FloatArray
from prudent.policies.distribution import GROUPED, Distribution
from prudent.runtime.lines import padded, wrapped
from prudent.runtime.tables import Table, between, certain, number

if TYPE_CHECKING:  # the command's help is printed without what solves
    from prudent.results.plan import Plan
    from prudent.results.runs import Runs

BINS = 20  # the most ranges of a histogram
NEAR = 1e-9  # how far below an edge, in widths, a cost counts as on it
WIDE = 124  # columns that a table with a head may take in a file or a pipe before its texts are wrapped


WHOLE_HYPHEN = "\u2011"
"""A hyphen at which no line breaks; the help has it only while it is laid out."""


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


def show(table: Table) -> None:
    """Print a table; on a terminal, no line is wider than that unless a word is."""
    console = Console(highlight=False)
    piped = not console.is_terminal
    width = max(console.width, WIDE) if table.head and piped else console.width
    console.print(Text("\n").join(table.lines(console.encoding, width, piped=piped)), soft_wrap=True)


def say(text: str) -> None:
    """Print a line; a terminal gets several if it is longer."""
    console = Console(highlight=False)
    print("\n".join(wrapped(text, console.width if console.is_terminal else None, "    ")))


def print_json(content: dict[str, Any]) -> None:
    """Print what ``to_dict`` returned."""
    print(json.dumps(content, allow_nan=False))


def answer(as_json: bool, result: Any, *asked: Any) -> None:
    """Print what a result's ``to_dict`` returns, or else its table; end with 130 if Ctrl-C stopped the work."""
    if as_json:
        print_json(result.to_dict(*asked))
    else:
        show(result.table(*asked))
    if getattr(result, "status", None) == "interrupted":
        click.get_current_context().exit(130)


def print_histogram(result: Distribution, var: float) -> None:
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
    whole = bool((result.values == np.rint(result.values)).all())
    edges = round_edges(low, high, least=1.0 if whole else 0.0)
    n = len(edges) - 1
    place = np.minimum(np.searchsorted(edges, result.values, side="right") - 1, n - 1)
    mass = np.bincount(place, weights=result.probabilities, minlength=n)
    beyond = np.bincount(place, weights=result.probabilities * (result.values > var), minlength=n)
    ends = [*map(number, edges.tolist()[1:-1]), "more" if result.values[-1] > edges[-1] else number(edges[-1])]
    ranges = list(zip(map(number, edges.tolist()[:-1]), ends, strict=True))
    low_room, high_room = (
        max(least, *map(len, ends)) for least, ends in zip((10, 9), zip(*ranges, strict=True), strict=True)
    )
    width = max(min(console.width - low_room - high_room - 17, 40), 5)
    console.print()
    for (begin, end), height, above in zip(ranges, mass.tolist(), beyond.tolist(), strict=True):
        long, tail = (round(width * part / mass.max()) for part in (height, above))
        line = Text(f"{padded(begin, low_room, 'r')} to {padded(end, high_room, 'r')}  {height:7.2%} ")
        line.append(bars[0] * (long - tail), style="blue").append(bars[1] * tail, style="red")
        console.print(line, soft_wrap=True)
    shaded = f"; {bars[1]} costs above VaR" if beyond.any() else ""
    for words in wrapped(f"each range includes its lower end, the last one both ends{shaded}", console.width):
        console.print(Text(words, style="dim"), soft_wrap=True)


def round_edges(low: float, high: float, least: float = 0.0) -> FloatArray:
    """Return edges at multiples of a round width, for at most BINS ranges that cover two numbers and all between."""
    power = 10.0 ** math.floor(math.log10(max((high - low) / BINS, least)))
    for width in (digit * power for digit in (1, 2, 5, 10, 20)):
        first, last = math.floor(low / width + NEAR), math.ceil(high / width - NEAR)
        if last - first <= BINS:
            break
    return np.asarray(np.arange(first, last + 1) * width)


def print_distribution(plan: "Plan", result: Distribution) -> None:
    """Print the exact distribution of a plan."""
    title = f"{plan.model.name}, {plan.method} plan for alpha {plan.alpha:g}"
    table = result.table(plan.alpha)
    notes = table.notes if result.grouped else ("exact distribution", *table.notes)
    show(replace(table, title=title, notes=notes))
    print_histogram(result, result.var(plan.alpha))


def print_runs(runs: "Runs") -> None:
    """Print simulated runs of a plan beside its exact numbers."""
    show(runs.table())
    digits = certain(0.0, runs.money)
    for i, path in enumerate(runs.paths, 1):
        say(f"run {i}, total cost {number(sum(cost for _, _, cost in path), digits)}")
        for state, action, cost in path:
            say(f"  {printable(state)}: {printable(action)}, cost {number(cost, digits)}")


def print_comparison(plans: "list[Plan]") -> None:
    """Print plans of several methods side by side; each has bounds on the same optimal CVaR."""
    rows = []
    for plan in plans:
        shown = plan.shown()
        numbers = (shown[name] for name in ("cvar", "var", "expected", "lower"))
        rows.append((plan.method, *numbers, plan.status, f"{plan.seconds:.3g}"))
    lower, upper = max(p.lower for p in plans), min(p.upper for p in plans)
    scale = plans[0].policy.prepared.scale
    title = f"{plans[0].model.name}, alpha {plans[0].alpha:g}"
    notes = (
        "lower bound: of each method, on the optimal CVaR",
        f"optimal CVaR: {between(lower, upper, scale.money)}",
        *((GROUPED,) if any(p.policy.prepared.scale.rounded for p in plans) else ()),
        *plans[0].model.notes,
    )
    head = ("", "CVaR", "VaR", "expected cost", "lower bound", "status", "seconds")
    show(Table(title, tuple(rows), "lddddld", head=head, notes=notes))
