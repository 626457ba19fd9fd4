"""What files through Storm become, and what is refused, with the words that say why."""

import gzip
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import prudent
from prudent import PrudentError

stormpy = pytest.importorskip("stormpy")

SHIPPED = Path(stormpy.__path__[0]) / "examples" / "files"
WALK = """mdp
const int N{n};
module walk
  x : [0..N] init 0;
  late : bool init false;
  [safe] x<N -> (x'=x+1);
  [quick] x<N -> 0.8 : (x'=x+1) + 0.2 : (x'=x+1) & (late'=true);
  [] x<N & late -> (late'=false);
  [] x<N & late -> (x'=N);
  [again] x=N -> (x'=0);
endmodule
rewards "cost"
  late : 10;
  [safe] true : 3;
  [quick] true : 1;
  [] true : 2;
endrewards
rewards "steps"
  true : 1;
endrewards
label "goal" = x=N;
"""
DTMC = 'dtmc\nmodule m\n s : [0..2] init 0;\n {}\nendmodule\nrewards "cost" {} endrewards\nlabel "goal" = s=2;\n'
STEP = "[] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2); [] s=1 -> (s'=2); [] s=2 -> true;"


@pytest.fixture
def file(tmp_path):
    def write(text, name="model.prism"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_states_actions_and_costs_by_name(file):
    model = prudent.load(file(WALK.format(n="")), constants={"N": 2})
    assert model.state(int(model.initial_state[0])) == "late=false, x=0"
    assert {model.state(s) for s in np.flatnonzero(model.is_goal)} == {"late=false, x=2", "late=true, x=2"}
    late = model.index("late=true, x=1")
    actions = range(model.action_start[late], model.action_start[late + 1])
    assert [model.action(a) for a in actions] == ["safe", "quick", "#2", "#3"]
    cost = {model.action(a): float(model.cost[model.outcome_start[a]]) for a in actions}
    assert cost == {"safe": 13, "quick": 11, "#2": 12, "#3": 12}
    assert model.name == "model"


def test_goals_lead_nowhere_and_their_rewards_do_not_count(file):
    model = prudent.load(file(DTMC.format(STEP, "s=0 : 1; s=1 : 2; s=2 : 70; [] s=2 : 70;")))
    found = prudent.solve(model, 1.0, method="expected")
    assert (model.n_actions, found.expected) == (2, 2.0)


def test_steps_are_counted(file):
    path = file(WALK.format(n=" = 4"))
    found = prudent.solve(prudent.load(path, property='Tmin=? [F "goal"]'), 1.0)
    # Quick each time: 1, 2, 1 + 0.8 * 2 + 0.2 and 1 + 0.8 * 2.8 + 0.2 steps from 1, 2, 3 and 4 away; once late, 1.
    assert found.expected == pytest.approx(3.44, rel=1e-12)
    steps = prudent.load(path, property='R{"steps"}min=? [F "goal"]')
    assert (steps.cost == 1).all()


def test_a_condition_may_combine_labels_and_variables(file):
    path = file(WALK.format(n=" = 4"))
    model = prudent.load(path, property='R{"cost"}min=? [F ("goal" | x>=3) & !late]')
    assert {model.state(s) for s in np.flatnonzero(model.is_goal)} == {"late=false, x=3", "late=false, x=4"}


def test_constants_are_exact_and_of_their_type(file):
    text = "dtmc\nconst double p; const bool b; module m s : [0..1]; [] s=0 & b -> p : (s"
    path = file(text + '\'=1) + 1-p : true; [] s=1 -> true; endmodule rewards s=0 : 1; endrewards label "goal" = s=1;')
    for value in (0.1, "0.1", "1/10", np.float64(0.1)):
        model = prudent.load(path, constants={"p": value, "b": "true"})
        assert model.probability.max() == 0.9 and prudent.solve(model, 1.0).expected == pytest.approx(10, rel=1e-12)
    for value in ("many", "nan", "1e999999999", True, None, "1/0", [1]):
        with pytest.raises(PrudentError, match=r"constant p is .*; it must be a number"):
            prudent.load(path, constants={"p": value, "b": True})
    with pytest.raises(PrudentError, match="constant b is 1; it must be true or false"):
        prudent.load(path, constants={"p": 0.1, "b": 1})
    for value in ("1e-400", "1e-320", 1e-320, "1e400", 10**400, 10**5000, Fraction(10**5000 + 1, 10**5000)):
        with pytest.raises(PrudentError, match=r"p is .*; it must be a number of 400 digits at most, 0 or") as refused:
            prudent.load(path, constants={"p": value, "b": True})
        assert len(str(refused.value)) < len(str(path)) + 250
    for value in ("1_0", "0.1_0", "１", "0x1", "1" * 5000):  # noqa: RUF001
        with pytest.raises(PrudentError, match=r"constant p is .*; it must be a number$"):
            prudent.load(path, constants={"p": value, "b": True})


OPEN = WALK.format(n="")
CLOSED = WALK.format(n=" = 3")
REFUSED = {
    "undefined": (OPEN, {}, r'leaves N undefined; give constants=\{"N": ...\} \(--const N=...\)'),
    "not whole": (OPEN, {"constants": {"N": 2.5}}, "constant N is 2.5; it must be a whole number"),
    "not in range": (OPEN, {"constants": {"N": "9" * 20}}, r"constant N is '9{20}'; it must be a .* to 2\^63 - 1"),
    "far out of range": (OPEN, {"constants": {"N": "1e400"}}, "constant N is '1e400'; it must be a whole number from"),
    "unknown": (OPEN, {"constants": {"M": 2}}, "constants has M, but there is no such constant; .* leaves N undefined"),
    "a variable": (CLOSED, {"constants": {"x": 2}}, "constants has x, but there is no such constant; .* no undefined"),
    "defined": (CLOSED, {"constants": {"N": 2}}, "constants has N, but the file defines it as 3; leave it out"),
    "no mapping": (OPEN, {"constants": ["N"]}, r"constants is \['N'\]; it must be \{name: value\}"),
    "max": (
        DTMC.format(STEP.replace("(s'=2); [] s=2", "true; [] s=2"), "s=0 : 1;"),
        {"property": 'R{"cost"}max=? [F "goal"]'},
        r"asks for the maximal reward .* from state 's=1' runs never reach one; .* make that a goal, too: "
        r"\[F \"goal\" \| \(s=1\)\]$",
    ),
    "max, a label": (
        DTMC.format(STEP.replace("(s'=2); [] s=2", "true; [] s=2"), "s=0 : 1;") + 'label "lost" = s=1;',
        {"property": 'R{"cost"}max=? [F s=2 | "lost" & s=2]'},
        r"a goal, too: \[F .* \| \"lost\"\]$",
    ),
    "bound": (CLOSED, {"property": 'R{"cost"}<=5 [F "goal"]'}, "asks whether a bound holds"),
    "chance": (
        CLOSED,
        {"property": 'Pmin=? [F "goal"]'},
        "does not ask for a total cost until a goal; labels",
    ),
    "within a budget": (
        CLOSED,
        {"property": 'Pmax=? [F{"steps"}<=10 "goal"]'},
        r"then use prudent\.chances for every budget, or objective=prudent\.Exceedance\(10\) "
        r'\(--objective exceed:10\) to plan for this one; .* give property=\'R\{"steps"\}min=\? \[F "goal"\]\'',
    ),
    "within some budget": (CLOSED, {"property": "Pmax=? [F<=2*N x=2]"}, r"exceed:BUDGET\) to plan"),
    "beyond a budget": (
        CLOSED,
        {"property": 'Pmax=? [F{"steps"}>10 "goal"]'},
        "does not ask for a total cost until a goal",
    ),
    "the least chance": (
        CLOSED,
        {"property": 'Pmin=? [F{"steps"}<=10 "goal"]'},
        "does not ask for a total cost until a goal",
    ),
    "total": (CLOSED, {"property": 'R{"cost"}min=? [C]'}, "does not ask for a total cost until a goal"),
    "steps": (CLOSED, {"property": 'R{"cost"}min=? [F<=5 "goal"]'}, "does not ask for a total cost until a goal"),
    "several": (CLOSED, {"property": 'Tmin=? [F "goal"]; Tmin=? [F x=2]'}, "holds 2 properties"),
    "empty": (CLOSED, {"property": ""}, "holds 0 properties"),
    "own constant": (CLOSED, {"property": "const int K; Tmin=? [F x=K]"}, "leaves a constant undefined"),
    "no text": (CLOSED, {"property": 5}, "property is 5; it must be text"),
    "which reward": (
        CLOSED,
        {"property": 'Rmin=? [F "goal"]'},
        'names no reward structure.*: "cost", "steps"; give',
    ),
    "no such reward": (
        CLOSED,
        {"property": 'R{"gold"}min=? [F "goal"]'},
        r'property R\{"gold"\}min=\? \[F "goal"\]: there is no reward "gold"; labels: "goal";',
    ),
    "no such label": (
        CLOSED,
        {"property": 'R{"cost"}min=? [F "end"]'},
        'there is no label "end"; labels: "goal"',
    ),
    "no goal": (CLOSED, {"property": 'R{"cost"}min=? [F x>7]'}, r"there is no goal: no state satisfies \(x > 7\)"),
    "bad property": (CLOSED, {"property": 'R{"cost"}min=? [F "goal"'}, r"property R.*: Storm: Parsing error at 1:25: "),
    "bad syntax": (
        CLOSED.replace("(x'=0);", "(x'=0)"),
        {},
        r'Storm: Parsing error at 11:1: expecting ";", here: endmodule$',
    ),
    "set but not declared": (
        CLOSED.replace("(x'=0);", "(y'=0); // y : bool").replace("late :", "// z'=0\n late :"),
        {},
        "model.prism: line 11 sets y, a variable that is not declared; declare it, or fix the name$",
    ),
    "nothing usual": (
        CLOSED.replace('"goal"', '"end"'),
        {},
        r'there is no label "goal"; choose goals and costs with property= \(--property\)',
    ),
    "outside": (
        DTMC.format(STEP.replace("(s'=1)", "(s'=3)"), "s=0 : 1;"),
        {},
        r"out-of-bounds value \(3\) for the variable 's'",
    ),
    "sums": (
        DTMC.format("[] s<2 -> 0.5 : (s'=2);", "s=0 : 1;"),
        {},
        "'s=0', action '#0' sum to 0.5; they must sum to 1",
    ),
    "overlap": (
        DTMC.format("[] s=0 -> (s'=2); [] s<2 -> (s'=s+1);", "[] s=0 : 1;"),
        {},
        "in state 's=0' of this DTMC several commands are enabled",
    ),
    "transition rewards": (
        DTMC.format(STEP, "[] s=0 -> s=1 : 4;"),
        {},
        "Storm: Unable to treat transition rewards. Move the cost",
    ),
    "no start": (
        CLOSED.replace(" init 0", "").replace(" init false", "") + "init false endinit",
        {},
        "does not have a single initial",
    ),
    "no such start": (
        CLOSED,
        {"initial": "x=0, late=false"},
        r"initial= \(--initial\): .*did you mean 'late=false, x=0'\?; the initial states .* are 'late=false, x=0'$",
    ),
    "worst start": (
        CLOSED.replace(" init 0", "").replace(" init false", "") + "init true endinit",
        {"property": 'filter(max, R{"cost"}min=? [F "goal"], "init")'},
        r"asks for the maximum over 8 initial states; .* choose it with initial= \(--initial\), or leave out",
    ),
    "continuous": (
        'ctmc module m s : [0..1]; [] s=0 -> 2 : (s\'=1); endmodule rewards s=0 : 1; endrewards label "goal" = s=1;',
        {},
        "Storm: The input model is a CTMC; only fully observed, .* can be read: DTMC, MDP$",
    ),
    "timed": (
        "pta module m s : [0..1]; x : clock; [] s=0 -> (s'=1); endmodule",
        {"property": "Tmin=? [F s=1]"},
        "Storm: Expected other PRISM model type; only fully observed, discrete-time models",
    ),
    "infinite": (DTMC.format(STEP, "s=0 : 1/(s-s);"), {}, "'s=0', action '#0' has an outcome of cost inf"),
}


@pytest.mark.parametrize(("text", "options", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(file, text, options, words):
    path = file(text)
    with pytest.raises(PrudentError, match=words) as caught:
        prudent.load(path, **options)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_storm_gives_no_reason(file, monkeypatch):
    def silent(path):
        raise RuntimeError("std::exception")

    monkeypatch.setattr(stormpy, "parse_prism_program", silent)
    with pytest.raises(PrudentError, match=r"model.prism: Storm: gives no reason; often a name is not declared"):
        prudent.load(file(CLOSED))


KINDS = {
    "pomdp/maze_2.prism": "is of type POMDP",
    "ma/simple.ma": "is of type MA",
    "smg/example_smg.nm": "is of type SMG",
    "idtmc/die-intervals.pm": "contains interval updates",
    "imdp/tiny-01.drn": "Could not parse value",
    "pdtmc/die.drn": "Value type 'parametric' in DRN file is not compatible",
    "ctmc/dft.drn": "is of type CTMC",
}


@pytest.mark.parametrize("name", KINDS)
def test_other_kinds_of_models_are_refused(name, tmp_path):
    path = tmp_path / (Path(name).name if name.endswith(("drn", "prism", "nm", "pm")) else "model.prism")
    path.write_text((SHIPPED / name).read_text())
    label = re.search(r'label "(\w+)"', path.read_text())
    goal = {"ctmc/dft.drn": '"failed"'}.get(name, f'"{label[1]}"' if label else "s=4")
    with pytest.raises(PrudentError, match=KINDS[name]):
        prudent.load(path, property=f"Tmin=? [F {goal}]")


def test_storm_says_nothing_and_is_left_as_it_was(file, capfd):
    from stormpy import developer

    before = developer.get_log_level()
    with pytest.raises(PrudentError):
        prudent.load(file("dtmc nonsense"))
    prudent.load(file(CLOSED))
    assert capfd.readouterr() == ("", "")
    assert developer.get_log_level() == before


def test_a_folder_is_not_read(tmp_path):
    (tmp_path / "folder.prism").mkdir()
    with pytest.raises(PrudentError, match=r"folder.prism: cannot be read: it is not a plain file"):
        prudent.load(tmp_path / "folder.prism")
    with pytest.raises(PrudentError, match=r"none.jani: no such file"):
        prudent.load(tmp_path / "none.jani")


@pytest.mark.parametrize("size", [500, 10**9, 10**30])
def test_a_file_that_claims_to_be_huge(file, size):
    text = (Path(__file__).parents[3] / "reference/models/repair.drn").read_text()
    path = file(text.replace("@nr_states\n4", f"@nr_states\n{size}"), "huge.drn")
    with pytest.raises(PrudentError, match=r"huge.drn: declares \d+ states, more than its 4\d\d bytes can hold"):
        prudent.load(path)


START = """module m
  x : [0..4]; y : bool;
  [on] x<4 -> 0.5 : (x'=x+1) + 0.5 : (x'=4);
  [leap] x<4 & y -> (x'=4);
endmodule
rewards "cost" [on] true : 2; [leap] true : 3; endrewards
label "goal" = x=4;
init x<3 endinit
"""


def storms_values(path, text):
    """What Storm's exact engine finds for a property, for each initial state."""
    program = stormpy.parse_prism_program(path)
    asked = stormpy.parse_properties(text, program)
    built = stormpy.build_model[stormpy.Rational](program, asked)
    found = stormpy.model_checking(built, asked[0])
    return [float(found.get_value(s)) for s in built.initial_states]


@pytest.mark.parametrize("suffix", [".prism", ".drn", ".drn.gz", ".umb"])
def test_several_initial_states_are_drawn_with_equal_chances(file, suffix):
    path = file("mdp " + START)
    values = storms_values(path, 'R{"cost"}min=? [F "goal"]')
    assert len(set(values)) > 2
    if suffix != ".prism":
        built = stormpy.build_model(stormpy.parse_prism_program(path))
        other = path.with_suffix(suffix.removesuffix(".gz"))
        (stormpy.io.export_to_drn if ".drn" in suffix else stormpy.io.export_to_umb)(built, other)
        path = other
    if suffix.endswith(".gz"):
        path = path.with_suffix(suffix)
        path.write_bytes(gzip.compress(other.read_bytes()))
    plan = prudent.solve(prudent.load(path), 0.5, method="expected")
    assert plan.expected == pytest.approx(sum(values) / 6, rel=1e-12)
    assert "6 initial states without probabilities, so each has probability 1/6" in plan.notes[0]
    name = plan.model.state(int(plan.model.initial_state[-1]))
    alone = prudent.solve(prudent.load(path, initial=name), 0.5, method="expected")
    assert (alone.expected, alone.notes) == (pytest.approx(values[-1], rel=1e-12), ())


def test_a_filter_for_the_mean_is_that_of_equal_chances(file):
    path = file("mdp " + START)
    plain = prudent.load(path)
    assert (
        prudent.load(path, property='filter(avg, R{"cost"}min=? [F "goal"], "init")').fingerprint == plain.fingerprint
    )
    asked = 'filter(max, R{"cost"}min=? [F "goal"], "init")'
    assert prudent.load(path, property=asked, initial="y=true, x=0").n_states == plain.n_states


def test_a_file_that_does_not_say_what_it_is_has_an_mdp(file):
    said, unsaid = prudent.load(file("mdp " + START)), prudent.load(file("// no kind\n" + START))
    assert said.fingerprint == unsaid.fingerprint
    with pytest.raises(
        PrudentError, match=r'model.prism: Storm: Parsing error at 5:1: expecting ";", here: endmodule$'
    ):
        prudent.load(file(START.replace("(x'=4);\nend", "(x'=4)\nend")))
    with pytest.raises(PrudentError, match=r"Storm: Parsing error at 1:1: expecting <model type>, here: odd module m$"):
        prudent.load(file("odd " + START))


GAINS = """mdp
module m
  x : [0..3] init 0;
  [sure] x<3 -> (x'=x+1);
  [bold] x<3 -> 0.5 : (x'=x+1) + 0.5 : (x'=3);
endmodule
rewards "gain" [sure] true : 1; [bold] true : 3; endrewards
label "goal" = x=3;
"""


def test_the_most_is_what_storm_finds(file):
    path, asked = file(GAINS), 'R{"gain"}max=? [F "goal"]'
    plan = prudent.solve(prudent.load(path, property=asked), 1.0)
    assert [-plan.expected] == pytest.approx(storms_values(path, asked), rel=1e-12)
    assert "negated rewards" in plan.notes[0]
    assert prudent.solve(plan.model, 0.01).cvar == -5  # the surest way to gain
    steps = prudent.solve(prudent.load(path, property='Tmax=? [F "goal"]'), 1.0)
    assert steps.expected == -3


def test_gains_without_end_are_refused_where_they_are_planned_for(file):
    loop = DTMC.format(STEP.replace("(s'=1)", "(s'=0)"), "s=0 : 1;")
    model = prudent.load(file(loop), property='R{"cost"}max=? [F "goal"]')
    with pytest.raises(
        PrudentError, match=r"the cycle .* or --horizon; the property maximises rewards, so costs are neg"
    ):
        prudent.solve(model, 0.5)
    assert prudent.solve(prudent.amend(model, horizon=4, horizon_cost=0), 0.5).status == "optimal"


UNUSED = """mdp
const int N; const double price; const double share = price/2; const bool late; const int far;
formula paid = share+1;
module m
  x : [0..N] init 0;
  [on] x<N -> (x'=x+1);
endmodule
rewards "cost" [on] true : 2; endrewards
rewards "other" [on] x>1 : paid; endrewards
label "goal" = x=N;
label "odd" = late & x=far;
"""


@pytest.mark.parametrize(
    ("asked", "needed"),
    [
        (None, ["N"]),
        ('R{"cost"}min=? [F "goal"]', ["N"]),
        ('R{"other"}min=? [F "goal"]', ["N", "price"]),
        ('Tmin=? [F "odd"]', ["N", "late", "far"]),
        ("Tmin=? [F x=far]", ["N", "far"]),
    ],
)
def test_constants_are_needed_where_they_are_used(file, asked, needed):
    value = {"N": 3, "price": 4, "late": True, "far": 2}
    path, given = file(UNUSED), {name: value[name] for name in needed}
    assert prudent.load(path, property=asked, constants=given).fingerprint == (
        prudent.load(path, property=asked, constants=value).fingerprint
    )
    for name in needed:
        with pytest.raises(PrudentError, match=rf"leaves {name} undefined; give constants"):
            prudent.load(path, property=asked, constants={each: given[each] for each in needed if each != name})


CALLED = """dtmc
const int k; const int l; const int n;
module m
  x : [0..2] init 0;
  [on] x<2 -> (x'=x+1);
  [] x=2 -> true;
endmodule
rewards [on] true : k; endrewards
rewards "x" [on] true : l; endrewards
label "x" = x=n;
"""


@pytest.mark.parametrize(
    ("asked", "needed"),
    [
        ("Tmin=? [F x=2]", []),
        ("Rmin=? [F x=2]", ["k"]),
        ('R{"x"}min=? [F x=2]', ["l"]),
        ('Tmin=? [F "x"]', ["n"]),
    ],
)
def test_rewards_without_a_name_and_names_of_variables_need_their_constants(file, asked, needed):
    path, given = file(CALLED), dict.fromkeys(needed, 2)
    assert prudent.load(path, property=asked, constants=given).n_states == 3
    for name in needed:
        with pytest.raises(PrudentError, match=rf"leaves {name} undefined; give constants"):
            prudent.load(path, property=asked)


PROPS = """const int k;
const double half = 0.5;
label "there" = x=k;
"chance": Pmax=? [ F<=far "there" ]
"cost": R{"cost"}min=? [ F "there" ]
"many": multi(R{"cost"}min=? [ F x=1 ], Pmax=? [ F x=2 ])
"steps": Tmin=? [ F x>=k*half ]
"""


def test_a_property_by_its_name_in_a_file(file):
    path, props = file(UNUSED), file(PROPS, "walk.props")
    plain = prudent.load(path, property='R{"cost"}min=? [F x=2]', constants={"N": 3})
    found = prudent.load(path, property=f"{props}:cost", constants={"N": 3, "k": "2"})
    assert found.fingerprint == plain.fingerprint
    assert prudent.load(path, property=f"{props}:steps", constants={"N": 3, "k": 4}).n_states == 3
    for asked, constants, words in (
        (":cost", {"N": 3}, r"walk.props: property cost leaves k undefined; give constants"),
        (":cost", {"N": 3, "k": 0.5}, r"model.prism: constant k is 0.5; it must be a whole number"),
        (":coast", {"N": 3}, r"walk.props: there is no property 'coast'; its properties are chance \(Pmax"),
        (
            ":chance",
            {"N": 3, "k": 2},
            r"model.prism: property P.* does not ask for a total cost|asks for the probability",
        ),
        (
            "",
            {"N": 3, "k": 2},
            r"walk.props: several of its properties ask for .*; its properties are cost \(.*steps \(",
        ),
    ):
        with pytest.raises(PrudentError, match=words):
            prudent.load(path, property=f"{props}{asked}", constants=constants)
    props.write_text(PROPS.replace('"steps"', '// "steps"'))
    assert prudent.load(path, property=str(props), constants={"N": 3, "k": 2}).fingerprint == plain.fingerprint


def test_a_gzipped_file_is_written_and_read_again_and_a_damaged_one_is_named(tmp_path):
    for name in ("model.drn", "model.drn.gz"):
        prudent.save(prudent.domains.figure_2(), tmp_path / name)
    assert gzip.decompress((tmp_path / "model.drn.gz").read_bytes()) == (tmp_path / "model.drn").read_bytes()
    plain, packed = (prudent.load(tmp_path / name) for name in ("model.drn", "model.drn.gz"))
    assert (plain.fingerprint, plain.name) == (packed.fingerprint, packed.name)
    text = (tmp_path / "model.drn").read_text()
    for content, words in (
        (b"nothing", r"model.drn.gz: cannot be read: Not a gzipped file"),
        (gzip.compress(text.replace("@model", "@odd").encode()), r"model.drn.gz: Storm: "),
        (
            gzip.compress(text.replace("@nr_states\n", "@nr_states\n9999").encode()),
            r"model.drn.gz: declares 9999\d+ states",
        ),
    ):
        (tmp_path / "model.drn.gz").write_bytes(content)
        with pytest.raises(PrudentError, match=words) as refused:
            prudent.load(tmp_path / "model.drn.gz")
        assert "/prudent-" not in str(refused.value)
