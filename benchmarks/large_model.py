"""A model of a million states and ten million outcomes, from arrays: checked, solved, and cross-checked.

    python benchmarks/large_model.py [STATES] [ENDS]

Costs are 1 to 5, and every action ends the run with probability ENDS, by default such that totals are about 50 and the
tail reaches 200.  Prints times and the peak memory of the whole process, and the message of a solve that would need too
much.
"""

import resource
import sys
import time

import numpy as np

import prudent

ALPHA = 0.05
ACTIONS, OUTCOMES = 2, 5


def large_model(n_states: int, ends: float, seed: int = 0) -> prudent.SSP:
    """Return a random model: one component, actions that differ in where they lead and what they cost."""
    rng = np.random.default_rng(seed)
    goal = n_states - 1
    n_actions = goal * ACTIONS
    successor = rng.integers(0, goal, size=(n_actions, OUTCOMES))
    successor[:, 0] = goal
    probability = np.empty((n_actions, OUTCOMES))
    probability[:, 0] = ends
    probability[:, 1:] = rng.dirichlet(np.ones(OUTCOMES - 1), size=n_actions) * (1 - ends)
    return prudent.from_arrays(
        np.minimum(np.arange(n_states + 1) * ACTIONS, n_actions),
        np.arange(n_actions + 1) * OUTCOMES,
        probability.ravel(),
        successor.ravel(),
        rng.integers(1, 6, size=n_actions * OUTCOMES).astype(float),
        name=f"random-{n_states}",
    )


def main(n_states: int, ends: float) -> None:
    """Check, solve, simulate; print what each took."""
    began = time.perf_counter()

    def say(what: str, found: object) -> None:
        nonlocal began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{what:<9} {time.perf_counter() - began:7.1f} s   peak {peak:6.2f} GB   {found}", flush=True)
        began = time.perf_counter()

    model = large_model(n_states, ends)
    say("build", model)
    say("check", prudent.check(model, alpha=ALPHA).forecast)
    try:
        plan = prudent.solve(model, ALPHA)
    except prudent.PrudentError as error:
        say("refused", error)
        return
    say("solve", plan)
    runs = prudent.simulate(model, plan.policy, episodes=200_000, seed=1)
    say("simulate", f"{runs}, CVaR {runs.cvar(ALPHA):.6g} ± {runs.cvar_se(ALPHA):.2g}")
    assert abs(runs.mean - plan.expected) <= 4 * runs.mean_se
    assert plan.lower - 4 * runs.cvar_se(ALPHA) <= runs.cvar(ALPHA) <= plan.upper + 4 * runs.cvar_se(ALPHA)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, float(sys.argv[2]) if len(sys.argv) > 2 else 0.05)
