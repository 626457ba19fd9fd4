"""Ready-made models: the paper's domains and its worked example."""

from prudent.domains.betting import betting_game
from prudent.domains.example import figure_2
from prudent.domains.inventory import inventory_control
from prudent.domains.navigation import autonomous_navigation
from prudent.domains.treasure import deep_sea_treasure

__all__ = ["autonomous_navigation", "betting_game", "deep_sea_treasure", "figure_2", "inventory_control"]
