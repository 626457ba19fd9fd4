"""What a little more CVaR buys in expected cost, on each of the paper's domains.

    python benchmarks/what_slack_buys.py [ALPHA]

For each domain the optimum, then the best plan found within 1, 2 and 5% more CVaR, what no plan within that can beat,
and what drawing one of two policies attains (on costs with a common step).  Then such limits on a store of spare parts
with prices in cents, 4,143 states and 574,154 outcomes: how far the CVaR is from the limit, and the processor time in
units of a plain solve, both on one thread: threads that wait for each other take processor time, too.
"""

import sys
from pathlib import Path
from time import process_time

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


def in_cents(alpha: float = 0.05) -> None:
    """Print the table for prices in cents."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from cents import spare_parts

    prudent.solve(spare_parts(6, 4), alpha, slack=0.01)  # the kernels are there
    model, began = spare_parts(), process_time()
    plan = prudent.solve(model, alpha, threads=1)
    plain = process_time() - began
    print(f"spare parts, alpha {alpha:g}: CVaR {plan.upper:.2f}, mean {plan.expected:.2f}, {plain:.1f} s", flush=True)
    limits = [{"slack": 0.01}, {"absolute_slack": 200.0}, {"max_cvar": 1.03 * plan.upper}, {"slack": 0.01}]
    for limit, drawn in zip(limits, (False, False, False, True), strict=True):
        began = process_time()
        within = prudent.solve(model, alpha, threads=1, randomise=drawn, **limit)
        times, below = (process_time() - began) / plain, within.max_cvar - within.cvar
        print(
            f"{str(limit) + (' by drawing' if drawn else ''):<36} {below:8.2f} below the limit, mean "
            f"{within.expected:.2f}, at least {within.expected_lower:.2f}, {times:.2f} plain solves",
            flush=True,
        )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.2)
    in_cents()
