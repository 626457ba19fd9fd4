"""The numbers of Rigter, Duckworth, Lacerda and Hawes (2022), Tables 1 and 2, and their order."""

from prudent.domains import registry

Cell = tuple[float, float, float, float]
"""CVaR, its standard error, expected cost, its standard error."""

ALPHAS = (0.02, 0.2)
METHODS = {
    "expected": "Expected Value",
    "cvar-wc": "CVaR-Worst-Case",
    "cvar-ev": "CVaR-Expected-Value",
    "exact": "exact",
}
"""What the paper calls the methods, and the exact one beside them."""

DOMAINS = {
    name: registry.DOMAINS[name].title
    for name in ("inventory-control", "betting-game", "deep-sea-treasure", "autonomous-navigation")
}
"""The titles of the paper's domains."""

FLOOR = 1e-6
"""The y whose value the authors' program keeps at the point y = 0 of its grid."""

TABLE_1: dict[tuple[str, str, float], Cell] = {
    ("inventory-control", "cvar-wc", 0.02): (386.49, 0.23, 286.18, 0.50),
    ("inventory-control", "cvar-ev", 0.02): (386.92, 0.24, 250.38, 0.66),
    ("inventory-control", "expected", 0.02): (416.42, 0.60, 235.62, 0.70),
    ("inventory-control", "cvar-wc", 0.2): (360.65, 0.31, 272.51, 0.48),
    ("inventory-control", "cvar-ev", 0.2): (360.29, 0.31, 250.08, 0.63),
    ("inventory-control", "expected", 0.2): (370.54, 0.37, 235.62, 0.70),
    ("betting-game", "cvar-wc", 0.02): (95.0, 0.0, 95.0, 0.0),
    ("betting-game", "cvar-ev", 0.02): (95.0, 0.0, 95.0, 0.0),
    ("betting-game", "expected", 0.02): (100.0, 0.0, 58.26, 0.22),
    ("betting-game", "cvar-wc", 0.2): (91.97, 0.08, 82.95, 0.06),
    ("betting-game", "cvar-ev", 0.2): (91.86, 0.08, 75.63, 0.16),
    ("betting-game", "expected", 0.2): (97.36, 0.07, 58.26, 0.22),
    ("deep-sea-treasure", "cvar-wc", 0.02): (502.25, 0.78, 402.74, 0.43),
    ("deep-sea-treasure", "cvar-ev", 0.02): (502.98, 0.83, 352.06, 0.57),
    ("deep-sea-treasure", "expected", 0.02): (575.0, 0.0, 315.15, 0.66),
    ("deep-sea-treasure", "cvar-wc", 0.2): (422.29, 0.62, 349.45, 0.42),
    ("deep-sea-treasure", "cvar-ev", 0.2): (422.80, 0.63, 340.12, 0.49),
    ("deep-sea-treasure", "expected", 0.2): (453.07, 1.09, 315.15, 0.66),
    ("autonomous-navigation", "cvar-wc", 0.02): (210.20, 1.36, 167.35, 0.11),
    ("autonomous-navigation", "cvar-ev", 0.02): (211.16, 1.40, 164.14, 0.12),
    ("autonomous-navigation", "expected", 0.02): (315.99, 2.12, 120.19, 0.38),
    ("autonomous-navigation", "cvar-wc", 0.2): (172.05, 0.80, 134.12, 0.21),
    ("autonomous-navigation", "cvar-ev", 0.2): (171.58, 0.80, 132.77, 0.22),
    ("autonomous-navigation", "expected", 0.2): (217.86, 0.71, 120.19, 0.38),
}

SECONDS: dict[tuple[str, str], float] = {
    (domain, method): seconds
    for domain, *times in (
        ("inventory-control", 19637, 48527, 8303),
        ("betting-game", 6215, 6526, 34.5),
        ("deep-sea-treasure", 8156, 10653, 505),
        ("autonomous-navigation", 18327, 23020, 1876),
    )
    for method, seconds in zip(("cvar-wc", "cvar-ev", "expected"), times, strict=True)
}
"""C++ and Gurobi on a 3.2 GHz i7."""
