"""Optimal excess and CVaR in exact arithmetic, and a policy's own, whatever the costs: free moves, loops, any start.

Nothing here uses the package's preparation, kernels or methods.  From every state some policy must reach a goal.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

import prudent

Row = list[tuple[Fraction, int, Fraction]]  # probability, next state, cost
Meaning = Callable[[float], Fraction]

MANY = 6_000
"""The most pairs of state and total that are looked at; a model with more is left out."""


class TooMany(Exception):
    """A model whose runs have too many totals."""


class Truth:
    """A model in fractions, costs above best luck; its start is one more state, with one action.

    With a ``share`` that much of the cost itself is added to the excess, so that the mean counts, too.
    """

    def __init__(self, model: prudent.SSP, meant: Meaning = Fraction, share: Fraction = Fraction(0)) -> None:
        self.start, self.share = model.n_states, share
        self.rows: list[list[Row]] = []
        for s in range(model.n_states):
            actions = []
            for a in range(int(model.action_start[s]), int(model.action_start[s + 1])):
                outcomes = range(int(model.outcome_start[a]), int(model.outcome_start[a + 1]))
                row = [
                    (Fraction(float(model.probability[o])), int(model.successor[o]), meant(float(model.cost[o])))
                    for o in outcomes
                    if model.probability[o] > 0
                ]
                total = sum(p for p, _, _ in row)
                actions.append([(p / total, t, c) for p, t, c in row])
            self.rows.append(actions)
        first = zip(model.initial_probability.tolist(), model.initial_state.tolist(), strict=True)
        begin = [(Fraction(p), t, Fraction(0)) for p, t in first]
        total = sum(p for p, _, _ in begin)
        self.rows.append([[(p / total, t, c) for p, t, c in begin]])
        self.luck = self._best_luck()
        self.rows = [
            [[(p, t, c + self.luck[t] - self.luck[s]) for p, t, c in row] for row in actions]
            for s, actions in enumerate(self.rows)
        ]
        self._known: dict[tuple[int, Fraction], Fraction] = {}

    def _best_luck(self) -> list[Fraction]:
        luck: list[Fraction | None] = [None if actions else Fraction(0) for actions in self.rows]
        for _ in self.rows:
            for s, actions in enumerate(self.rows):
                for row in actions:
                    for _, t, c in row:
                        ahead = luck[t]
                        if ahead is not None and (luck[s] is None or c + ahead < luck[s]):
                            luck[s] = c + ahead
        assert all(each is not None for each in luck)
        return [each for each in luck if each is not None]

    @cached_property
    def least(self) -> list[Fraction]:
        """The least expected cost of each state, above best luck."""
        acting = [s for s, actions in enumerate(self.rows) if actions]
        found = _least(
            {s: [(sum(p * c for p, _, c in row), [(p, t) for p, t, _ in row]) for row in self.rows[s]] for s in acting}
        )
        return [found.get(s, Fraction(0)) for s in range(len(self.rows))]

    @cached_property
    def _together(self) -> list[list[int]]:
        """The states on free cycles with each state, and itself."""
        reach = [{s} for s in range(len(self.rows))]
        for _ in self.rows:
            for s, actions in enumerate(self.rows):
                for row in actions:
                    for _, t, c in row:
                        if c == 0:
                            reach[s] |= reach[t]
        return [[t for t in reach[s] if s in reach[t]] for s in range(len(self.rows))]

    def excess(self, s: int, b: Fraction) -> Fraction:
        """Return the least expected excess over a budget, from a state."""
        if b <= 0:
            return (1 + self.share) * self.least[s] - b
        if not self.rows[s]:
            return Fraction(0)
        if (s, b) not in self._known:
            if len(self._known) > 2 * MANY:
                raise TooMany
            block = self._together[s]
            inside: dict[int, list[tuple[Fraction, list[tuple[Fraction, int]]]]] = {}
            for r in block:
                inside[r] = []
                for row in self.rows[r]:
                    free = [(p, t) for p, t, c in row if c == 0 and t in block]
                    rest = [(p, t, c) for p, t, c in row if not (c == 0 and t in block)]
                    k = sum((p * (self.share * c + self.excess(t, b - c)) for p, t, c in rest), Fraction(0))
                    inside[r].append((k, free))
            for r, value in _least(inside).items():
                self._known[r, b] = value
        return self._known[s, b]

    def totals(self, most: Fraction) -> list[Fraction]:
        """Return the totals that runs can have, above best luck, up to ``most``."""
        seen, queue = {(self.start, Fraction(0))}, [(self.start, Fraction(0))]
        for s, spent in queue:
            for row in self.rows[s]:
                for _, t, c in row:
                    if spent + c <= most and (t, spent + c) not in seen:
                        seen.add((t, spent + c))
                        queue.append((t, spent + c))
            if len(seen) > MANY:
                raise TooMany
        return sorted({spent for s, spent in seen if not self.rows[s]})

    def cvar(self, alpha: float) -> Fraction:
        """Return the optimal CVaR, plus the share of the mean divided by alpha."""
        best = (1 + self.share) * self.least[self.start] / Fraction(alpha)
        for w in self.totals(best):
            if w > best:
                break
            best = min(best, w + self.excess(self.start, w) / Fraction(alpha))
        return best + (1 + self.share / Fraction(alpha)) * self.luck[self.start]


def _least(
    inside: dict[int, list[tuple[Fraction, list[tuple[Fraction, int]]]]],
) -> dict[int, Fraction]:
    """Return the least expected totals, by policy iteration from a policy that leaves ``inside`` for sure."""
    choice: dict[int, int] = {}
    while len(choice) < len(inside):
        for s, actions in inside.items():
            for i, (_, ahead) in enumerate(actions):
                if s not in choice and (
                    sum((p for p, t in ahead if t in inside), Fraction(0)) < 1 or any(t in choice for _, t in ahead)
                ):
                    choice[s] = i
    while True:
        value, better = _values({s: inside[s][i] for s, i in choice.items()}), False
        for s, actions in inside.items():
            for i, (k, ahead) in enumerate(actions):
                if k + sum(p * value.get(t, 0) for p, t in ahead) < value[s]:
                    choice[s], better = i, True
                    break
        if not better:
            return value


def _values(chain: dict[int, tuple[Fraction, list[tuple[Fraction, int]]]]) -> dict[int, Fraction]:
    """Return the expected totals of a Markov chain, by elimination."""
    left = {s: (k, {t: sum(p for p, r in ahead if r == t) for _, t in ahead}) for s, (k, ahead) in chain.items()}
    order = []
    for s in list(left):
        k, ahead = left.pop(s)
        stay = 1 - ahead.pop(s, Fraction(0))
        k, ahead = k / stay, {t: p / stay for t, p in ahead.items() if t in left}
        order.append((s, k, ahead))
        for r, (other, further) in left.items():
            if share := further.pop(s, Fraction(0)):
                for t, p in ahead.items():
                    further[t] = further.get(t, Fraction(0)) + share * p
                left[r] = other + share * k, further
    value: dict[int, Fraction] = {}
    for s, k, ahead in reversed(order):
        value[s] = k + sum((p * value[t] for t, p in ahead.items()), Fraction(0))
    return value


def policy_cvar(model: prudent.SSP, policy, alpha: float, meant: Meaning = Fraction, *, exact: bool) -> Fraction:
    """Return the CVaR of a policy that charges itself rounded costs while true ones accrue, run by run.

    With ``exact`` false probabilities are floats, and runs are followed until hardly any is under way.
    """
    number, steps = Fraction if exact else float, 0
    ended: dict[Fraction, Fraction] = {}
    for share, part in policy.parts:
        walk = part.walk()
        under_way: dict[tuple[int, int, Fraction], Fraction] = {}
        total = sum(Fraction(float(p)) for p in walk.first_probability)
        for s, p, charge in zip(walk.first_state, walk.first_probability, walk.first_charge, strict=True):
            if p > 0:
                under_way[int(s), int(charge), Fraction(0)] = number(Fraction(share) * Fraction(float(p)) / total)
        while under_way and (exact or sum(under_way.values()) > 1e-15):
            after: dict[tuple[int, int, Fraction], Fraction] = {}
            for (s, charged, spent), mass in under_way.items():
                if walk.offset[s] < 0:
                    ended[spent] = ended.get(spent, number(0)) + mass
                    continue
                a = int(walk.offset[s]) + walk.choices.at(s, walk.level - charged)
                row = range(int(walk.begin[a]), int(walk.end[a]))
                whole = sum(Fraction(float(walk.probability[o])) for o in row)
                for o in row:
                    if walk.probability[o] > 0:
                        left = min(charged + int(walk.charge[o]), walk.level)  # then the budget is gone, no matter how
                        key = int(walk.successor[o]), left, spent + meant(float(walk.cost[o]))
                        p = number(Fraction(float(walk.probability[o])) / whole)
                        after[key] = after.get(key, number(0)) + mass * p
            under_way, steps = after, steps + len(after)
            if steps > 20 * MANY:
                raise TooMany
    rest, found = number(Fraction(alpha)), number(0)
    for value in sorted(ended, reverse=True):
        part = min(ended[value], rest)
        found += part * number(value)
        rest -= part
        least = value
    return Fraction((found + rest * number(least)) / number(Fraction(alpha)))
