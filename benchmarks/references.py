"""The whole solve against the same method in plain NumPy and in one plain Numba loop.

The references get the prepared arrays and the number of budgets for nothing and give no bounds; the solve prepares,
finds out how far to go, bounds its rounding and evaluates its policy.
"""

from cases import NO_TRAFFIC, ONE_CORE, Case, domains
from numpy_reference import solve_with_numpy
from table import Found, Row
from timing import interleaved
from untuned_numba import solve_untuned

PART = "against references"
AIMS = {("IC", "NumPy"): 10.0, ("AN", "NumPy"): 10.0, ("IC", "untuned Numba"): 4.0}


def run(quick: bool) -> Found:
    """Measure all domains, each reference and the solve in turns."""
    found = Found()
    for case in domains(0.02):
        if case.name == "AN, invented":
            found.rows.append(Row(PART, "AN", "not measured", None, note=NO_TRAFFIC))
        elif not (quick and case.name == "AN"):
            found.rows += measure(case, quick)
    return found


def measure(case: Case, quick: bool) -> list[Row]:
    """Check the references' answers, then time them."""
    references = {"NumPy": solve_with_numpy, "untuned Numba": solve_untuned}
    prepared, alpha, levels = case.prepared, case.alpha, case.levels
    for reference in references.values():
        answer = reference(prepared, alpha, levels)
        case.check(answer.cvar, answer.expected)
    tasks = {name: lambda f=f: f(prepared, alpha, levels) for name, f in references.items()}
    seconds = interleaved({"solve": lambda: case.solve(**ONE_CORE), **tasks}, turns=3 if quick else 7)
    rows = [Row.of(PART, case.about, "solve, one core", seconds["solve"], " s")]
    for name in references:
        rows += [
            Row.of(PART, case.about, name, seconds[name], " s", note="equal to 1e-9"),
            Row.of(
                PART,
                case.about,
                f"{name} / solve",
                seconds[name].over(seconds["solve"]),
                "x",
                aim=AIMS.get((case.name, name)),
            ),
        ]
    return rows
