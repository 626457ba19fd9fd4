"""Models in PRISM's language, JANI and DRN against Storm's own numbers for the same files.

Storm's numbers come from its exact engine, from models that it builds by itself.  Some files ship with stormpy, some
are in ``models/``.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import prudent

stormpy = pytest.importorskip("stormpy")

HERE = Path(__file__).parent / "models"
EXAMPLES = Path(__file__).parents[2] / "examples"
SHIPPED = Path(stormpy.__path__[0]) / "examples" / "files"


@dataclass(frozen=True)
class Case:
    path: Path
    reward: str
    goal: str
    most: int  # budgets up to this are asked about
    constants: dict = field(default_factory=dict, hash=False)
    given: bool = True  # whether the property is given to prudent, too
    every: int = 1  # of the budgets, where there are many

    @property
    def asked(self) -> str:
        return f"R{self.named}min=? [F {self.goal}]"

    @property
    def named(self) -> str:
        return f'{{"{self.reward}"}}' if self.reward else ""

    def load(self) -> prudent.SSP:
        return prudent.load(
            self.path, property=self.asked if self.given else None, constants=self.constants if self.constants else None
        )


GOAL = '"goal"'
CASES = {
    "die": Case(SHIPPED / "dtmc/die.pm", "coin_flips", '"done"', 30),
    "die, a condition": Case(SHIPPED / "mdp/die_c1.nm", "coin_flips", "s=7 & d>0", 20),
    "two dice": Case(SHIPPED / "mdp/two_dice.nm", "coinflips", "s1=7 & s2=7", 25),
    "consensus that ships": Case(SHIPPED / "mdp/coin2.nm", "steps", '"finished"', 60, {"K": 2}, every=4),
    "maze": Case(SHIPPED / "mdp/maze_2.nm", "", GOAL, 12, given=False),
    "slippery grid": Case(SHIPPED / "mdp/slipgrid.nm", "", GOAL, 30, given=False),
    "network": Case(SHIPPED / "mdp/csma2-2.nm", "time", '"all_delivered"', 80, every=8),
    "election": Case(SHIPPED / "dtmc/leader3_5.pm", "num_rounds", '"elected"', 10),
    "retransmission": Case(HERE / "retransmission.prism", "cost", GOAL, 40, {"N": 5}, given=False),
    "robot": Case(HERE / "robot.prism", "cost", GOAL, 40, {"N": 3, "slip": 0.125}, given=False),
    "gambler": Case(HERE / "gambler.prism", "cost", "money=6", 60),
    "gambler's rounds": Case(HERE / "gambler.prism", "rounds", "money=6", 60),
    "jobs": Case(HERE / "jobs.prism", "cost", GOAL, 40, given=False),
    "state rewards": Case(HERE / "leaving.prism", "cost", GOAL, 40, given=False),
    "consensus": Case(HERE / "consensus.nm", "cost", GOAL, 60, {"K": 3}, given=False),
    "channel": Case(EXAMPLES / "channel.jani", "energy", "left=0", 40, {"N": 4}, given=False),
    "stock": Case(HERE / "stock.jani", "cost", GOAL, 30, given=False),
    "repair": Case(HERE / "repair.drn", "cost", GOAL, 60, given=False),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@cache
def plan_of(case: Case) -> prudent.Plan:
    return prudent.solve(case.load(), alpha=0.1)


def built(case: Case, kind: type):
    """The model as Storm builds it with numbers of a kind, and what to parse properties with."""
    if case.path.suffix == ".drn":
        return stormpy.build_model_from_drn[kind](case.path), None
    jani = case.path.suffix == ".jani"
    described = stormpy.parse_jani_model(case.path)[0] if jani else stormpy.parse_prism_program(case.path)
    if case.constants:
        described, _ = stormpy.instantiate_constants(described, case.constants)
    return stormpy.build_model[kind](described, stormpy.parse_properties(case.asked, described)), described


def value(model, described, text: str) -> float:
    """What Storm finds for a property at the initial state."""
    formula = stormpy.parse_properties(text, described)[0]
    result = stormpy.model_checking(model, formula, only_initial_states=True)
    return float(result.get_value(model.initial_states[0]))


def chances(model, described, case: Case, operator: str) -> np.ndarray:
    """Storm's probabilities of reaching a goal within each budget."""
    budgets = range(0, case.most + 1, case.every)
    return np.array([value(model, described, f"{operator}=? [F{case.named}<={k} {case.goal}]") for k in budgets])


def within(plan: prudent.Plan, case: Case) -> np.ndarray:
    """The plan's own probabilities of keeping the same budgets."""
    found = prudent.evaluate(plan.model, plan.policy)
    return np.array([found.probabilities[found.values <= k].sum() for k in range(0, case.most + 1, case.every)])


@every_case
def test_expected_cost_is_that_of_storms_exact_engine(case):
    model, described = built(case, stormpy.Rational)
    exact = value(model, described, case.asked)
    plan = prudent.solve(case.load(), alpha=0.1, method="expected")
    assert plan.expected == pytest.approx(exact, rel=1e-12)
    assert plan.expected_lower <= exact * (1 + 1e-12)
    assert plan_of(case).expected >= exact * (1 - 1e-12)


@every_case
def test_no_budget_is_kept_more_often_than_storm_says_it_can_be(case, tmp_path):
    if not case.reward:  # properties of Storm's cannot name it
        text = re.sub(r"^rewards\s*$", 'rewards "cost"', case.path.read_text(), flags=re.MULTILINE)
        (tmp_path / "named.prism").write_text(text)
        case = replace(case, path=tmp_path / "named.prism", reward="cost")
    plan = plan_of(case)
    best = chances(*built(case, stormpy.Rational), case, "Pmax")
    assert 0.7 < best[-1] <= 1
    assert (within(plan, case) <= best + 1e-12).all()
    for i in np.flatnonzero(best > 0)[[0, 2]].tolist():
        found = prudent.solve(plan.model, 0.1, objective=prudent.Exceedance(i * case.every))
        assert 1 - found.objective.value == pytest.approx(best[i], abs=1e-12)


def written_and_read(chain: prudent.SSP, folder: Path, suffix: str):
    """A chain as Storm reads it from a file, with exact numbers."""
    path = folder / f"chain{suffix}"
    prudent.save(chain, path)
    if suffix == ".drn":
        return stormpy.build_model_from_drn[stormpy.Rational](path)
    options = stormpy.io.UmbImportOptions()
    options.value_type = stormpy.io.UmbImportValueType.RATIONAL
    return stormpy.build_model_from_umb(path, options=options)


@every_case
@pytest.mark.parametrize("suffix", [".drn", ".umb"])
def test_storm_finds_the_plans_own_numbers_in_its_chain(case, suffix, tmp_path):
    plan = plan_of(case)
    chain = written_and_read(plan.chain(), tmp_path, suffix)
    assert chain.model_type == stormpy.models.ModelType.DTMC
    assert value(chain, None, 'R{"cost"}=? [F "goal"]') == pytest.approx(plan.expected, rel=1e-12)
    found = chances(chain, None, replace(case, reward="cost", goal=GOAL), "P")
    assert found == pytest.approx(within(plan, case), abs=1e-12)


DRAWN = {"left": 0.25, "right": 0.75}
SIDES = {side: {"go": [(0.5, side, 2), (0.25, "end", 5), (0.25, "end", 0)]} for side in DRAWN}


@pytest.mark.parametrize(
    "model",
    [prudent.domains.betting_game(stages=4), prudent.domains.inventory_control(stages=3), prudent.build(DRAWN, SIDES)],
    ids=["betting", "inventory", "drawn start"],
)
def test_outcomes_that_cost_differently_are_the_same_model_in_drn(model, tmp_path):
    prudent.save(model, tmp_path / "model.drn")
    storm = stormpy.build_model_from_drn[stormpy.Rational](tmp_path / "model.drn")
    plan = prudent.solve(model, 0.1)
    assert value(storm, None, 'R{"cost"}min=? [F "goal"]') == pytest.approx(
        prudent.solve(model, 1.0, method="expected").expected, rel=1e-12
    )
    again = prudent.solve(prudent.load(tmp_path / "model.drn"), 0.1)
    assert (again.cvar, again.var, again.expected) == pytest.approx((plan.cvar, plan.var, plan.expected), rel=1e-12)
    prudent.save(plan.chain(), tmp_path / "chain.drn")
    chain = stormpy.build_model_from_drn[stormpy.Rational](tmp_path / "chain.drn")
    found, own = prudent.evaluate(model, plan.policy), []
    for budget in found.values[:10].astype(int).tolist():
        own.append(value(chain, None, f'P=? [F{{"cost"}}<={budget} "goal"]'))
    assert own == pytest.approx(np.cumsum(found.probabilities)[:10].tolist(), abs=1e-12)
