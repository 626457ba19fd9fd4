"""Least expected costs of whole models in exact arithmetic, by elimination or by a certificate; costs are positive.

Nothing here uses the package's methods.  Probabilities are the fractions that the floats stand for, divided by their
sum; so results are true of the model as it was given, to the last digit.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import prudent

Row = list[tuple[Fraction, int, Fraction]]
Rows = list[list[Row]]  # by state and action: probability, next state, cost


def rational_rows(model: prudent.SSP) -> Rows:
    """Return the model's actions in fractions."""
    outcomes = list(zip(model.probability.tolist(), model.successor.tolist(), model.cost.tolist(), strict=True))
    assert all(c > 0 for _, _, c in outcomes)
    known: dict[float, Fraction] = {}

    def fraction(x: float) -> Fraction:
        if x not in known:
            known[x] = Fraction(x)
        return known[x]

    actions: list[Row] = []
    for first, last in pairwise(model.outcome_start.tolist()):
        row = [(fraction(p), t, fraction(c)) for p, t, c in outcomes[first:last]]
        total = sum(p for p, _, _ in row)
        actions.append(row if total == 1 else [(p / total, t, c) for p, t, c in row])
    return [actions[first:last] for first, last in pairwise(model.action_start.tolist())]


def worth(row: Row, value: Sequence[Fraction]) -> Fraction:
    """Return the expected cost of an action, if values go on from there."""
    return sum((p * (c + value[t]) for p, t, c in row), Fraction(0))


def policy_values(rows: Rows, choice: Sequence[int]) -> list[Fraction]:
    """Return the expected cost of a policy from every state: states are eliminated, those with the fewest arcs first.

    ``choice`` holds an action number per state, any number in goals.
    """
    acting = [s for s, actions in enumerate(rows) if actions]
    ahead: dict[int, dict[int, Fraction]] = {s: {} for s in acting}
    behind: dict[int, set[int]] = {s: set() for s in acting}
    constant = {s: sum((p * c for p, _, c in rows[s][choice[s]]), Fraction(0)) for s in acting}
    for s in acting:
        for p, t, _ in rows[s][choice[s]]:
            if t in ahead:
                ahead[s][t] = ahead[s].get(t, Fraction(0)) + p
                behind[t].add(s)
    order, left = [], set(acting)
    while left:
        s = min(left, key=lambda s: len(ahead[s]) * len(behind[s]))
        left.remove(s)
        order.append(s)
        stay = ahead[s].pop(s, Fraction(0))
        behind[s].discard(s)
        assert stay < 1, "the policy does not reach a goal"
        if stay:
            constant[s] /= 1 - stay
            ahead[s] = {t: p / (1 - stay) for t, p in ahead[s].items()}
        for t in ahead[s]:
            behind[t].discard(s)
        for r in behind[s]:
            share = ahead[r].pop(s)
            constant[r] += share * constant[s]
            for t, p in ahead[s].items():
                ahead[r][t] = ahead[r].get(t, Fraction(0)) + share * p
                behind[t].add(r)
    value = [Fraction(0)] * len(rows)
    for s in reversed(order):
        value[s] = constant[s] + sum((p * value[t] for t, p in ahead[s].items()), Fraction(0))
    return value


def least_values(rows: Rows, choice: Sequence[int]) -> list[Fraction]:
    """Return the least expected cost from every state, by policy iteration from a policy that reaches a goal."""
    choice = list(choice)
    while True:
        value, better = policy_values(rows, choice), False
        for s, actions in enumerate(rows):
            worths = [worth(row, value) for row in actions]
            if worths and min(worths) < value[s]:
                choice[s], better = worths.index(min(worths)), True
        if not better:
            return value


def certify(rows: Rows, choice: Sequence[int], value: Sequence[Fraction], share: Fraction) -> None:
    """Prove that the least expected cost, and that of a policy, is within this share of the values in every state.

    With L = (1 - share) value, no action is worth less than L of its state; so no policy costs less than L.  With
    U = (1 + share) value, the action chosen is worth at most U of its state; so the policy costs at most U: costs are
    positive, so that each step uses some of U up.
    """
    lower, upper = [(1 - share) * v for v in value], [(1 + share) * v for v in value]
    for s, actions in enumerate(rows):
        assert value[s] > 0 if actions else value[s] == 0
        for row in actions:
            assert worth(row, lower) >= lower[s], s
        assert not actions or worth(actions[choice[s]], upper) <= upper[s], s
