"""What a GPU gains: whole solves on the CPU and on a GPU, in turns, with the preparation of the model apart.

    python benchmarks/gpu.py [--quick]

Needs CuPy and a GPU (``make bench-gpu``).  Preparation is what depends on the model alone: it is pruned, normalised,
ordered, laid out and, for the GPU, uploaded.  Times are the least of a few turns, compilation not counted.  Writes
``benchmarks/results-gpu.md``; ``--quick`` leaves out the model of ten million states.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import prudent
from large_model import large_model
from prudent.engine.device_rows import device_rows, resident
from prudent.engine.places import places_of
from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared
from prudent.engine.sweep.bounded import bounded_sweep
from prudent.engine.sweep.device_tiles import brought
from prudent.engine.sweep.question import Question
from prudent.engine.sweep.tile_layout import tiling_of
from prudent.engine.values.expected_cost import least_expected_cost
from prudent.engine.values.worst_case import least_worst_case
from prudent.methods.exact import exact
from prudent.methods.solution import Solution
from prudent.runtime.limits import Limits, now

KNOWN = {
    "random-1000000": (189.106621, 47.739151),
    "random-10000000": (190.550621, 49.146107),
    "inventory-control 100": (1319.740489, 1056.048994),
}
"""CVaR and mean, found by other programs too."""


@dataclass
class Timed:
    """One solve."""

    prepared: Prepared
    solution: Solution
    preparation: float
    solve: float


def timed(model: prudent.SSP, alpha: float, device: str, turns: int) -> Timed:
    """Solve a model some times; return the fastest solve."""
    best: Timed | None = None
    for _ in range(turns):
        limits = Limits.of(None, None, device=device)
        began = now()
        prepared = prepare(model, None, limits)
        lay_out(prepared, limits)
        ready = now()
        found = Timed(prepared, exact(prepared, alpha, limits), ready - began, now() - ready)
        best = found if best is None or found.solve < best.solve else best
    assert best is not None
    return best


def lay_out(prepared: Prepared, limits: Limits) -> None:
    """Do all that depends on the model alone."""
    tiling, device = tiling_of(prepared), limits.device
    if tiling is None or not prepared.acyclic:
        places_of(prepared)
    if device is None:
        return
    if prepared.acyclic and tiling is not None:
        resident(device, prepared, brought)
    else:
        device_rows(device, prepared)


def sweep_rate(model: prudent.SSP, alpha: float, turns: int) -> tuple[float, float]:
    """Return the seconds of a sweep on the GPU, actions on the host included, and its naive multiply-adds a second."""
    least = np.inf
    for _ in range(turns):
        limits = Limits.of(None, None, device="gpu")
        prepared = prepare(model, None, limits)
        lay_out(prepared, limits)
        expected, worst = least_expected_cost(prepared, limits), least_worst_case(prepared, limits)
        began = now()
        swept = bounded_sweep(prepared, Question(expected.base, expected.choice, worst), limits, alpha=alpha)
        least = min(least, now() - began)
    return least, 2 * len(prepared.cost) * len(swept.excess) / least


def chain(length: int) -> prudent.SSP:
    """Return a corridor: at no cost beyond best luck one can only go on to the next state, so none are side by side."""
    table = {
        s: {
            "walk": [(0.9, s - 1, 1.0), (0.1, s, 2.0)],
            "run": [(0.7, s - 1, 0.5), (0.3, min(s + 1, length), 1.5)],
        }
        for s in range(1, length + 1)
    }
    return prudent.build(length, lambda s: table.get(s, {}))


def cases(quick: bool) -> list[tuple[str, Callable[[], prudent.SSP], float, bool, str]]:
    """Return what is solved: name, model, alpha, whether on the CPU too, and what limits it on the GPU."""
    small = "launches and copies: too small for a GPU"
    found = [
        ("betting-game", lambda: prudent.domains.betting_game(), 0.2, True, small),
        ("deep-sea-treasure", lambda: prudent.domains.deep_sea_treasure(), 0.02, True, small),
        ("inventory-control", lambda: prudent.domains.inventory_control(), 0.02, True, small),
        ("corridor of 500 states", lambda: chain(500), 0.05, True, "one state at a time: each waits for the next"),
        ("inventory-control 100", lambda: prudent.domains.inventory_control(capacity=100, demand=50), 0.02, True,
         "what stays on the CPU: values without budget, their upload"),
        ("random-100000", lambda: large_model(100_000, 0.05), 0.05, True, "launches, and memory that gathers hit"),
        ("random-1000000", lambda: large_model(1_000_000, 0.05), 0.05, True, "gathers of 16 bytes from all memory"),
    ]  # fmt: skip
    if not quick:
        ten = "gathers; the host's copy of 1.9 GB of actions"
        found.append(("random-10000000", lambda: large_model(10_000_000, 0.05), 0.05, False, ten))
    return found


def main(quick: bool) -> None:
    """Write the table."""
    gpu = Limits.of(None, None, device="gpu").device
    assert gpu is not None
    lines = [
        f"{gpu.name}; {Limits.of(None, None).threads} threads of its host.",
        "",
        "| model | states | outcomes | CPU s | GPU s | ratio | preparation s, CPU / GPU | what limits the GPU |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, make, alpha, both, limit in cases(quick):
        model = make()
        turns = 2 if model.n_outcomes > 5e7 else 3
        found = timed(model, alpha, "gpu", turns)
        units = found.prepared.scale.in_units
        cvar, mean = units(found.solution.cvar), units(found.solution.expected)
        if name in KNOWN:
            assert np.allclose((cvar, mean), KNOWN[name], atol=6e-7, rtol=0), (cvar, mean)
        cpu, ratio, before = "", "", ""
        if both:
            other = timed(model, alpha, "cpu", turns)
            same = units(other.solution.cvar), units(other.solution.expected)
            assert np.allclose((cvar, mean), same, rtol=1e-10, atol=0)
            cpu, ratio, before = f"{other.solve:.3g}", f"{other.solve / found.solve:.2g}", f"{other.preparation:.2g} / "
        lines.append(
            f"| {name} | {model.n_states:,} | {model.n_outcomes:,} | {cpu} | {found.solve:.3g} | {ratio} "
            f"| {before}{found.preparation:.2g} | {limit} |"
        )
        print(lines[-1], f"CVaR {cvar:.6f} mean {mean:.6f}", flush=True)
        if name == "inventory-control 100":
            seconds, rate = sweep_rate(model, alpha, turns)
            lines.append(f"| its sweep alone | | | | {seconds:.3g} | | | {rate:.3g} naive multiply-adds a second |")
            print(lines[-1], flush=True)
        del model, found
    text = "\n".join(lines) + "\n"
    Path(__file__).with_name("results-gpu.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main("--quick" in sys.argv)
