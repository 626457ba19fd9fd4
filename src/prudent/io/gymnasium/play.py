"""A model as an environment to play in."""

from typing import Any

from prudent.models.ssp import SSP

__all__ = ["to_gymnasium"]


def to_gymnasium(model: SSP, *, unavailable: str = "stay") -> Any:
    """Return a Gymnasium environment that plays a model; rewards are minus costs.

    Observations are the states' numbers (``model.state(observation)`` is the name), actions number
    ``env.unwrapped.actions``, the names of all actions of the model.  ``info["action_mask"]`` says which of them the
    state has.  :func:`prudent.gymnasium_agent` knows such environments.

    Parameters
    ----------
    model : SSP
        The problem.
    unavailable : {"stay", "error"}
        What happens if the state does not have an action: the run stays there at no cost and ``info["unavailable"]``
        is True (the optimum is that of the model), or an error names the actions it has.

    Examples
    --------
    >>> import prudent
    >>> env = prudent.to_gymnasium(prudent.domains.figure_2())
    >>> env.reset(seed=0)[0], env.step(0)[:4]
    (0, (1, 0.0, False, False))
    """
    from prudent.io.gymnasium.environments import SSPEnv

    return SSPEnv(model, unavailable=unavailable)
