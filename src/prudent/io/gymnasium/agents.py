"""Agents that play plans in Gymnasium environments, one at a time or many at once, and models as environments."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from prudent.errors import PrudentError, whole_number
from prudent.io.gymnasium.tables import MODEL, GymnasiumModel, action_names, plain
from prudent.io.properties import CostRule, check_rule, cost_of
from prudent.models.ssp import SSP
from prudent.policies.agent import Agent
from prudent.policies.policy import BudgetPolicy
from prudent.results.plan import Plan


class EnvAgent:
    """Plays a plan in one environment, run after run.

    Call :meth:`start` with the observation that ``reset`` returned.  Then play :attr:`action` and pass the result of
    ``step`` to :meth:`observe`, until :attr:`done`.  :func:`prudent.gymnasium_agent` returns such an agent.

    Examples
    --------
    >>> import prudent
    >>> env = prudent.to_gymnasium(prudent.domains.figure_2())
    >>> agent = prudent.gymnasium_agent(prudent.solve(env.model, alpha=0.1), env)
    >>> agent.start(env.reset(seed=0)[0])
    >>> while not agent.done:
    ...     agent.observe(*env.step(agent.action))
    >>> agent.spent, agent.budget
    (9.0, 0.0)
    """

    def __init__(self, policy: BudgetPolicy, rule: CostRule, plays: bool, seed: Sequence[int]) -> None:
        self._policy, self._model, self._rule, self._seed = policy, policy.prepared.model, rule, list(seed)
        # The number of each action's name, if the environment plays the model.
        self._number = {name: i for i, name in enumerate(action_names(self._model))} if plays else None
        self._agent: Agent | None = None
        self._observation: Any = None
        self._runs = self._taken = 0
        self._truncated = False

    def start(self, observation: Any) -> None:
        """Begin a run in the state that ``reset`` returned.

        Examples
        --------
        >>> import prudent
        >>> env = prudent.to_gymnasium(prudent.domains.figure_2())
        >>> agent = prudent.gymnasium_agent(prudent.solve(env.model, alpha=0.1), env)
        >>> agent.start(env.reset(seed=0)[0])
        >>> agent
        <EnvAgent in 0, spent 0, budget 9, next 0>
        """
        own = np.random.SeedSequence([*self._seed, self._runs])  # for policies that draw; another for each run
        seed = int(own.generate_state(1, np.uint64)[0])
        self._agent = self._policy.start(self._state(observation), seed=seed)
        self._observation, self._runs, self._taken, self._truncated = observation, self._runs + 1, 0, False

    def observe(
        self,
        observation: Any,
        reward: float,
        terminated: bool,
        truncated: bool = False,
        info: object = None,
        *,
        measured: bool = False,
    ) -> None:
        """Record what ``step`` returned; an outcome that the plan's model does not list raises PrudentError.

        The arguments are what ``step`` returns; ``info`` is ignored.  With ``measured=True`` any cost is accepted; see
        :meth:`prudent.policies.agent.Agent.observe`.

        Examples
        --------
        >>> import prudent
        >>> env = prudent.to_gymnasium(prudent.domains.figure_2())
        >>> agent = prudent.gymnasium_agent(prudent.solve(env.model, alpha=0.1), env)
        >>> agent.start(env.reset(seed=0)[0])
        >>> agent.observe(*env.step(agent.action))
        >>> agent
        <EnvAgent in 1, spent 0, budget 9, next 2>
        """
        agent, model, taken = self._run, self._model, self._taken + 1
        if self.done:
            raise PrudentError("the run is over; call start() to begin another")
        cost = float(cost_of(self._rule, plain(self._observation), self.action, reward, plain(observation)))
        if self._number is None and isinstance(model, GymnasiumModel) and not terminated and taken == model.horizon:
            cost += model.horizon_cost
        agent.observe(self._state(observation, bool(terminated), taken), cost, measured=measured)
        if terminated and not agent.done:
            raise PrudentError(
                f"the environment ended the run in state {agent.state!r}, which is not a goal of the model"
            )
        self._observation, self._taken, self._truncated = observation, taken, bool(truncated)

    def _state(self, observation: Any, terminated: bool = False, taken: int = 0) -> Hashable:
        """Return the name of the state that an observation stands for."""
        if self._number is None:
            name = plain(observation)
            return self._model.state_at(name, terminated, taken) if isinstance(self._model, GymnasiumModel) else name
        if not isinstance(observation, int | np.integer) or not 0 <= observation < self._model.n_states:
            raise PrudentError(
                f"the observation is {observation!r}; it must be the number of a state, the first of what reset() or "
                "step() returned"
            )
        return self._model.state(int(observation))

    @property
    def _run(self) -> Agent:
        if self._agent is None:
            raise PrudentError("no run has begun; call start() with the observation that reset() returned")
        return self._agent

    @property
    def action(self) -> Any:
        """The action to play now, as the environment takes it; None once the run is done."""
        if self.done:
            return None
        return self._run.action if self._number is None else self._number[self._run.action]

    @property
    def done(self) -> bool:
        """Whether the run has reached a goal or was truncated by the environment."""
        return self._run.done or self._truncated

    @property
    def spent(self) -> float:
        """The cost so far."""
        return self._run.spent

    @property
    def budget(self) -> float | None:
        """The remaining budget; None if the plan has none."""
        return self._run.budget

    def __repr__(self) -> str:
        if self._agent is None:
            return "<EnvAgent before its first run>"
        after = "done" if self.done else f"next {self.action!r}"
        budget = "" if self.budget is None else f", budget {self.budget:g}"
        return f"<EnvAgent in {self._observation!r}, spent {self.spent:g}{budget}, {after}>"


class VectorAgent:
    """Plays a plan in the environments of a vector, which reset themselves.

    Call :meth:`start` with the observations that ``reset`` returned.  Then play :attr:`actions` and pass the result of
    ``step`` to :meth:`observe`.

    Attributes
    ----------
    agents : list of EnvAgent
        The agent of each environment.
    totals : list of list of float
        For each environment, the costs of its finished runs, which reached a goal or were truncated.  The cost of a
        truncated run is the cost so far, not that of a whole run.

    Examples
    --------
    >>> import gymnasium, prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> envs = gymnasium.vector.SyncVectorEnv([lambda: prudent.to_gymnasium(plan.model)] * 2)
    >>> agents = prudent.gymnasium_agent(plan, envs)
    >>> agents.start(envs.reset(seed=0)[0])
    >>> for _ in range(5):
    ...     agents.observe(*envs.step(agents.actions))
    >>> agents.totals
    [[9.0, 1.0], [10.0, 1.0]]
    """

    def __init__(self, agents: list[EnvAgent], mode: str) -> None:
        self.agents = agents
        self.totals: list[list[float]] = [[] for _ in agents]
        self._mode = mode
        self._last: list[Any] = [None] * len(agents)

    def start(self, observations: Any, mask: Any = None) -> None:
        """Begin runs in the states that ``reset`` returned: in every environment, or in those of the reset mask.

        Examples
        --------
        >>> import gymnasium, prudent
        >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
        >>> envs = gymnasium.vector.SyncVectorEnv([lambda: prudent.to_gymnasium(plan.model)] * 2)
        >>> agents = prudent.gymnasium_agent(plan, envs)
        >>> agents.start(envs.reset(seed=0)[0])
        >>> agents.actions.tolist()
        [0, 0]
        """
        for i, agent in enumerate(self.agents):
            if mask is None or mask[i]:
                agent.start(observations[i])

    @property
    def actions(self) -> Any:
        """The actions to play now, as the environments take them; if a run is done, its last action, without effect."""
        for i, agent in enumerate(self.agents):
            if not agent.done:
                self._last[i] = agent.action
        return np.array(self._last)

    def observe(
        self,
        observations: Any,
        rewards: Any,
        terminations: Any,
        truncations: Any,
        infos: Any,
        *,
        measured: bool = False,
    ) -> None:
        """Record what ``step`` returned; ``measured=True`` also accepts costs that the model does not list.

        Examples
        --------
        >>> import gymnasium, prudent
        >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
        >>> envs = gymnasium.vector.SyncVectorEnv([lambda: prudent.to_gymnasium(plan.model)] * 2)
        >>> agents = prudent.gymnasium_agent(plan, envs)
        >>> agents.start(envs.reset(seed=0)[0])
        >>> agents.observe(*envs.step(agents.actions))
        >>> agents.actions.tolist()
        [2, 4]
        """
        for i, agent in enumerate(self.agents):
            if agent.done and self._mode == "NextStep":  # this step was the reset of the environment
                agent.start(observations[i])
                continue
            ended = bool(terminations[i] or truncations[i])
            again = ended and self._mode == "SameStep"
            seen = infos["final_obs"][i] if again else observations[i]
            agent.observe(seen, float(rewards[i]), bool(terminations[i]), bool(truncations[i]), measured=measured)
            if agent.done:
                self.totals[i].append(agent.spent)
                if not ended:
                    raise PrudentError(
                        f"the plan's run in environment {i} is over, but the environment continues; make it with "
                        "the plan's horizon as max_episode_steps="
                    )
            if again:
                agent.start(observations[i])


def gymnasium_agent(plan: Plan | BudgetPolicy, env: Any, *, cost: CostRule | None = None, seed: int = 0) -> Any:
    """Return an agent that plays a plan in a Gymnasium environment (EnvAgent), or in a vector of them (VectorAgent).

    Parameters
    ----------
    plan : Plan or policy
        The plan, or its policy.
    env : gymnasium.Env or gymnasium.vector.VectorEnv
        The environment that the plan's model was read from with :func:`prudent.from_gymnasium`, or one that plays the
        model (:func:`prudent.to_gymnasium`, ``prudent/BettingGame-v0`` and so on); or one whose observations and
        actions are names of the model.  A vector may reset its environments in the next step, in the same step, or not
        at all.
    cost : str or callable, optional
        How rewards become costs, see :func:`prudent.from_gymnasium`; only for models that do not define this.
    seed : int
        The seed of policies that draw at random (``randomise=True``).

    Examples
    --------
    >>> import gymnasium, prudent
    >>> env = gymnasium.make("CliffWalking-v1")
    >>> plan = prudent.solve(prudent.from_gymnasium(env), alpha=0.1)
    >>> prudent.gymnasium_agent(plan, env)
    <EnvAgent before its first run>
    """
    policy = plan.policy if isinstance(plan, Plan) else plan
    if not isinstance(policy, BudgetPolicy):
        raise PrudentError(f"plan is a {type(plan).__name__}; pass what prudent.solve returned, or its policy")
    seed = whole_number("seed", seed, 0)
    if isinstance(env, type) or not callable(getattr(env, "reset", None)) or not callable(getattr(env, "step", None)):
        raise PrudentError(f"env is {env!r}; pass an environment, such as gymnasium.make returns")
    metadata = getattr(env, "metadata", None) or {}
    model, played = policy.prepared.model, metadata.get(MODEL)
    about = policy, _rule(model, played, cost), played == model.fingerprint
    if not hasattr(env, "num_envs"):
        return EnvAgent(*about, [seed])
    mode = metadata.get("autoreset_mode")
    if mode is None:
        raise PrudentError(
            "env is a vector whose metadata has no autoreset_mode; set it to when its environments reset themselves"
        )
    agents = [EnvAgent(*about, [seed, i]) for i in range(env.num_envs)]
    return VectorAgent(agents, str(getattr(mode, "value", mode)))


def _rule(model: SSP, played: str | None, cost: CostRule | None) -> CostRule:
    """Return how rewards become costs, for an environment that plays a model, of this fingerprint, or is unknown."""
    rule: CostRule | None = None if cost is None else check_rule(cost, or_function=True)
    own, why = rule, ""
    if played == model.fingerprint:
        own, why = "negative reward", "env plays the plan's model, where rewards are minus costs"
    elif isinstance(model, GymnasiumModel):
        own, why = model.rule, f"the plan's model was made with {model.rule!r}"
    elif played is not None:
        raise PrudentError(f"env plays another model than {model!r}, the model of the plan; solve the model of env")
    if own is None:
        raise PrudentError(
            f"{model!r} does not define how rewards become costs; make it with prudent.from_gymnasium, or give cost="
        )
    if rule is not None and rule != own:
        raise PrudentError(f"cost is {cost!r}, but {why}; leave it out")
    return own


def to_gymnasium(model: SSP, *, unavailable: str = "stay") -> Any:
    """Return a Gymnasium environment that plays a model; rewards are minus costs.

    Observations are the numbers of states (``model.state(observation)`` is the name).  Actions are positions in
    ``env.unwrapped.actions``, the names of all actions of the model.  ``info["action_mask"]`` shows which of them the
    state has.  :func:`prudent.gymnasium_agent` recognises such environments.

    Parameters
    ----------
    model : SSP
        The problem.
    unavailable : {"stay", "error"}
        What happens on an action that the state does not have.  ``"stay"``: the run stays in the state at no cost, and
        ``info["unavailable"]`` is True; the optimum is that of the model.  ``"error"``: an error names the actions that
        the state has.

    Examples
    --------
    >>> import prudent
    >>> env = prudent.to_gymnasium(prudent.domains.figure_2())
    >>> env.reset(seed=0)[0], env.step(0)[:4]
    (0, (1, 0.0, False, False))
    """
    from prudent.io.gymnasium.environments import SSPEnv

    return SSPEnv(model, unavailable=unavailable)
