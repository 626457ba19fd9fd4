"""Files in PPDDL that are wrong: what is said, and where."""

import pytest

import prudent
from pddl_problems import delivery, gripper

pytest.importorskip("plado")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("(:action go", "(:acton go"), "plado cannot read it: Cannot parse token :acton at line 7 .*; fix that part"),
        ((":effect (and (lies", ":effect (and (("), r"'\(' in line 13, column 22.*; fix that part, or leave it out"),
        ((":typing", ":timed"), "Cannot parse token :timed at line 3"),
        (("(increase (total-cost) 1)", "(wetter)"), "'wetter' .* not defined, in line 11 of delivery.pddl; define it"),
        (
            ("(at ?y)", "(at ?z)"),
            r"Argument \?z of atom effect .* is not defined, in line 8 of delivery.pddl; define it",
        ),
        (("(at ?y)", "(at ?y ?x)"), r"mismatch in \(at \?y \?x\).*, in line 8 of delivery.pddl; correct it there"),
        (("?x - place) :pre", "?x - plaice) :pre"), "Type 'plaice' is not defined, in line 10 of delivery.pddl"),
        (("(increase (total-cost) 1)", "(decrease (total-cost) 1)"), r"line 10: \(take p b\) lowers total-cost by 1;"),
        (
            ("probabilistic 0.9", "probabilistic 1.9"),
            r"line 10: \(take p b\) has probabilities that sum to more than 1",
        ),
        (("probabilistic 0.9", "probabilistic -0.9"), r"line 10: \(take p b\) has the probability -0.9; it must lie"),
        (
            ("(held ?p) (not", "(held ?p) (probabilistic 0.5 (wet)) (not"),
            "line 10: action take has a probabilistic effect within another; merge them into one",
        ),
        (
            ("0.25 (wet)", "0.25 (when (wet) (probabilistic 0.5 (wet)))"),
            "line 7: action go has a probabilistic effect within another; merge them into one",
        ),
        (("(define (domain delivery)", ""), "':requirements' in line 3"),
        (("(wet))", "(wet)"), "':functions' in line 6"),
    ],
)
def test_a_wrong_file_is_refused_with_line_and_remedy(tmp_path, capfd, change, told):
    domain, problem = delivery(tmp_path, "ab", "p")
    assert change[0] in domain.read_text()
    domain.write_text(domain.read_text().replace(*change))
    with pytest.raises(prudent.PrudentError, match=rf"delivery.pddl.*({told})"):
        prudent.load(domain, problem=problem)
    assert capfd.readouterr().out == ""


def test_a_reward_for_the_goal_is_refused(tmp_path):
    domain, problem = delivery(tmp_path, "ab", "p")
    problem.write_text(problem.read_text().replace("(:metric", "\n(:goal-reward 100) (:metric"))
    with pytest.raises(prudent.PrudentError, match=r"problem.pddl: line 2: :goal-reward is not a cost.*; leave it out"):
        prudent.load(domain, problem=problem)


def test_an_action_without_precondition_can_always_be_done(tmp_path):
    domain, problem = gripper(tmp_path)
    model = prudent.load(domain, problem=problem)
    assert {"(dry)", "(paint)"} <= {model.action(a) for a in range(model.action_start[1])}
