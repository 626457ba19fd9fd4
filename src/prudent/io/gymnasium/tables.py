"""From the table of a Gymnasium environment to a model."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from prudent.errors import PrudentError
from prudent.io.properties import CostRule, check_rule, cost_of
from prudent.models.amend import LATE, amend
from prudent.models.build import build
from prudent.models.ssp import SSP, fresh_name

MODEL = "prudent_model"
"""The key of an environment's metadata that holds the fingerprint of the model it plays."""

TRANSPARENT = (
    "HumanRendering",
    "OrderEnforcing",
    "PassiveEnvChecker",
    "RecordEpisodeStatistics",
    "RecordVideo",
    "RenderCollection",
    "TimeLimit",
)
"""Wrappers of Gymnasium that change neither observations nor actions nor rewards."""

TERMINATED = "terminated"
"""Marks the goal that is added for a state where some runs end and others continue."""

Table = dict[Hashable, dict[Hashable, list[tuple[float, Hashable, Any, bool]]]]


@dataclass(frozen=True, eq=False, repr=False)
class GymnasiumModel(SSP):
    """The model of an environment, with what is needed to read its observations and rewards.

    States are named by their observations; with a horizon, by ``(observation, actions taken)``.
    """

    rule: CostRule = "negative reward"
    horizon: int | None = None
    horizon_cost: float = 0.0
    late: Hashable = None  # the goal of runs that the horizon ended
    both: frozenset[Hashable] = frozenset()  # observations where some runs end and others continue

    def state_at(self, observation: Hashable, terminated: bool, taken: int) -> Hashable:
        """Return the name of the state of an observation after ``taken`` actions."""
        if terminated:
            return (observation, TERMINATED) if observation in self.both else observation
        if self.horizon is None:
            return observation
        return (observation, taken) if taken < self.horizon else self.late


def action_names(model: SSP) -> tuple[Hashable, ...]:
    """Return the names of all actions of a model, each once, in the order in which environments number them."""
    return tuple(dict.fromkeys(model.names[1]))


def plain(observation: Any) -> Any:
    """Return an observation or action as a name: NumPy's numbers as Python's, arrays as tuples."""
    if isinstance(observation, np.ndarray | np.generic):
        observation = observation.tolist()
    if isinstance(observation, list):
        return tuple(plain(item) for item in observation)
    return observation


def from_gymnasium(
    env: Any,
    *,
    cost: CostRule = "negative reward",
    initial: Hashable | Mapping[Any, float] | None = None,
    horizon: bool | int | None = None,
    horizon_cost: float = 0.0,
    name: str | None = None,
) -> GymnasiumModel:
    """Return the model of a Gymnasium environment that has a table ``P``, as FrozenLake, CliffWalking and Taxi do.

    ``P[state][action]`` lists ``(probability, next state, reward, terminated)``.  A transition that terminates leads
    to a goal, and what the table lists after it is not read.  The goal and the holes of FrozenLake are all
    goals of the model; only the cost distinguishes them.  :func:`prudent.check` names the states from which no run
    ends; so does :func:`prudent.solve` if they cannot be avoided.

    Parameters
    ----------
    env : gymnasium.Env
        The environment.  Wrappers that change neither observations nor actions nor rewards are ignored.
    cost : str or callable
        How a reward becomes a cost: ``"negative reward"``, so that the total cost is minus the return; ``"steps"``,
        1 for every action (a hole of FrozenLake is then as good as its goal); ``"as given"``, for tables of costs;
        or a function ``(state, action, reward, next_state) -> cost``.
    initial : state or mapping, optional
        The first state, or ``{state: probability}``; by default the environment's ``initial_state_distrib``.
    horizon : bool or int, optional
        The number of actions after which a run ends; True: as many as the environment's TimeLimit allows.  States
        become ``(state, actions taken)``.  By default runs continue until they terminate, whatever the TimeLimit; a
        note on the model and its plans names both.
    horizon_cost : float
        The cost that is added to a run if the horizon ends it.
    name : str, optional
        The name of the model in messages; by default the environment's id.

    Examples
    --------
    >>> import gymnasium, prudent
    >>> env = gymnasium.make("FrozenLake-v1", max_episode_steps=-1)
    >>> plan = prudent.solve(prudent.from_gymnasium(env), alpha=0.5)
    >>> round(-plan.expected, 4)                        # the highest probability of the goal, without a time limit
    0.8235
    """
    rule = check_rule(cost, or_function=True)
    inner, limit = _looked_through(env)
    title = name or getattr(getattr(env, "spec", None), "id", None) or type(inner).__name__
    first = _initial(initial, inner, title)
    table, ends = _reached(inner.P, list(first), title)
    if not ends:
        raise PrudentError(
            f"no transition of {title} that a run can take terminates; at least one must, so that runs can end"
        )
    both = frozenset(ends & table.keys())

    def led_to(target: Hashable, done: bool) -> Hashable:
        return (target, TERMINATED) if done and target in both else target

    def actions(state: Hashable) -> dict[Hashable, list[tuple[float, Hashable, Any]]]:
        return {
            action: [(p, led_to(to, done), cost_of(rule, state, action, r, to)) for p, to, r, done in outcomes]
            for action, outcomes in table.get(state, {}).items()
        }

    model = build(first, actions, name=title, max_states=len(table) + len(ends))
    if horizon is True and limit is None:
        raise PrudentError(f"horizon is True, but {title} has no TimeLimit; give the number of actions")
    if isinstance(horizon, bool):
        horizon = limit if horizon else None
    if horizon is None and horizon_cost != 0:
        raise PrudentError("horizon_cost is the cost of a run that the horizon ends; give horizon= with it")
    late = None
    if horizon is not None:
        late = fresh_name(LATE, model.names[0])
        model = amend(model, horizon=horizon, horizon_cost=horizon_cost)
    given = {item.name: getattr(model, item.name) for item in fields(SSP) if item.init}
    if limit is not None and (horizon is None or horizon > limit):
        without = "has no limit" if horizon is None else f"ends them after {horizon:,}"
        note = (
            f"{title} ends every run after {limit:,} actions, by its TimeLimit, and this model {without}: runs in the "
            "environment may have another CVaR and another expected cost; horizon=True includes the TimeLimit"
        )
        given["notes"] = (*model.notes, note)
    found = GymnasiumModel(**given, rule=rule, horizon=horizon, horizon_cost=float(horizon_cost), late=late, both=both)
    object.__setattr__(found, "deviation", model.deviation)  # of the table's own numbers, before they were normalised
    return found


def _looked_through(env: Any) -> tuple[Any, int | None]:
    """Return the environment under its wrappers, and the least of their time limits."""
    if isinstance(env, str):
        raise PrudentError(f"env is {env!r}; pass the environment, gymnasium.make({env!r})")
    limit = None
    while env is not getattr(env, "unwrapped", env):
        kind = type(env)
        if kind.__name__ not in TRANSPARENT or not kind.__module__.startswith("gymnasium."):
            raise PrudentError(
                f"env is wrapped in {kind.__name__}, so its table P may be wrong; pass env.unwrapped if the table "
                "still holds"
            )
        if kind.__name__ == "TimeLimit":
            allowed = int(env._max_episode_steps)
            limit = allowed if limit is None else min(limit, allowed)
        env = env.env
    if not hasattr(env, "P"):
        raise PrudentError(
            f"env is {env!r}, which has no table P of its transitions; only environments with one can be read: model "
            "others with prudent.build"
        )
    if getattr(env, "fickle_passenger", False):
        raise PrudentError(
            "env is Taxi with fickle_passenger=True, which its table P does not include; make it without"
        )
    return env, limit


def _initial(initial: Hashable | Mapping[Any, float] | None, env: Any, title: str) -> dict[Hashable, float]:
    """Return the states where runs start, as they are given or else as the environment has them."""
    if initial is not None:
        try:
            chances = initial.items() if isinstance(initial, Mapping) else [(initial, 1.0)]
            return {plain(state): p for state, p in chances}
        except TypeError:
            raise PrudentError(f"initial is {initial!r}; it must be a state, or {{state: probability}}") from None
    chance = getattr(env, "initial_state_distrib", None)
    if chance is None:
        raise PrudentError(
            f"{title} has no initial_state_distrib, so its initial state is unknown; give initial=, the state or "
            "{state: probability}"
        )
    try:
        given = np.asarray(chance)
    except ValueError:  # rows of unequal length
        given = np.zeros(())
    if given.ndim != 1 or given.dtype.kind not in "biuf":
        raise PrudentError(
            f"initial_state_distrib of {title} is {chance!r}; it must list the probability of each state; or give "
            "initial=, the initial state or {state: probability}"
        )
    return {state: p for state, p in enumerate(given.astype(np.float64).tolist()) if p != 0}


def _reached(table: Any, first: list[Hashable], title: str) -> tuple[Table, set[Hashable]]:
    """Return the part of a table that runs can reach, without impossible outcomes, and the states where runs end."""
    found: Table = {state: {} for state in first}
    ends = set()
    queue = list(found)
    for state in queue:  # grows while it is read
        try:
            if not isinstance(table, Mapping) and state < 0:  # type: ignore[operator]
                raise IndexError(state)
            row = table[state]
            options = list(row.items() if isinstance(row, Mapping) else enumerate(row))
        except (KeyError, IndexError, TypeError):
            raise PrudentError(f"the table P of {title} has no state {state!r}, which a run can reach") from None
        for action, outcomes in options:
            kept = found[state][plain(action)] = []
            for entry in outcomes if isinstance(outcomes, list | tuple) else [outcomes]:
                try:
                    p, target, reward, done = entry
                    if np.ndim(reward):
                        raise TypeError
                    possible, ended, reward = bool(p + 0 != 0), bool(done), plain(reward + 0)
                    hash(target := plain(target))
                except (TypeError, ValueError):
                    raise PrudentError(
                        f"P[{state!r}][{action!r}] of {title} holds {entry!r}; it must hold (probability, next state, "
                        "reward, terminated)"
                    ) from None
                if possible:
                    kept.append((p, target, reward, ended))
                    if ended:
                        ends.add(target)
                    elif target not in found:
                        found[target] = {}  # known, to be read when its turn comes
                        queue.append(target)
        if not found[state]:
            raise PrudentError(
                f"state {state!r} of {title} has no actions in P, and no run ends there; mark transitions that end a "
                "run as terminated"
            )
    return found, ends
