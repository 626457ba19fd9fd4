"""A model as an environment to play in."""

from typing import Any

from prudent.models.ssp import SSP


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
