"""A billion simulated runs of the Betting Game against the exact numbers: how far apart, how long, how much memory.

``python benchmarks/many_runs.py``, with ``--episodes N`` for another number and ``--workers N`` for processes.
"""

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context

import prudent

ALPHA = 0.2


def main() -> None:
    """Run, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=10**9)
    parser.add_argument("--workers", type=int, default=0, help="processes; threads without them")
    asked = parser.parse_args()
    model = prudent.domains.betting_game()
    plan = prudent.solve(model, ALPHA)
    exact = prudent.evaluate(model, plan.policy)
    pool = ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) if asked.workers else nullcontext()
    with pool as executor:
        began = time.perf_counter()
        runs = prudent.simulate(model, plan.policy, episodes=asked.episodes, executor=executor)
        seconds = time.perf_counter() - began
    for name, value, error, truth in (
        ("mean", runs.mean, runs.mean_se, exact.mean),
        ("CVaR", runs.cvar(ALPHA), runs.cvar_se(ALPHA), exact.cvar(ALPHA)),
    ):
        print(f"{name}  {value:.6f} ± {error:.6f}, exactly {truth:.6f}: {(value - truth) / error:+.2f} standard errors")
    peak = [resource.getrusage(who).ru_maxrss / 1000 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    workers = f", {peak[1]:.0f} MB in the largest worker" if asked.workers else ""
    print(f"{runs.episodes:,} runs in {seconds:.0f} s; at most {peak[0]:.0f} MB{workers}")


if __name__ == "__main__":
    main()
