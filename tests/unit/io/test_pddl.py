"""Planning problems in PPDDL: costs, goals, dead ends, the lower bound, and files that are wrong."""

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import prudent
from prudent.apps.cli.main import main
from prudent.engine.prepare import prepare
from prudent.engine.values.expected_cost import least_expected_cost

pytest.importorskip("plado")

from prudent.io.pddl import Problem

PIECES = [b"(", b")", b"?x", b"when", b"forall", b"probabilistic", b"1.5", b"-1", b"not", b"=", b";", b"\xff", b"(a"]
TIRES = Path(__file__).parents[3] / "examples" / "tireworld.pddl"

DELIVERY = """
(define (domain delivery)
  (:requirements :typing :probabilistic-effects :action-costs :conditional-effects)
  (:types place parcel)
  (:predicates (at ?x - place) (lies ?p - parcel ?x - place) (held ?p - parcel) (wet))
  (:functions (total-cost) - number)
  (:action go :parameters (?x ?y - place) :precondition (at ?x)
    :effect (and (not (at ?x)) (at ?y) (increase (total-cost) 2) (when (wet) (increase (total-cost) 3))
                 (probabilistic 1/4 (wet))))
  (:action take :parameters (?p - parcel ?x - place) :precondition (and (at ?x) (lies ?p ?x))
    :effect (and (probabilistic 9/10 (and (held ?p) (not (lies ?p ?x)))) (increase (total-cost) 1)))
  (:action drop :parameters (?p - parcel ?x - place) :precondition (and (at ?x) (held ?p))
    :effect (and (lies ?p ?x) (not (held ?p)))))
"""
TASK = """
(define (problem {name}) (:domain delivery) (:objects {places} - place {parcels} - parcel)
  (:init (at a) {init}) (:goal (and {goal})) (:metric minimize (total-cost)))
"""


def delivery(folder, places, parcels):
    """A problem in which every parcel, one of each letter, has to go from the last place to the first."""
    domain, problem = folder / "delivery.pddl", folder / "problem.pddl"
    domain.write_text(DELIVERY.replace("1/4", "0.25").replace("9/10", "0.9"))
    init = " ".join(f"(lies {p} {places[-1]})" for p in parcels)
    goal = " ".join(f"(lies {p} {places[0]})" for p in parcels)
    text = TASK.format(name="d", places=" ".join(places), parcels=" ".join(parcels), init=init, goal=goal)
    problem.write_text(text)
    return domain, problem


def triangle(folder, rows):
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
    init = " ".join([f"(road {a} {b})" for a, b in roads] + [f"(spare-in {s})" for s in spares])
    problem = folder / f"triangle{rows}.pddl"
    problem.write_text(
        f"(define (problem triangle) (:domain tireworld) (:objects {' '.join(places)} - place)"
        f" (:init (at p1-1) {init}) (:goal (at p1-{rows})))"
    )
    return TIRES, problem


def whole_and_explored(domain, problem, alpha, **options):
    model = prudent.load(domain, problem=problem)
    task = Problem(domain.read_bytes(), domain, problem)
    whole = prudent.solve(prudent.amend(model, **options), alpha)
    return model, task, whole, prudent.search(task.initial, task.actions, alpha, heuristic=task.heuristic, **options)


@pytest.mark.parametrize(("places", "parcels"), [("ab", "p"), ("abc", "p"), ("ab", "pq"), ("abcd", "p"), ("abc", "pq")])
def test_a_search_is_the_full_solve_and_the_bound_is_one(tmp_path, places, parcels):
    for alpha in (1.0, 0.1):
        model, task, whole, plan = whole_and_explored(*delivery(tmp_path, places, parcels), alpha)
        assert plan.cvar == pytest.approx(whole.cvar) and plan.expected == pytest.approx(whole.expected)
    assert 0 < task.heuristic(task.initial) <= prudent.solve(model, 1.0).expected
    prepared = prepare(model)
    value = prepared.scale.lattice.value(prepared.scale.luck)
    value = value + least_expected_cost(prepared).value[prepared.members.state_of] * prepared.scale.level_size
    for number, name in enumerate(model.state_names):
        task.actions(name) if name in task._states else None
        if name in task._states and not model.is_goal[number]:
            assert task.heuristic(name) <= value[number] + 1e-9


@pytest.mark.parametrize("rows", [3, 5])
def test_the_triangle_is_driven_round_where_there_are_spares(tmp_path, rows):
    domain, problem = triangle(tmp_path, rows)
    model, task, whole, plan = whole_and_explored(domain, problem, 0.1, dead_end_cost=1000)
    assert plan.cvar == pytest.approx(whole.cvar) and plan.expected == pytest.approx(whole.expected)
    sure = prudent.solve(model, 0.1, goal="likeliest")
    assert sure.goal_probability == 1 and sure.policy(task.initial) == "(move p1-1 p2-1)"
    assert plan.policy(task.initial) == "(move p1-1 p2-1)"
    assert task.heuristic(task.initial) == rows - 1


def test_costs_are_those_of_actions_or_1(tmp_path):
    domain, problem = delivery(tmp_path, "ab", "p")
    model = prudent.load(domain, problem=problem)
    assert sorted(set(model.cost.tolist())) == [0, 1, 2, 5] and model.name == "problem"
    tires = prudent.load(TIRES, problem=triangle(tmp_path, 3)[1])
    assert set(tires.cost[tires.outcome_action < tires.n_actions].tolist()) <= {0.0, 1.0}
    start = tires.state(0)
    assert start.startswith("(at p1-1)") and "road" not in start


def test_the_commands_take_a_domain_and_its_problem(tmp_path):
    domain, problem = map(str, triangle(tmp_path, 3))
    about = [domain, "--problem", problem, "--alpha", "0.1", "--dead-end-cost", "100", "--json"]
    solved, searched = (CliRunner().invoke(main, [verb, *about]) for verb in ("solve", "search"))
    assert (solved.exit_code, searched.exit_code) == (0, 0), searched.output
    one, other = json.loads(solved.stdout), json.loads(searched.stdout)
    assert one["cvar"] == pytest.approx(other["cvar"]) and other["met"] <= one["states"]
    blind = CliRunner().invoke(main, ["search", *about, "--blind"])
    assert json.loads(blind.stdout)["certified"] is True


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("(:action go", "(:acton go"), "line 7"),
        ((":effect (and (lies", ":effect (and (("), "'\\(' in line 13, column 22"),
        (("(increase (total-cost) 1)", "(wetter)"), "Predicate 'wetter' referenced but not defined; define it"),
        (("(increase (total-cost) 1)", "(decrease (total-cost) 1)"), "an action lowers total-cost, by 1"),
        (("probabilistic 0.9", "probabilistic 1.9"), "probabilities"),
        (("(define (domain delivery)", ""), ""),
        (("(wet))", "(wet)"), ""),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path, change, told):
    domain, problem = delivery(tmp_path, "ab", "p")
    domain.write_text(domain.read_text().replace(*change))
    with pytest.raises(prudent.PrudentError, match=rf"delivery.pddl.*({told})"):
        prudent.load(domain, problem=problem)


@pytest.mark.parametrize("seed", range(5))
def test_a_file_with_any_changes_is_read_or_refused(tmp_path, seed):
    rng = np.random.default_rng(seed)
    domain, problem = delivery(tmp_path, "ab", "p")
    whole = domain.read_bytes(), problem.read_bytes()
    for _ in range(40):
        for path, raw in zip((domain, problem), whole, strict=True):
            text = bytearray(raw)
            for _ in range(rng.integers(0, 3)):
                place = int(rng.integers(len(text)))
                text[place : place + int(rng.integers(6))] = rng.choice(PIECES)
            path.write_bytes(text)
        try:
            prudent.load(domain, problem=problem)
        except prudent.PrudentError as error:
            assert str(error).startswith((str(tmp_path), "the model has no goal"))


def test_storm_has_the_same_means(tmp_path):
    pytest.importorskip("stormpy")
    from storm_oracle import least_expected, storm_model

    small = (delivery(tmp_path, *sizes) for sizes in (("ab", "p"), ("ab", "pq"), ("abc", "p"), ("abcd", "p")))
    for domain, problem in chain(small, (triangle(tmp_path, rows) for rows in (2, 3, 4, 5))):
        model = prudent.amend(prudent.load(domain, problem=problem), dead_end_cost=20)
        mean = least_expected(storm_model(model), "sound value iteration", 1e-10)[model.initial_state[0]]
        assert prudent.solve(model, 1.0).expected == pytest.approx(mean, rel=1e-8)


def test_what_is_missing_is_named(tmp_path):
    domain, problem = delivery(tmp_path, "ab", "p")
    with pytest.raises(prudent.PrudentError, match=r"delivery.pddl: is the domain; give its problem, too: problem="):
        prudent.load(domain)
    with pytest.raises(prudent.PrudentError, match=r"nowhere.pddl: no such file"):
        prudent.load(domain, problem=tmp_path / "nowhere.pddl")
    problem.write_text(problem.read_text().replace("minimize", "maximize"))
    with pytest.raises(prudent.PrudentError, match="maximises its metric; costs are minimised"):
        prudent.load(domain, problem=problem)
    prudent.save(prudent.domains.figure_2(), tmp_path / "model.json")
    with pytest.raises(prudent.PrudentError, match=r"a .json file is a whole model; leave out problem="):
        prudent.load(tmp_path / "model.json", problem=problem)
