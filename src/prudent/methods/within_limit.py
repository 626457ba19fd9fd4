"""The best policy within a limit on CVaR that is found at one step.

Costs charged are at least the true ones, so a search with costs as charged may go beyond the limit by about what
rounding adds to the CVaR of the plan of minimal CVaR.  Policies that it finds are tried one after the other.

*Guarantee.*  The CVaR of the chosen policy, bounded from above by its own distribution, is within the limit.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.values.bellman import UNIT
from prudent.errors import TooLarge
from prudent.kernels.choices import Choices
from prudent.methods.exact import SECOND, Explored
from prudent.methods.mean_cvar import Found, Single, Weighing
from prudent.methods.mixture import Mixing, Mixture
from prudent.methods.solution import Solution
from prudent.policies.chain import backward
from prudent.policies.mixed import MixedPolicy
from prudent.policies.own_tail import OwnTail, own_tail
from prudent.policies.policy import BudgetPolicy
from prudent.runtime.limits import Limits, Stopped
from prudent.runtime.tables import certain, number

TRIES = 6
"""The most policies to try."""

STEEPER = 1.25
"""The factor by which the weight of CVaR grows while no policy is found within the limit."""

GAIN = 1e-3
"""The part of what a limit has saved that another policy must save to be tried as well."""


@dataclass(frozen=True)
class Limit:
    """The limit on CVaR, in the user's units."""

    allowed: float  # what a policy's CVaR may be
    upto: float  # what the limit may be, for all that is known of the optimal CVaR
    randomise: bool


@dataclass(frozen=True)
class Room:
    """The limit in the levels of one prepared model, and the search there."""

    weighing: Weighing
    search: Single | Mixing
    allowed: float  # the limit
    margin: float  # its rounding error: measured from best luck, which may be far from 0, it loses digits
    sure: float  # more than the limit may be
    charged: float  # what rounding adds to the CVaR of the costs charged, for the plan of minimal CVaR

    @classmethod
    def of(cls, explored: Explored, alpha: float, limits: Limits, limit: Limit, upper: float) -> "Room":
        """Convert the limit; ``upper`` bounds the CVaR of the plan of minimal CVaR from above."""
        scale, levels = explored.prepared.scale, np.arange(len(explored.swept.excess))
        least = float((levels + explored.swept.excess / alpha).min())
        charged = least - scale.in_levels(upper) if scale.rounded else 0.0
        allowed = max(scale.in_levels(limit.allowed), 0.0 if scale.rounded else least)
        size = (abs(limit.allowed) + abs(scale.in_units(0))) / scale.level_size
        margin = 16 * UNIT * (allowed + abs(charged) + size)
        sure = max(allowed, scale.in_levels(limit.upto)) + 2 * margin
        weighing = Weighing(explored, alpha, limits, sure + max(charged, 0.0))
        return cls(weighing, (Mixing if limit.randomise else Single)(weighing), allowed, margin, sure, charged)

    @property
    def cap(self) -> float:
        """The limit for costs as charged."""
        return self._cap(self.charged)

    def _cap(self, charged: float) -> float:
        return self.allowed + charged + (self.margin if isinstance(self.search, Single) else 0.0)

    def chosen(self, optimum: Solution, limits: Limits) -> Solution:
        """Return the best policy found whose own CVaR is within the limit; ``optimum`` is."""
        prepared, best, charged, worth = self.weighing.prepared, optimum, self.charged, 0.0
        for _ in range(TRIES):
            found = self.search.best(self._cap(charged))
            if found is None and best is optimum and isinstance(self.search, Single) and self.search.weights:
                if stopping(partial(self.search.take, STEEPER * max(self.search.weights), self._cap(charged))):
                    break
                continue
            if found is None or found.expected >= best.expected - worth:
                break
            policy, drawn = _policy(prepared, found)
            try:
                own = self._own(policy, found, limits)
            except Stopped:
                break
            if own.upper <= self.allowed + self.margin:
                best = replace(
                    optimum,
                    policy=policy,
                    var=own.var,
                    cvar=own.cvar,
                    expected=own.mean,
                    steps=own.steps,
                    notes=(*drawn, *own.notes),
                )
                if not prepared.scale.rounded:
                    break
            worth = GAIN * (optimum.expected - best.expected)
            charged = found.cvar - own.upper - max(own.upper - self.allowed, 0.0) / 4  # somewhat less, to come inside
        return best

    def _own(self, policy: BudgetPolicy, found: Found | Mixture, limits: Limits) -> OwnTail:
        """Return a policy's own tail, from its distribution or, if that is not known well, backwards."""
        expected, alpha = self.weighing.explored.expected, self.weighing.alpha
        own, rounded = own_tail(policy, expected, found.cvar, alpha, limits=limits), policy.prepared.scale.rounded
        if not (own.notes or own.error > SECOND):
            return own if rounded else replace(own, upper=own.cvar)
        values = [(share, part.level, backward(part, expected, limits)) for share, part in policy.parts]
        cvar = sum(share * (budget + each.excess / alpha) for share, budget, each in values)
        mean, upper = sum(share * each.mean for share, _, each in values), min(own.upper, cvar)
        return replace(own, cvar=np.nan if own.notes else min(own.cvar, cvar), mean=mean, upper=upper)


def _policy(prepared: Prepared, found: Found | Mixture) -> tuple[BudgetPolicy, tuple[str, ...]]:
    """Return the policy that was found, with a note on what it draws if it is randomised."""
    if isinstance(found, Found):
        return BudgetPolicy.of_rows(prepared, found.choice), ()
    scale, parts = prepared.scale, ((found.first, found.share), (found.second, 1 - found.share))
    first, second = (Choices.of_rows(part.choice) for part, _ in parts)
    shown = [
        f"with probability {share:.6g} one of expected cost "
        f"{number(scale.in_units(part.expected), certain(0.0, scale.money))}"
        for part, share in parts
    ]
    note = f"randomised: draws a policy at the start of a run, {' and '.join(shown)}"
    return MixedPolicy(prepared, first, found.first.budget, other=second, share=found.share), (note,)


def stopping(work: Callable[[], object]) -> str:
    """Work; return why it stopped early, or an empty text."""
    try:
        work()
    except Stopped as error:
        return error.reason
    except TooLarge:
        return "memory"
    return ""
