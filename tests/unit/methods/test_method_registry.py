"""The list of methods: every name is one, a line makes one known, and what is none is refused."""

from dataclasses import dataclass

import pytest

import prudent
from plans import same_policy
from prudent.engine.prepare import prepare
from prudent.methods.cvar_ev import CvarEV
from prudent.methods.cvar_wc import CvarWC
from prudent.methods.registry import METHODS, Method, chosen, with_grid
from prudent.runtime.limits import Limits

MODEL = prudent.domains.figure_2()


@pytest.mark.parametrize("name", METHODS)
def test_every_name_is_a_method(name):
    found, run = chosen(name)
    assert found == name
    solution = run(prepare(MODEL), 0.1, Limits(10**9))
    own = prudent.evaluate(MODEL, solution.policy)
    assert own.cvar(0.1) == pytest.approx(prepare(MODEL).scale.in_units(solution.cvar))
    assert own.cvar(0.1) >= 10 - 1e-9  # the least there is


def test_the_papers_methods_come_with_the_papers_options():
    assert chosen("cvar-wc")[1] == CvarWC() and chosen("cvar-ev")[1] == CvarEV()
    assert [name for name, method in METHODS.items() if method.from_paper] == ["cvar-ev", "cvar-wc"]
    assert [name for name, method in METHODS.items() if not method.for_alpha] == ["expected", "worst-case"]
    assert [name for name, method in METHODS.items() if not method.shown] == ["worst-case"]
    own = CvarWC(points=7)
    assert chosen(own) == ("cvar-wc", own)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if not method.for_alpha])
def test_policies_that_are_not_for_alpha_do_not_depend_on_it(name):
    one, other = (prudent.solve(MODEL, alpha, method=name).policy for alpha in (0.05, 0.9))
    assert same_policy(one, other)


@dataclass(frozen=True)
class Bolder(CvarWC):
    """The paper's method at ten times the tail."""

    def __call__(self, prepared, alpha, limits):
        return super().__call__(prepared, min(10 * alpha, 1.0), limits)


def test_a_method_of_ones_own_is_run_under_the_name_of_its_kind():
    plan = prudent.solve(MODEL, 0.05, method=Bolder(points=80))
    assert chosen(Bolder()) == ("cvar-wc", Bolder())
    assert plan.method == "cvar-wc"
    assert plan.expected == prudent.solve(MODEL, 0.5, method=CvarWC(points=80)).expected
    assert plan.expected < prudent.solve(MODEL, 0.05, method=CvarWC(points=80)).expected


def test_a_line_makes_a_method_known(monkeypatch, tmp_path):
    monkeypatch.setitem(METHODS, "mine", Method("worst_case:worst_case", "Mine", "what I look for"))
    plan = prudent.solve(MODEL, 0.1, method="mine")
    assert plan.method == "mine"
    assert plan.expected == prudent.solve(MODEL, 0.1, method="worst-case").expected
    prudent.save(plan, tmp_path / "mine.safetensors")
    assert prudent.load_plan(tmp_path / "mine.safetensors", MODEL).method == "mine"


@pytest.mark.parametrize(
    ("method", "hint"),
    [
        ("exat", r"; it must be one of exact, cvar-ev, cvar-wc, expected, worst-case; did you mean 'exact'\?"),
        ("cvar_wc", r"; did you mean 'cvar-wc'\?"),
        ("best", "; it must be one of exact"),
        ("", "; it must be one of exact"),
        (None, "; it must be one of exact"),
        (7, "; it must be one of exact"),
        (CvarWC, "; it must be one of exact"),
        (lambda prepared, alpha, limits: None, "; it must be one of exact"),
        (Method("exact:exact", "Prudent", "exact"), "; it must be one of exact"),
    ],
)
def test_what_is_no_method_is_refused(method, hint):
    with pytest.raises(prudent.PrudentError, match=f"^method is .*{hint}"):
        chosen(method)


def test_grids_are_for_the_papers_methods_alone():
    assert with_grid("cvar-wc", 5) == CvarWC(points=5)
    assert with_grid("cvar-ev", floor=1e-6) == CvarEV(floor=1e-6)
    assert [with_grid(name, 5) for name in ("exact", "expected", "unheard-of")] == ["exact", "expected", "unheard-of"]
