"""The options of all verbs in one table: who takes which, how each is read, and what goes with what.

A verb hands what it was given to :class:`Options`, which reads every value and refuses combinations.  To add an option,
add its line here, to the signature of each verb that takes it, and to the command's own table in
:mod:`prudent.apps.cli.options`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from os import PathLike
from typing import TYPE_CHECKING, Any

from prudent.errors import PrudentError, as_number
from prudent.methods.objectives import Objective
from prudent.methods.registry import chosen

if TYPE_CHECKING:
    from prudent.methods.cvar_wc import CvarWC
    from prudent.models.intervals import Intervals
    from prudent.runtime.limits import Limits
    from prudent.runtime.ranks import Ranks

GOALS = ("sure", "likeliest")
"""What plans must do: reach a goal for sure, or with the maximal probability."""

SWEEPING = "solve search curve frontier chances"
"""The verbs that sweep budgets on this machine."""

LIMITS = ("slack", "absolute_slack", "max_cvar")
"""The limits on CVaR."""


def _number(what: str, allowed: Callable[[float], bool]) -> Callable[[str, Any], float]:
    """Return what reads an option that is a number."""
    return lambda name, value: as_number(name, value, what, allowed)


def _goal(name: str, value: Any) -> str:
    if value not in GOALS:
        raise PrudentError(f"goal is {value!r}; it must be 'sure' or 'likeliest'")
    return str(value)


def _objective(name: str, value: Any) -> Objective:
    if not isinstance(value, Objective):
        call = "; call it" if isinstance(value, type) else ""
        kinds = "Exceedance(budget), Excess(budget), ValueAtRisk(), MeanPlusCVaR(weight) or WorstCase()"
        raise PrudentError(f"objective is {value!r}; it must be {kinds}{call}")
    return value


def _method(name: str, value: Any) -> Any:
    chosen(value)
    return value


_gap = _number("a number, at least 0", lambda x: x >= 0)
_slack = _number("a number, at least 0, such as 0.01 for 1%", lambda x: 0 <= x < math.inf)
_cost = _number("a cost, at least 0", lambda x: 0 <= x < math.inf)
_step = _number("a number above 0", lambda x: 0 < x < math.inf)
_finite = _number("a finite number", math.isfinite)


def _taken(verbs: str, read: Callable[[str, Any], Any] | None = None) -> dict[str, Any]:
    """Return what the table says of an option; the limits are read by :class:`~prudent.runtime.limits.Limits`."""
    return {"verbs": verbs.split(), "read": read}


@dataclass(frozen=True)
class Options:
    """What a verb is asked for besides its model and alpha; :func:`prudent.solve` describes the options."""

    verb: str
    _: KW_ONLY
    method: "str | CvarWC" = field(default="exact", metadata=_taken("solve study", _method))
    gap: float | None = field(default=None, metadata=_taken("solve search study", _gap))
    relative_gap: float | None = field(default=None, metadata=_taken("solve search study", _gap))
    slack: float | None = field(default=None, metadata=_taken("solve", _slack))
    absolute_slack: float | None = field(default=None, metadata=_taken("solve", _cost))
    max_cvar: float | None = field(default=None, metadata=_taken("solve", _finite))
    randomise: bool = field(default=False, metadata=_taken("solve", lambda name, value: bool(value)))
    objective: Objective | None = field(default=None, metadata=_taken("solve", _objective))
    goal: str = field(default="sure", metadata=_taken("solve", _goal))
    dead_end_cost: float | None = field(default=None, metadata=_taken("solve search", _finite))
    uncertainty: "Intervals | float | str | None" = field(default=None, metadata=_taken("solve curve evaluate"))
    step: float | None = field(default=None, metadata=_taken(f"{SWEEPING} check evaluate", _step))
    memory: int | float | str | None = field(default=None, metadata=_taken(f"{SWEEPING} study replan evaluate"))
    time_limit: float | None = field(default=None, metadata=_taken(f"{SWEEPING} study replan check evaluate simulate"))
    threads: int | None = field(default=None, metadata=_taken(f"{SWEEPING} study replan"))
    device: str = field(default="cpu", metadata=_taken("solve search curve chances study evaluate"))
    comm: Any = field(default=None, metadata=_taken("solve"))
    checkpoint: str | PathLike[str] | None = field(default=None, metadata=_taken("solve"))

    def __post_init__(self) -> None:
        for each in TABLE:
            read = each.metadata["read"]
            if read is not None and self.given(each.name):
                object.__setattr__(self, each.name, read(each.name, getattr(self, each.name)))
        self._refuse_combinations()

    def _refuse_combinations(self) -> None:
        """Refuse options that do not go together."""
        limits = [name for name in LIMITS if self.given(name)]
        objective, method = self.given("objective"), self.given("method")
        own = f"method 'exact', not {self.method_name!r}" if method else ""
        more = method or limits or objective or self.given("checkpoint") or self.given("goal")
        for wrong, why in (
            (
                self.randomise and not limits,
                "randomise needs a limit on CVaR, without which it gains nothing; give slack, absolute_slack or "
                "max_cvar",
            ),
            (len(limits) > 1, "slack, absolute_slack and max_cvar exclude each other; give only one of them"),
            (limits and method, f"slack, absolute_slack and max_cvar need {own}"),
            (
                self.given("uncertainty") and more,
                "uncertainty needs method 'exact' and CVaR as the objective; remove other methods, limits on CVaR, "
                "objectives, checkpoints and goal='likeliest'",
            ),
            (objective and limits, "objective excludes slack, absolute_slack and max_cvar; give only one of them"),
            (objective and method, f"objective needs {own}"),
            (
                self.given("checkpoint") and (limits or objective),
                "checkpoint works only for the minimal CVaR; remove the limit on CVaR or the objective",
            ),
            (
                self.given("dead_end_cost") and "goal" in taken_by(self.verb) and not self.given("goal"),
                "dead_end_cost is the price of a failed run under goal='likeliest'; to weigh it like any other cost, "
                "give it to prudent.amend instead",
            ),
        ):
            if wrong:
                raise PrudentError(why)

    @classmethod
    def of(cls, verb: str, arguments: Mapping[str, Any]) -> "Options":
        """Return the options among a verb's arguments."""
        return cls(verb, **{name: arguments[name] for name in taken_by(verb)})

    def limits(self, ranks: "Ranks | None" = None) -> "Limits":
        """Return the limits, and start the clock."""
        from prudent.runtime.limits import Limits  # not at once: the command reads this table before it loads kernels

        return Limits.of(self.memory, self.time_limit, self.threads, self.device, ranks)

    def given(self, name: str) -> bool:
        """Return whether an option has another value than its default."""
        value, default = getattr(self, name), getattr(type(self), name)
        return not (value is default or (type(value) is type(default) and bool(value == default)))

    @property
    def method_name(self) -> str:
        """The name of the method, which may be an object with options."""
        return chosen(self.method)[0]

    @property
    def said(self) -> str:
        """What a checkpoint belongs to, besides model, alpha and step: the method and the goal as they were given."""
        return repr(self.method if self.goal == "sure" else (self.method, self.goal, self.dead_end_cost))


TABLE = tuple(each for each in fields(Options) if "verbs" in each.metadata)
"""Every option."""


def taken_by(verb: str) -> tuple[str, ...]:
    """Return the names of a verb's options."""
    return tuple(each.name for each in TABLE if verb in each.metadata["verbs"])
