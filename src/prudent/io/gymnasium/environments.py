"""Models as Gymnasium environments, and the paper's domains among them."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.domains.registry import DOMAINS
from prudent.errors import PrudentError, needed
from prudent.io.gymnasium.tables import MODEL, action_names
from prudent.models.rows import FloatArray
from prudent.models.ssp import SSP, check_model

needed("gymnasium", "gym")

import gymnasium  # noqa: E402 (only after it is known to be there)
from gymnasium import spaces  # noqa: E402

ENVIRONMENTS = {about.environment: about.make.__name__ for about in DOMAINS.values()}
"""Each environment with the function of :mod:`prudent.domains` that makes its model."""


class SSPEnv(gymnasium.Env[Any, Any]):
    """An environment that plays a model; see :func:`prudent.to_gymnasium`."""

    metadata = {"render_modes": []}  # noqa: RUF012 (as every environment declares it)

    def __init__(self, model: SSP, *, unavailable: str = "stay", render_mode: str | None = None) -> None:
        check_model(model, "pass an SSP, as prudent.build returns it")
        if unavailable not in ("stay", "error"):
            raise PrudentError(f"unavailable is {unavailable!r}; it must be one of 'stay', 'error'")
        if render_mode is not None:
            raise PrudentError(f"render_mode is {render_mode!r}; this environment draws nothing, leave it out")
        over = model.initial_state[model.is_goal[model.initial_state]]
        if len(over):
            raise PrudentError(
                f"a run may start in {model.state(over[0])!r}, a goal; an environment cannot start in a goal"
            )
        self.model, self.unavailable, self.render_mode = model, unavailable, None
        self.actions = action_names(model)
        number = {name: i for i, name in enumerate(self.actions)}
        self._number = np.array([number[name] for name in model.names[1]], dtype=np.int64)
        self._state: int | None = None
        self.metadata = {**type(self).metadata, MODEL: model.fingerprint}
        self.observation_space = spaces.Discrete(model.n_states)
        self.action_space = spaces.Discrete(len(self.actions))

    def action_masks(self) -> NDArray[np.int8]:
        """Return which actions the current state has, 1 or 0 for each."""
        mask = np.zeros(len(self.actions), dtype=np.int8)
        if self._state is not None:
            start = self.model.action_start
            mask[self._number[start[self._state] : start[self._state + 1]]] = 1
        return mask

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin a run: draw its first state."""
        super().reset(seed=seed)
        self._state = int(self.np_random.choice(self.model.initial_state, p=self.model.initial_probability))
        return self._state, {"action_mask": self.action_masks()}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Play an action, by its number."""
        model, state = self.model, self._state
        if state is None or model.is_goal[state]:
            raise PrudentError("the run is over, or has not begun: call reset()")
        own = model.actions(state)
        known = self.action_space.contains(action)
        played = next((a for a in own if known and self._number[a] == action), None)
        if played is None:
            if self.unavailable == "error" or not known:
                names = ", ".join(f"{self._number[a]} ({model.action(a)!r})" for a in own)
                what = "its actions are" if known else "give the number of an action:"
                raise PrudentError(f"state {model.state(state)!r} has no action {action!r}; {what} {names}")
            return state, 0.0, False, False, {"action_mask": self.action_masks(), "unavailable": True}
        outcomes = model.outcomes(played)
        outcome = self.np_random.choice(outcomes, p=model.probability[outcomes.start : outcomes.stop])
        self._state = int(model.successor[outcome])
        reward = 0.0 - float(model.cost[outcome])
        return self._state, reward, bool(model.is_goal[self._state]), False, {"action_mask": self.action_masks()}

    @cached_property
    def initial_state_distrib(self) -> FloatArray:
        """The chance of each state to be the first, as toy-text environments give it."""
        chance = np.zeros(self.model.n_states)
        chance[self.model.initial_state] = self.model.initial_probability
        return chance

    @cached_property
    def P(self) -> dict[int, dict[int, list[tuple[float, int, float, bool]]]]:
        """The transitions as toy-text environments list them, including unavailable actions if these stay."""
        model, table = self.model, {}
        start, ends = model.outcome_start.tolist(), model.is_goal.tolist()
        chance, after, price = model.probability.tolist(), model.successor.tolist(), model.cost.tolist()
        for state in range(model.n_states):
            row: dict[int, list[tuple[float, int, float, bool]]] = {}
            if self.unavailable == "stay":
                row = {action: [(1.0, state, 0.0, ends[state])] for action in range(len(self.actions))}
            for a in model.actions(state):
                row[int(self._number[a])] = [
                    (chance[o], after[o], 0.0 - price[o], ends[after[o]]) for o in range(start[a], start[a + 1])
                ]
            table[state] = row
        return table


def domain_env(domain: str, *, render_mode: str | None = None, unavailable: str = "stay", **parameters: Any) -> SSPEnv:
    """Return one of :mod:`prudent.domains` as an environment; ``gymnasium.make`` calls this."""
    about = DOMAINS[domain.replace("_", "-")]
    for name in parameters:
        if name not in about.parameters:
            known = ", ".join(about.parameters) or "none"
            raise PrudentError(f"{domain} has no parameter {name!r}; its parameters are: {known}")
    return SSPEnv(about.make(**parameters), unavailable=unavailable, render_mode=render_mode)


def register_domains() -> None:
    """Register the paper's domains with ``gymnasium.make``."""
    for name, domain in ENVIRONMENTS.items():
        if name not in gymnasium.registry:  # else doing it twice would warn
            gymnasium.register(name, entry_point=f"{__name__}:domain_env", kwargs={"domain": domain})
