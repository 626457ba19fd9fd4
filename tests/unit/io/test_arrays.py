"""Arrays of other packages: every form the same model, optima by plain NumPy and by the packages themselves."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix

import prudent
from prudent import PrudentError

S, A, GOAL = 6, 3, 5


@pytest.fixture(scope="module")
def arrays():
    """Random probabilities (A, S, S), about half of them 0, and rewards (A, S, S); a goal that absorbs."""
    rng = np.random.default_rng(3)
    P = rng.random((A, S, S)) * (rng.random((A, S, S)) < 0.5)
    P[:, :, GOAL] += 0.1
    P[:, GOAL] = np.eye(S)[GOAL]
    P /= P.sum(axis=2, keepdims=True)
    R = -rng.integers(1, 9, (A, S, S)).astype(float)
    R[:, GOAL] = 0
    return P, R


def iterated(P, R, discount=1.0, mask=None):
    """Best values by value iteration; P (A, S, S), R (S, A)."""
    value = np.zeros(P.shape[1])
    for _ in range(20_000):
        q = R + discount * np.einsum("ast,t->sa", P, value)
        value, before = np.where(np.ones_like(q, bool) if mask is None else mask, q, -np.inf).max(axis=1), value
        if np.array_equal(value, before):
            break
    return value


COMMON = {"cost": "negative reward", "initial": 0, "goals": [GOAL]}


def test_rewards_by_transition_in_every_form_are_one_model(arrays):
    P, R = arrays
    table = {
        s: {a: [(P[a, s, t], t, -R[a, s, t]) for t in range(S) if P[a, s, t] > 0] for a in range(A)}
        for s in range(S)
        if s != GOAL
    }
    plain = prudent.build(0, table)
    boxed = np.empty(A, dtype=object)
    boxed[:] = [csr_matrix(p) for p in P]
    forms = {
        "dense": (P, R),
        "lists": (P.tolist(), R.tolist()),
        "list of arrays": (list(P), list(R)),
        "csr": ([csr_array(p) for p in P], [csr_array(r) for r in R]),
        "other sparse": ([csc_matrix(p) for p in P], [coo_array(r) for r in R]),
        "sparse and dense": (boxed, R),
        "mixed": ([csr_array(P[0]), P[1], P[2].tolist()], [R[0], csr_array(R[1]), R[2]]),
        "objects": (P.astype(object), R.astype(object)),
    }
    prints = set()
    for P_, R_ in forms.values():
        model = prudent.from_mdptoolbox(P_, R_, **COMMON)
        prints.add(model.fingerprint)
        for alpha in (0.1, 1):
            mine, other = prudent.solve(model, alpha=alpha), prudent.solve(plain, alpha=alpha)
            assert (mine.cvar, mine.expected) == pytest.approx((other.cvar, other.expected), rel=1e-12)
    assert len(prints) == 1
    mean = (P * R).sum(axis=2).T
    best = iterated(
        np.where(np.arange(S)[None, :, None] == GOAL, 0, P), np.where(np.arange(S)[:, None] == GOAL, 0, mean)
    )
    assert prudent.solve(model, alpha=1).expected == pytest.approx(-best[0], rel=1e-12)


def test_rewards_by_state_and_by_state_and_action(arrays):
    P, R = arrays
    by_pair, by_state = R[:, :, 0].T, R[0, :, 0]
    pair = prudent.from_mdptoolbox(P, by_pair, **COMMON)
    same = prudent.from_mdptoolbox(P, np.repeat(by_pair.T[:, :, None], S, axis=2), **COMMON)
    assert pair.fingerprint == same.fingerprint
    one = prudent.from_mdptoolbox(P, by_state, **COMMON)
    assert one.fingerprint == prudent.from_mdptoolbox(P, np.repeat(by_state[:, None], A, axis=1), **COMMON).fingerprint
    assert prudent.from_mdptoolbox(P, csr_array(by_pair), **COMMON).fingerprint == pair.fingerprint
    live = (np.arange(S) != GOAL)[:, None]
    best = iterated(P * live, by_pair * live)
    assert prudent.solve(pair, alpha=1).expected == pytest.approx(-best[0], rel=1e-12)


def test_rules(arrays):
    P, R = arrays
    costs = prudent.from_mdptoolbox(P, -R, **{**COMMON, "cost": "as given"})
    assert costs.fingerprint == prudent.from_mdptoolbox(P, R, **COMMON).fingerprint
    assert set(prudent.from_mdptoolbox(P, R, **{**COMMON, "cost": "steps"}).cost) == {1}
    with pytest.raises(PrudentError, match=r"cost is 'reward'; it must be one of 'negative reward' "):
        prudent.from_mdptoolbox(P, R, **{**COMMON, "cost": "reward"})


def test_names(arrays):
    P, R = arrays
    model = prudent.from_mdptoolbox(P, R, **COMMON, state_names="abcdef", action_names=["x", "y", "z"], name="six")
    assert model.state_names == tuple("abcdef") and model.action_names == ("x", "y", "z") * 5
    assert model.name == "six"
    with pytest.raises(PrudentError, match=r"action_names has 2 entries; it must have 3"):
        prudent.from_mdptoolbox(P, R, **COMMON, action_names=["x", "y"])


@pytest.mark.parametrize("discount", [0.5, 0.95])
def test_discounting_ends_runs_at_random(arrays, discount):
    P, R = arrays
    best = iterated(P, (P * R).sum(axis=2).T, discount)
    model = prudent.from_mdptoolbox(P, R, cost="negative reward", initial=0, discount=discount)
    assert model.state(model.n_states - 1) == "ended"
    plan = prudent.solve(model, alpha=1)
    assert plan.expected == pytest.approx(-best[0], rel=1e-12)
    runs = prudent.simulate(model, plan.policy, episodes=4000)
    assert abs(runs.mean + best[0]) < 4 * runs.mean_se


def pairs(R, Q):
    """The pairs of state and action that there are, in an order of no help."""
    state, action = np.nonzero(R > -np.inf)
    order = np.random.default_rng(0).permutation(len(state))
    state, action = state[order], action[order]
    return R[state, action], Q[state, action], state, action


@pytest.fixture(scope="module")
def partial(arrays):
    """Rewards (S, A) with actions that some states do not have, and probabilities (S, A, S)."""
    P, R = arrays
    reward = R[:, :, 1].T.copy()
    reward[1, 0] = reward[3, 1:] = -np.inf
    return reward, P.transpose(1, 0, 2)


def test_quantecons_forms_are_one_model(partial):
    R, Q = partial
    product = prudent.from_quantecon(R, Q, **COMMON)
    r, q, s, a = pairs(R, Q)
    listed = prudent.from_quantecon(r, q, s, a, **COMMON)
    sparse = prudent.from_quantecon(r, csr_matrix(q), s, a, **COMMON)
    assert product.fingerprint == listed.fingerprint == sparse.fingerprint
    assert [product.action(i) for i in range(*product.action_start[1:3])] == [1, 2]
    assert [product.action(i) for i in range(*product.action_start[3:5])] == [0]
    costs = prudent.from_quantecon(-R, Q, **{**COMMON, "cost": "as given"})
    assert costs.fingerprint == product.fingerprint
    assert prudent.from_quantecon(R, Q, **{**COMMON, "cost": "steps"}).n_actions == product.n_actions
    live = (np.arange(S) != GOAL)[:, None]
    best = iterated(Q.transpose(1, 0, 2) * live, np.where(live & (R > -np.inf), R, 0), mask=R > -np.inf)
    assert prudent.solve(product, alpha=1).expected == pytest.approx(-best[0], rel=1e-12)


def test_quantecon_agrees(partial):
    quantecon = pytest.importorskip("quantecon")
    R, Q = partial
    r, q, s, a = pairs(R, Q)
    for beta in (0.8, 0.99):
        solved = quantecon.markov.DiscreteDP(r, csr_matrix(q), beta, s, a).solve(method="policy_iteration")
        for start in range(S):
            model = prudent.from_quantecon(r, q, s, a, cost="negative reward", initial=start, discount=beta)
            assert prudent.solve(model, alpha=1).expected == pytest.approx(-solved.v[start], rel=1e-10, abs=1e-10)


def test_mdptoolbox_agrees():
    mdptoolbox = pytest.importorskip("mdptoolbox")
    example = pytest.importorskip("mdptoolbox.example")
    P, R = example.forest(S=5, p=0.2)
    R = R - R.max()  # else waiting in the oldest forest would pay for ever
    solved = mdptoolbox.mdp.PolicyIteration(P, R, 0.9)
    solved.run()
    for start in range(5):
        model = prudent.from_mdptoolbox(P, R, cost="negative reward", initial=start, discount=0.9)
        assert prudent.solve(model, alpha=1).expected == pytest.approx(-solved.V[start], rel=1e-10)


def test_start_in_a_goal_and_goals_alone():
    model = prudent.from_mdptoolbox(np.ones((1, 1, 1)), np.zeros((1, 1)), cost="as given", initial=0, goals=[0])
    assert prudent.solve(model, alpha=0.5).cvar == 0


def bad(value, where, array):
    changed = np.array(array, dtype=float)
    changed[where] = value
    return changed


def test_mdptoolbox_arrays_that_are_refused(arrays):
    P, R = arrays
    make = prudent.from_mdptoolbox
    for arguments, message in [
        ((P[0], R), r"P\[0\] has the shape \(6,\); it must have 2 dimensions"),
        ((csr_array(P[0]), R), r"P must be an array \(A, S, S\), or a list of A matrices"),
        ((7, R), r"P must be an array"),
        (([], R), r"P must be an array"),
        ((P[:, :, :4], R), r"P\[0\] has the shape \(6, 4\); it must be \(6, 6\)"),
        ((["x"], R), r"P\[0\] must be an array of numbers, found a str"),
        ((P, R[:2]), r"R is \(2, 6, ...\), P is \(3, 6, ...\)"),
        ((P, R[:, :4, :4]), r"R is \(3, 4, ...\), P is \(3, 6, ...\)"),
        ((P, R[0, :, :2]), r"R has the shape \(6, 2\); .* it must be \(6,\), \(6, 3\) or \(3, 6, 6\)"),
        ((P, "reward"), r"R must be an array of numbers, found a str"),
        ((bad(0.9, (1, 2, 3), P), R), r"probabilities of state 2, action 1 sum to"),
        ((bad(np.nan, (1, 2, 3), P), R), r"state 2, action 1 has an outcome of probability nan"),
        ((bad(0, (1, 2), P), R), r"state 2, action 1 has no outcomes"),
        ((P, bad(-np.inf, (1, 2), R)), r"state 2, action 1 has an outcome of cost inf"),
        (([[[1, 0], [0, 1]], [[1]]], R), r"P\[1\] has the shape \(1, 1\); it must be \(2, 2\)"),
        (([[[1, 0], [0]]], R), r"P\[0\] must be an array of numbers, found a list with rows of unequal length"),
        ((np.array(3.0), R), r"P must be an array \(A, S, S\)"),
        ((P + 1j, R), r"P\[0\] must be an array of numbers, found a ndarray of complex128"),
        (([csr_array(p + 1j) for p in P], R), r"P\[0\] is a csr_array of complex128, .*; it must be .* real numbers"),
        ((P, R + 1j), r"R\[0\] must be an array of numbers, found a ndarray of complex128"),
        ((P, [[1], [1, 2]]), r"R must be an array of numbers, found a list with rows of unequal length"),
        ((P, [[[1, 2], [3]]]), r"R\[0\] must be an array of numbers, found a list with rows of unequal length"),
        ((P, np.array(3.0)), r"R has the shape \(\); it must have 1 or 2 dimensions"),
        ((P, [["1"], ["2"]]), r"R must be an array of numbers, found a list of text"),
        ((P, np.array([1, "2"], dtype=object)), r"R must be an array of numbers, found a ndarray"),
        ((P, [None, 1]), r"R must be an array of numbers, found a list"),
    ]:
        with pytest.raises(PrudentError, match=message):
            make(*arguments, **COMMON)
    for options, message in [
        ({"goals": []}, r"goals is empty; name the states where a run ends, or give a discount below 1"),
        ({"goals": [6]}, r"goals has 6; it must hold state numbers, from 0 to 5"),
        ({"goals": ["a"]}, r"goals has 'a'"),
        ({"goals": 5}, r"goals is 5; it must be a collection"),
        ({"discount": 0}, r"discount is 0; it must be a number above 0 and at most 1"),
        ({"discount": 1.5}, r"discount is 1.5"),
        ({"initial": 9}, r"the initial state is number 9; the model has 6 states"),
        ({"initial": False}, r"initial is False; it must be the number of a state, or"),
        ({"initial": 6, "discount": 0.5}, r"the initial state is number 6; the model has 6 states"),
        ({"initial": {0: 0.5, 6: 0.5}, "discount": 0.5}, r"the initial state is number 6; the model has 6 states"),
        ({"state_names": ["a"]}, r"state_names has 1 entries; it must have 6"),
        ({"state_names": 5}, r"state_names is 5; it must be a list of 6 names"),
        ({"action_names": set("abc")}, r"action_names is .*; it must be a list of 3 names"),
    ]:
        with pytest.raises(PrudentError, match=message):
            make(P, R, **{**COMMON, **options})


def test_quantecon_arrays_that_are_refused(partial):
    R, Q = partial
    r, q, s, a = pairs(R, Q)
    for arguments, message in [
        ((R, Q[:, :, :3]), r"Q is \(6, 3, 3\) and R \(6, 3\); they must be \(S, A, S\) and \(S, A\)"),
        ((R, Q[0]), r"Q has the shape \(3, 6\); it must have 3 dimensions"),
        ((r, q), r"R has the shape \(15,\); it must have 2 dimensions"),
        ((r, q, s), r"a_indices must be a list of whole numbers"),
        ((r, q, s, [[0], [1, 2]]), r"a_indices must be a list of whole numbers"),
        ((r, q, s, a * 1.0), r"a_indices must be a list of whole numbers"),
        ((r[:9], q, s, a), r"list 9, 15, 15 and 15 pairs of state and action"),
        ((r, q, s + 5, a), r"s_indices must be from 0 to 5"),
        ((r, q, np.zeros_like(s), np.zeros_like(a)), r"state 0, action 0 is listed twice"),
        ((bad(-np.inf, 2, R), Q), r"state 2 has no actions and is not among the goals"),
        ((bad(np.inf, (2, 1), R), Q), r"state 2, action 1 has an outcome of cost -inf"),
    ]:
        with pytest.raises(PrudentError, match=message):
            prudent.from_quantecon(*arguments, **COMMON)


def test_sparse_arrays_of_one_dimension(partial):
    flat = coo_array([1.0, 2.0])
    if flat.ndim != 1:
        pytest.skip("SciPy before 1.13")
    r, _, s, a = pairs(*partial)
    for name, make in (
        (r"P\[0\]", lambda: prudent.from_mdptoolbox([flat], r, **COMMON)),
        ("Q", lambda: prudent.from_quantecon(r, flat, s, a, **COMMON)),
    ):
        with pytest.raises(
            PrudentError, match=name + r" is a coo_array of float64, of shape \(2,\); it must be a matrix"
        ):
            make()


def test_a_discount_is_noted_as_the_random_end_that_it_is():
    P, R = [[[0.5, 0.5], [0, 1]], [[0, 1], [0, 1]]], [[-1, -3], [0, 0]]
    asked = {"cost": "negative reward", "initial": 0, "goals": [1]}
    box = prudent.from_mdptoolbox(P, R, discount=0.9, **asked)
    econ = prudent.from_quantecon(np.array(R), np.array(P).transpose(1, 0, 2), discount=0.9, **asked)
    for model in (box, econ):
        (note,) = model.notes
        assert note.startswith(
            "the discount 0.9 is a random end here: after each action a run ends with probability 0.1"
        )
        for plan in (
            prudent.solve(model, alpha=0.2),
            prudent.solve(model, alpha=0.2, method="expected"),
            prudent.solve(model, alpha=0.2, slack=0.1),
            prudent.solve(model, alpha=0.2, objective=prudent.Exceedance(2)),
            prudent.solve(prudent.amend(model, horizon=3, horizon_cost=0), alpha=0.2),
            prudent.frontier(model, alpha=0.2).plan(0),
        ):
            assert note in plan.notes and note in " ".join(plan.table().notes)
        assert note in prudent.check(model).notes
        assert note in prudent.curve(model).notes
    assert prudent.from_mdptoolbox(P, R, **asked).notes == ()
    loose = prudent.from_mdptoolbox(
        [[[0.5, 0.5 + 1e-10], [0, 1]]], [[1], [0]], discount=0.9, **asked | {"cost": "as given"}
    )
    assert loose.deviation == pytest.approx(1e-10, rel=1e-3)
