"""The paper's domains as Gymnasium environments; importing this module registers them.

>>> import gymnasium, prudent.gym
>>> env = gymnasium.make("prudent/BettingGame-v0", stages=3)
>>> obs, info = env.reset(seed=0)
>>> env.unwrapped.model.state(obs), [env.unwrapped.actions[i] for i in info["action_mask"].nonzero()[0]]
((0, 5), [0, 1, 2, 3, 4, 5])

``gymnasium.make("prudent.gym:prudent/BettingGame-v0")`` imports this module automatically.  The keyword arguments are
those of the functions of :mod:`prudent.domains`, and ``unavailable`` of :func:`prudent.to_gymnasium`.
"""

from prudent.io.gymnasium.environments import ENVIRONMENTS, SSPEnv, register_domains

__all__ = ["ENVIRONMENTS", "SSPEnv"]

register_domains()
