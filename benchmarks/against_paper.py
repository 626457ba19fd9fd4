"""Seconds for each of the paper's domains, and how many times the paper's own seconds that is.

The paper's are those of its CVaR-EV (Table 2: C++ and Gurobi, a 3.2 GHz i7), another machine; ours are the whole
solve, on all cores it takes.  What the same method would take here is in the part ``paper_method``.
"""

from cases import NO_TRAFFIC, PAPER_SECONDS, Case, domains, traffic
from table import Found, Row
from timing import Spread, interleaved

PART = "against the paper's seconds"
AIM = 1_000_000.0


def run(quick: bool) -> Found:
    """Measure each domain at the paper's two alphas."""
    found = Found()
    for alpha in (0.02, 0.2):
        cases = domains(alpha)
        if not quick and (fine := traffic(alpha, None)) is not None:
            cases.append(fine)
        for case in cases:
            if case.name == "AN, invented":
                found.rows.append(Row(PART, "AN", "not measured", None, aim=AIM, note=NO_TRAFFIC))
            else:
                found.rows += measure(case, quick)
    return found


def measure(case: Case, quick: bool) -> list[Row]:
    """Return the seconds and the ratio, with step and gap beside it."""
    seconds = interleaved({"solve": case.solve}, turns=3 if quick else 9, limit=30.0)["solve"]
    plan = case.solve()
    gap = (plan.upper - plan.lower) / max(abs(plan.upper), 1e-300)
    note = f"step {plan.step:g}, gap {gap:.1e} of CVaR, {plan.status}"
    ratio = Spread(tuple(PAPER_SECONDS[case.name] / value for value in seconds.values))
    about = f"{case.name}, alpha {case.alpha:g}"
    return [
        Row.of(PART, about, "solve", seconds, " s", note=note),
        Row.of(PART, about, "paper / solve", ratio, "x", aim=AIM, note=f"the paper: {PAPER_SECONDS[case.name]:,.0f} s"),
    ]
