"""Deep Sea Treasure: its actions come in the paper's order."""

import prudent


def test_actions_are_in_the_papers_order():
    """Of equally good ones the first is played, so the order is part of the model."""
    model = prudent.domains.deep_sea_treasure()
    first, last = model.action_start[model.index((5, 3, 7)) :][:2].tolist()
    assert [model.action(a) for a in range(first, last)] == ["N", "NE", "NW", "S", "SE", "SW", "E", "W"]
