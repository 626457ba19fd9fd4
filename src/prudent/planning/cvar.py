"""The questions about CVaR: its minimum, by the exact method, another one, or for a set of models; and every budget."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from prudent.engine.prepared import Prepared
from prudent.engine.sweep.estimate import within_levels
from prudent.engine.sweep.focus import Focus
from prudent.methods.exact import Explored, exact, explore
from prudent.methods.expected import at_hand, evaluated
from prudent.methods.registry import chosen
from prudent.methods.robust import robust
from prudent.methods.solution import Nominal, Solution
from prudent.models.intervals import Intervals
from prudent.planning.bounds import Stage, Stop, stage_of
from prudent.planning.driver import Question, answer
from prudent.planning.job import Job
from prudent.planning.plans import planned, stopped_late
from prudent.planning.refine import FEW, fair_step
from prudent.results.plan import Plan
from prudent.runtime.limits import Limits, Stopped

if TYPE_CHECKING:
    from prudent.methods.registry import Run


class LeastCVaR(Question[Solution]):
    """The plan of minimal CVaR, and of lowest expected cost among those; or the plan of another method."""

    focuses = True

    def __init__(self, job: Job, name: str = "exact", run: "Run" = exact) -> None:
        """Ask a method; another one than the exact one does not aim at the optimum, so that no step is refined."""
        super().__init__(job)
        self.name, self.run, self.refines = name, run, name == "exact"

    def model(self) -> Prepared:
        """Return the model; the tail of a plan of lowest expected cost uses a fair step if the exact one takes long."""
        job, prepared = self.job, super().model()
        if self.name != "expected" or job.step is not None:
            return prepared
        long = prepared.scale.rounded or not within_levels(prepared, job.alpha, FEW, job.limits)
        return job.prepared(fair_step(prepared, job.alpha, job.limits)) if long else prepared

    def attempt(self, prepared: Prepared, limits: Limits) -> Stage[Solution]:
        """Run the method; if there was no time to evaluate its policy, the one at hand may be better."""
        found = self.run(prepared, self.job.alpha, limits)
        return stage_of(prepared, evaluated(prepared, self.job.alpha, found), self.job.alpha)

    def focused(self, prepared: Prepared, focus: Focus) -> Stage[Solution]:
        """Sweep what is in focus."""
        return stage_of(prepared, exact(prepared, self.job.alpha, self.job.limits, focus=focus), self.job.alpha)

    def at_hand(self, stopped: Stopped) -> Stage[Solution]:
        """Return the plan of lowest expected cost."""
        return unswept(self.job.prepared(self.job.step), self.job.alpha, stopped.reason)

    def tell(self, best: Stage[Solution]) -> None:
        """Tell the listener, if there is one."""
        if self.job.tell is not None:
            self.job.tell(planned(self.job, best))


def unswept(prepared: Prepared, alpha: float, stopped: str = Stop.TIME) -> Stage[Solution]:
    """Return the plan of lowest expected cost, at hand without a sweep, with its bounds on the optimal CVaR."""
    return stage_of(prepared, at_hand(prepared, alpha, stopped), alpha)


class AgainstNature(Question[Solution]):
    """The plan of minimal worst-case CVaR; the gap of rounded costs is about in proportion to the step.

    No plan at hand has bounds for a set of models, and no listener shows plans for one.
    """

    order, may_stall = 1, True

    def __init__(self, job: Job, intervals: Intervals) -> None:
        super().__init__(job)
        self.intervals = intervals

    def attempt(self, prepared: Prepared, limits: Limits) -> Stage[Solution]:
        """Sweep the budgets against nature."""
        return stage_of(prepared, robust(prepared, self.intervals, self.job.alpha, limits), self.job.alpha)


def least_cvar(job: Job) -> Stage[Solution]:
    """Return the plan of minimal CVaR, with a checkpoint if there is one."""
    return job.kept(lambda: answer(LeastCVaR(job)))


def solve_with(job: Job, method: object) -> Plan:
    """Return the plan of a method."""
    name, run = chosen(method)
    return planned(job, job.kept(lambda: answer(LeastCVaR(job, name, run))), name)


def solve_robust(job: Job, intervals: Intervals) -> Plan:
    """Return the plan of minimal worst-case CVaR.

    If the gap stays open, the plan for the model itself gives another lower bound.
    """
    if not (intervals.high > intervals.low).any():  # then the set is a single model
        stage = least_cvar(job)
        own = stage.found
        same = replace(own, nominal=Nominal(own.cvar, own.var, own.expected))
        return planned(job, replace(stage, found=same), intervals=intervals)
    with job.stopping():
        stage = answer(AgainstNature(job, intervals))
        if not (stage.stopped or job.target.reached(stage.bracket)):
            lower = max(stage.bracket.lower, least_cvar(job).bracket.lower)
            stage = replace(stage, bracket=replace(stage.bracket, lower=min(lower, stage.bracket.upper)))
    return planned(job, stage, intervals=intervals)


class EveryBudget(Question[Explored]):
    """The sweeps that serve a job's alpha and every larger one; ``what`` is said to take too long if they do."""

    def __init__(self, job: Job, what: str, step_for: Callable[[Prepared, float, Limits], float]) -> None:
        super().__init__(job)
        self.what, self.step_for = what, step_for

    def attempt(self, prepared: Prepared, limits: Limits) -> Stage[Explored]:
        """Sweep the budgets."""
        return Stage(prepared, explore(prepared, self.job.alpha, limits).finished(self.what))


def explored(job: Job, what: str, first_step: Callable[[Prepared, float, Limits], float] = fair_step) -> Explored:
    """Sweep the budgets once, as far as a job's alpha requires; raise an error if that is stopped."""
    return answer(EveryBudget(job, what, first_step)).found


def only_at_hand(job: Job, stopped: Stopped) -> Stage[Solution]:
    """Return the plan at hand, where the time limit stopped the sweeps; raise any other reason again."""
    if stopped.reason != Stop.TIME:
        raise stopped
    stage = unswept(job.prepared(job.step), job.alpha)
    return replace(stage, notes=(*stage.prepared.scale.notes, *stage.found.notes, stopped_late(job.limits)))
