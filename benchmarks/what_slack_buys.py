"""What a little more CVaR buys in expected cost, on each of the paper's domains.

    python benchmarks/what_slack_buys.py [ALPHA]

For each domain the optimum, then the best plan found within 1, 2 and 5% more CVaR, what no plan within that can beat,
and what drawing one of two policies attains (on costs with a common step).
"""

import sys

import prudent

SLACKS = (0.01, 0.02, 0.05)
DOMAINS = {
    "betting-game": prudent.domains.betting_game,
    "deep-sea-treasure": prudent.domains.deep_sea_treasure,
    "inventory-control": prudent.domains.inventory_control,
    "autonomous-navigation": prudent.domains.autonomous_navigation,
}


def main(alpha: float) -> None:
    """Print the table."""
    head = ("slack", "CVaR", "mean", "saved", "at least", "by drawing")
    print(f"{f'alpha {alpha:g}':<22}" + "".join(f"{name:>12}" for name in head))
    for name, make in DOMAINS.items():
        model = make()
        optimum = prudent.solve(model, alpha)
        print(f"{name:<22}{'':>12}{optimum.cvar:12.4f}{optimum.expected:12.4f}", flush=True)
        for slack in SLACKS:
            plan = prudent.solve(model, alpha, slack=slack)
            drawn = ""
            if prudent.check(model, alpha=alpha).step is not None:
                drawn = f"{prudent.solve(model, alpha, slack=slack, randomise=True).expected:12.4f}"
            saved = 1 - plan.expected / optimum.expected
            numbers = f"{slack:12.0%}{plan.cvar:12.4f}{plan.expected:12.4f}{saved:12.1%}{plan.expected_lower:12.4f}"
            print(f"{'':<22}{numbers}{drawn}", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.2)
