"""The map of a policy that suits its model."""

from prudent.errors import PrudentError
from prudent.plot.canvas import Axes
from prudent.plot.grid import grid
from prudent.plot.heat import heat_map
from prudent.plot.network import routes
from prudent.plot.sea import sea_map
from prudent.plot.strips import budget_strip, check_plan
from prudent.results.plan import Plan
from prudent.results.policy_map import are_pairs, domain_of, other_parts

__all__ = ["policy"]


def policy(plan: Plan, budget: float | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the actions of a plan in the way that suits its model.

    Each domain has its picture: Deep Sea Treasure is a map with arrows (:func:`sea_map`), the Betting Game and
    Inventory Control are heat maps over stage and money or stock (:func:`heat_map`), Autonomous Navigation is a network
    with routes (:func:`routes`).  Other models are grids if their states are pairs (:func:`grid`); otherwise they are
    strips along the remaining budget, one for each of the states visited most (:func:`budget_strip`).

    Parameters
    ----------
    plan : Plan
        The plan.
    budget : float, optional
        The remaining budget; without it, the mean over the runs of the plan.
    ax : Axes, optional
        The axes to draw on; by default new ones.

    Examples
    --------
    >>> import prudent
    >>> plan = prudent.solve(prudent.domains.inventory_control(stages=3), alpha=0.02)
    >>> ax = prudent.plot.policy(plan, budget=40)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('stage', 'stock')
    """
    check_plan(plan)
    model, known = plan.model, domain_of(plan.model)
    if known.drawn == "heat":
        where = {} if budget is None else other_parts(model)
        names = (*known.parts[:2], known.action, *known.parts[2:])
        return heat_map(plan, budget, where=where, names=names, ax=ax)
    if known.drawn == "sea":
        return sea_map(plan, budget, ax=ax)
    if known.drawn == "network":
        return routes(plan, budget=budget, ax=ax)
    if are_pairs(model):
        return grid(plan, budget, ax=ax)
    if budget is not None:
        raise PrudentError(
            f"budget is {budget!r}; {model.name} is drawn for all budgets at once: leave it out, or use heat_map or "
            "routes"
        )
    return budget_strip(plan, ax=ax)
