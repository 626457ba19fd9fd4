"""One door: check -> prepare -> method -> plan."""

import time
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache

import numpy as np

from prudent.chain import expected_steps
from prudent.errors import PrudentError
from prudent.methods.cvar_expected import CvarEV
from prudent.methods.cvar_game import CvarWC
from prudent.methods.exact import exact
from prudent.methods.expected import expected
from prudent.methods.solution import Solution
from prudent.methods.worst_case import worst_case
from prudent.model import SSP
from prudent.plan import Plan
from prudent.prepare import Prepared, prepare
from prudent.progress import announce
from prudent.risk import check_alpha
from prudent.values.rounds import UNIT

__all__ = ["METHODS", "solve"]

Method = Callable[[Prepared, float], Solution]

METHODS: dict[str, Method] = {
    "exact": exact,
    "cvar-ev": CvarEV(),
    "cvar-wc": CvarWC(),
    "expected": expected,
    "worst-case": worst_case,
}

OPTIMAL_GAP = 1e-8
"""Relative gap up to which a plan is called optimal."""

DEFAULT_GAP = 1e-3
"""Relative gap asked for unless the user says otherwise."""


def solve(
    model: SSP,
    alpha: float,
    *,
    method: str | CvarWC = "exact",
    gap: float | None = None,
    relative_gap: float | None = None,
    step: float | None = None,
) -> Plan:
    """Find a plan for a model.

    Parameters
    ----------
    model : SSP
        The problem.
    alpha : float
        The fraction of worst runs that CVaR averages over, above 0 and at most 1.
    method : str or CvarWC or CvarEV
        ``"exact"``: optimal CVaR first, least expected cost second.  ``"expected"``: least expected cost.
        ``"worst-case"``: least worst case first, least expected cost second.  ``"cvar-wc"`` and ``"cvar-ev"``:
        the paper's methods, with the paper's options, or :class:`CvarWC` and :class:`CvarEV` with one's own.
    gap, relative_gap : float, optional
        How far apart ``lower`` and ``upper`` may be, absolutely or relative to their size; 0.001 relative
        unless said.  The status tells whether they are.  On costs with a common step ``exact`` closes them.
    step : float, optional
        Round the costs to multiples of this.  Costs without a common step are rounded in any case, to a step of
        which the largest cost has 10,000 or more; the status is then ``approximate``.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> plan.status, round(plan.cvar, 9), round(plan.expected, 9), plan.policy("s1")
    ('optimal', 10.0, 4.06, 'd')
    """
    if not isinstance(model, SSP):
        raise PrudentError(f"model is a {type(model).__name__}; make one with prudent.build, from_arrays or load")
    alpha = check_alpha(alpha)
    if not isinstance(method, CvarWC) and (not isinstance(method, str) or method not in METHODS):
        near = get_close_matches(str(method), METHODS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise PrudentError(f"unknown method {method!r}; {hint}methods are {', '.join(METHODS)}")
    for name, value in (("gap", gap), ("relative_gap", relative_gap)):
        if value is not None and not value >= 0:
            raise PrudentError(f"{name} is {value!r}; it must be a number, at least 0")
    name, run = (method.name, method) if isinstance(method, CvarWC) else (method, METHODS[method])
    _compile(name)
    return _solve(model, alpha, name, run, gap, relative_gap, step)


def _solve(
    model: SSP,
    alpha: float,
    method: str,
    run: Method,
    gap: float | None = None,
    relative_gap: float | None = None,
    step: float | None = None,
) -> Plan:
    began = time.perf_counter()
    prepared = prepare(model, step)
    solution = run(prepared, alpha)
    lower, upper = _bounds(prepared, solution, alpha)
    seconds = time.perf_counter() - began
    # Relative to the answer, counted from 0 or from best luck, and on a lattice never finer than to its step.
    size = max(abs(lower), abs(upper), upper - prepared.in_units(0), prepared.stride * prepared.lattice.step)
    return Plan(
        model=model,
        policy=solution.policy,
        method=method,
        alpha=alpha,
        step=prepared.lattice.step,
        status=_status(method == "exact" and not prepared.lattice.rounded, upper - lower, size, gap, relative_gap),
        cvar=prepared.in_units(solution.cvar),
        var=solution.var,
        expected=prepared.in_units(solution.expected),
        lower=lower,
        upper=upper,
        worst_case=prepared.in_units(solution.worst),
        seconds=seconds,
        notes=(*solution.notes, *_rounding_note(prepared)),
    )


def _rounding_note(prepared: Prepared) -> list[str]:
    lattice = prepared.lattice
    if not lattice.rounded:
        return []
    return [f"costs were rounded to multiples of {lattice.step:g}, each by at most {lattice.deviation:.2g}"]


def _status(aims: bool, found: float, size: float, gap: float | None, relative_gap: float | None) -> str:
    if np.isfinite(found) and found <= OPTIMAL_GAP * size:
        return "optimal"
    if gap is None and relative_gap is None:
        if not aims:
            return "approximate"
        relative_gap = DEFAULT_GAP
    good = (gap is not None and found <= gap) or (relative_gap is not None and found <= relative_gap * size)
    return "within_gap" if good else "gap_not_reached"


def _bounds(prepared: Prepared, solution: Solution, alpha: float) -> tuple[float, float]:
    """Return the bounds in the user's units, wide enough for what the lattice swallowed of the costs.

    Each cost may be ``deviation`` away from the lattice, hence each least cost by luck n times that, and each
    normalised cost 2n + 1 times that, n the number of states.  Normalised costs are at least 0 in truth as on
    the lattice, so from below they err by a factor; from above each of a run's expected steps adds its part.
    """
    base, step = prepared.in_units(0), prepared.stride * prepared.lattice.step
    lower = base + step * solution.lower - 4 * UNIT * (abs(base) + step * solution.lower)
    upper = base + step * solution.upper + 4 * UNIT * (abs(base) + step * solution.upper)
    deviation = prepared.lattice.deviation
    if deviation > 0:
        n = prepared.model.n_states
        slip = (2 * n + 1) * deviation
        lower -= n * deviation + min(slip / step, 1.0) * step * solution.lower
        if np.isfinite(upper):
            upper += n * deviation + deviation * expected_steps(solution.policy) / alpha
    return lower, upper


@cache
def _compile(method: str) -> None:
    """Compile a method's kernels, or read them from the cache, before any clock runs; say so when it takes a while."""
    from prudent.domains import figure_2
    from prudent.kernels import compiled_before

    if not compiled_before():
        announce("compiling its kernels, once; this takes about half a minute")
    _solve(figure_2(), 0.5, method, METHODS[method])
