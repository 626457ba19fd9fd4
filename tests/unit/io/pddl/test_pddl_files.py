"""Files in PPDDL that are wrong: what is said, and where."""

import pytest

import prudent
from pddl_problems import delivery, gripper

pytest.importorskip("plado")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("(:action go", "(:acton go"), "plado does not read it: Cannot parse token :acton at line 7 .*; correct that"),
        ((":effect (and (lies", ":effect (and (("), r"'\(' in line 13, column 22.*; correct that, or leave it out"),
        ((":typing", ":timed"), "Cannot parse token :timed at line 3"),
        (("(increase (total-cost) 1)", "(wetter)"), "'wetter' .* not defined, in line 11 of delivery.pddl; define it"),
        (
            ("(at ?y)", "(at ?z)"),
            r"Argument \?z of atom effect .* is not defined, in line 8 of delivery.pddl; define it",
        ),
        (("(at ?y)", "(at ?y ?x)"), r"mismatch in \(at \?y \?x\).*, in line 8 of delivery.pddl; .* correct it"),
        (("?x - place) :pre", "?x - plaice) :pre"), "Type 'plaice' is not defined, in line 10 of delivery.pddl"),
        (("(increase (total-cost) 1)", "(decrease (total-cost) 1)"), r"line 10: \(take p b\) lowers total-cost, by 1"),
        (("probabilistic 0.9", "probabilistic 1.9"), r"line 10: \(take p b\) has probabilities above 1 in all"),
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


def test_an_action_without_precondition_can_always_be_done(tmp_path):
    domain, problem = gripper(tmp_path)
    model = prudent.load(domain, problem=problem)
    assert {"(dry)", "(paint)"} <= {model.action(a) for a in range(model.action_start[1])}
