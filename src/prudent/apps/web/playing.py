"""One run of a plan, step by step: the action and why, the outcome, and from when on the tail is safe."""

from typing import Any

import numpy as np

from prudent.results.explanation import Explanation, Option
from prudent.results.plan import Plan

STEPS = 400
"""The most steps that are shown of a run."""

OUTCOMES = 12
"""The most outcomes of an action that are listed, the likeliest first; the one that happened is always there."""


def played(plan: Plan, seed: int) -> dict[str, Any]:
    """Return a run; the same for the same seed.

    At each step, ``outlook`` is the expected total cost of the run, and ``luck`` is by how much the outcome of the step
    lowers it.  The luck of all steps sums to the expected cost of the plan minus the cost of the run.
    """
    model = plan.model
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    state = int(rng.choice(model.initial_state, p=model.initial_probability))
    agent = plan.policy.start(model.state(state))  # where costs are rounded, it is the policy of the plan's numbers
    spent, safe_from = 0.0, None
    steps: list[dict[str, Any]] = []
    while not model.is_goal[state] and len(steps) < STEPS:
        told = plan.explain_left(model.state(state), spent, agent.left)
        action = model.find_action(state, told.action)
        outcome = np.array(model.outcomes(action))
        outcome = outcome[model.probability[outcome] > 0]
        chance = model.probability[outcome]
        drawn = int(rng.choice(len(outcome), p=chance / chance.sum()))
        if told.safe and safe_from is None:
            safe_from = len(steps)
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
        "safe_from": safe_from,
        "budget": plan.policy.budget,
        "bad": spent > plan.own.var,
        "expected": plan.own.expected,
    }


def _expected(told: Explanation) -> float:
    """Return the expected cost still to come, in the model itself."""
    by_name = [_own(o) for o in told.options if o.action == told.action and o.at == told.state]
    return by_name[0] if by_name else min(_own(o) for o in told.options if o.allowed)


def _own(option: Option) -> float:
    return option.expected if option.nominal_expected is None else option.nominal_expected
