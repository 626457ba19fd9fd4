"""The tasks that a worker answers: each is a function of a session and the request's own values.

Numbers are those of ``to_dict``, which ``--json`` prints; texts those of the tables the command prints.  To play is to
show one run of a plan, step by step: the action and why, the outcome, and from when on the tail is safe.
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import prudent
from prudent.apps.web.maps import policy_map
from prudent.errors import PrudentError, numeral
from prudent.io.plan import content_of
from prudent.methods.registry import chosen
from prudent.policies.distribution import Distribution, check_alpha
from prudent.results.explanation import Explanation
from prudent.results.plan import Plan
from prudent.runtime.tables import csv_text, plain

if TYPE_CHECKING:
    from prudent.apps.web.worker import Session

YARDSTICK, MEAN = "exact", "expected"
"""The method that the others are compared with, and the one that minimises the expected cost."""

ALPHA_MIN = 0.005  # the smallest alpha of the slider; one sweep serves every alpha from here on
SAMPLED = 25  # points of the alpha curve where costs are rounded: each is a policy of its own to evaluate
BARS, ALL_BARS = 80, 800  # about the most bars of a distribution between its rare ends, and with them
RARE = 1e-3  # the probability of each end
STEPS = 400  # the most steps that are shown of a run
OUTCOMES = 12  # the most outcomes that are listed of an action, the likeliest first; what happened is always there
LONG = 2**25  # states times levels above which no task looks at each pair of them: that takes many seconds


class Asked(NamedTuple):
    """Which plan a request asks for."""

    alpha: float
    method: str = YARDSTICK
    relative_gap: float | None = None
    uncertainty: float | str | None = None


def played(plan: Plan, seed: int) -> dict[str, Any]:
    """Return a run; the same for the same seed.

    At each step, ``outlook`` is the expected total cost of the run, and ``luck`` is by how much the outcome of the step
    lowers it.  The luck of all steps sums to the expected cost of the plan minus the cost of the run.
    """
    model = plan.model
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    state = int(rng.choice(model.initial_state, p=model.initial_probability))
    agent = plan.policy.start(model.state(state))  # where costs are rounded, it is the policy of the plan's numbers
    spent = 0.0
    steps: list[dict[str, Any]] = []
    while not model.is_goal[state] and len(steps) < STEPS:
        told = plan.explain_left(model.state(state), spent, agent.left)
        action = model.find_action(state, told.action)
        outcome = np.array(model.outcomes(action))
        outcome = outcome[model.probability[outcome] > 0]
        chance = model.probability[outcome]
        drawn = int(rng.choice(len(outcome), p=chance / chance.sum()))
        listed = np.argsort(-chance, kind="stable")[:OUTCOMES].tolist()
        if drawn not in listed:
            listed[-1] = drawn
        steps.append(
            {
                **told.to_dict(),
                "outlook": spent + _expected(told),
                "outcomes": [
                    {
                        "to": str(model.state(int(model.successor[outcome[i]]))),
                        "cost": float(model.cost[outcome[i]]),
                        "p": float(chance[i]),
                        "happened": i == drawn,
                    }
                    for i in listed
                ],
                "unlisted": len(outcome) - len(listed),
            }
        )
        spent += float(model.cost[outcome[drawn]])
        state = int(model.successor[outcome[drawn]])
        agent.observe(model.state(state), float(model.cost[outcome[drawn]]))
    done = bool(model.is_goal[state])
    ends = [step["outlook"] for step in steps[1:]] + [spent]
    for step, after in zip(steps, ends, strict=True):
        step["luck"] = step["outlook"] - after if done or step is not steps[-1] else None
    return {
        "seed": seed,
        "steps": steps,
        "total": spent,
        "done": done,
        "end": str(model.state(state)),
        "safe_from": next((i for i, step in enumerate(steps) if step["safe"]), None),
        "budget": plan.policy.budget,
        "bad": spent > plan.own.var,
        "expected": plan.own.expected,
    }


def _expected(told: Explanation) -> float:
    """Return the expected cost still to come, in the model itself."""
    named = [o for o in told.options if (o.action, o.at) == (told.action, told.state)][:1]
    return min(
        option.expected if option.nominal_expected is None else option.nominal_expected
        for option in named or [o for o in told.options if o.allowed]
    )


def so_far(plan: Plan) -> bytes:
    """Return the body of an answer to a solve that is still refining its plan."""
    return as_json({**_answer(plan, plan.total_cost), "refining": True, "refines": True, "sure": False})


def _read(values: dict[str, str], name: str, default: str | None = None) -> Any:
    """Return a value of a request as a number, or unchanged if it is not one; by default None if it was left out."""
    text = values.get(name, default)
    try:
        return text if text is None else float(numeral(text))
    except ValueError:
        return text


def _asked(values: dict[str, str]) -> Asked:
    """Return which plan a request asks for; only the yardstick is for a gap, and for a set of models."""
    method = chosen(values.get("method", YARDSTICK))[0]
    more = [_read(values, name) for name in ("relative_gap", "uncertainty")] if method == YARDSTICK else []
    return Asked(check_alpha(_read(values, "alpha", "")), method, *more)


def _solve(session: "Session", values: dict[str, str]) -> bytes:
    asked = _asked(values)
    plan = session.plan(asked, sure=values.get("sure") == "1")
    told = {"refining": False, "refines": session.refines(plan), "sure": session.is_sure(plan)}
    return as_json({**_answer(plan, lambda: session.distribution(plan, asked)), **told})


def _answer(plan: Plan, follow: Callable[[], Distribution]) -> dict[str, Any]:
    """Return what a card shows; the distribution is that of simulated runs if an exact one takes long."""
    prepared = plan.policy.prepared
    long = bool(prepared.n_states * prepared.scale.in_levels(plan.own.var) > LONG)
    result = prudent.simulate(plan.model, plan.policy).distribution if long else follow()
    shown = plan.shown() | {"step": f"{plan.step:g}{', rounded' if prepared.scale.rounded else ''}"}
    if plan.nominal is None:
        own = plan.own_cvar.removeprefix("exactly ")
        shown["cvar"] = own.replace("at least ", "≥\u00a0").replace("at most ", "≤\u00a0")
    return {
        "plan": plan.to_dict(),
        "shown": shown,
        "own": asdict(plan.own),
        "message": plan.message,
        "rounded": prepared.scale.rounded,
        "std": result.std,
        "bars": {**_bars(plan, result), "simulated": long or math.isnan(plan.own.var)},
    }


def _bars(plan: Plan, result: Distribution) -> dict[str, Any]:
    """Return a distribution as bars of equal width, none of which lies across VaR.

    A width is a unit times a power of two, so that bars of several plans can be joined to bars of the same width.
    """
    values, step = result.values, 0.0 if result.grouped else plan.step
    most, low, high = float(values[-1] - values[0]), result.quantile(RARE), result.quantile(1 - RARE)
    span = max(min(high, float(values[-1])) - low, most * BARS / ALL_BARS)
    unit = step if step and not plan.policy.prepared.scale.rounded else 1.0
    width = unit * 2.0 ** math.ceil(math.log2(span / unit / BARS) - 1e-9) if span else unit
    width = max(width, step)
    end = plan.own.var if math.isfinite(plan.own.var) else float(values[-1])
    place = np.ceil((values - end) / width - 1e-9).astype(np.int64)  # bar i ends at VaR plus i widths
    bar, which = np.unique(place, return_inverse=True)
    heights = np.bincount(which, weights=result.probabilities)
    x = end + bar * width - (width - step) / 2
    return {"x": x, "p": heights, "bar": bar, "width": width, "step": step, "end": end, "missing": result.missing}


def _curve(session: "Session", values: dict[str, str]) -> bytes:
    uncertainty = _read(values, "uncertainty")
    found = session.curve(uncertainty)
    sampled = session.rounded or uncertainty is not None  # each point is a policy of its own to evaluate
    asked = np.geomspace(ALPHA_MIN, 1, SAMPLED).tolist() if sampled else None
    return as_json({**found.to_dict(asked), "sampled": sampled})


def _frontier(session: "Session", values: dict[str, str]) -> bytes:
    rough: dict[str, Any] = {"tolerance": 0.01}
    if session.rounded:  # a picture need not be as fine as a plan
        rough = {"tolerance": 0.02, "most": 12, "step": session.curve().step}
    found = prudent.frontier(session.model, _read(values, "alpha", ""), **rough, **session.options)
    return as_json({**found.to_dict(), "message": found.message})


def _policy(session: "Session", values: dict[str, str]) -> bytes:
    plan = session.plan(_asked(values), sure=False)
    left = _read(values, "left")
    if isinstance(left, str) or (left is not None and not math.isfinite(left)):
        raise PrudentError(f"left is {values['left']!r}; it must be a number")
    return as_json(policy_map(session, plan, left, values.get("layer")))


def _play(session: "Session", values: dict[str, str]) -> bytes:
    text = values.get("run", "0")
    if not text.isdecimal() or len(text) > 9:
        raise PrudentError(f"run is {text!r}; it must be a whole number, the seed of a run")
    plan = session.plan(_asked(values), sure=False)
    if plan.policy.prepared.n_states * plan.policy.level > LONG:
        raise PrudentError(
            f"a run compares actions at every budget, which takes too long for the page at steps of {plan.step:g}; "
            "choose a larger gap, for which costs are rounded to larger steps, or use plan.explain"
        )
    return as_json(played(plan, int(text)))


def _decisions(session: "Session", values: dict[str, str]) -> bytes:
    return session.plan(_asked(values)).decisions().to_csv().encode("utf-8", "backslashreplace")


def _distribution(session: "Session", values: dict[str, str]) -> bytes:
    asked = _asked(values)
    result = session.distribution(session.plan(asked), asked)
    rows = zip(result.values.tolist(), result.probabilities.tolist(), strict=True)
    return csv_text(("value", "probability"), rows).encode()


def _data(session: "Session", values: dict[str, str]) -> bytes:
    asked = _asked(values)
    plan = session.plan(asked)
    return as_json({**plan.to_dict(), "distribution": session.distribution(plan, asked).to_dict(plan.alpha)})


def as_json(content: Any) -> bytes:
    """Return the body of an answer in JSON."""
    return json.dumps(plain(content), allow_nan=False).encode()


class Task(NamedTuple):
    """What can be asked about a model; requests that differ in nothing that a task asks for are the same."""

    answer: Callable[["Session", dict[str, str]], bytes]
    asks: tuple[str, ...] = ()  # values of the query
    kind: str = "application/json"
    slow: bool = False  # for the slow workers


PLANNED, CSV = Asked._fields, "text/csv; charset=utf-8"

TASKS: dict[str, Task] = {
    "check": Task(lambda session, values: as_json(prudent.check(session.model).to_dict())),
    "solve": Task(_solve, (*PLANNED, "sure")),
    "curve": Task(_curve, ("uncertainty",), slow=True),
    "frontier": Task(_frontier, ("alpha",), slow=True),
    "policy": Task(_policy, ("alpha", "relative_gap", "uncertainty", "left", "layer")),
    "play": Task(_play, ("alpha", "relative_gap", "uncertainty", "run")),
    "plan.safetensors": Task(
        lambda session, values: content_of(session.plan(_asked(values))), PLANNED, "application/octet-stream"
    ),
    "decisions.csv": Task(_decisions, PLANNED, CSV),
    "distribution.csv": Task(_distribution, PLANNED, CSV),
    "data.json": Task(_data, PLANNED),
}
"""Every task by the name it has in the address; one that is called like a file is downloaded as one."""
