"""What a search knows: in which order states are expanded, and what the rest is taken for."""

from prudent.models.build import PartialModel
from prudent.planning.expansion import Expansion

BOUND = {"start": 0, "near": 1.7, "far": 9, "moon": 1e300, "nowhere": float("inf"), "home": 0}


def actions(state):
    if state == "start":
        return {to: [(1, to, 0.5)] for to in ("moon", "far", "near", "nowhere")}
    return {"go": [(1, "home", 9)]} if state != "home" else {}


def test_the_nearest_state_comes_first_and_hopeless_ones_never():
    known = Expansion(PartialModel("start", actions, None, "model"), BOUND.get, None)
    while known.expand_nearest():
        pass
    partial = known.partial
    assert [partial.states[number] for number in partial.expanded] == ["start", "near", "far", "home", "moon"]
    assert known.trusted == 1 and known.known_bytes > 0


def test_bounds_are_rounded_down_to_the_step_of_the_costs():
    known = Expansion(PartialModel("start", actions, None, "model"), BOUND.get, None)
    known.expand_nearest()
    model = known.model()
    price = {model.state(s): model.cost[model.outcome_start[model.action_start[s]]] for s in range(1, 4)}
    assert price == {"moon": 1e300, "far": 9, "near": 1.5}
    assert model.successor[model.outcome_start[model.action_start[4]]] == 4  # no way leads on from nowhere
    priced = Expansion(PartialModel("start", actions, None, "model"), BOUND.get, 4.0)
    priced.expand_nearest()
    assert max(priced.bound) == 4
