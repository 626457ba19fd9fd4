"""The driver that all verbs share: check, limits, clock, prepare, refine, stop.

A verb calls :func:`begin`, which checks the arguments that all verbs take and starts the clock.  Then it gives the
:class:`Job` a function that attempts its task on a prepared model.  :meth:`Job.refined` makes one attempt if a step is
given, or if costs have a common step and that is modest work.  Otherwise it rounds costs to finer and finer steps until
the gap is reached, and then may seek the exact optimum where it can be.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from typing import Any, cast

import numpy as np

from prudent.engine.prepare import at_step, prepare
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.focus import Focus, focus_on
from prudent.engine.values.expected_cost import least_expected_cost, share_expected
from prudent.errors import Defect, PrudentError, TooLarge, as_number
from prudent.io.checkpoint import Checkpoint
from prudent.methods.exact import Explored, explore
from prudent.methods.expected import at_hand
from prudent.methods.solution import Solution
from prudent.models.ssp import SSP
from prudent.planning.bounds import Target
from prudent.planning.refine import (
    COMMON,
    MARGIN,
    Found,
    Stage,
    affordable,
    cells_of,
    coarser_step,
    endless,
    fair_step,
    finer_step,
    in_time,
    modest,
)
from prudent.runtime.clock import now
from prudent.runtime.limits import Limits, Stopped, go_on, in_force
from prudent.runtime.ranks import Ranks

__all__ = ["Job", "begin", "explored"]

VALUES = "finding the lowest expected cost"

STALLED = 0.9
"""If a finer step leaves more than this fraction of the gap, the rest does not come from rounding."""

FAR = (
    "the optimal value is small relative to its distance from the lowest possible cost, so closer bounds take long; "
    "give an absolute gap (gap=, --gap) to go on until it is reached"
)


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
        with in_force(self.limits):
            prepared = self._base
            if step != self.step:
                prepared = at_step(self._base, cast(float, step), self.limits)
                share_expected(self._base, prepared)
            least = least_expected_cost(prepared)
            if step != self.step and not prepared.acyclic:  # only the model that all steps share is of use unfinished
                go_on(self.limits, VALUES)
        if not np.isfinite(prepared.scale.in_units(float(least.value[prepared.start]))):
            raise PrudentError(
                f"the lowest expected cost of {self.model.name} is larger than any float; limit the number of actions "
                "of a run with horizon= in prudent.amend, or --horizon"
            )
        return prepared

    def _most(self, prepared: Prepared) -> float:
        """Return the most levels of a sweep."""
        return max(prepared.scale.in_levels(self.within), 0.0) + 2

    def refined(
        self,
        attempt: Callable[[Prepared], Stage[Found]],
        first_step: Callable[[Prepared, float], float],
        *,
        at_hand: Callable[[Prepared, str], Stage[Found]] | None = None,
        focused: Callable[[Prepared, Focus], Stage[Found]] | None = None,
        tell: Callable[[Stage[Found]], None] = lambda best: None,
        order: int = 2,
        one_question: bool = True,
        may_stall: bool = False,
    ) -> Stage[Found]:
        """Return the best of all attempts, with the best of their bounds.

        ``at_hand`` answers, for a reason to stop, with what is known if no attempt was finished in time.  ``focused``
        makes an attempt only where an optimal plan can be.  ``tell`` receives the best attempt so far before each
        refinement.  The gap shrinks about with the step to the power of ``order``.  If ``one_question`` is
        false, the question depends on the step, and the last answer is returned.  If ``may_stall`` is true, part of the
        gap need not come from rounding, so attempts end when a finer step does not help.
        """

        def work() -> Stage[Found]:
            return self._refined(attempt, first_step, focused, tell, order, one_question, may_stall)

        return self.answered(work, at_hand)

    def answered(
        self, work: Callable[[], Stage[Found]], at_hand: Callable[[Prepared, str], Stage[Found]] | None
    ) -> Stage[Found]:
        """Return the result of work; if the limits ask it to stop before it has any, return what is ``at_hand``."""
        with in_force(self.limits):  # all threads, or the device, find what attempts need
            try:
                return work()
            except Stopped as stopped:
                if at_hand is None or stopped.reason == "memory":
                    raise
                with in_force(self.limits.for_the_rest):
                    return at_hand(self.prepared(self.step), stopped.reason)

    def at_hand(self, stopped: Stopped) -> tuple[Prepared, Solution]:
        """Return the plan at hand, where the time limit stopped the sweeps; raise any other reason again."""
        if stopped.reason != "time":
            raise stopped
        with in_force(self.limits.for_the_rest):
            prepared = self.prepared(self.step)
            found = at_hand(prepared, self.alpha, stopped.reason)
        late = f"stopped at the time limit of {self.limits.time_limit:g} seconds; raise time_limit= (--time-limit)"
        return prepared, replace(found, notes=(*prepared.scale.notes, *found.notes, late))

    def _refined(
        self,
        attempt: Callable[[Prepared], Stage[Found]],
        first_step: Callable[[Prepared, float], float],
        focused: Callable[[Prepared, Focus], Stage[Found]] | None,
        tell: Callable[[Stage[Found]], None],
        order: int,
        one_question: bool,
        may_stall: bool,
    ) -> Stage[Found]:
        prepared = self.prepared(self.step)
        if not prepared.acyclic:  # otherwise its lowest expected cost is known, whatever the limits
            go_on(self.limits, VALUES)
        if self.step is not None:
            return attempt(prepared)
        rounded = partial(self._rounded, attempt, tell, order=order, one_question=one_question, may_stall=may_stall)
        if prepared.scale.rounded:
            return rounded(first_step(prepared, self.alpha))
        common, focusable = prepared.scale.level_size, focused is not None and prepared.acyclic
        if self.target.exact and not focusable and self.limits.time_limit is not None:
            step = first_step(prepared, self.alpha)
            if step >= COMMON * common:
                return self._in_time_left(prepared, attempt, rounded(step, finest=common))
        stage, refused, lacking = None, None, "work"
        if modest(prepared, self.alpha, self._most(prepared)):
            stage, refused, lacking = self._exactly(prepared, attempt)
            if stage is not None and (stage.stopped != lacking or self._close(stage)):
                return stage
        step = first_step(prepared, self.alpha)
        if step < COMMON * common or (self.target.exact and not focusable):  # then rounding does not help
            if refused is not None:
                raise refused
            stage = attempt(prepared) if stage is None else stage
            if stage.stopped != "memory" or step < COMMON * common:
                return stage
        try:
            best = rounded(step, stage, finest=common)
        except TooLarge as error:
            raise (refused or error) from None
        if focused is not None and focusable and best.prepared.scale.rounded:
            best, lacking = self._focused(prepared, best, focused, tell, lacking)
        if not best.prepared.scale.rounded:
            return best
        stopped = best.stopped or (stage.stopped if stage is not None and self.target.exact else "")
        return replace(best, stopped=stopped, notes=(_why_rounded(common, lacking), *best.notes))

    def _exactly(
        self, prepared: Prepared, attempt: Callable[[Prepared], Stage[Found]]
    ) -> tuple[Stage[Found] | None, PrudentError | None, str]:
        """Attempt the exact optimum; return it, or the error if memory is lacking; and the lacking resource, if any."""
        if not (self.target.exact or in_time(prepared, self.alpha, self.limits, self._most(prepared))):
            return None, None, "time"
        try:
            return attempt(prepared), None, "memory"
        except (TooLarge, Stopped) as error:
            if self.target.exact or getattr(error, "reason", "memory") != "memory":
                raise
            return None, error, "memory"

    def _in_time_left(
        self, prepared: Prepared, attempt: Callable[[Prepared], Stage[Found]], best: Stage[Found]
    ) -> Stage[Found]:
        """Attempt the exact optimum in the time that rounded costs left; if that fails, return their plan."""
        if not best.prepared.scale.rounded:
            return best
        lacking, self.limits.partial = best.stopped, False
        try:
            if not lacking:
                return attempt(prepared)
        except Stopped as error:
            lacking = error.reason
        finally:
            self.limits.partial = True
        return replace(best, stopped=lacking, notes=(_why_rounded(prepared.scale.level_size, lacking),))

    def _focused(
        self,
        prepared: Prepared,
        best: Stage[Found],
        focused: Callable[[Prepared, Focus], Stage[Found]],
        tell: Callable[[Stage[Found]], None],
        lacking: str,
    ) -> tuple[Stage[Found], str]:
        """Attempt the exact optimum where it can be, if asked for or modest work; also return the lacking resource."""
        upper = prepared.scale.in_levels(best.bracket.upper)
        wanted = self.target.exact or not self.target.said
        if best.stopped or not wanted or not np.isfinite(upper):
            return best, lacking
        tell(best)
        try:
            focus = focus_on(prepared, self.alpha, upper, cells_of(upper), self.limits)
            if focus is None or not (self.target.exact or affordable(focus.work, self.limits)):
                return best, lacking
            stage = focused(prepared, focus)
        except (KeyboardInterrupt, Stopped, TooLarge) as error:
            why = "interrupted" if isinstance(error, KeyboardInterrupt) else getattr(error, "reason", "memory")
            if why == "interrupted":
                return replace(best, stopped=why), lacking
            lacking = why
            needs = MARGIN * getattr(error, "need", math.nan)
            return (replace(best, stopped=lacking, needs=needs) if self.target.exact else best), lacking
        return replace(stage, bracket=_better(best, stage).bracket), lacking

    def _rounded(
        self,
        attempt: Callable[[Prepared], Stage[Found]],
        tell: Callable[[Stage[Found]], None],
        step: float,
        best: Stage[Found] | None = None,
        *,
        finest: float = 0.0,
        order: int,
        one_question: bool,
        may_stall: bool,
    ) -> Stage[Found]:
        """Attempt finer and finer steps from ``step`` down to ``finest``; ``best`` is the best attempt so far.

        If the first step takes too much memory or time, coarser ones are tried.
        """
        needs = math.nan
        while True:
            self.limits.partial = best is None  # otherwise the best so far is better than an unfinished finer stage
            try:
                stage = attempt(self.prepared(step))
            except (KeyboardInterrupt, Stopped, TooLarge) as error:
                coarser = coarser_step(self.model, step) if best is None and isinstance(error, TooLarge) else None
                if coarser is not None:
                    step = coarser
                    continue
                if best is None:
                    raise
                stopped = "memory" if isinstance(error, TooLarge) else getattr(error, "reason", "interrupted")
                break
            stalled = may_stall and best is not None and stage.bracket.gap > STALLED * best.bracket.gap
            best = stage if best is None or not one_question else _better(best, stage)
            stopped = stage.stopped
            unbounded = np.isinf(best.bracket.gap)  # which does not come from rounding
            if stopped or stalled or unbounded or self._close(best) or not stage.prepared.scale.rounded:
                break
            step, stopped, needs = finer_step(stage, self._aim, self.limits, finest, order, base=self._base)
            if stopped:
                break
            tell(best)
        self.limits.partial = True
        far = not (stopped or self._aim.reached(best.bracket)) and endless(best, self._aim)
        needs = math.nan if self.target.exact else needs
        return replace(best, stopped=stopped or best.stopped, needs=needs, notes=(FAR,) if far else ())

    @property
    def _aim(self) -> Target:
        """The gap to reach while costs are rounded, even if the exact optimum is asked for in the end."""
        return Target() if self.target.exact and not self._base.scale.rounded else self.target

    def _close(self, stage: Stage[Any]) -> bool:
        """Return whether a stage reaches the gap or is known up to rounding errors, or finer ones might never be."""
        return stage.bracket.closed or self._aim.reached(stage.bracket) or endless(stage, self._aim)

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


def begin(
    model: SSP,
    alpha: float,
    *,
    target: Target | None = None,
    step: float | None = None,
    memory: int | float | str | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
    device: str = "cpu",
    ranks: Ranks | None = None,
    checkpoint: str | PathLike[str] | None = None,
    said: object = None,
) -> Job:
    """Check the arguments that all verbs take, and start the clock; model and alpha are checked already.

    A checkpoint belongs to the model, alpha, the step and ``said``: the method as the user gave it.
    """
    if step is not None:
        step = as_number("step", step, "a number above 0", lambda x: 0 < x < np.inf)
    limits, keeper = Limits.of(memory, time_limit, None, threads, device, ranks), None
    if checkpoint is not None:
        about = {"model": model.fingerprint, "alpha": alpha, "method": repr(said), "step": step}
        keeper = Checkpoint(checkpoint, about, 1 if ranks is None else ranks.size)
    return Job(model, alpha, step, target or Target(), replace(limits, keeper=keeper), keeper)


def explored(job: Job, what: str, first_step: Callable[[Prepared, float], float] = fair_step) -> Explored:
    """Sweep the budgets once, as far as a job's alpha requires; ``first_step`` gives the step if costs are rounded.

    Raise an error if the sweep is stopped; the message is that ``what`` takes too long.
    """

    def attempt(prepared: Prepared) -> Stage[Explored]:
        found = explore(prepared, job.alpha, job.limits)
        if found.stopped:
            raise Stopped(found.stopped, what)
        return Stage(prepared, found)

    return job.refined(attempt, first_step).found


def _why_rounded(common: float, lacking: str) -> str:
    """Report why costs with a common step are rounded, and how to avoid it."""
    lacks, first = "too much work", ""
    if lacking != "work":
        lacks = f"more {lacking} than the limit allows"
        first = "raise memory= and " if lacking == "memory" else "raise time_limit= and "
    return f"the common step of the costs, {common:g}, would take {lacks}; to use it, {first}set gap=0 (--gap 0)"


def _better(before: Stage[Any], after: Stage[Any]) -> Stage[Any]:
    """Return the stage with the smaller upper bound, with the larger of both lower bounds."""
    best = after if after.bracket.upper <= before.bracket.upper else before
    lower = max(before.bracket.lower, after.bracket.lower)
    return replace(best, bracket=replace(best.bracket, lower=lower))
