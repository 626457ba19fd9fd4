"""``search``: a plan for a model that is explored only where a good plan goes.

The *partial model* has the states expanded so far as they are; every other state met so far ends the run at the cost
``h``, a lower bound on the least expected cost V there.

*Guarantee.*  Stop a run of any policy where it first leaves the explored part, and charge it h there.  By Jensen's
inequality neither its expected excess over any budget nor its expected cost grows.  So the optimal CVaR of the partial
model is a lower bound on the true one.  Take a plan that is optimal there, in CVaR and then in expected cost, and that
meets only expanded states: it is a plan of the whole model, with the same numbers.  So both optima are equal, every
true optimal plan is optimal in the partial model, too, and none has a lower expected cost: the plan is optimal in both.
Otherwise the states that it meets are expanded, with more states near them to make the next solve worth while, and the
partial model is solved again (LAO*).  While the plan leaves the explored part, only the lowest expected cost of the
partial model bounds that of the plans that attain the optimal CVaR.

*What must be true* is written on the plan (``docs/large_worlds.md``).
"""

import gc
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from prudent.engine.values.expected_cost import surely_expected
from prudent.errors import PrudentError, TooLarge, as_number
from prudent.methods.solution import Solution
from prudent.models.build import Outcomes, PartialModel, Successors
from prudent.models.ssp import SSP
from prudent.planning.bounds import OPTIMAL_GAP, Bracket, Stage, Stop, bracket_below
from prudent.planning.cvar import least_cvar
from prudent.planning.expansion import Expansion, Heuristic
from prudent.planning.job import Job, begin
from prudent.planning.options import Options
from prudent.planning.plans import planned
from prudent.policies.distribution import check_alpha
from prudent.results.decisions import states_met
from prudent.results.plan import Exploration, Plan
from prudent.results.visits import times_played
from prudent.runtime.limits import Limits, Stopped
from prudent.runtime.progress import Progress

GROWTH, AT_LEAST = 0.25, 32
"""How much is expanded before the next solve: this fraction of what was expanded before, or this many states."""

SCARCE = 0.25
"""If the explored part takes more than this share of the memory, models solved before are released at once."""


def search(
    initial: Hashable | Mapping[Any, float],
    actions: Successors | Mapping[Any, Mapping[Any, Outcomes]],
    alpha: float,
    *,
    heuristic: Heuristic | None = None,
    goals: Iterable[Hashable] | None = None,
    fallback: Callable[[Any], Hashable] | float | None = None,
    dead_end_cost: float | None = None,
    gap: float | None = None,
    relative_gap: float | None = None,
    step: float | None = None,
    memory: int | float | str | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
    device: str = "cpu",
    name: str = "model",
) -> Plan:
    """Find a plan for a model too large to build: optimal CVaR first, lowest expected cost second.

    The model is explored from its start, only where a good plan goes.  The plan is as good as that of
    :func:`prudent.solve` for the whole model.  Its own model is the explored part; ``plan.explored`` reports the size.
    There, states that were met but not expanded have the action ``"stop"``, at the cost given by the heuristic, and
    with ``dead_end_cost`` states that may be dead ends have the action ``"give up"``.  Ctrl-C returns the best plan and
    bounds so far.  All else that :func:`prudent.solve` can be asked for needs a model that is built.

    Parameters
    ----------
    initial, actions, goals
        As in :func:`prudent.build`: the first state, or ``{state: probability}``; ``actions(state)`` returns
        ``{action: [(probability, next_state, cost), ...]}``, and ``{}`` or ``None`` at a goal.  The model may have
        infinitely many states.
    alpha : float
        The worst fraction of runs in CVaR: 0.05 for the worst 5%; above 0 and at most 1.
    heuristic : callable, optional
        ``heuristic(state)`` is a lower bound on the lowest expected cost from a state; it is infinite if no goal can be
        reached.  With ``dead_end_cost`` it bounds the cost of plans that may pay this cost, and higher values are
        lowered to it.  The higher the heuristic, the smaller the explored part.  A heuristic found to be too high is
        rejected with an error; if it was not checked in all states met, ``plan.explored.certified`` is false, and a
        note states where it must be valid.  The default is 0, a valid bound if no cost is negative: a negative cost
        that is met is an error, and a note states that none may be in the part that was not explored.
    fallback : callable or float, optional
        What runs do outside the explored part; this gives an upper bound if the search is stopped early.  A function
        ``fallback(state)`` returns the action of a policy that reaches a goal with probability 1.  A number is a price
        to end the run there, not below the lower bound on CVaR.  The upper bound then holds if runs can really end at
        this price; a note states this, and ``plan.explored.certified`` is false.  If random outcomes may lead anywhere,
        give a price: the search ends once the gap is reached, by default 1e-8 of the size of the bounds.
    dead_end_cost : float, optional
        The cost of getting stuck, as in :func:`prudent.amend`.
    gap, relative_gap, step, memory, time_limit, threads, device : optional
        As in :func:`prudent.solve`; both limits include exploring, and reaching one returns the best plan and bounds so
        far.  The memory limit is for the explored part and the tables of a solve, both estimated.  Python and its
        libraries take about 200 MB more.  For plans that consider hundreds of budgets, the evaluation takes several
        times the memory of the tables.
    name : str
        The name of the model in messages and reports.

    Examples
    --------
    >>> import prudent
    >>> def actions(state):  # an infinite street, home at 0; the tram may be late
    ...     if state == 0:
    ...         return {}
    ...     return {"walk": [(1, state - 1, 3)], "tram": [(0.9, max(state - 4, 0), 5), (0.1, state, 10)]}
    >>> plan = prudent.search(10, actions, alpha=0.1)
    >>> plan.status, round(plan.cvar, 6), round(plan.expected, 6), plan.explored.met
    ('optimal', 28.222222, 23.522222, 11)
    """
    asked, alpha = Options.of("search", locals()), check_alpha(alpha)
    if heuristic is not None and not callable(heuristic):
        raise PrudentError(f"heuristic is {heuristic!r}; it must be a function of the state")
    if fallback is not None and not callable(fallback):
        fallback = as_number("fallback", fallback, "a function from states to actions, or a price", math.isfinite)
    partial = PartialModel(initial, actions, goals, name)
    job = begin(cast(SSP, None), alpha, asked)  # each solve has a model of its own
    with job.stopping():
        return _Search(partial, Expansion(partial, heuristic, asked.dead_end_cost), fallback, job).run()


@dataclass
class _Search:
    """A search in progress."""

    partial: PartialModel  # the part explored so far
    known: Expansion
    fallback: Callable[[Any], Hashable] | float | None
    job: Job
    lower: float = -math.inf
    solves: int = 0

    def run(self) -> Plan:
        """Explore and solve until the plan stays in the explored part, or until a limit ends it."""
        tips, best = self.known.open(self.partial.initial_state), None
        stopped: str = Stop.NOT
        with Progress(f"searching {self.partial.name}", unit="states") as progress:
            while not stopped:
                self._expand(tips, progress)
                try:
                    stage = self._solved(self.known.model(), self.job.limits)
                except (Stopped, TooLarge) as error:
                    stopped, tips = Stop.of(error), self.known.open()
                    break
                self.lower = max(self.lower, stage.bracket.lower)
                if best is not None and stage.stopped and stage.bracket.gap > best.bracket.gap:  # less is known of it
                    stopped, tips = stage.stopped, self.known.open()
                    break
                best = stage
                self._check_fallback()
                tips = self._tips(stage)
                if not tips:
                    self.known.check_heuristic(self.job.limits.without_time)
                    return self._plan(stage, self._explored())
                stopped = stage.stopped or self._why_stop()
                if not stopped and self._nearly(stage, tips):
                    closed = self._with_fallback(tips, self.job.limits)
                    if closed is not None and self._enough(closed.bracket):
                        self.known.check_heuristic(self.job.limits.without_time)
                        return self._plan(closed, self._explored(closed), stage)
        if best is None:
            raise Stopped(stopped, f"a first plan for {self.partial.name}")
        return self._so_far(best, stopped, tips)

    def _expand(self, tips: list[int], progress: Progress) -> None:
        """Expand the states that the plan meets, then the nearest ones, so that the next solve is worth while."""
        expanded = self.partial.expanded
        enough = len(expanded) + max(AT_LEAST, int(GROWTH * len(expanded)))
        for number in tips:
            if self.partial.is_expanded(number):
                self.known.expand_from(number, enough, self._why_stop)
            else:
                self.known.expand(number)
            progress.at(len(expanded))
            if self._why_stop():
                return
        while len(expanded) < enough and not self._why_stop() and self.known.expand_nearest():
            progress.at(len(expanded))

    def _why_stop(self) -> str:
        """Why to stop now, if at all; a fallback policy gets half of the memory."""
        share = 0.5 if callable(self.fallback) else 1.0
        return self.job.limits.stop or ("memory" if self.known.known_bytes > share * self.job.limits.memory else "")

    def _solved(self, model: SSP, limits: Limits) -> Stage[Solution]:
        """Solve a model in the remaining memory."""
        known, memory = self.known.known_bytes, limits.memory
        if known > SCARCE * memory:
            gc.collect()  # models hold references to themselves
        self.solves += 1
        limits = replace(limits, memory=max(memory - known, memory // 2))
        return least_cvar(replace(self.job, model=model, limits=limits))

    def _tips(self, stage: Stage[Solution]) -> list[int]:
        """Return the unexpanded states that the plan meets; if there are none, those in doubt."""
        policy, partial = stage.found.policy, self.partial
        met = states_met(policy)
        inside = policy.prepared.members.state_of[: len(partial.states)]
        number = np.flatnonzero((inside >= 0) & met[inside]).tolist()
        return self.known.open(number) or [n for n in self.known.in_doubt.tolist() if inside[n] >= 0 and met[inside[n]]]

    def _check_fallback(self) -> None:
        """Reject a price below the lower bound: ending a run would be cheaper than any plan, and bound nothing."""
        price = self.fallback
        if price is not None and not callable(price) and price < self.lower - OPTIMAL_GAP * abs(self.lower):
            given = "" if self.known.heuristic is None else " if the heuristic is valid"
            raise PrudentError(
                f"fallback is {price:.12g}; no plan has a CVaR below {self.lower:.12g}{given}, and only a higher price "
                "gives an upper bound; raise it, or make ending a run an action of the model"
            )

    def _nearly(self, stage: Stage[Solution], tips: list[int]) -> bool:
        """Return whether so few runs meet unexpanded states that falling back there reaches the gap."""
        if self.fallback is None or callable(self.fallback) or self.partial.is_expanded(tips[0]):
            return False
        prepared, price = stage.prepared, self.fallback
        inside = prepared.members.state_of[tips]
        chance = times_played(stage.found.policy)[prepared.action_start[inside]]
        more = float(chance @ np.maximum(price - np.array(self.known.bound)[tips], 0.0)) / self.job.alpha
        return self._enough(replace(stage.bracket, upper=stage.bracket.upper + more))

    def _enough(self, bracket: Bracket) -> bool:
        """Return whether bounds are so close that the search ends."""
        wanted = self.job.target.said or bracket.step == 0  # costs are rounded
        return bracket.closed or (wanted and self.job.target.reached(bracket))

    def _so_far(self, stage: Stage[Solution], stopped: str, tips: list[int]) -> Plan:
        """Return the best plan of a stopped search: outside the explored part, from ``tips``, it falls back."""
        explored, limits = self._explored(), self.job.limits.for_the_rest
        self.known.check_heuristic(limits)
        closed = self._with_fallback(tips, limits)
        if closed is not None:
            ended = explored if callable(self.fallback) else self._explored(closed)
            return self._plan(replace(closed, stopped=stopped), ended, stage)
        # Without a fallback the plan is incomplete.
        found = replace(stage.found, cvar=math.nan, var=math.nan, expected=math.nan, upper=math.inf)
        note = "the plan has no action in states not explored; set fallback= to define one"
        if self.fallback is not None:
            note = "no upper bound: within the limits, the fallback does not reach a goal with probability 1"
        partly = replace(stage, found=replace(found, notes=(*found.notes, note)), stopped=stopped)
        return self._plan(replace(partly, bracket=Bracket(self.lower, math.inf)), explored, stage)

    def _with_fallback(self, tips: list[int], limits: Limits) -> Stage[Solution] | None:
        """Solve the explored part with the fallback outside; None if no plan there reaches a goal for sure.

        The lower bound is that of the whole model, which has no such action.
        """
        partial, stop, ends = self.partial, "stop", dict[int, float]()
        if callable(self.fallback):
            self._follow(self.fallback, tips, limits)
        elif self.fallback is not None:
            stop, ends = "fall back", dict.fromkeys(range(len(partial.states)), self.fallback)
        try:
            closed = self._solved(self.known.priced(partial.ssp(ends, stop)), limits)
        except PrudentError:  # no policy reaches a goal there, or that takes too long or too much memory
            return None
        return replace(closed, bracket=replace(closed.bracket, lower=min(self.lower, closed.bracket.upper)))

    def _follow(self, fallback: Callable[[Any], Hashable], tips: list[int], limits: Limits) -> None:
        """Add the states that the fallback may reach from the given ones, each with its action alone."""
        partial, queue, seen = self.partial, list(tips), set(tips)
        for number in queue:
            if limits.stop or self.known.known_bytes > limits.memory:
                return
            if partial.is_goal(number):
                if not partial.is_expanded(number):  # it may not have actions
                    partial.expand(number)
                continue
            action = fallback(partial.states[number])
            if not partial.is_expanded(number):
                partial.expand(number, only=action)
            if not partial.is_goal(number):
                after = [target for target in partial.leads_to(number, action) if target not in seen]
                seen.update(after)
                queue += dict.fromkeys(after)

    def _plan(self, stage: Stage[Solution], explored: Exploration, best: Stage[Solution] | None = None) -> Plan:
        """Return a solution as a plan; ``best`` is that of the partial model, if this plan leaves the explored part."""
        model, job = stage.prepared.model, self.job
        plan = planned(replace(job, model=model), stage)
        if best is not None:
            least = bracket_below(best.prepared, float(surely_expected(best.prepared)[best.prepared.start]))
            least = plan.expected if plan.expected < least else least  # which may be unknown
            status, known = plan.status, Bracket(least, plan.expected, stage.prepared.scale.resolution)
            if status == "optimal" and not known.closed:
                status = job.target.status(stage.bracket, aims=True, interrupted=False, second=False)
            worst = best.prepared.scale.in_units(best.found.worst)  # the fallback is not the only way on
            plan = replace(plan, expected_lower=least, worst_case=worst, status=status)
        price = "" if self.fallback is None or callable(self.fallback) else f"{self.fallback:.12g}"
        return replace(plan, explored=explored, notes=(*plan.notes, *explored.provisos(price).values()))

    def _explored(self, closed: Stage[Solution] | None = None) -> Exploration:
        """Return how much was explored; ``closed`` is a plan with a price as its fallback."""
        priced = 0 if closed is None else sum(not self.partial.is_expanded(number) for number in self._tips(closed))
        sizes = len(self.partial.states), len(self.partial.expanded)
        return Exploration(*sizes, self.solves, self.known.trusted, priced)
