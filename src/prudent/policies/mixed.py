"""A policy that draws one of two at the start of a run."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from prudent.engine.prepared import Prepared
from prudent.errors import PrudentError
from prudent.kernels.choices import Choices
from prudent.policies.agent import Agent
from prudent.policies.policy import TABLE, BudgetPolicy, packed_choices, unpacked_choices


@dataclass(frozen=True, eq=False, repr=False)
class MixedPolicy(BudgetPolicy):
    """One of two policies with the same budget, drawn at the start of a run.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1, max_cvar=12, randomise=True)
    >>> [(round(chance, 6), policy("s1")) for chance, policy in plan.policy.parts]
    [(0.555556, 'd'), (0.444444, 'c')]
    """

    other: Choices  # those of the second
    share: float  # the chance of the first
    tensors: ClassVar[dict[str, tuple[int, str]]] = {**BudgetPolicy.tensors, "other": TABLE, "share": (1, "f")}

    @property
    def parts(self) -> tuple[tuple[float, BudgetPolicy], ...]:
        """Each of the two policies, with its probability."""
        first, second = (BudgetPolicy(self.prepared, each, self.level) for each in (self.choices, self.other))
        return (float(self.share), first), (1 - float(self.share), second)

    def refuse_as(self, what: str) -> None:
        """Refuse: it is two policies (internal)."""
        raise PrudentError(f"a plan that draws one of two policies {what}; use those of policy.parts")

    def packed(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which the policy can be made again (internal)."""
        other = packed_choices("other", self.other, self.level)
        return {**super().packed(), **other, "share": np.array([self.share])}

    @classmethod
    def unpacked(cls, prepared: Prepared, packed: dict[str, NDArray[Any]], past_budget: int) -> "MixedPolicy":
        """Make a policy again from its arrays and the prepared model; refuse arrays that do not fit it (internal)."""
        (choices, level), (other, same) = (unpacked_choices(name, packed, prepared) for name in ("choice", "other"))
        share = packed["share"]
        if len(share) != 1 or not 0 < share[0] < 1 or same != level:
            raise PrudentError("its two policies do not go together")
        return cls(prepared, choices, level, past_budget=past_budget, other=other, share=float(share[0]))

    def __call__(self, state: Hashable, spent: float = 0.0) -> Hashable:
        """Refuse: which of the two is played is drawn once, at the start."""
        raise PrudentError("this policy draws one of two at the start; run it with policy.start(), or use policy.parts")

    def start(self, state: Hashable | None = None, *, seed: int | None = None) -> Agent:
        """Return an agent at the start of a run, of the policy that the seed draws: another seed for each run.

        Examples
        --------
        >>> import prudent
        >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1, max_cvar=12, randomise=True)
        >>> for seed in range(3):
        ...     agent = plan.policy.start(seed=seed)
        ...     agent.observe("s1", cost=0)
        ...     print(agent.action)
        c
        d
        d
        """
        if seed is None:
            raise PrudentError("this policy draws one of two; pass seed= to start(), with another number for each run")
        drawn = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))).random() >= self.share
        return self.parts[int(drawn)][1].start(state)
