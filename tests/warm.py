"""Compile most kernels, once for all workers of the suite: each kind of model in a process of its own.

python tests/warm.py
"""

import subprocess
import sys

import prudent
from cents import maintenance
from cycles import walk
from threads_as_ranks import on_ranks

LOOP = {
    "s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "wade": [(0.6, "s", 3), (0.4, "t", 0)]},
    "t": {"rest": [(0.5, "s", 0), (0.5, "g", 2)]},
}
KINDS = {
    "without cycles": [prudent.domains.betting_game, prudent.domains.inventory_control],
    "with cycles": [lambda: prudent.build("s", LOOP), prudent.domains.autonomous_navigation],
}
"""For each kind, a model that is asked all, and one that is solved."""

MORE = {
    "without cycles": [
        lambda: prudent.solve(maintenance(), 0.05, gap=0),
        lambda: prudent.solve(prudent.domains.betting_game(), 0.1, method="cvar-wc"),
        lambda: prudent.solve(prudent.domains.betting_game(), 0.1, method="cvar-ev"),
    ],
    "with cycles": [
        lambda: prudent.solve(walk(300), 0.05),
        lambda: prudent.solve(prudent.build("s", LOOP), 0.2, goal="likeliest"),
    ],
}
"""For each kind, what many tests ask of models that these are not; otherwise each worker of the suite compiles it."""


def use(kind: str) -> None:
    """Ask what the suite asks most."""
    small, large = (make() for make in KINDS[kind])
    for model in (small, large):
        plan = prudent.solve(model, 0.2, relative_gap=0.01)
        prudent.evaluate(model, plan.policy)
    p = small.probability
    sets = prudent.Intervals(0.9 * p, 0.9 * p + 0.1)
    robust = prudent.solve(small, 0.2, uncertainty=sets)
    prudent.evaluate(small, robust.policy, uncertainty=sets).to_dict(0.2)
    robust.explain(small.state(int(small.initial_state[0])))
    prudent.simulate(small, prudent.solve(small, 0.2).policy, episodes=100)
    prudent.chances(small, [5.0])
    prudent.curve(small)
    prudent.frontier(small, 0.2)
    on_ranks(2, lambda comm: prudent.solve(small, 0.2, comm=comm))
    for ask in MORE[kind]:
        ask()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        use(sys.argv[1])
    else:
        children = [subprocess.Popen([sys.executable, __file__, kind]) for kind in KINDS]
        sys.exit(max(child.wait() for child in children))
