"""The example of the paper's Fig. 2: one branch makes up the tail, so on the other the expected cost decides."""

from prudent.domains.registry import domain
from prudent.models.build import build
from prudent.models.ssp import SSP


@domain("Fig. 2")
def figure_2() -> SSP:
    """Return the model of Fig. 2 of Rigter et al. (2022).

    It has the states ``s0``, ``s1``, ``s2`` and the goal ``g``.  From ``s0`` a run goes to ``s1`` with probability 0.9
    and to ``s2``, which costs 10, with probability 0.1.  The actions of ``s1`` are ``c`` (cost 0 or, with probability
    0.05, 20), ``d`` (1 or, with probability 0.3, 9) and ``e`` (7).  At alpha 0.1 the optimal CVaR is 10, and ``d`` is
    the action of lowest expected cost that attains it.

    Examples
    --------
    >>> import prudent
    >>> prudent.domains.figure_2()
    <SSP figure-2: 4 states, 5 actions, 8 outcomes>
    """
    table = {
        "s0": {"a": [(0.9, "s1", 0), (0.1, "s2", 0)]},
        "s1": {
            "c": [(0.95, "g", 0), (0.05, "g", 20)],
            "d": [(0.3, "g", 9), (0.7, "g", 1)],
            "e": [(1.0, "g", 7)],
        },
        "s2": {"b": [(1.0, "g", 10)]},
        "g": {},
    }
    return build("s0", table.__getitem__, goals=["g"], name="figure-2")
