"""How long a plan for a set of models takes, as a multiple of a plan for the model itself, on the paper's domains.

Solves in turns, each without compilation: the least time of each, the middle ratio of a turn, and all ratios' spread;
the aim is at most 5.  Intervals leave room for a part of p (1 - p) around each probability.

    python benchmarks/against_nature.py [--turns 7] [--traffic FILE]

Without the paper's file of traffic, Autonomous Navigation is the invented network.
"""

import argparse

import prudent

DOMAINS = ("betting_game", "inventory_control", "deep_sea_treasure", "autonomous_navigation")
ALPHAS, ROOM, AIM = (0.02, 0.2), (0.2, 0.5), 5.0


def seconds(model: prudent.SSP, alpha: float, sets: prudent.Intervals | None) -> float:
    """Return what one solve takes."""
    return prudent.solve(model, alpha, uncertainty=sets).seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--traffic")
    asked = parser.parse_args()
    turns, options = asked.turns, {"autonomous_navigation": {"traffic": asked.traffic}}
    print(f"{'domain':24}alpha  room  model itself   set of models   times as long (spread)")
    for name in DOMAINS:
        model = getattr(prudent.domains, name)(**options.get(name, {}))
        p = model.probability
        for alpha in ALPHAS:
            for room in ROOM:
                sets = prudent.Intervals(p - room * p * (1 - p), p + room * p * (1 - p))
                seconds(model, alpha, None), seconds(model, alpha, sets)
                both = [(seconds(model, alpha, None), seconds(model, alpha, sets)) for _ in range(turns)]
                alone, against = (min(each) for each in zip(*both, strict=True))
                ratios = sorted(b / a for a, b in both)
                spread = f"{ratios[0]:.1f} to {ratios[-1]:.1f}"
                middle = ratios[len(ratios) // 2]
                missed = "" if middle <= AIM else "  above the aim"
                print(
                    f"{name:24}{alpha:<7g}{room:<6g}{1000 * alone:9.1f} ms{1000 * against:13.1f} ms"
                    f"{middle:12.1f} ({spread}){missed}"
                )


if __name__ == "__main__":
    main()
