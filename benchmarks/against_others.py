"""QuantEcon and mdpsolver on the least expected cost, where they apply.

    python benchmarks/against_others.py NAME STATES

Both are for discounted models: QuantEcon's ``DiscreteDP`` iterates only for a discount below 1 and mdpsolver takes one,
so they do not apply to models that only end at a goal.  A model in which every action ends the run with the same
probability e is also one with discount 1 - e, and there they apply.  Their tolerances are the distance of values, as
they state it, and are set to 1e-6 and 1e-12 of the value; neither returns bounds.  An mdpsolver model that is solved
again begins with the values of the first time, and ends at once; so each turn has a model of its own, set up before the
clock runs.
"""

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np

import prudent
from against_storm import values_alone
from child import ask, tell
from large_model import ACTIONS, OUTCOMES, large_model
from table import Found, Row
from timing import Spread, interleaved

PART = "against other packages"
ENDS = 0.05
PRECISIONS = (1e-6, 1e-12)
TURNS = 7
PEERS = ("quantecon", "mdpsolver")


def run(quick: bool) -> Found:
    """Ask a child for each package and size."""
    found = Found()
    for peer in PEERS:
        if find_spec(peer) is None:
            found.rows.append(Row(PART, "all", peer, None, note=f"not installed: pip install {peer}"))
            continue
        for n in (1_000,) if quick else (1_000, 10_000, 100_000):
            answers, trouble = ask("against_others.py", peer, n, limit=60 if quick else 300)
            found.rows += rows_of(peer, n, answers, trouble)
    return found


def rows_of(peer: str, n: int, answers: list[dict[str, Any]], trouble: str) -> list[Row]:
    """Return the rows of one package at one size."""
    about = f"random {n:,}, discount {1 - ENDS:g}"
    if not answers:
        return [Row(PART, about, peer, None, note=trouble)]
    rows = []
    for answer in answers:
        theirs, at = Spread(tuple(answer["theirs"])), f"at {answer['precision']:g}"
        name = f"{peer}, {answer['method']}, {at}"
        rows.append(Row.of(PART, about, name, theirs, " s", note=f"{answer['off']:.0e} off; no bounds"))
        for what in ("solve", "values"):
            ours = Spread(tuple(answer[what]))
            label = "solve(method='expected')" if what == "solve" else "values and bounds alone"
            ahead = "ahead" if theirs.median > ours.median else "behind"
            aim = 0.2 if (peer, n) == ("mdpsolver", 1_000) else None
            rows += [
                Row.of(PART, about, label, ours, " s", note=f"bounds {answer['gap']:.0e} apart"),
                Row.of(PART, about, f"{peer} {at} / {what}", theirs.over(ours), "x", aim=aim, note=ahead),
            ]
    return rows


def discounted(model: prudent.SSP) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean costs, chances and successors by action, given that the run goes on; the goal left out."""
    shape = (model.n_actions, OUTCOMES)
    chance, successor = model.probability.reshape(shape), model.successor.reshape(shape)
    mean = (chance * model.cost.reshape(shape)).sum(axis=1)
    return mean, chance[:, 1:] / (1 - ENDS), successor[:, 1:]


def quantecon(model: prudent.SSP, tolerance: float) -> tuple[str, Any, Any]:
    """Return the method, how to run it, and how to read the value of the start."""
    from quantecon.markov import DiscreteDP
    from scipy.sparse import csr_matrix

    mean, chance, successor = discounted(model)
    n = model.n_states - 1
    starts = np.arange(len(mean) + 1) * (OUTCOMES - 1)
    moves = csr_matrix((chance.ravel(), successor.ravel(), starts), shape=(len(mean), n))
    moves.sum_duplicates()
    pairs = np.repeat(np.arange(n), ACTIONS), np.tile(np.arange(ACTIONS), n)
    ddp = DiscreteDP(-mean, moves, 1 - ENDS, *pairs)
    return (
        "modified policy iteration",
        lambda: ddp.solve(method="modified_policy_iteration", epsilon=tolerance, max_iter=10**6),
        lambda result: -float(result.v[0]),
    )


def mdpsolver(model: prudent.SSP, tolerance: float) -> tuple[str, Any, Any]:
    """Return the method, how to run it, and how to read the value of the start."""
    import mdpsolver as package

    mean, chance, successor = discounted(model)
    n = model.n_states - 1
    shape = (n, ACTIONS, OUTCOMES - 1)
    rewards = (-mean.reshape(n, ACTIONS)).tolist()
    chances, columns = chance.reshape(shape).tolist(), successor.reshape(shape).tolist()

    def fresh() -> Any:
        mdp = package.model()
        mdp.mdp(discount=1 - ENDS, rewards=rewards, tranMatProbs=chances, tranMatColumns=columns)
        return mdp

    waiting = [fresh() for _ in range(TURNS + 2)]  # one for the value, one to warm up

    def solve() -> Any:
        mdp = waiting.pop()
        mdp.solve(algorithm="mpi", tolerance=tolerance, parallel=False)
        return mdp

    return "modified policy iteration", solve, lambda mdp: -float(mdp.getValue(0))


def main(peer: str, n: int) -> None:
    """Tell how long a package and ours take, in turns."""
    model = large_model(n, ENDS)
    plan = prudent.solve(model, 1.0, method="expected")
    make = {"quantecon": quantecon, "mdpsolver": mdpsolver}[peer]
    for precision in PRECISIONS:
        method, task, read = make(model, precision * plan.expected)
        off = abs(read(task()) - plan.expected) / plan.expected
        tasks = {
            "theirs": task,
            "solve": lambda: prudent.solve(model, 1.0, method="expected"),
            "values": lambda: values_alone(model),
        }
        seconds = {name: found.values for name, found in interleaved(tasks, turns=TURNS, limit=60.0).items()}
        gap = (plan.expected - plan.expected_lower) / plan.expected
        tell(method=method, precision=precision, off=off, gap=gap, **seconds)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
