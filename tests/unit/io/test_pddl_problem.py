"""Planning problems in PPDDL: costs, goals, dead ends, and a lower bound on what is ahead."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import prudent
from pddl_problems import TIRES, delivery, problems, triangle
from prudent.apps.cli.main import main
from prudent.engine.prepare import prepare
from prudent.engine.values.expected_cost import least_expected_cost

pytest.importorskip("plado")

from prudent.io.pddl import Problem

PRICE = 50


@pytest.fixture(params=range(10))
def files(request, tmp_path):
    """One of the ten problems."""
    return next(pair for number, pair in enumerate(problems(tmp_path)) if number == request.param)


def test_a_search_is_the_full_solve(files):
    domain, problem = files
    model = prudent.amend(prudent.load(domain, problem=problem), dead_end_cost=PRICE)
    task = Problem(domain.read_bytes(), domain, problem)
    for alpha in (1.0, 0.1):
        whole = prudent.solve(model, alpha)
        plan = prudent.search(task.initial, task.actions, alpha, heuristic=task.heuristic, dead_end_cost=PRICE)
        assert plan.cvar == pytest.approx(whole.cvar, rel=1e-8)
        assert plan.expected == pytest.approx(whole.expected, rel=1e-8)
        assert plan.explored.met <= model.n_states


def test_the_lower_bound_is_one_in_every_state(files):
    domain, problem = files
    built = prudent.load(domain, problem=problem)
    prepared = prepare(prudent.amend(built, dead_end_cost=PRICE))
    scale, inside = prepared.scale, prepared.members.state_of
    value = scale.lattice.value(scale.luck) + least_expected_cost(prepared).value[inside] * scale.level_size
    task = Problem(domain.read_bytes(), domain, problem)
    bound = []
    for name in built.state_names:  # in the order in which they are met
        task.actions(name)
        bound.append(task.heuristic(name))
    known = np.flatnonzero(inside[: built.n_states] >= 0)  # a run that is stuck has ended: it meets no further states
    assert (np.minimum(bound, PRICE)[known] <= value[known] + 1e-9).all()
    assert 0 < bound[0] < np.inf and (np.array(bound)[built.is_goal] == 0).all()


def test_storm_has_the_same_mean(files):
    pytest.importorskip("stormpy")
    from storm_oracle import least_expected, storm_model

    domain, problem = files
    model = prudent.amend(prudent.load(domain, problem=problem), dead_end_cost=PRICE)
    mean = least_expected(storm_model(model), "sound value iteration", 1e-10)[model.initial_state[0]]
    assert prudent.solve(model, 1.0).expected == pytest.approx(mean, rel=1e-8)


@pytest.mark.parametrize("rows", [3, 5])
def test_the_triangle_is_driven_round_where_there_are_spares(tmp_path, rows):
    domain, problem = triangle(tmp_path, rows)
    model, task = prudent.load(domain, problem=problem), Problem(domain.read_bytes(), domain, problem)
    sure = prudent.solve(model, 0.1, goal="likeliest")
    assert sure.goal_probability == 1 and sure.policy(task.initial) == "(move p1-1 p2-1)"
    assert task.heuristic(task.initial) == rows - 1


def test_costs_are_those_of_actions_or_1(tmp_path):
    domain, problem = delivery(tmp_path, "ab", "p")
    model = prudent.load(domain, problem=problem)
    assert sorted(set(model.cost.tolist())) == [0, 1, 2, 5] and model.name == "delivery-problem"
    tires = prudent.load(TIRES, problem=triangle(tmp_path, 3)[1])
    assert set(tires.cost.tolist()) == {0.0, 1.0}
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


def test_what_is_missing_is_named(tmp_path):
    domain, problem = delivery(tmp_path, "ab", "p")
    with pytest.raises(
        prudent.PrudentError, match=r"delivery.pddl: is a domain; give the file of its problem, too, with problem="
    ):
        prudent.load(domain)
    with pytest.raises(prudent.PrudentError, match=r"^[^:]*nowhere.pddl: no such file"):
        prudent.load(domain, problem=tmp_path / "nowhere.pddl")
    problem.write_text(problem.read_text().replace("minimize", "maximize"))
    with pytest.raises(prudent.PrudentError, match="maximises its metric; it must minimise \\(total-cost\\)"):
        prudent.load(domain, problem=problem)
    prudent.save(prudent.domains.figure_2(), tmp_path / "model.json")
    with pytest.raises(prudent.PrudentError, match=r"a .json file is a complete model; leave out problem="):
        prudent.load(tmp_path / "model.json", problem=problem)


@pytest.mark.parametrize(
    ("domain", "metric", "told"),
    [
        ("other", "(total-cost)", "problem.pddl: belongs to the domain 'other'; the domain given is 'd'"),
        ("d", "(fuel)", r"problem.pddl: minimises \(fuel\); it must minimise \(total-cost\), to which actions add"),
        (
            "d",
            "(+ (fuel) (total-cost))",
            r"problem.pddl: minimises \(\+ .*; it must minimise \(total-cost\), to which actions add",
        ),
    ],
)
def test_a_problem_of_another_domain_or_of_other_costs_is_refused(domain, metric, told, tmp_path):
    (tmp_path / "domain.pddl").write_text(
        "(define (domain d) (:requirements :action-costs) (:predicates (a) (g)) (:functions (total-cost) (fuel)) "
        "(:action go :parameters () :precondition (a) :effect (and (g) (increase (fuel) 4))))"
    )
    (tmp_path / "problem.pddl").write_text(
        f"(define (problem p) (:domain {domain}) (:init (a) (= (total-cost) 0) (= (fuel) 0)) (:goal (g)) "
        f"(:metric minimize {metric}))"
    )
    with pytest.raises(prudent.PrudentError, match=told):
        prudent.load(tmp_path / "domain.pddl", problem=tmp_path / "problem.pddl")


TRYING = """
(define (domain trying)
  (:requirements :probabilistic-effects :action-costs :conditional-effects)
  (:predicates (a) (b) (done))
  (:functions (total-cost))
  (:action try :parameters () :precondition (and) :effect {effect})
  (:action stop :parameters () :precondition (and (a) (b)) :effect (and (done) (increase (total-cost) 3))))
"""
BOTH = 3 + 1 / 0.5 + 1 / 0.25 - 1 / (1 - 0.5 * 0.75)  # until a and b have both come about, then stop


@pytest.mark.parametrize(
    ("effect", "mean"),
    [
        ("(and (probabilistic 0.5 (a)) (probabilistic 0.25 (b)) (increase (total-cost) 1))", BOTH),
        ("(and (and (probabilistic 0.5 (a)) (probabilistic 0.25 (b))) (and (increase (total-cost) 1)))", BOTH),
        ("(and (a) (probabilistic 0.25 (b)) (increase (total-cost) 1) (increase (total-cost) 2))", 3 + 3 / 0.25),
        ("(and (b) (when (not (a)) (increase (total-cost) 1)) (probabilistic 0.5 (a)) (probabilistic 0.5 (a)))",
         3 + 1 / 0.75),
    ],
)  # fmt: skip
def test_what_is_sure_is_paid_once_beside_several_effects_of_chance(tmp_path, effect, mean):
    domain, problem = tmp_path / "trying.pddl", tmp_path / "problem.pddl"
    domain.write_text(TRYING.format(effect=effect))
    problem.write_text("(define (problem p) (:domain trying) (:init (= (total-cost) 0)) (:goal (done)))")
    model = prudent.load(domain, problem=problem)
    assert prudent.solve(model, 1.0).expected == pytest.approx(mean, rel=1e-12)
