"""Autonomous Navigation: drive across Los Angeles on freeways that may jam, or on streets that do not."""

import csv
import re
from collections.abc import Iterable
from difflib import get_close_matches
from io import StringIO
from os import PathLike
from pathlib import Path

import numpy as np

from prudent.domains.registry import domain
from prudent.errors import PrudentError, numeral, printable, whole_number
from prudent.models.build import build
from prudent.models.rows import FloatArray
from prudent.models.ssp import SSP
from prudent.runtime.atomic_files import read_bytes

START, GOAL = "717554", "774827"
DIGITS = 7  # a duration is cut to this many characters of its text
JAM = 0.1  # a draw from [0, JAM) is added to the probability of each freeway edge's longest duration
SLACK = 1e-6  # how far the probabilities of one edge may be from 1
RARE = 0.02  # street durations with less probability are dropped

Edge = tuple[str, bool, dict[float, float]]
"""An edge: its end, whether it is a freeway, and its durations in minutes with their probabilities."""


def read_traffic(path: str | PathLike[str]) -> dict[str, list[Edge]]:
    """Read a matrix of junctions: a cell is ``-``, or a list of one dict from minutes to probability.

    The file may come from anybody: reading takes time in proportion to its size, and at most 64 times its size plus
    1 MiB of memory.
    """
    path = Path(path)
    return parse_traffic(read_bytes(path), path)


def parse_traffic(raw: bytes, path: Path) -> dict[str, list[Edge]]:
    """Return the matrix in a file's bytes."""
    try:
        return _roads(StringIO(raw.decode(), newline=""), path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise PrudentError(f"{path}: is not a CSV file: {error}") from None


def _roads(lines: Iterable[str], path: Path) -> dict[str, list[Edge]]:
    rows = csv.reader(lines)  # one row at a time: a list of empty rows would take a hundred times the file
    head = next(rows, [])
    if len(head) < 2 or head[0].strip():
        raise PrudentError(f"{path}: line 1 must have an empty first cell, then the names of the junctions")
    names = [name.strip() for name in head[1:]]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise PrudentError(f"{path}: line 1 names the junction {twice!r} twice; remove one of the columns")
    roads: dict[str, list[Edge]] = {}
    for number, row in enumerate(rows, 2):
        if len(roads) == len(names) or not row or row[0].strip() != names[len(roads)]:
            raise PrudentError(
                f"{path}: line {number}: the first column must name the junctions of line 1, in the same order"
            )
        if len(row) != len(head):
            raise PrudentError(f"{path}: line {number} has {len(row)} cells; line 1 has {len(head)}")
        where = f"{path}: line {number}, column"
        roads[names[len(roads)]] = [
            (name, *_edge(cell.strip(), f"{where} {printable(name, 40)}"))
            for name, cell in zip(names, row[1:], strict=True)
            if cell.strip() != "-"
        ]
    if len(roads) < len(names):
        raise PrudentError(
            f"{path}: the first column must name the junctions of line 1, in the same order; it ends before "
            f"{printable(names[len(roads)], 40)}"
        )
    return roads


def _edge(cell: str, where: str) -> tuple[bool, dict[float, float]]:
    inside = re.fullmatch(r"\[\{(.*)\}\]", cell)
    if inside is None:
        raise PrudentError(f"{where}: {cell[:40]!r} must be '-' or a list of one dict")
    kind = ""
    durations: dict[float, float] = {}
    for item in inside[1].split(", "):
        key, _, value = item.partition(": ")
        if key == "'ID'":
            kind = value.strip("'")
        elif not key.startswith("'"):
            try:
                minutes, probability = float(numeral(key)), float(numeral(value))
            except ValueError:
                raise PrudentError(f"{where}: {item[:40]!r} must have the form minutes: probability") from None
            if not (0 <= minutes < 10**DIGITS and 0 <= probability <= 1):
                raise PrudentError(
                    f"{where}: {item[:40]!r} must be minutes of at least 0, with at most {DIGITS} digits, and a "
                    "probability"
                )
            minutes = float(f"{minutes:.20f}"[:DIGITS])
            durations[minutes] = durations.get(minutes, 0.0) + probability
    total = sum(durations.values())
    if kind not in ("freeway", "non-freeway") or not total > 0:
        raise PrudentError(f"{where}: must have an 'ID' of 'freeway' or 'non-freeway', and probabilities above 0")
    if abs(total - 1) > SLACK:
        raise PrudentError(f"{where}: the probabilities sum to {total:.6g}; they must sum to 1")
    return kind == "freeway", durations


def synthetic_roads(seed: int = 0) -> tuple[dict[str, list[Edge]], dict[str, tuple[float, float]]]:
    """Return an invented network similar to Los Angeles, and the positions of its junctions, in kilometres.

    Ten freeway carriageways cross a plain; each junction has streets to its nearest neighbours on other freeways.  The
    network is calibrated on the paper's data.  Freeway edges take about 7 minutes, rarely vary, and have a longest
    duration of twenty times that.  Streets take about 15 minutes, plus or minus a third, and never jam.
    """
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(5):  # corridors, each with a carriageway in either direction
        gap = rng.lognormal(0, 0.62, 18 if i % 2 else 17)
        along = np.append(0, np.cumsum(gap)) * 95 / gap.sum()
        across = 9 + 18 * i + rng.normal(0, 1.0, len(along)).cumsum() * 0.8
        east = np.column_stack([along, across]) if i < 3 else np.column_stack([across - 20, along])
        lines += [east, east[::-1] + np.array([0.6, -0.6])]
    place = {
        f"{'ABCDEFGHIJ'[i]}{j:02d}": tuple(xy) for i, line in enumerate(lines) for j, xy in enumerate(line.tolist())
    }
    names, where = list(place), np.array(list(place.values()))
    distance = np.linalg.norm(where[:, None] - where[None], axis=2)
    slowdown = np.array([22.7, 6.1, 3.5, 2.5, 1.9, 1.56, 1.31, 1.14, 1.0, 0.89])
    spread = np.linspace(-2.3, 2.3, 10)
    normal = np.exp(-(spread**2) / 2) / np.exp(-(spread**2) / 2).sum()
    roads: dict[str, list[Edge]] = {}
    for i, name in enumerate(names):
        edges: list[Edge] = []
        for j in np.lexsort((np.arange(len(names)), distance[i])).tolist():
            other = names[j]
            if other[0] == name[0] and int(other[1:]) == int(name[1:]) + 1:
                usual = distance[i, j] / 0.85 * rng.uniform(0.8, 1.25)
                weight = rng.dirichlet([0.02, 0.02, 0.05, 0.1, 0.2, 0.4, 1.5, 8.0, 12.0, 0.3])
                edges.append((other, True, _cut(usual * slowdown, weight)))
            elif other[0] != name[0] and len(edges) < 11 and distance[i, j] < 30:
                mean = 3 + distance[i, j] / 0.75 * rng.uniform(0.8, 1.3)
                minutes = np.maximum(mean * (1 + rng.uniform(0.2, 0.45) * spread), 0.5)
                edges.append((other, False, _cut(minutes, normal)))
        roads[name] = edges
    return roads, place


def place_of_junctions(model: SSP, seed: int = 0) -> dict[str, tuple[float, float]] | None:
    """Return the positions of the junctions if the model is the invented network with this seed; else None."""
    if model.name != "autonomous-navigation" or not isinstance(model.state(0), str):
        return None
    roads, place = synthetic_roads(seed)
    for index in range(model.n_states):
        junction, actions = model.state(index), model.actions(index)
        if junction not in roads or (
            actions and {model.action(a) for a in actions} != {to for to, _, _ in roads[junction]}
        ):
            return None
    return place


def _cut(minutes: FloatArray, weight: FloatArray) -> dict[float, float]:
    durations: dict[float, float] = {}
    for long, share in zip(minutes.tolist(), weight.tolist(), strict=True):
        short = float(f"{long:.12f}"[:DIGITS])
        durations[short] = durations.get(short, 0.0) + share
    return durations


@domain("Autonomous Navigation", drawn="network", opens_at=0.5)
def autonomous_navigation(
    traffic: str | None = None, start: str | None = None, goal: str | None = None, noise: bool = True, seed: int = 0
) -> SSP:
    """Return Autonomous Navigation as in Rigter et al. (2022): a route across Los Angeles; costs are minutes.

    A state is a junction, an action the next junction, an outcome the duration of the drive there.  Rare jams on the
    freeways give them a low expected cost and a high CVaR.

    Parameters
    ----------
    traffic : str, optional
        The CSV file of the paper's release (MIT licence; derived from Caltrans PeMS).  By default an invented network
        with similar properties is used.
    start, goal : str, optional
        The junctions; by default the paper's, or the two ends of a freeway of the invented network.
    noise : bool
        Whether to add a draw from [0, 0.1) to the probability of each freeway edge's longest duration.
    seed : int
        The seed of those draws, and of the invented network.

    Examples
    --------
    >>> import prudent
    >>> prudent.domains.autonomous_navigation()
    <SSP autonomous-navigation: 184 states, 2,020 actions, 16,508 outcomes>
    """
    seed = whole_number("seed", seed, 0, 2**32 - 1)
    if traffic is None:
        roads, _ = synthetic_roads(seed)
        first, last = "A00", "A17"
    else:
        roads, first, last = read_traffic(traffic), START, GOAL
    start, goal = start or first, goal or last
    for what, name in (("start", start), ("goal", goal)):
        if name not in roads:
            near = get_close_matches(name, roads, n=1, cutoff=0.5)
            some = ", ".join(printable(junction, 40) for junction in list(roads)[:5])
            hint = f"; did you mean {printable(near[0], 40)}?" if near else f"; the junctions are {some}, ..."
            raise PrudentError(f"{what} is {name!r}, which is not a junction{hint}")
    outputs = np.random.RandomState(seed)  # a 32-bit Mersenne Twister
    table: dict[str, dict[str, list[tuple[float, str, float]]]] = {}
    for junction, edges in roads.items():
        table[junction] = {}
        if junction == goal:  # the goal's own row takes no draws
            continue
        for target, freeway, durations in edges:
            chances = dict(durations)
            if freeway and noise:  # a draw from [0, JAM) is made of two outputs
                low, high = outputs.randint(0, 2**32, size=2, dtype=np.uint32).tolist()
                chances[max(chances)] += JAM * (low + high * 2**32) / 2**64
            if not freeway:
                chances = {minutes: chance for minutes, chance in chances.items() if chance >= RARE}
            if not chances:
                raise PrudentError(
                    f"the street from {printable(junction, 40)} to {printable(target, 40)} has no duration with a "
                    f"probability of at least {RARE}"
                )
            total = sum(chances.values())
            table[junction][target] = [(c / total, target, minutes) for minutes, c in chances.items() if c > 0]
    return build(start, table.__getitem__, goals=[goal], name="autonomous-navigation")
