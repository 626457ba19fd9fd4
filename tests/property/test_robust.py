"""Plans for sets of models against every policy and linear programs over nature, and what must hold for any set."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import prudent
from robust_oracle import RawSets, least_worst_cvar, pairs, worst_cvar, worst_excess, worst_share
from strategies import cases, examples, solvable

ALPHAS = (0.05, 0.2, 0.5, 0.9, 1.0)


def drawn(rng: np.random.Generator, *, acyclic: bool = True) -> tuple[RawSets, prudent.SSP, prudent.Intervals]:
    """Draw a small model with intervals: raw, and as the package takes it."""
    n = int(rng.integers(1, 4))
    raw: RawSets = {n: []}
    table: dict[int, dict[int, list[tuple[float, int, int]]]] = {n: {}}
    for s in range(n):
        raw[s], table[s] = [], {}
        for a in range(int(rng.integers(1, 3))):
            share: dict[tuple[int, int], float] = {}
            for p in rng.dirichlet(np.ones(int(rng.integers(1, 4)))):
                to = int(rng.integers(s + 1 if acyclic else 0, n + 1)), int(rng.integers(0 if acyclic else 1, 4))
                share[to] = share.get(to, 0.0) + p
            if not acyclic:  # free loops and cycles, and a way out
                share[s, 0] = share.get((s, 0), 0.0) + 0.3
                share[int(rng.integers(0, n)), 0] = 0.2
                share[n, 1] = share.get((n, 1), 0.0) + 0.5
                share = {to: p / sum(share.values()) for to, p in share.items()}
            width = float(rng.choice([0.0, 0.1, 0.3])) * (len(share) > 1)
            raw[s].append(
                [
                    (max(p - width * rng.random(), 0.2 * p), min(p + width * rng.random(), 1.0), t, c)
                    if width > 0
                    else (p, p, t, c)
                    for (t, c), p in share.items()
                ]
            )
            table[s][a] = [(p, t, c) for (t, c), p in share.items()]
    model = prudent.build(0, table.__getitem__)
    rows = [outcome for s in range(model.n_states) for row in raw[model.state(s)] for outcome in row]
    return raw, model, prudent.Intervals([low for low, *_ in rows], [high for _, high, *_ in rows])


@pytest.mark.parametrize("batch", range(20))
def test_least_worst_case_is_that_of_every_policy_against_linear_programs(batch):
    rng = np.random.default_rng(batch)
    checked = 0
    while checked < examples(12):
        raw, model, sets = drawn(rng)
        if np.prod([max(len(raw[s]), 1) for s, _ in pairs(raw, 0)]) > 64:
            continue
        alpha = float(rng.choice(ALPHAS))
        best, plan = least_worst_cvar(raw, 0, alpha), prudent.solve(model, alpha, uncertainty=sets)
        assert plan.lower - 1e-7 <= best <= plan.upper + 1e-7
        assert plan.cvar == pytest.approx(plan.upper, rel=1e-8, abs=1e-8)
        met = [pair for pair in pairs(raw, 0) if raw[pair[0]]]
        policy = {pair: played(plan, *pair) for pair in met}
        own = worst_cvar(raw, 0, policy, alpha)
        assert plan.lower - 1e-7 <= own <= plan.upper + 1e-7
        worst = prudent.evaluate(model, plan.policy, uncertainty=sets).at_worst
        assert worst.cvar(alpha) == pytest.approx(plan.cvar, rel=1e-8, abs=1e-8)
        assert worst.mean == pytest.approx(worst_cvar(raw, 0, policy, 1.0), rel=1e-7, abs=1e-7)
        nominal = prudent.solve(model, alpha)
        assert plan.upper >= nominal.upper - 1e-9
        assert plan.nominal.cvar == pytest.approx(prudent.evaluate(model, plan.policy).cvar(alpha))
        checked += 1


@pytest.mark.parametrize("batch", range(5))
def test_policies_at_worst_agree_with_linear_programs(batch):
    rng = np.random.default_rng(50 + batch)
    for _ in range(examples(8)):
        raw, model, sets = drawn(rng)
        alpha = float(rng.choice(ALPHAS))
        table = {s: int(rng.integers(len(actions))) for s, actions in raw.items() if actions}
        found = prudent.evaluate(model, table, uncertainty=sets).at_worst
        own = worst_cvar(raw, 0, {pair: table[pair[0]] for pair in pairs(raw, 0) if raw[pair[0]]}, alpha)
        assert found.cvar(alpha) >= own - 1e-7
        lattice = [worst_over(raw, table, w) / alpha + w for w in range(12)]
        assert found.cvar(alpha) == pytest.approx(min(lattice), rel=1e-8, abs=1e-8)


def worst_over(raw: RawSets, table: dict[int, int], w: int, s: int = 0, spent: int = 0) -> float:
    """Return the worst-case expected excess of a table's policy over w, by the tree of runs."""
    if not raw[s]:
        return max(spent - w, 0)
    row = raw[s][table[s]]
    return worst_share(row, [worst_over(raw, table, w, t, spent + c) for *_, t, c in row])


def played(plan: prudent.Plan, state: int, spent: int) -> int:
    try:
        return plan.policy(state, spent)
    except prudent.PrudentError:  # no run of the plan is there
        return 0


@pytest.mark.parametrize("batch", range(10))
def test_cycles_and_free_loops_agree_with_repeated_backups(batch):
    rng = np.random.default_rng(100 + batch)
    for _ in range(3):
        raw, model, sets = drawn(rng, acyclic=False)
        alpha = float(rng.choice(ALPHAS[1:]))
        plan = prudent.solve(model, alpha, uncertainty=sets)
        excess = [level[0] for level in worst_excess(raw, int(plan.upper) + 2)]
        least = min(w + u / alpha for w, u in enumerate(excess))
        assert plan.cvar == pytest.approx(least, rel=1e-7)
        assert plan.lower <= least * (1 + 1e-9)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases(), st.sampled_from(ALPHAS), st.integers(0, 2**32 - 1))
def test_what_holds_for_every_set(case, alpha, seed):
    with solvable():
        model = case.model
        nominal = prudent.solve(model, alpha)
    p, rng, before = model.probability, np.random.default_rng(seed), nominal
    size = max(abs(nominal.upper), case.step)
    for width in (0.0, 0.1, 0.4):
        spare = width * p * (1 - p)
        plan = prudent.solve(model, alpha, uncertainty=prudent.Intervals(p - spare, p + spare))
        assert plan.lower <= plan.cvar <= plan.upper
        assert plan.upper >= before.upper - 1e-8 * size  # never below the nominal optimum; rising with the width
        if width == 0:
            assert plan.upper == pytest.approx(nominal.upper, rel=1e-7, abs=1e-7 * size)
            assert plan.expected == pytest.approx(nominal.expected, rel=1e-6, abs=1e-6 * size)
        before = plan
    lean = rng.random(len(p)) * 2 - 1  # one more model of the set: probabilities that lean one way
    weight = p * (1 + 0.4 * (1 - p) * 0.4 * lean)
    total = np.add.reduceat(weight, model.outcome_start[:-1]) if len(p) else weight
    q = weight / np.repeat(total, np.diff(model.outcome_start))
    if len(p) and (np.abs(q - p) <= spare).all():
        arrays = [getattr(model, name) for name in ("action_start", "outcome_start", "successor", "cost")]
        start = model.initial_state, model.initial_probability
        other = prudent.SSP(*arrays[:2], q, *arrays[2:], *start, model.state_names, model.action_names)
        own = prudent.evaluate(other, plan.policy.__call__)
        assert own.cvar(alpha) <= plan.upper + 1e-7 * size


def priced(
    rng: np.random.Generator, *, acyclic: bool, one: bool = False
) -> tuple[RawSets, prudent.SSP, prudent.Intervals]:
    """Draw a model with costs without a common step; with ``one`` there is a single policy."""
    n = int(rng.integers(2, 4)) if acyclic else int(rng.integers(2, 7))
    raw: RawSets = {n: []}
    table: dict = {n: {}}
    for s in range(n):
        raw[s], table[s] = [], {}
        for a in range(1 if one else int(rng.integers(1, 3))):
            size, width = int(rng.integers(2, 4)), float(rng.choice([0.05, 0.2]))
            to = rng.integers(s + 1 if acyclic else 0, n + 1, size)
            to[0] = rng.integers(s + 1, n + 1)
            each = [
                (p, int(t), float(rng.uniform(0.3, 5))) for p, t in zip(rng.dirichlet(np.ones(size)), to, strict=True)
            ]
            table[s][a] = each
            raw[s].append([(p - width * p * (1 - p), p + width * p * (1 - p), t, c) for p, t, c in each])
    model = prudent.build(0, table.__getitem__)
    rows = [outcome for s in range(model.n_states) for row in raw[model.state(s)] for outcome in row]
    return raw, model, prudent.Intervals([low for low, *_ in rows], [high for _, high, *_ in rows])


@pytest.mark.parametrize("batch", range(6))
def test_rounded_costs_have_bounds_of_their_own(batch):
    """The bounds enclose the least worst-case CVaR, and steps are refined until the gap is reached."""
    rng = np.random.default_rng(900 + batch)
    checked = 0
    while checked < examples(4):
        raw, model, sets = priced(rng, acyclic=True)
        if np.prod([max(len(raw[s]), 1) for s, _ in pairs(raw, 0)]) > 64:
            continue
        alpha = float(rng.choice(ALPHAS))
        best = least_worst_cvar(raw, 0, alpha)
        for step in (None, 0.1, 1.0):
            plan = prudent.solve(model, alpha, uncertainty=sets, step=step)
            assert plan.lower - 1e-7 <= best <= plan.upper + 1e-7
            assert plan.lower <= plan.cvar <= plan.upper
            assert step or plan.status in ("optimal", "within_gap")
        checked += 1


@pytest.mark.parametrize("one", [True, False])
def test_steps_are_refined_on_cycles(one):
    for seed in range(examples(6)):
        rng = np.random.default_rng([seed, one])
        _, model, sets = priced(rng, acyclic=False, one=one)
        alpha = float(rng.choice(ALPHAS[1:]))
        plan = prudent.solve(model, alpha, uncertainty=sets)
        assert plan.status in ("optimal", "within_gap") and plan.upper - plan.lower <= 1e-3 * plan.upper
        if one:  # the bounds are those of the only policy
            own = prudent.evaluate(model, plan.policy, uncertainty=sets).at_worst.cvar(alpha)
            assert plan.lower <= own * (1 + 1e-9)


@pytest.mark.parametrize("acyclic", [True, False])
def test_bounds_of_whole_costs_that_are_rounded_enclose_those_of_the_exact_plan(acyclic):
    for seed in range(examples(20)):
        rng = np.random.default_rng([seed, acyclic, 7])
        _, model, sets = drawn(rng, acyclic=acyclic)
        alpha = float(rng.choice(ALPHAS))
        exact = prudent.solve(model, alpha, uncertainty=sets)
        for step in [step for step in (0.7, 2.0, 3.0) if step <= model.cost.max()]:
            plan = prudent.solve(model, alpha, uncertainty=sets, step=step)
            assert plan.lower <= exact.upper * (1 + 1e-9) and exact.lower <= plan.upper * (1 + 1e-9)


def test_a_step_is_chosen_that_fits_the_memory():
    rng, n = np.random.default_rng(1), 100
    to = lambda s: int(min(s + 1 + rng.integers(3), n))  # noqa: E731
    cents = lambda: float(rng.integers(1, 99_900)) / 100  # noqa: E731
    table: dict = {n: {}}
    for s in range(n):
        table[s] = {a: [(0.7, to(s), cents()), (0.2, int(rng.integers(n)), cents()), (0.1, n, cents())] for a in "ab"}
    model = prudent.build(0, table)
    spare = 0.1 * model.probability * (1 - model.probability)
    sets = prudent.Intervals(model.probability - spare, model.probability + spare)
    plan = prudent.solve(model, 0.05, uncertainty=sets, memory="2MB")
    assert plan.step > 0.01 and plan.upper < np.inf and "stopped at the 2 MB limit" in " ".join(plan.notes)
    with pytest.raises(prudent.PrudentError, match=r"larger step \(step=, --step\), from about ") as refused:
        prudent.solve(model, 0.05, uncertainty=sets, memory="2MB", step=0.01)
    named = float(str(refused.value).split("from about ")[1].split()[0])
    assert prudent.solve(model, 0.05, uncertainty=sets, memory="2MB", step=named).upper >= plan.lower


def test_where_no_excess_is_left_nature_chooses_for_the_budgets_below():
    """With one policy and no choice between levels, the bounds meet."""
    model = prudent.build("s", {"s": {"a": [(0.9, "g", 1), (0.1, "g", 10)]}})
    sets = prudent.Intervals(np.array([0.8, 0.05]), np.array([0.95, 0.2]))
    plan = prudent.solve(model, 0.5, uncertainty=sets)
    assert plan.status == "optimal" and plan.lower == pytest.approx(4.6) == plan.upper
