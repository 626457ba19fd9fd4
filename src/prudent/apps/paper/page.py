"""One page that needs nothing else: the question, the tables, the figures, where the paper's policies fall short."""

from base64 import b64encode
from collections.abc import Iterable
from html import escape

import prudent
from prudent.apps.paper.experiments import Results, Row
from prudent.apps.paper.figures import FIGURES
from prudent.apps.paper.published import ALPHAS, DOMAINS, FLOOR, METHODS

__all__ = ["render_page"]

STYLE = """
:root { --ink: #1d2430; --soft: #5b6675; --line: #d8dee6; --paper: #ffffff; --shade: #f4f7fa; --blue: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #9aa7b5; --line: #38424f; --paper: #14181d; --shade: #1c2229; --blue: #56b4e9; }
  figure img { background: #fff; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { margin: 2.6rem 0 .5rem; font-size: 1.35rem; } h3 { margin: 1.6rem 0 .3rem; font-size: 1.05rem; }
p { max-width: 46rem; } .lead { font-size: 1.1rem; } .soft { color: var(--soft); font-size: .92rem; }
.wide { overflow-x: auto; margin: .6rem 0 1.2rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
thead th { border-bottom: 2px solid var(--line); font-weight: 600; vertical-align: bottom; }
tr.exact td { background: var(--shade); font-weight: 600; }
td small { color: var(--soft); font-weight: 400; }
figure { margin: 1.2rem 0; } figure img { width: 100%; max-width: 44rem; height: auto; border-radius: 4px; }
figcaption { color: var(--soft); font-size: .9rem; max-width: 44rem; }
@media print { body { max-width: none; padding: 0; font-size: 10.5pt; } h2 { break-after: avoid; }
  figure, table { break-inside: avoid; } .wide { overflow: visible; } }
"""


def render_page(results: Results, pictures: dict[str, bytes]) -> str:
    """Return the page."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Planning for Risk-Aversion and Expected Value, reproduced</title><style>{STYLE}</style></head><body>
<h1>The paper, reproduced, and the truth beside it</h1>
<p class="soft">Prudent {escape(prudent.__version__)}. {results.episodes:,} simulated runs for each cell.</p>
<p class="lead">A stochastic shortest path problem has many plans. Rigter, Duckworth,
Lacerda and Hawes (<em>Planning for Risk-Aversion and Expected Value in MDPs</em>, 2022) ask for the one whose bad tail is best
(the CVaR of the total cost: the mean of the worst fraction &alpha; of runs) and, among all such plans, for the one with the
best average.</p>
<p>They solve it approximately. <em>CVaR-Worst-Case</em> is the method of Chow et al. (2015), a game against an adversary that
reweighs chances, on a grid. <em>CVaR-Expected-Value</em> is the paper's own: it plays that policy until the run can no longer
matter to the tail, and then turns to the average. <em>Expected Value</em> looks at the average alone. The last row of each
table, <em>exact</em>, solves the same problem without a grid: its CVaR is optimal, and no plan with that CVaR has a lower
mean.</p>
<h2>Table 1: the tail and the mean</h2>
<p>Each method is measured by the CVaR at the level that it plans for, and by its expected cost. The paper's methods run
with the rule that the authors' program has at y = 0 (<a href="#rule">below</a>). <em>exactly</em> is the
evaluation of the policy without sampling; <em>simulated</em> is how the paper measures, with the standard error;
<em>apart</em> is the distance between the simulation and the paper in combined standard errors.</p>
{"".join(_domain_table(results, domain, title) for domain, title in DOMAINS.items())}
{_navigation_note(results)}
<h2>Table 2: how long it takes</h2>
<p>Seconds to plan. The paper's are those of C++ and Gurobi on a 3.2 GHz i7; ours are from the machine that made this page,
without compilation, with the exact evaluation of the policy. The larger of the two levels is shown.</p>
{_time_table(results)}
<h2>The distributions</h2>
<p>Simulated total costs, the same bins for all methods of a domain. Hatched orange: the worst fraction &alpha; of runs.
Above the bars the dot is the mean, the stroke VaR, the square CVaR. In Inventory Control the dashed line at 400 is
break-even.</p>
{"".join(_figures(results, pictures))}
{_shortfall(results)}
</body></html>
"""


def _number(value: float | None, digits: int = 2) -> str:
    return "&ndash;" if value is None else f"{value:,.{digits}f}"


def _pair(value: float | None, error: float | None) -> str:
    return "&ndash;" if value is None else f"{value:,.2f} <small>({error:.2f})</small>"


def _table(head: Iterable[str], rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    cells = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f'<tr class="{kind}">' + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for kind, row in rows)
    return f'<div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'


def _domain_table(results: Results, domain: str, title: str) -> str:
    def cells(row: Row) -> list[str]:
        out = [METHODS[row.method]]
        for what in ("cvar", "expected"):
            off = row.off(what)
            out += [_number(getattr(row, what)), _pair(*row.pair("simulated", what)), _pair(*row.pair("paper", what))]
            out.append("&ndash;" if off is None else f"{off:+.1f}")
        return out

    parts = []
    for alpha in ALPHAS:
        head = ["&alpha; = " + f"{alpha:g}"]
        head += ["CVaR<br>exactly", "simulated", "paper", "apart", "mean<br>exactly", "simulated", "paper", "apart"]
        rows = [(m if m == "exact" else "", cells(results.row(domain, m, alpha))) for m in METHODS]
        parts.append(_table(head, rows))
    return f"<h3>{escape(title)}</h3>" + "".join(parts)


def _navigation_note(results: Results) -> str:
    if results.traffic:
        text = """Autonomous Navigation uses the paper's traffic data. Its durations have no common step, so they are rounded
        for planning, the bounds allow for it, and the optimum is known to a thousandth (status
        <em>within_gap</em>). What the policies cost is what the true durations add up to."""
    else:
        text = """Autonomous Navigation here is an invented network of the same character, since the paper's traffic data are not
        part of Prudent: there is nothing to compare it with. <code>prudent reproduce --traffic FILE</code> takes the data."""
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


def _figures(results: Results, pictures: dict[str, bytes]) -> Iterable[str]:
    for domain, alphas in FIGURES.items():
        for alpha in alphas:
            title = f"{DOMAINS[domain]}, alpha {alpha:g}"
            image = "data:image/png;base64," + b64encode(pictures[f"{domain}-{alpha:g}.png"]).decode()
            caption = f"{escape(title)}: total cost of {results.episodes:,} runs of each method."
            yield f'<figure><img src="{image}" alt="Histograms of the total cost, {escape(title)}"><figcaption>{caption}</figcaption></figure>'


def _furthest(results: Results) -> float:
    """Return by how many combined standard errors a cell of Table 1 differs at most."""
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
            rows.append(("", [f"{escape(title)}, {alpha:g}", *(_number(x, 3) for x in numbers)]))
    head = ["", "game value", "optimal CVaR", "CVaR of<br>CVaR-WC", "of CVaR-EV"]
    bracket = _table([*head, "mean at the<br>optimum", "of CVaR-WC", "of CVaR-EV"], rows)
    best = results.row("deep-sea-treasure", "exact", 0.02)
    tried = []
    for g in results.grids:
        cells = [_number(g[m][what]) for m in ("cvar_wc", "cvar_ev") for what in ("cvar", "expected")]
        floor = f"{g['floor']:g}" if g["floor"] else "none"
        tried.append(("", [f"{g['points']}, {g['ties']}, {floor}", _number(g["game_value"], 3), *cells]))
    tried.append(("", ["the paper (80)", "&ndash;", "502.25", "402.74", "502.98", "352.06"]))
    tried.append(("exact", ["exact", "", _number(best.cvar), _number(best.expected), "", ""]))
    grid = _table(["points, tie, floor", "game value", "CVaR-WC: CVaR", "mean", "CVaR-EV: CVaR", "mean"], tried)
    return f"""<h2>Where the paper's policies are not optimal</h2>
<p>In the game behind both methods the agent sees how the adversary splits its budget before it acts. A real agent does not.
So the game's value is a <em>lower</em> bound on the optimal CVaR, and the policy read off it can be <em>worse</em> than
optimal, at any grid (Hau, Delage, Ghavamzadeh and Petrik, 2023): always
<strong>game value &le; optimal CVaR &le; CVaR of the policy</strong>.</p>{bracket}
<p>Deep Sea Treasure at &alpha; = 0.02 shows it best. Refining the grid moves the game's value up to its limit, not to the
optimum, and the policy depends on the grid, on which of several equally good worst-case actions is played once the
adversary has no budget left, and on a floor:</p>{grid}
<p>To be fair: in most cells the paper's policies come within a fraction of a percent of the optimal CVaR; a finer grid
helps; and a policy that gives up a little of the tail may well have a better mean, as in Inventory Control and Deep Sea
Treasure at 0.2. The exact method is never worse on CVaR, and where the CVaRs agree it is never worse on the mean:
that is the whole claim.</p>
<h3 id="rule">The rule at y = 0</h3>
<p>In the game an outcome counts with y times its CVaR, so one without weight does not count; but the authors' program puts a
floor of {FLOOR:g} in the place of y = 0, and such outcomes count a little. So little decides only between actions that are
nearly as good as each other, of which this sea is full, and of equally good ones the program takes the first in its order (N,
NE, NW, S, SE, SW, E, W): with both rules no cell of Table 1 is further from the paper than {_furthest(results):.1f} combined
standard errors. The value of the game with the floor can be above the optimum, so it is no bound, and the game values on this
page are those without it.</p>"""
