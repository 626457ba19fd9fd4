"""Ready-made models: the paper's domains and its worked example, in the order of the listings."""

# isort: off
from prudent.domains.betting import betting_game as betting_game
from prudent.domains.inventory import inventory_control as inventory_control
from prudent.domains.treasure import deep_sea_treasure as deep_sea_treasure
from prudent.domains.navigation import autonomous_navigation as autonomous_navigation
from prudent.domains.example import figure_2 as figure_2

# isort: on
from prudent.domains.registry import DOMAINS

__all__ = [about.make.__name__ for about in DOMAINS.values()]
