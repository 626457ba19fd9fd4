"""The one list of methods: their names, their aims, and their modules.

A method is a function of a prepared model, an alpha and limits that returns a
:class:`~prudent.methods.solution.Solution`, in a file of its own; a line here makes it known to ``solve``, the command,
the page and plan files.  No method is imported before it is used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from prudent.errors import PrudentError

if TYPE_CHECKING:
    from prudent.engine.prepared import Prepared
    from prudent.methods.solution import Solution
    from prudent.runtime.limits import Limits

    Run = Callable[[Prepared, float, Limits], Solution]


@dataclass(frozen=True)
class Method:
    """What other parts need to know about a method besides its code."""

    home: str  # module:name, in this package
    title: str
    what: str  # its aim, in a few words
    from_paper: bool = False  # whether it is a class to call with the paper's options, such as grid points; slow
    for_alpha: bool = True  # whether its policy depends on alpha
    shown: bool = True  # whether the page shows it beside the others
    symbol: str = "circle"  # its mark in a chart

    @property
    def found(self) -> Any:
        """The method's function, or its class if it has options."""
        module, _, name = self.home.partition(":")
        return getattr(import_module(f"prudent.methods.{module}"), name)


METHODS: dict[str, Method] = {
    "exact": Method("exact:exact", "Prudent", "minimal CVaR, then lowest expected cost", symbol="star"),
    "cvar-ev": Method("cvar_ev:CvarEV", "CVaR-EV", "the paper's: CVaR, then expected cost", True, symbol="square"),
    "cvar-wc": Method("cvar_wc:CvarWC", "CVaR-WC", "the paper's: CVaR only", True, symbol="diamond"),
    "expected": Method(
        "expected:expected", "Expected cost", "lowest expected cost, whatever the tail", for_alpha=False
    ),
    "worst-case": Method(
        "worst_case:worst_case", "Worst case", "minimal worst-case cost", for_alpha=False, shown=False
    ),
}
"""Every method by the name it has in calls and commands."""


def chosen(method: Any) -> "tuple[str, Run]":
    """Return the name of a method and the function that runs it; reject anything else."""
    if isinstance(method, str) and method in METHODS:
        known = METHODS[method]
        return method, known.found() if known.from_paper else known.found
    if callable(method) and getattr(method, "name", None) in METHODS and not isinstance(method, type):
        return method.name, method  # a method with options
    near = get_close_matches(str(method), METHODS, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise PrudentError(f"method is {method!r}; it must be one of {', '.join(METHODS)}{hint}")


def with_grid(name: str, points: int | None = None, floor: float = 0.0) -> Any:
    """Return a method as ``solve`` takes it; the paper's methods get these options of their grid."""
    return METHODS[name].found(points=points, floor=floor) if name in METHODS and METHODS[name].from_paper else name
