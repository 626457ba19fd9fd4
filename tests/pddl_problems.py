"""Ten planning problems in PPDDL, of the kinds that planning competitions and textbooks have; all written here."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

TIRES = Path(__file__).parents[1] / "examples" / "tireworld.pddl"

DELIVERY = """
(define (domain delivery)
  (:requirements :typing :probabilistic-effects :action-costs :conditional-effects)
  (:types place parcel)
  (:predicates (at ?x - place) (lies ?p - parcel ?x - place) (held ?p - parcel) (wet))
  (:functions (total-cost) - number)
  (:action go :parameters (?x ?y - place) :precondition (at ?x)
    :effect (and (not (at ?x)) (at ?y) (increase (total-cost) 2) (when (wet) (increase (total-cost) 3))
                 (probabilistic 0.25 (wet))))
  (:action take :parameters (?p - parcel ?x - place) :precondition (and (at ?x) (lies ?p ?x))
    :effect (and (probabilistic 0.9 (and (held ?p) (not (lies ?p ?x)))) (increase (total-cost) 1)))
  (:action drop :parameters (?p - parcel ?x - place) :precondition (and (at ?x) (held ?p))
    :effect (and (lies ?p ?x) (not (held ?p)))))
"""

BLOCKS = """
(define (domain exploding-blocks)
  (:requirements :typing :probabilistic-effects :conditional-effects :negative-preconditions :equality)
  (:types block)
  (:predicates (on ?x ?y - block) (lies ?x - block) (clear ?x - block) (held ?x - block) (free) (whole ?x - block)
               (firm))
  (:action take :parameters (?x - block) :precondition (and (free) (clear ?x) (lies ?x) (whole ?x))
    :effect (and (held ?x) (not (free)) (not (lies ?x)) (not (clear ?x))))
  (:action lift :parameters (?x ?y - block) :precondition (and (free) (clear ?x) (on ?x ?y) (whole ?x))
    :effect (and (held ?x) (clear ?y) (not (free)) (not (on ?x ?y)) (not (clear ?x))))
  (:action put-down :parameters (?x - block) :precondition (and (held ?x) (firm))
    :effect (and (free) (lies ?x) (clear ?x) (not (held ?x)) (probabilistic 0.1 (not (firm)))))
  (:action stack :parameters (?x ?y - block) :precondition (and (held ?x) (clear ?y) (whole ?y) (not (= ?x ?y)))
    :effect (and (free) (on ?x ?y) (clear ?x) (not (held ?x)) (not (clear ?y)) (probabilistic 0.1 (not (whole ?y))))))
"""

GRIPPER = """
(define (domain slippery-gripper)
  (:requirements :probabilistic-effects :conditional-effects :negative-preconditions)
  (:predicates (dry) (holds) (painted) (clean))
  (:action paint
    :effect (and (painted) (when (not (holds)) (probabilistic 0.1 (not (clean)))) (when (holds) (not (clean)))))
  (:action dry :effect (probabilistic 0.8 (dry)))
  (:action pick-up :precondition (not (holds))
    :effect (and (when (dry) (probabilistic 0.95 (holds))) (when (not (dry)) (probabilistic 0.5 (holds))))))
"""

NETWORK = """
(define (domain network)
  (:requirements :typing :probabilistic-effects :conditional-effects :action-costs)
  (:types machine)
  (:predicates (up ?m - machine) (linked ?m ?n - machine))
  (:functions (total-cost) - number)
  (:action reboot :parameters (?m - machine)
    :effect (and (up ?m) (increase (total-cost) 2)
                 (forall (?n - machine) (when (and (linked ?m ?n) (up ?n)) (probabilistic 0.2 (not (up ?n)))))))
  (:action repair :parameters (?m - machine) :effect (and (up ?m) (increase (total-cost) 5))))
"""

BOXES = """
(define (domain boxworld)
  (:requirements :typing :probabilistic-effects :equality)
  (:types city thing - object box truck - thing)
  (:predicates (in ?t - thing ?c - city) (aboard ?b - box ?t - truck) (road ?c ?d - city) (near ?c ?d - city))
  (:action load :parameters (?b - box ?t - truck ?c - city) :precondition (and (in ?b ?c) (in ?t ?c))
    :effect (and (aboard ?b ?t) (not (in ?b ?c))))
  (:action unload :parameters (?b - box ?t - truck ?c - city) :precondition (and (aboard ?b ?t) (in ?t ?c))
    :effect (and (in ?b ?c) (not (aboard ?b ?t))))
  (:action drive :parameters (?t - truck ?c ?d ?e - city)
    :precondition (and (in ?t ?c) (road ?c ?d) (near ?d ?e) (not (= ?c ?d)))
    :effect (and (not (in ?t ?c)) (probabilistic 0.8 (in ?t ?d) 0.2 (in ?t ?e)))))
"""

PROBLEM = """
(define (problem first) (:domain delivery) (:objects a b - place p - parcel)
  (:init (at a) (lies p b)) (:goal (lies p a)) (:metric minimize (total-cost)))
"""
"""One for the domain of deliveries."""


def delivery(folder: Path, places: str, parcels: str) -> tuple[Path, Path]:
    """Every parcel, one of each letter, goes from the last place to the first."""
    init = " ".join(f"(lies {p} {places[-1]})" for p in parcels)
    goal = " ".join(f"(lies {p} {places[0]})" for p in parcels)
    objects = f"{' '.join(places)} - place {' '.join(parcels)} - parcel"
    return _written(folder, DELIVERY, "delivery", objects, f"(at {places[0]}) {init}", goal, costs=True)


def triangle(folder: Path, rows: int) -> tuple[Path, Path]:
    """Roads up the left side of a triangle and down the right one have spares; the straight road has none."""
    roads, spares = [], []
    for r in range(1, rows + 1):
        for c in range(1, rows + 2 - r):
            here = f"p{r}-{c}"
            if r == 1 and c < rows:
                roads.append((here, f"p{r}-{c + 1}"))
            if r < rows and c <= rows - r:
                roads.append((here, f"p{r + 1}-{c}"))
            if r > 1:
                roads.append((here, f"p{r - 1}-{c + 1}"))
            if r > 1 and c in (1, rows + 1 - r):
                spares.append(here)
    places = sorted({place for road in roads for place in road})
    init = " ".join(["(at p1-1)", *(f"(road {a} {b})" for a, b in roads), *(f"(spare-in {s})" for s in spares)])
    return TIRES, _problem(folder, "tireworld", f"{' '.join(places)} - place", init, f"(at p1-{rows})")


def blocks(folder: Path, tower: str) -> tuple[Path, Path]:
    """Blocks lie on a table; build a tower of them, the first on top.  Block and table may be destroyed."""
    init = " ".join(["(free) (firm)", *(f"(lies {b}) (clear {b}) (whole {b})" for b in tower)])
    goal = " ".join(f"(on {a} {b})" for a, b in pairwise(tower))
    return _written(folder, BLOCKS, "exploding-blocks", f"{' '.join(tower)} - block", init, goal)


def gripper(folder: Path) -> tuple[Path, Path]:
    """Hold a painted block with a clean gripper: paint it first, or dry the gripper first."""
    return _written(folder, GRIPPER, "slippery-gripper", "", "(clean)", "(clean) (holds) (painted)")


def network(folder: Path, machines: str) -> tuple[Path, Path]:
    """Machines in a ring, all down; to reboot one may bring those down that it is linked to."""
    ring = zip(machines, machines[1:] + machines[:1], strict=True)
    init, goal = " ".join(f"(linked {m} {n})" for m, n in ring), " ".join(f"(up {m})" for m in machines)
    return _written(folder, NETWORK, "network", f"{' '.join(machines)} - machine", init, goal, costs=True)


def boxes(folder: Path, cities: str, names: str) -> tuple[Path, Path]:
    """A truck brings boxes from the first city to the last along a road; it may miss its way by a city."""
    road = [*pairwise(cities), *pairwise(cities[::-1])]
    roads = " ".join(f"(road {c} {d}) (near {c} {d})" for c, d in road)
    init = " ".join([roads, f"(in t {cities[0]})", *(f"(in {b} {cities[0]})" for b in names)])
    goal = " ".join(f"(in {b} {cities[-1]})" for b in names)
    return _written(
        folder, BOXES, "boxworld", f"{' '.join(cities)} - city t - truck {' '.join(names)} - box", init, goal
    )


def problems(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the files of all ten, domain and problem; each pair is written over by the next of its kind."""
    yield from (triangle(folder, rows) for rows in (3, 5))
    yield from (delivery(folder, *sizes) for sizes in (("abcd", "p"), ("abc", "pq")))
    yield from (blocks(folder, tower) for tower in ("ab", "abc"))
    yield gripper(folder)
    yield network(folder, "mno")
    yield from (boxes(folder, *sizes) for sizes in (("abc", "x"), ("abcd", "xy")))


def _written(
    folder: Path, text: str, domain: str, objects: str, init: str, goal: str, *, costs: bool = False
) -> tuple[Path, Path]:
    path = folder / f"{domain}.pddl"
    path.write_text(text)
    return path, _problem(folder, domain, objects, init, goal, costs=costs)


def _problem(folder: Path, domain: str, objects: str, init: str, goal: str, *, costs: bool = False) -> Path:
    path, metric = folder / f"{domain}-problem.pddl", "(:metric minimize (total-cost))" if costs else ""
    path.write_text(
        f"(define (problem p) (:domain {domain}) (:objects {objects}) (:init {init}) (:goal (and {goal})) {metric})"
    )
    return path
