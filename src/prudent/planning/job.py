"""One call of a verb: its model, its limits, and the model prepared for one step or another."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.values.expected_cost import at_step, least_expected_cost
from prudent.errors import Defect, PrudentError
from prudent.io.checkpoint import Checkpoint
from prudent.models.ssp import SSP
from prudent.planning.bounds import Found, Stage, Target
from prudent.planning.options import Options
from prudent.results.plan import Plan
from prudent.runtime.limits import Limits, Stopped, go_on, now
from prudent.runtime.ranks import Ranks

VALUES = "finding the lowest expected cost"


@dataclass(frozen=True)
class Job:
    """One call of a verb: its task and its limits."""

    model: SSP
    alpha: float
    step: float | None  # to round costs to, if the user gave one
    target: Target
    limits: Limits
    checkpoint: Checkpoint | None = None
    within: float = np.inf  # the largest total cost that matters
    base: Prepared | None = None  # the model with the user's step or its common one, if it was prepared before
    tell: Callable[[Plan], None] | None = None  # receives each plan that is the best so far

    @property
    def seconds(self) -> float:
        """The seconds since the clock was started, without compilation."""
        return now() - self.limits.began

    @cached_property
    def _base(self) -> Prepared:
        """The model with the user's step, with its common one, or with a usual one; all steps share its values."""
        return prepare(self.model, self.step, self.limits) if self.base is None else self.base

    def prepared(self, step: float | None) -> Prepared:
        """Return the model, prepared for this step, with its lowest expected cost, as far as the limits allow."""
        prepared = self._base if step == self.step else at_step(self._base, cast(float, step), self.limits)
        least = least_expected_cost(prepared, self.limits)
        if step != self.step and not prepared.acyclic:  # only the model that all steps share is of use unfinished
            go_on(self.limits, VALUES)
        if not np.isfinite(prepared.scale.in_units(float(least.value[prepared.start]))):
            raise PrudentError(
                f"the lowest expected cost of {self.model.name} is larger than any float; limit the number of actions "
                "of a run with horizon= in prudent.amend, or --horizon"
            )
        return prepared

    def kept(self, work: Callable[[], Stage[Found]]) -> Stage[Found]:
        """Do work that saves its progress in the checkpoint, if there is one; remove the file when the work is done."""
        try:
            stage = work()
        except Defect as defect:
            raise (defect if self.checkpoint is None else self.checkpoint.blame(defect)) from None
        if self.checkpoint is not None and not stage.stopped:
            self.checkpoint.close()
        return stage

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Let Ctrl-C ask the work inside to stop; work that is useless unfinished then raises KeyboardInterrupt."""
        with self.limits:
            try:
                yield
            except Stopped as stopped:
                if stopped.reason == "interrupted":
                    raise KeyboardInterrupt from None
                raise


def begin(model: SSP, alpha: float, asked: Options, ranks: Ranks | None = None) -> Job:
    """Take the limits from a verb's options, and start the clock; model and alpha are checked already."""
    limits = asked.limits(ranks)
    keeper = None
    if asked.checkpoint is not None:
        about = {"model": model.fingerprint, "alpha": alpha, "method": asked.said, "step": asked.step}
        keeper = Checkpoint(asked.checkpoint, about, 1 if ranks is None else ranks.size)
    target = Target(asked.gap, asked.relative_gap)
    return Job(model, alpha, asked.step, target, replace(limits, keeper=keeper), keeper)
