"""The driver that all verbs share: at which steps a question is asked, and what is answered when limits end that.

A verb checks its arguments and starts the clock (:mod:`prudent.planning.job`).  Then it makes a :class:`Question`: what
to attempt on the model, prepared for one step or another.  :func:`answer` asks it as follows.

    a step is given              one attempt
    no common step               costs rounded to finer and finer steps, until the gap is reached
    a common step, modest work   one attempt on exact costs; if it stops for want of memory, rounded ones
    a common step, more work     rounded costs; then, without cycles, exact ones only where the optimum can be
    the same, ``gap=0``          with cycles exact costs alone; under a time limit after rounded ones, if time is left
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Generic

import numpy as np

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.focus import Focus, focus_on
from prudent.errors import Defect, TooLarge
from prudent.planning.bounds import Found, Stage, Stop, Target
from prudent.planning.job import VALUES, Job
from prudent.planning.refine import (
    CELLS,
    COMMON,
    MARGIN,
    MODEST,
    PER_SECOND,
    coarser_step,
    endless,
    finer_step,
    first_step,
    in_time,
    modest,
)
from prudent.runtime.limits import Limits, Stopped, go_on, now

STALLED = 0.9
"""If a finer step leaves more than this fraction of the gap, the rest does not come from rounding."""

FAR = (
    "the optimal value is small relative to its distance from the lowest possible cost, so closer bounds take long; "
    "give an absolute gap (gap=, --gap) to go on until it is reached"
)

ENDS = (KeyboardInterrupt, Stopped, TooLarge)
"""What ends an attempt before it has an answer."""


class Question(ABC, Generic[Found]):
    """What a verb asks of a model; the driver chooses the steps."""

    order = 2  # the gap shrinks about with the step to the power of this
    may_stall = False  # whether part of the gap need not come from rounding; then attempts end if a step does not help
    focuses = False  # whether it can be asked only where the optimum can be
    refines = True  # whether finer steps may bring a better answer; if not, it is asked once
    step_for: Callable[[Prepared, float, Limits], float] | None = None  # chooses the first step, if the gap does not

    def __init__(self, job: Job) -> None:
        self.job = job

    def model(self) -> Prepared:
        """Return the model for the first attempt: with the given step, or the common step of the costs."""
        return self.job.prepared(self.job.step)

    @abstractmethod
    def attempt(self, prepared: Prepared, limits: Limits) -> Stage[Found]:
        """Return an answer for the step that a model is prepared for, within limits."""

    def first_step(self, prepared: Prepared) -> float:
        """Return the first step to round costs to; by default a fair one for the gap, coarser if time is short."""
        if self.step_for is not None:
            return self.step_for(prepared, self.job.alpha, self.job.limits)
        return first_step(prepared, self.job.alpha, self.job.target, self.job.limits)

    def focused(self, prepared: Prepared, focus: Focus) -> Stage[Found]:
        """Return an answer from the states and budgets in focus alone."""
        raise Defect(f"{type(self).__name__} does not focus")

    def at_hand(self, stopped: Stopped) -> Stage[Found]:
        """Return what is known where limits left no time for any attempt; raise ``stopped`` if that answers nothing."""
        raise stopped

    def tell(self, best: Stage[Found]) -> None:
        """Tell whoever listens the best answer so far, which is to be refined."""


def answer(question: Question[Found]) -> Stage[Found]:
    """Return the best of all attempts at a question, with the best of their bounds."""
    try:
        return Course(question).run()
    except Stopped as stopped:
        if stopped.reason == Stop.MEMORY:
            raise
        return question.at_hand(stopped)


class Course(Generic[Found]):
    """The attempts at one question, on exact costs and on costs rounded to one step after another."""

    def __init__(self, question: Question[Found]) -> None:
        self.question, self.job = question, question.job
        self.exact = question.model()  # exact unless the user gave a step, or costs have no common one
        self.lacking = Stop.WORK  # what exact costs would take too much of
        target, self.common = self.job.target, self.exact.scale.resolution  # 0 if costs have no common step
        self.focusable = question.focuses and self.exact.acyclic
        self.whole = target.exact and not self.focusable  # only a sweep of all budgets finds the optimum asked for
        self.aim = Target() if target.exact and self.common > 0 else target  # the gap to reach while costs are rounded

    def run(self) -> Stage[Found]:
        """Ask at the steps that the costs, the gap and the limits call for."""
        if not self.question.refines:
            return self._attempt(self.exact, self.job.limits)
        if not self.exact.acyclic:  # otherwise its lowest expected cost is known, whatever the limits
            go_on(self.job.limits, VALUES)
        if self.job.step is not None:
            return self._attempt(self.exact, self.job.limits)
        if self.exact.scale.rounded:
            return self._rounded(self.question.first_step(self.exact))
        if self.whole and self.job.limits.time_limit is not None:
            step = self.question.first_step(self.exact)
            if self._saves(step):
                return self._in_time_left(self._rounded(step))
        return self._exact_or_rounded()

    def _saves(self, step: float) -> bool:
        """Return whether a step is so much larger than the common one that rounding to it saves work."""
        return step >= COMMON * self.common

    def _close(self, stage: Stage[Found]) -> bool:
        """Return whether a stage reaches the gap or is known up to rounding errors, or finer ones might never be."""
        return stage.bracket.closed or self.aim.reached(stage.bracket) or endless(stage, self.aim)

    def _attempt(self, prepared: Prepared, limits: Limits) -> Stage[Found]:
        began = now()
        stage = self.question.attempt(prepared, limits)
        return replace(stage, seconds=now() - began)

    def _exact_or_rounded(self) -> Stage[Found]:
        """Attempt exact costs if that is modest work; round them if it is not, or if limits do not allow it."""
        stage, refused = self._modestly()
        if stage is not None and (stage.stopped != self.lacking or self._close(stage)):
            return stage
        step = self.question.first_step(self.exact)
        if self.whole or not self._saves(step):
            if refused is not None:
                raise refused
            stage = stage or self._attempt(self.exact, self.job.limits)
            if stage.stopped != Stop.MEMORY or not self._saves(step):
                return stage
        try:
            best = self._rounded(step, stage)
        except TooLarge as error:
            raise (refused or error) from None
        if self.focusable and best.prepared.scale.rounded:
            best = self._focused(best)
        if not best.prepared.scale.rounded:
            return best
        stopped = best.stopped or (stage.stopped if stage is not None and self.job.target.exact else Stop.NOT)
        return replace(best, stopped=stopped, notes=(self._why_rounded(), *best.notes))

    def _modestly(self) -> tuple[Stage[Found] | None, TooLarge | Stopped | None]:
        """Attempt exact costs if that is modest work; return the answer, or the error if memory is lacking."""
        most = max(self.exact.scale.in_levels(self.job.within), 0.0) + 2
        if not modest(self.exact, self.job.alpha, most, self.job.limits):
            return None, None
        if not (self.job.target.exact or in_time(self.exact, self.job.alpha, self.job.limits, most)):
            self.lacking = Stop.TIME
            return None, None
        self.lacking = Stop.MEMORY
        try:
            return self._attempt(self.exact, self.job.limits), None
        except (TooLarge, Stopped) as error:
            if self.job.target.exact or Stop.of(error) != Stop.MEMORY:
                raise
            return None, error

    def _rounded(self, step: float, best: Stage[Found] | None = None) -> Stage[Found]:
        """Attempt finer and finer steps from ``step`` down to the common one; ``best`` is the best attempt so far.

        If the first step takes too much memory, coarser ones are tried.
        """
        limits, needs, stopped = self.job.limits, math.nan, ""
        while True:
            try:  # the best so far is better than an unfinished finer stage
                stage = self._attempt(self.job.prepared(step), limits if best is None else limits.whole)
            except ENDS as error:
                coarser = coarser_step(self.job.model, step) if isinstance(error, TooLarge) else None
                if best is None and coarser is not None:
                    step = coarser
                    continue
                if best is None:
                    raise
                stopped = Stop.of(error)
                break
            stalled = self.question.may_stall and best is not None and stage.bracket.gap > STALLED * best.bracket.gap
            best = stage if best is None else stage.better(best)
            stopped = stage.stopped
            unbounded = np.isinf(best.bracket.gap)  # which does not come from rounding
            if stopped or stalled or unbounded or self._close(best) or not stage.prepared.scale.rounded:
                break
            step, stopped, needs = finer_step(
                stage, self.aim, limits, self.common, self.question.order, base=self.exact
            )
            if stopped:
                break
            self.question.tell(best)
        far = not (stopped or self.aim.reached(best.bracket)) and endless(best, self.aim)
        needs = math.nan if self.job.target.exact else needs
        return replace(best, stopped=stopped or best.stopped, needs=needs, notes=(FAR,) if far else ())

    def _in_time_left(self, best: Stage[Found]) -> Stage[Found]:
        """Attempt exact costs in the time that rounded ones left; if that fails, return the plan for those."""
        if not best.prepared.scale.rounded:
            return best
        self.lacking = Stop(best.stopped)
        try:
            if not best.stopped:
                return self._attempt(self.exact, self.job.limits.whole)
        except Stopped as error:
            self.lacking = Stop.of(error)
        return replace(best, stopped=self.lacking, notes=(self._why_rounded(),))

    def _focused(self, best: Stage[Found]) -> Stage[Found]:
        """Attempt exact costs where the optimum can be, if that is asked for or modest work."""
        exact, limits = self.job.target.exact, self.job.limits
        upper = self.exact.scale.in_levels(best.bracket.upper)
        if best.stopped or not (exact or not self.job.target.said) or not np.isfinite(upper):
            return best
        self.question.tell(best)
        try:
            focus = focus_on(self.exact, self.job.alpha, upper, max(int(upper / CELLS), 2), limits)
            if focus is None or not (exact or focus.work <= min(MODEST, PER_SECOND * limits.left)):
                return best
            stage = self.question.focused(self.exact, focus)
        except ENDS as error:
            why = Stop.of(error)
            if why == Stop.INTERRUPTED:
                return replace(best, stopped=why)
            self.lacking = why
            return replace(best, stopped=why, needs=MARGIN * getattr(error, "need", math.nan)) if exact else best
        return replace(stage, bracket=stage.better(best).bracket)

    def _why_rounded(self) -> str:
        """Report why costs with a common step are rounded, and how to avoid it."""
        lacks, first = "too much work", ""
        if self.lacking != Stop.WORK:
            lacks = f"more {self.lacking} than the limit allows"
            first = "raise memory= and " if self.lacking == Stop.MEMORY else "raise time_limit= and "
        return (
            f"the common step of the costs, {self.common:g}, would take {lacks}; to use it, {first}set gap=0 (--gap 0)"
        )
