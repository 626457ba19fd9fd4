"""What a worker keeps of a model: the model itself, one sweep for every alpha, and its latest plans."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

import prudent
from prudent.domains.registry import make
from prudent.engine.cost_step import find_lattice
from prudent.errors import PrudentError
from prudent.io.formats import parse
from prudent.methods.registry import METHODS
from prudent.models.ssp import SSP
from prudent.planning.curve import Curve
from prudent.planning.refine import modest
from prudent.planning.solve import solve_aloud
from prudent.policies.distribution import Distribution
from prudent.results.plan import Plan
from prudent.runtime.limits import cores

ALPHA_MIN = 0.005
"""The smallest alpha of the slider; one sweep serves every alpha from here on."""

YARDSTICK, MEAN = "exact", "expected"
"""The method that the others are compared with, and the one that minimises the expected cost."""

WHILE = 0.25
"""The most seconds of a solve that the page waits for while the slider moves."""

PLANS = 3  # of one model, kept by a worker; each holds the model as it was prepared for it
PIECES = 24  # other results of one model: distributions, routes
FILES = ("traffic",)  # parameters that are paths: requests open no files

Kept = TypeVar("Kept")

Tell = Callable[[Plan], None] | None
"""What hears of each plan that is the best so far."""


class Bounded(OrderedDict[Hashable, Any]):
    """A cache of the values asked for last, at most ``most`` of them."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def get_or_make(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """Return what is kept under a key, or make it and keep it."""
        found: Kept = self[key] if key in self else make()
        self[key] = found
        self.move_to_end(key)
        if len(self) > self.most:
            self.popitem(last=False)
        return found


class Session:
    """A model and what was computed of it."""

    def __init__(self, model: SSP, settings: dict[str, str], memory: int) -> None:
        self.model = model
        self.settings = settings  # the domain's parameters, as text; none for a file
        self.options: dict[str, Any] = {"memory": memory, "threads": max(cores() // 2, 1)}
        self.plans, self.swept, self.kept = Bounded(PLANS), Bounded(PLANS), Bounded(PIECES)
        self.seconds = 0.0  # what the last exact solve took, if it rounded no costs

    @cached_property
    def curve(self) -> Curve:
        """Every alpha, from one sweep."""
        return prudent.curve(self.model, alpha_min=ALPHA_MIN, **self.options)

    @cached_property
    def rounded(self) -> bool:
        """Whether costs have no common step, or too fine a one."""
        return find_lattice(self.model.cost) is None or bool(self.curve.notes)

    def robust_curve(self, uncertainty: float | str) -> Curve:
        """Every alpha, for the worst of a set of models."""
        return self.kept.get_or_make(
            ("curve", uncertainty),
            lambda: prudent.curve(self.model, alpha_min=ALPHA_MIN, uncertainty=uncertainty, **self.options),
        )

    def plan(
        self,
        alpha: float,
        method: str,
        relative_gap: float | None = None,
        uncertainty: float | str | None = None,
        *,
        sure: bool = True,
        tell: Tell = None,
    ) -> Plan:
        """Return the plan for an alpha; only the yardstick depends on the gap, and on the set of models it is for.

        With ``sure`` it is what :func:`prudent.solve` returns, digit for digit.  Otherwise, if solving takes a while,
        it comes from the sweep that serves every alpha: the same policy and numbers, except for the last digits of the
        bounds, which cover the rounding errors of a longer sweep.
        """
        key = (method, alpha, *((relative_gap, uncertainty) if method == YARDSTICK else (None, None)))
        usual = method == YARDSTICK and relative_gap is None and uncertainty is None and alpha >= ALPHA_MIN
        if usual and not sure and key not in self.plans and self.seconds > WHILE and not self.rounded:
            return self.swept.get_or_make(alpha, lambda: self.curve.plan(alpha))
        return self.plans.get_or_make(key, lambda: self._solve(*key, tell))

    def is_sure(self, plan: Plan) -> bool:
        """Return whether a plan comes from a solve of its own."""
        return any(each is plan for each in self.plans.values())

    def _solve(
        self, method: str, alpha: float, relative_gap: float | None, uncertainty: float | str | None, tell: Tell
    ) -> Plan:
        asked: dict[str, Any] = {"method": method, "relative_gap": relative_gap, "uncertainty": uncertainty}
        plan = solve_aloud(self.model, alpha, tell, **asked, **self.options)
        if plan.status == "interrupted":
            raise KeyboardInterrupt
        if method == YARDSTICK and uncertainty is None:
            self.seconds = 0.0 if plan.policy.prepared.scale.rounded else plan.seconds
        return plan

    def refines(self, plan: Plan) -> bool:
        """Return whether the gap asked for can make a difference: for this plan, or for another alpha of the slider."""
        prepared = plan.policy.prepared
        return plan.method == YARDSTICK and (prepared.scale.rounded or not modest(prepared, ALPHA_MIN))

    def distribution(self, plan: Plan, uncertainty: float | str | None = None) -> Distribution:
        """Return the distribution of a plan's total cost; for method ``expected`` it is the same for every alpha."""
        alpha = plan.alpha if METHODS[plan.method].for_alpha else None
        key = ("distribution", plan.method, alpha, plan.step, uncertainty if plan.method == YARDSTICK else None)
        return self.kept.get_or_make(key, plan.total_cost)


def open_session(about: dict[str, Any], raw: bytes | None, memory: int) -> Session:
    """Return a session for a domain with its parameters, or for the bytes of an uploaded file."""
    if raw is not None:
        return Session(parse(raw, about["name"]), {}, memory)
    for item in about["set"]:
        if item.partition("=")[0] in FILES:
            raise PrudentError(f"--set {item}: the page opens no files; use the command instead")
    model = make(about["model"], tuple(about["set"]))
    settings = {key: value for key, _, value in (item.partition("=") for item in about["set"])}
    return Session(model, settings, memory)
