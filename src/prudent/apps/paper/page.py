"""The report as one self-contained page: summary, tables, figures, and where the paper's policies are not optimal."""

import math
from base64 import b64encode
from collections.abc import Iterable
from html import escape

import prudent
from prudent.apps.paper.experiments import Results, Row
from prudent.apps.paper.figures import BREAK_EVEN, FIGURES, ORDER
from prudent.apps.paper.published import ALPHAS, DOMAINS, FLOOR, METHODS
from prudent.apps.paper.style import STYLE
from prudent.runtime.tables import percent

__all__ = ["render_page"]

CONTENTS = {
    "summary": "Summary",
    "methods": "The methods",
    "table-1": "Table 1: CVaR and expected cost",
    "table-2": "Table 2: planning time",
    "distributions": "The distributions",
    "not-optimal": "Where the paper's policies are not optimal",
    "rule": "The rule at y = 0",
}
"""The parts of the page, by their anchors."""


def render_page(results: Results, pictures: dict[str, bytes]) -> str:
    """Return the page."""
    links = "".join(f'<li><a href="#{name}">{escape(title, quote=False)}</a></li>' for name, title in CONTENTS.items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Planning for Risk-Aversion and Expected Value, reproduced</title><style>{STYLE}</style></head><body>
<h1>The paper reproduced, with the exact optimum beside it</h1>
<p class="soft">Prudent {escape(prudent.__version__)}. {results.episodes:,} simulated runs for each cell.</p>
<p class="lead">A stochastic shortest path problem has many plans. Rigter, Duckworth,
Lacerda and Hawes (<em>Planning for Risk-Aversion and Expected Value in MDPs</em>, 2022) ask for the one with the minimal CVaR
of the total cost (the mean cost of the worst fraction &alpha; of runs) and, among all such plans, for the one with the
lowest expected cost.</p>
<nav aria-label="Contents"><ul>{links}</ul></nav>
{_heading("summary")}
{_summary(results, pictures)}
{_heading("methods")}
<p>The paper solves the problem approximately. <em>CVaR-Worst-Case</em> is the method of Chow et al. (2015): a game against
an adversary that reweighs probabilities, solved on a grid. <em>CVaR-Expected-Value</em> is the paper's own method: it plays
the policy of that game until the run can no longer affect the tail, and then minimises the expected cost. <em>Expected Value</em>
minimises the expected cost alone. The last row of each table, <em>exact</em>, solves the same problem without a grid: its
CVaR is optimal, and no plan with that CVaR has a lower expected cost.</p>
{_heading("table-1")}
<p>Each method is measured by its CVaR at the &alpha; that it plans for, and by its expected cost. The paper's methods use
the rule of the authors' program at y = 0 (<a href="#rule">below</a>). <em>exactly</em> is the evaluation of the policy
without sampling. <em>simulated</em> is an estimate from runs, as in the paper, with its standard error. <em>apart</em> is
the difference between the simulation and the paper in combined standard errors.</p>
{"".join(_domain_table(results, domain, title) for domain, title in DOMAINS.items())}
{_navigation_note(results)}
{_heading("table-2")}
<p>Seconds to plan, the larger time of the two values of &alpha;. The paper's times are those of C++ and Gurobi on a 3.2 GHz
i7. Ours are from the machine that made this page; they exclude compilation and include the exact evaluation of the
policy.</p>
{_time_table(results)}
{_heading("distributions")}
<p>Histograms of the total cost of {results.episodes:,} simulated runs of each method, on the same axes for all methods of a
figure. The orange part of the bars is the worst fraction &alpha; of runs. Above the bars, the dot marks the expected cost,
the stroke VaR and the square CVaR, all estimated from these runs.</p>
<div class="pairs">{"".join(_figures(pictures))}</div>
{_shortfall(results)}
</body></html>
"""


def _heading(name: str) -> str:
    return f'<h2 id="{name}">{escape(CONTENTS[name], quote=False)}</h2>'


def _image(picture: bytes) -> str:
    return "data:image/svg+xml;base64," + b64encode(picture).decode()


def _summary(results: Results, pictures: dict[str, bytes]) -> str:
    about = "CVaR against expected cost of four methods, a panel for each domain and alpha"
    rings = "; a ring of the same colour is what the paper reports" if any(r.paper_cvar for r in results.rows) else ""
    return f"""<figure><picture>
<source media="(max-width: 44rem)" srcset="{_image(pictures["summary-narrow.svg"])}">
<img src="{_image(pictures["summary.svg"])}" alt="{about}"></picture>
<figcaption>CVaR against expected cost, with a panel for each domain and &alpha;; lower and further left is better. A filled
mark is the policy of a method, evaluated here{rings}. The grey line is the optimal CVaR: no plan lies below it. The exact
plan (star) lies on the line, as far left as a plan on it can be. <em>Expected Value</em> (dot) is furthest left and has
the highest CVaR. Where methods agree, their marks lie on top of each other.</figcaption></figure>"""


def _number(value: float | None, digits: int = 2) -> str:
    return "&ndash;" if value is None else f"{value:,.{digits}f}"


def _pair(value: float | None, error: float | None) -> str:
    return "&ndash;" if value is None else f"{value:,.2f} <small>({error:.2f})</small>"


def _table(head: Iterable[str], rows: Iterable[tuple[str, Iterable[str]]], caption: str = "") -> str:
    head = list(head)
    cells = "".join(f"<th>{cell}</th>" for cell in head)
    names = [cell.replace("<br>", " ") for cell in head]  # what a narrow page shows above each number
    body = "".join(
        f'<tr class="{kind}">'
        + "".join(f'<td data-head="{name}">{cell}</td>' for name, cell in zip(names, row, strict=True))
        + "</tr>"
        for kind, row in rows
    )
    above = f"<caption>{caption}</caption>" if caption else ""
    across = 4 if len(head) > 6 else 3  # numbers side by side on a narrow page
    return f'<div class="wide"><table style="--across: {across}">{above}<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'


def _decimals(row: Row) -> int:
    """Return how many decimals of a CVaR its bounds support, at most two."""
    if row.status != "within_gap" or row.lower is None or row.upper is None:
        return 2
    return int(min(max(-math.log10(max(row.upper - row.lower, 1e-9)), 0), 2))


def _domain_table(results: Results, domain: str, title: str) -> str:
    def cells(row: Row) -> list[str]:
        out = [METHODS[row.method]]
        for what in ("cvar", "expected"):
            off = row.off(what)
            digits = _decimals(row) if what == "cvar" else 2
            out += [
                _number(getattr(row, what), digits),
                _pair(*row.pair("simulated", what)),
                _pair(*row.pair("paper", what)),
            ]
            out.append("&ndash;" if off is None else f"{off:+.1f}")
        return out

    parts = []
    for alpha in ALPHAS:
        head = [""]
        head += ["CVaR<br>exactly", "simulated", "paper", "apart"]
        head += ["expected cost<br>exactly", "simulated", "paper", "apart"]
        rows = [(m if m == "exact" else "", cells(results.row(domain, m, alpha))) for m in METHODS]
        parts.append(_table(head, rows, f"worst {percent(alpha)} of runs"))
    return f"<h3>{escape(title)}</h3>" + "".join(parts)


def _navigation_note(results: Results) -> str:
    if results.traffic:
        text = """Autonomous Navigation uses the paper's traffic data. Its durations have no common step, so they are rounded
        for planning. The bounds cover the rounding, and the optimum is known to a thousandth (status <em>within_gap</em>).
        The costs of the policies are those of the true durations."""
    else:
        text = """Autonomous Navigation here is an invented network of the same kind, because the paper's traffic data are not
        part of Prudent. So there are no published numbers to compare with. <code>prudent reproduce --traffic FILE</code>
        uses the data."""
    return f'<p class="soft">{text}</p>'


def _time_table(results: Results) -> str:
    rows = []
    for domain, title in DOMAINS.items():
        cells = [escape(title)]
        for method in METHODS:
            found = [results.row(domain, method, alpha) for alpha in ALPHAS]
            cells.append(f"{max(row.seconds for row in found):,.3g}")
            if method != "exact":
                theirs = found[0].paper_seconds
                cells.append("&ndash;" if theirs is None else f"{theirs:,g}")
        rows.append(("", cells))
    head = ["seconds"]
    for method, name in METHODS.items():
        head += [f"{name}<br>here"] if method == "exact" else [f"{name}<br>here", "paper"]
    return _table(head, rows)


def _figures(pictures: dict[str, bytes]) -> Iterable[str]:
    methods = ", ".join(METHODS[method] for method in ORDER)
    for domain, alphas in FIGURES.items():
        for alpha in alphas:
            title = f"{escape(DOMAINS[domain])}, worst {percent(alpha)} of runs"
            caption = f"From the top: {methods}. Orange: the worst {percent(alpha)} of runs."
            if domain in BREAK_EVEN:
                caption += f" Dashed: {BREAK_EVEN[domain]:g}, where the store breaks even."
            image = (
                f'<img src="{_image(pictures[f"{domain}-{alpha:g}.svg"])}" alt="Histograms of the total cost, {title}">'
            )
            yield f"<figure><h3>{title}</h3>{image}<figcaption>{caption}</figcaption></figure>"


def _furthest(results: Results) -> float:
    """Return the largest difference of a cell of Table 1 from the paper, in combined standard errors."""
    off = (row.off(what) for row in results.rows for what in ("cvar", "expected"))
    return max(abs(each) for each in off if each is not None)


def _shortfall(results: Results) -> str:
    rows = []
    for domain, title in DOMAINS.items():
        for alpha in ALPHAS:
            best, careful, _ = plans = [results.row(domain, m, alpha) for m in ("exact", "cvar-wc", "cvar-ev")]
            if careful.cvar is None or best.status != "optimal":
                continue
            numbers = [careful.lower, *(plan.cvar for plan in plans), *(plan.expected for plan in plans)]
            rows.append(("", [f"{escape(title)}, {percent(alpha)}", *(_number(x, 3) for x in numbers)]))
    head = ["", "game value", "optimal CVaR", "CVaR of<br>CVaR-WC", "CVaR of<br>CVaR-EV"]
    bracket = _table(
        [*head, "expected cost<br>at the optimum", "expected cost<br>of CVaR-WC", "expected cost<br>of CVaR-EV"], rows
    )
    best = results.row("deep-sea-treasure", "exact", 0.02)
    tried = []
    for g in results.grids:
        cells = [_number(g[m][what]) for m in ("cvar_wc", "cvar_ev") for what in ("cvar", "expected")]
        floor = f"{g['floor']:g}" if g["floor"] else "none"
        tried.append(("", [f"{g['points']}, {g['ties']}, {floor}", _number(g["game_value"], 3), *cells]))
    tried.append(("", ["the paper (80)", "&ndash;", "502.25", "402.74", "502.98", "352.06"]))
    grid = _table(
        [
            "points, tie, floor",
            "game value",
            "CVaR-WC:<br>CVaR",
            "CVaR-WC:<br>expected",
            "CVaR-EV:<br>CVaR",
            "CVaR-EV:<br>expected",
        ],
        tried,
    )
    return f"""{_heading("not-optimal")}
<p>In the game behind both methods, the agent sees how the adversary splits its budget before it acts. A real agent does not.
So the value of the game is a <em>lower</em> bound on the optimal CVaR, and its policy can be <em>worse</em> than optimal on
any grid (Hau, Delage, Ghavamzadeh and Petrik, 2023). It always holds that
<strong>game value &le; optimal CVaR &le; CVaR of the policy</strong>.</p>{bracket}
<p>Deep Sea Treasure for the worst 2% of runs shows this most clearly. Refining the grid moves the value of the game up to its
limit, not to the optimum. The policy depends on three choices: the grid; which of several equally good worst-case actions
is played once the adversary's budget is spent; and a floor (<a href="#rule">below</a>). The exact plan has a CVaR of <strong>{_number(best.cvar)}</strong> and an
expected cost of <strong>{_number(best.expected)}</strong>:</p>{grid}
<p>In most cells the CVaR of the paper's policies is within a fraction of a percent of the optimum, and a finer grid helps. A
policy with a slightly higher CVaR may have a lower expected cost, as in Inventory Control and Deep Sea Treasure for the worst
20% of runs. The claim for the exact method is this: its CVaR is never higher, and where the CVaRs agree, its expected cost is
never higher.</p>
{_heading("rule")}
<p>In the game, an outcome counts with y times its CVaR, so an outcome with y = 0 does not count. The authors' program replaces
y = 0 by a floor of {FLOOR:g}, so such outcomes count a little. This decides only between actions that are nearly equally
good, of which Deep Sea Treasure has many. Among equally good actions, the program takes the first in its order (N, NE, NW, S,
SE, SW, E, W). With the floor and this order, no cell of Table 1 differs from the paper by more than {_furthest(results):.1f} combined
standard errors. With the floor, the value of the game can be above the optimum, so it is not a bound. The game values on this
page are those without the floor.</p>"""
