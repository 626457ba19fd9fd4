"""Awkward models, written from public descriptions: loops hardly ever left, drift away from the goal, ties everywhere.

Every step costs 1 unless something else is said.
"""

from fractions import Fraction
from itertools import pairwise, product
from random import Random

import prudent

Outcomes = list[tuple[float, object, float]]


# ------------------------------------------------------------------------------------------ randomised protocols


def shared_coin(processes: int, bound: int) -> prudent.SSP:
    """The shared coin of randomised consensus (Aspnes and Herlihy 1990): a random walk that all processes move.

    Each tosses a coin, moves the counter by it, and decides if the counter is near an end.  The scheduler says who.
    """
    most = 2 * (bound + 1) * processes

    def actions(state):
        counter, all_of_them = state[0], state[1:]
        options: dict[int, Outcomes] = {}
        for i, (phase, coin) in enumerate(all_of_them):

            def after(phase: str, coin: int = 0, counter: int = counter, i: int = i) -> tuple:
                return counter, *all_of_them[:i], (phase, coin), *all_of_them[i + 1 :]

            if phase == "toss":
                options[i] = [(0.5, after("move", 0), 1), (0.5, after("move", 1), 1)]
            elif phase == "move" and 0 <= counter + (2 * coin - 1) <= most:
                options[i] = [(1, after("look", 0, counter + 2 * coin - 1), 1)]
            elif phase == "look" and processes < counter < most - processes:
                options[i] = [(1, after("toss"), 1)]
            elif phase == "look":
                options[i] = [(1, after("decided", int(counter > processes)), 1)]
        return options

    start = ((bound + 1) * processes, *[("toss", 0)] * processes)
    return prudent.build(start, actions, name=f"shared coin, {processes} processes, K={bound}")


def election(processes: int, ids: int, *, ordered: bool = True) -> prudent.SSP:
    """Leader election in a ring (Itai and Rodeh 1990): draw ids, send them round; if none is unique, draw again.

    Each process reads its neighbour once in each of ``processes - 1`` rounds: all at once, or one after the other in
    an order that the scheduler chooses, which makes no difference to the cost.
    """
    everyone = frozenset(range(processes))
    draws = list(product(range(ids), repeat=processes))

    def actions(state):
        if state == "draw":
            return {"draw": [(1 / len(draws), (drawn, 1, frozenset()), 1) for drawn in draws]}
        if state == "elected":
            return {}
        drawn, turn, done = state
        options: dict[object, Outcomes] = {}
        for reader in ["all"] if ordered else sorted(everyone - done):
            read = everyone if ordered else done | {reader}
            if read < everyone:
                after: object = (drawn, turn, read)
            elif turn < processes - 1:
                after = (drawn, turn + 1, frozenset())
            else:
                after = "elected" if any(drawn.count(i) == 1 for i in drawn) else "draw"
            options[reader] = [(1, after, 1)]
        return options

    kind = "in step" if ordered else "in any order"
    return prudent.build("draw", actions, name=f"election {kind}, {processes} processes, {ids} ids")


def election_mean(processes: int, ids: int, *, ordered: bool = True) -> Fraction:
    """The expected number of steps of an election: its rounds are independent, and equally long."""
    draws = list(product(range(ids), repeat=processes))
    decided = sum(any(drawn.count(i) == 1 for i in drawn) for drawn in draws)
    return Fraction(len(draws), decided) * (1 + (processes - 1) * (1 if ordered else processes))


def asynchronous_election(processes: int) -> prudent.SSP:
    """The election with messages that may be late: those who drew 0 after a 1 become passive, and pass messages on.

    Then counters go round; who gets its own count of all others back is the leader.  The scheduler says who sends.
    A process is (phase, preference, counter, received, sent), what is received and sent being nothing, a preference,
    a counter.
    """

    def sends(sender: tuple) -> tuple[str, tuple] | None:
        phase, preference, counter, received, sent = sender
        if sent == 0 and (phase in ("drawn", "active") or (phase == "passive" and received > 0)):
            return "preference", (phase, preference if phase == "drawn" else 0, counter, received, 1)
        if sent == 1 and phase == "active" and received == 1:
            return "counter", (phase, preference, counter, received, 2)
        if sent == 1 and phase in ("active", "passive") and received == 2:
            return "counter", ("draw" if phase == "active" else phase, 0, 0, 0, 0)
        return None

    def receives(receiver: tuple, what: str, sender: tuple) -> tuple | None:
        phase, preference, counter, received, sent = receiver
        _, theirs, count, _, _ = sender
        if what == "preference" and received == 0 and phase == "drawn":
            return "passive" if preference < theirs else "active", preference, counter, 1, sent
        if what == "preference" and received == 0 and phase == "passive":
            return phase, theirs, counter, 1, sent
        if what == "counter" and received == 1 and phase == "active":
            if sent < 2:
                return phase, preference, counter, 2, sent
            return "leader" if count == processes - 1 else "draw", 0, 0, 0, 0
        if what == "counter" and received == 1 and phase == "passive" and count < processes - 1:
            return phase, preference, count + 1, 2, sent
        return None

    def actions(state):
        if any(process[0] == "leader" for process in state):
            return {}
        options: dict[object, Outcomes] = {}
        for i, process in enumerate(state):
            if process[0] == "draw":
                both = [(*state[:i], ("drawn", p, *process[2:]), *state[i + 1 :]) for p in (0, 1)]
                options[i, "draw"] = [(0.5, after, 1) for after in both]
            elif message := sends(process):
                what, sender = message
                other = (i + 1) % processes
                if receiver := receives(state[other], what, process):
                    after = list(state)
                    after[i], after[other] = sender, receiver
                    options[i, what] = [(1, tuple(after), 1)]
        return options

    start = (("draw", 0, 0, 0, 0),) * processes
    return prudent.build(start, actions, name=f"asynchronous election, {processes} processes")


# ------------------------------------------------------------------------------------------------- slow chains


def uphill(length: int, up: float = 0.3, *, choices: bool = False) -> prudent.SSP:
    """A walk with drift away from the goal; with ``choices``, also a run: half as many falls, for twice the cost."""

    def actions(place):
        if place == length:
            return {}
        options = {"walk": [(up, place + 1, 1), (1 - up, max(place - 1, 0), 1)]}
        if choices:
            options["run"] = [((1 + up) / 2, place + 1, 2), ((1 - up) / 2, max(place - 1, 0), 2)]
        return options

    return prudent.build(0, actions, name=f"uphill, {length} places, up {up:g}{', choices' if choices else ''}")


def sticky(length: int, leave: float) -> prudent.SSP:
    """A chain of loops, each left with this chance; a second action leaves with half of it, for half the cost.

    So both have the same mean.  A third costs slightly more.
    """

    def actions(place):
        if place == length:
            return {}
        return {
            "push": [(leave, place + 1, 2), (1 - leave, place, 2)],
            "lean": [(leave / 2, place + 1, 1), (1 - leave / 2, place, 1)],
            "kick": [(leave * 1.5, place + 1, 4), (1 - leave * 1.5, place, 4)],
        }

    return prudent.build(0, actions, name=f"sticky, {length} loops, left with {leave:g}")


def fallback(length: int = 60, back: float = 0.3, *, in_turn: bool = False) -> prudent.SSP:
    """Two chains, side by side or one after the other, whose every state may fall back to the start."""

    def actions(state):
        if state == "goal":
            return {}
        if state == "start":
            return {chain: [(1, (chain, 0), 1)] for chain in ([0] if in_turn else [0, 1])}
        chain, place = state
        last = (1, 0) if in_turn and chain == 0 else "goal"
        return {"go": [(1 - back, last if place + 1 == length else (chain, place + 1), 1), (back, "start", 1)]}

    return prudent.build("start", actions, name=f"fallback, two chains of {length} {'in turn' if in_turn else 'aside'}")


def fallback_mean(length: int = 60, back: float = 0.3, *, in_turn: bool = False) -> Fraction:
    """The expected number of steps: of one attempt, divided by its chance."""
    on, total = Fraction(1 - back) / (Fraction(1 - back) + Fraction(back)), 2 * length if in_turn else length
    return (1 + (1 - on**total) / (1 - on)) / on**total


def gambler(fortune: int, win: float, *, bold: bool = False) -> prudent.SSP:
    """Gambler's ruin from the middle: play for 1, or (``bold``) for any stake, until broke or rich."""

    def actions(money):
        most = min(money, fortune - money)
        stakes = range(1, most + 1) if bold else range(1, min(most, 1) + 1)
        return {stake: [(win, money + stake, 1), (1 - win, money - stake, 1)] for stake in stakes}

    return prudent.build(fortune // 2, actions, name=f"gambler, {fortune}, wins {win:g}{', bold' if bold else ''}")


def gambler_mean(fortune: int, win: float, money: int) -> Fraction:
    """The expected number of games for a stake of 1 (Feller)."""
    up, down = Fraction(win), Fraction(1 - win)
    if up == down:
        return Fraction(money * (fortune - money))
    odds = down / up
    return (money - fortune * (1 - odds**money) / (1 - odds**fortune)) / (down - up) * (up + down)


# ---------------------------------------------------------------------------------------------- priced dead ends


def exploding_blocks(blocks: int, price: float, *, slip: float = 0.0, seed: int = 0) -> prudent.SSP:
    """Blocks world in which each block may explode once, when put down, and destroy the table or the block below.

    What is destroyed cannot be used again; giving up then costs ``price``.  With ``slip`` hands miss that often.
    ``below[i]`` is the block under i, or the table or the hand.
    """
    table, hand, draw = -1, -2, Random(seed)
    breaks = {"table": 0.4, "block": 0.1}

    def towers() -> tuple[int, ...]:
        order, below = draw.sample(range(blocks), blocks), [table] * blocks
        for lower, upper in pairwise(order):
            if draw.random() < 0.6:
                below[upper] = lower
        return tuple(below)

    first, goal = towers(), towers()
    while goal == first:
        goal = towers()

    def moved(state: tuple, i: int, to: int, *, explodes: bool = False) -> tuple:
        below, live, whole = state
        below = (*below[:i], to, *below[i + 1 :])
        return (below, live - {i}, whole - {to}) if explodes else (below, live, whole)

    def actions(state):
        below, live, whole = state
        if below == goal:
            return {}
        options: dict[object, Outcomes] = {}
        clear = [i for i in range(blocks) if i in whole and i not in below]
        held = [i for i in range(blocks) if below[i] == hand]
        for i in clear if not held else []:
            missed = moved(state, i, table) if table in whole else state
            options["pick", i] = [(1 - slip, moved(state, i, hand), 1), (slip, missed, 1)]
        for i in held:
            for to in [table, *(j for j in clear if j != i)]:
                if to not in whole:
                    continue
                chance = 0.0 if i not in live else breaks["table" if to == table else "block"]
                options["put", i, to] = [
                    ((1 - slip) * (1 - chance), moved(state, i, to), 1),
                    ((1 - slip) * chance, moved(state, i, to, explodes=True), 1),
                    (slip, state, 1),
                ]
        options = {action: [o for o in outcomes if o[0] > 0] for action, outcomes in options.items()}
        return options or {"stuck": [(1, state, 1)]}

    everything = frozenset(range(blocks))
    model = prudent.build(
        (first, everything, everything | {table}), actions, name=f"{blocks} blocks, slip {slip:g}, price {price:g}"
    )
    return _met(prudent.amend(model, dead_end_cost=price))


def _met(model: prudent.SSP) -> prudent.SSP:
    """Return the model without states that no run meets: those after a dead end, once giving up is all to do there."""

    def actions(name):
        state = model.index(name)
        return {
            model.action(a): [
                (model.probability[o], model.state(model.successor[o]), model.cost[o])
                for o in range(model.outcome_start[a], model.outcome_start[a + 1])
            ]
            for a in range(model.action_start[state], model.action_start[state + 1])
        }

    return prudent.build(model.state(model.first()), actions, name=model.name)


# ------------------------------------------------------------------------------------------------ ties everywhere


def doors(levels: int, width: int, actions: int, *, nudge: float = 0.5, seed: int = 0) -> prudent.SSP:
    """Rooms on levels, with equal doors: each leads up or down one level, to any room there, and nobody can tell.

    A goal is above the last level, and there is nothing below the first.  The chance to go up is ``nudge`` through
    every other door, and 1/2 through the rest.
    """
    draw = Random(seed)

    def doors_of(room):
        level, _ = room
        if level == levels:
            return {}
        options = {}
        for door in range(actions):
            up = nudge if door % 2 else 0.5
            above = (level + 1, draw.randrange(width) if level + 1 < levels else 0)
            options[door] = [(up, above, 1), (1 - up, (max(level - 1, 0), draw.randrange(width)), 1)]
        return options

    kind = "" if nudge == 0.5 else f", up {nudge!r}"
    return prudent.build((0, 0), doors_of, name=f"doors, {levels} levels of {width}, {actions} each{kind}")


def detours(length: int, actions: int, back: float = 0.25) -> prudent.SSP:
    """A chain that falls back to its start, each place with several ways of equal cost: 1 step or many, or a loop."""

    def options(state):
        if state == length:
            return {}
        if isinstance(state, tuple):
            place, left = state
            return {"on": [(1, place + 1 if left == 1 else (place, left - 1), 1)]}
        falls = (back, 0, actions)
        ways = {"at once": [falls, (1 - back, state + 1, actions)]}
        for steps in range(2, actions + 1):
            ways[steps] = [falls, (1 - back, (state, steps - 1), actions - steps + 1)]
        ways["dither"] = [
            (0.5, state, actions / 2),
            (back / 2, 0, actions / 2),
            (0.5 - back / 2, state + 1, actions / 2),
        ]
        return ways

    return prudent.build(0, options, name=f"detours, {length} places, {actions} ways each")
