"""Models from the arrays of other packages: mdptoolbox's and QuantEcon's, each by its convention.

Both packages maximise the discounted sum of rewards and have no goals.  Here costs are minimised and a run ends at a
goal, so three things must be given: how rewards become costs (``cost=``), where runs start and end (``initial=``,
``goals=``), and the discount (``discount=``).  Rewards above 0 that a run can collect again and again
make cycles of negative cost, which :func:`prudent.solve` refuses: shift them first.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set, Sized
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from prudent.errors import PrudentError, as_number
from prudent.io.properties import check_rule, costs_of
from prudent.models.build import from_arrays
from prudent.models.rows import BoolArray, FloatArray, IntArray, merge_outcomes, starts
from prudent.models.ssp import SSP

REAL = "biuf"
"""NumPy's kinds of real numbers; of other kinds NumPy would drop the imaginary part, or parse text."""

ENDS_AT_RANDOM = (
    "the discount {:g} is a random end here: after each action a run ends with probability {:.6g}; so the expected "
    "cost is that of the discounted sum, but CVaR, VaR and the distribution are those of runs that end at random, "
    "which differ from those of the discounted sum"
)
"""The note on a discount: it holds until both meanings have names of their own."""


def from_mdptoolbox(
    P: Any,
    R: Any,
    *,
    cost: str,
    initial: int | Mapping[int, float],
    goals: Iterable[int] = (),
    discount: float = 1.0,
    state_names: Sequence[Hashable] | None = None,
    action_names: Sequence[Hashable] | None = None,
    name: str = "model",
) -> SSP:
    """Return a model from transition and reward arrays as pymdptoolbox takes them.

    Parameters
    ----------
    P : array or list
        Probabilities: an array ``(A, S, S)``, or a list of ``A`` arrays or SciPy sparse matrices ``(S, S)``;
        ``P[a][s, t]`` is the probability that action ``a`` leads from state ``s`` to ``t``.
    R : array or list
        Rewards or costs: ``(S,)`` by state, ``(S, A)`` by state and action, or by transition as ``P`` is.
    cost : str
        How ``R`` becomes costs: ``"negative reward"``, ``"as given"`` (they are costs already), or ``"steps"`` (1 for
        every action).
    initial : int or mapping
        The first state, or ``{state: probability}``.
    goals : iterable of int
        The states where a run ends; their rows of ``P`` and ``R`` are not read.
    discount : float
        Below 1: after each action the run ends with probability ``1 - discount``, at a new goal ``"ended"``.  The
        expected total cost is then the expected discounted cost.  The risk is that of runs that end at random, not that
        of the discounted sum; a note on the model and its plans repeats this.
    state_names, action_names : sequence, optional
        Names of the ``S`` states and the ``A`` actions; by default their numbers.
    name : str
        The name of the model in messages.

    Examples
    --------
    >>> import prudent
    >>> P = [[[0.5, 0.5], [0, 1]], [[0, 1], [0, 1]]]            # wait, or go: from state 0 to state 1
    >>> R = [[-1, -3], [0, 0]]
    >>> model = prudent.from_mdptoolbox(P, R, cost="negative reward", initial=0, goals=[1])
    >>> prudent.solve(model, alpha=0.1).cvar
    3.0
    """
    matrices = _matrices("P", P)
    n_actions, n_states = len(matrices), matrices[0].shape[0]
    reward = _rewards(R, n_actions, n_states)
    action, state = (part.ravel() for part in np.indices((n_actions, n_states)))
    given = _Given(cost, initial, goals, discount, state_names, action_names, name)
    return _model(state, action, vstack(matrices).tocsr(), reward, given)


def from_quantecon(
    R: Any,
    Q: Any,
    s_indices: Any = None,
    a_indices: Any = None,
    *,
    cost: str,
    initial: int | Mapping[int, float],
    goals: Iterable[int] = (),
    discount: float = 1.0,
    state_names: Sequence[Hashable] | None = None,
    action_names: Sequence[Hashable] | None = None,
    name: str = "model",
) -> SSP:
    """Return a model from reward and transition arrays as QuantEcon's ``DiscreteDP`` takes them.

    Parameters
    ----------
    R : array
        Rewards or costs: ``(S, A)``, or ``(L,)`` by pairs of state and action.  A reward of ``-inf`` (a cost of
        ``inf`` if they are given as costs) means that the state does not have the action.
    Q : array
        Probabilities: ``(S, A, S)``, or ``(L, S)``, dense or SciPy sparse.
    s_indices, a_indices : array, optional
        The state and the action of each of the ``L`` pairs.
    cost, initial, goals, discount, state_names, action_names, name
        As for :func:`prudent.from_mdptoolbox`; ``discount`` is QuantEcon's ``beta``.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> R = np.array([[-1, -3], [0, -np.inf]])
    >>> Q = np.array([[[0.5, 0.5], [0, 1]], [[0, 1], [0, 1]]])
    >>> model = prudent.from_quantecon(R, Q, cost="negative reward", initial=0, goals=[1])
    >>> prudent.solve(model, alpha=1).expected
    2.0
    """
    listed = s_indices is not None or a_indices is not None
    reward = _numbers("R", R, (1,) if listed else (2,))
    if not listed:
        dense = _numbers("Q", Q, (3,))
        n_states, n_actions = reward.shape
        if dense.shape != (n_states, n_actions, n_states):
            raise PrudentError(f"Q is {dense.shape} and R {reward.shape}; they must be (S, A, S) and (S, A)")
        state, action = (part.ravel() for part in np.indices((n_states, n_actions)))
        reward, matrix = reward.ravel(), csr_array(dense.reshape(-1, n_states))
    else:
        state, action = (_indices(*given) for given in (("s_indices", s_indices), ("a_indices", a_indices)))
        matrix = _matrix("Q", Q)
        if not len(reward) == len(state) == len(action) == matrix.shape[0]:
            raise PrudentError(
                f"R, Q, s_indices and a_indices list {len(reward)}, {matrix.shape[0]}, {len(state)} and {len(action)} "
                "pairs of state and action; they must list the same"
            )
        n_states = matrix.shape[1]
        if len(state) and (state.min() < 0 or state.max() >= n_states or action.min() < 0):
            raise PrudentError(f"s_indices must be from 0 to {n_states - 1}, the states of Q, and a_indices at least 0")
    lacking = reward == (np.inf if cost == "as given" else -np.inf)
    given = _Given(cost, initial, goals, discount, state_names, action_names, name)
    return _model(state, action, matrix, reward, given, lacking)


class _Given(NamedTuple):
    """What arrays leave open, as the user gave it."""

    cost: str
    initial: int | Mapping[int, float]
    goals: Iterable[int]
    discount: float
    state_names: Sequence[Hashable] | None
    action_names: Sequence[Hashable] | None
    name: str


def _model(
    state: IntArray, action: IntArray, matrix: Any, reward: Any, given: _Given, lacking: BoolArray | bool = False
) -> SSP:
    """Return the model of pairs of state and action, except those that lack.

    Each pair has a row of probabilities, and a reward or a row of rewards.
    """
    rule, n_states = check_rule(given.cost), int(matrix.shape[1])
    ends, states = _goals(given.goals, n_states), _named("state_names", given.state_names, n_states)
    names = _named("action_names", given.action_names, int(action.max(initial=0)) + 1)
    for first in given.initial if isinstance(given.initial, Mapping) else (given.initial,):
        if isinstance(first, bool) or not isinstance(first, int | np.integer):
            raise PrudentError(
                f"initial is {given.initial!r}; it must be the number of a state, or {{number: probability}}"
            )
        if not 0 <= first < n_states:  # the goal that discounting adds is no start
            raise PrudentError(f"the initial state is number {first}; the model has {n_states} states, numbered from 0")
    going_on = as_number("discount", given.discount, "a number above 0 and at most 1", lambda x: 0 < x <= 1)
    if not len(ends) and going_on == 1:
        raise PrudentError("goals is empty; name the states where a run ends, or give a discount below 1")
    order = np.lexsort((action, state))
    for at in order[1:][(np.diff(state[order]) == 0) & (np.diff(action[order]) == 0)][:1]:
        raise PrudentError(f"state {state[at]}, action {action[at]} is listed twice; list each pair once")
    order = order[~(lacking | np.isin(state, ends))[order]]
    state, action, reward, entry = state[order], action[order], reward[order], matrix[order].tocoo()
    used, goals = entry.data != 0, ends.tolist()
    row, target, chance = entry.row[used].astype(np.int64), entry.col[used].astype(np.int64), entry.data[used]
    cost = costs_of(rule, reward[row] if isinstance(reward, np.ndarray) else reward[row, target])
    if going_on < 1:
        row, target = np.concatenate([row, row]), np.concatenate([target, np.full(len(row), n_states)])
        chance, cost = np.concatenate([going_on * chance, (1 - going_on) * chance]), np.concatenate([cost, cost])
        states = [*(range(n_states) if states is None else states), "ended"]
        goals, n_states = [*goals, n_states], n_states + 1
    row, target, cost, chance = merge_outcomes(row, target, cost, chance)
    model = from_arrays(
        starts(state, n_states),
        starts(row, len(action)),
        chance,
        target,
        cost,
        initial=given.initial,
        goals=goals,
        state_names=states,
        action_names=action.tolist() if names is None else [names[a] for a in action.tolist()],
        name=given.name,
    )
    return model if going_on == 1 else model.noted(ENDS_AT_RANDOM.format(going_on, 1 - going_on))


def _numbers(name: str, values: Any, dimensions: tuple[int, ...]) -> FloatArray:
    found = f"a {type(values).__name__}"
    try:
        array = np.asarray(values)
    except ValueError:
        raise PrudentError(f"{name} must be an array of numbers, found {found} with rows of unequal length") from None
    if array.dtype.kind == "O" and not any(item is None or isinstance(item, str | bytes) for item in array.flat):
        with suppress(TypeError, ValueError, OverflowError):  # whole numbers beyond 64 bits, fractions, or anything
            array = array.astype(np.float64)
    if array.dtype.kind not in REAL:
        kind = array.dtype.kind
        of = "" if not array.ndim or kind == "O" else " of text" if kind in "US" else f" of {array.dtype.name}"
        raise PrudentError(f"{name} must be an array of numbers, found {found}{of}")
    if array.ndim not in dimensions or array.size == 0:
        wanted = " or ".join(map(str, dimensions))
        raise PrudentError(f"{name} has the shape {array.shape}; it must have {wanted} dimensions and not be empty")
    return array.astype(np.float64, copy=False)


def _matrix(name: str, given: Any) -> Any:
    """Return a sparse matrix of real numbers, from one of any kind."""
    if not issparse(given):
        return csr_array(_numbers(name, given, (2,)))
    if given.dtype.kind not in REAL or given.ndim != 2:
        raise PrudentError(
            f"{name} is a {type(given).__name__} of {given.dtype.name}, of shape {given.shape}; it must be a matrix of "
            "real numbers"
        )
    return given.tocsr()


def _parts(given: Any) -> list[Any]:
    """Return the items of a list or an array; none of anything else."""
    return list(given) if isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim) else []


def _matrices(name: str, given: Any) -> list[Any]:
    """Return one sparse matrix (S, S) for each action."""
    parts = _parts(given)
    if not parts:
        raise PrudentError(f"{name} must be an array (A, S, S), or a list of A matrices (S, S), one for each action")
    matrices = [_matrix(f"{name}[{a}]", part) for a, part in enumerate(parts)]
    size = matrices[0].shape[0]
    for a, matrix in enumerate(matrices):
        if matrix.shape != (size, size):
            raise PrudentError(
                f"{name}[{a}] has the shape {matrix.shape}; it must be ({size}, {size}), states by states"
            )
    return matrices


def _rewards(given: Any, n_actions: int, n_states: int) -> Any:
    """Return rewards by action and state, or a matrix of them by transition."""
    parts = _parts(given)
    if parts and (issparse(parts[0]) or any(_parts(row) for row in _parts(parts[0]))):
        matrices = _matrices("R", given)
        if len(matrices) != n_actions or matrices[0].shape[0] != n_states:
            raise PrudentError(
                f"R is ({len(matrices)}, {matrices[0].shape[0]}, ...), P is ({n_actions}, {n_states}, ...); they must "
                "have the same actions and states"
            )
        return vstack(matrices).tocsr()
    reward = _numbers("R", given.toarray() if issparse(given) else given, (1, 2))
    if reward.ndim == 1 and len(reward) == n_states:
        return np.tile(reward, n_actions)
    if reward.shape != (n_states, n_actions):
        raise PrudentError(
            f"R has the shape {reward.shape}; with P of {n_actions} actions and {n_states} states it must be "
            f"({n_states},), ({n_states}, {n_actions}) or ({n_actions}, {n_states}, {n_states})"
        )
    return reward.T.ravel()


def _indices(name: str, values: Any) -> IntArray:
    try:
        given = np.asarray(() if values is None else values)
    except ValueError:  # rows of unequal length
        given = np.zeros(())
    if given.ndim != 1 or given.dtype.kind not in "iu" or not len(given):
        raise PrudentError(f"{name} must be a list of whole numbers, one for each pair of state and action")
    return given.astype(np.int64)


def _goals(goals: Iterable[int], n_states: int) -> IntArray:
    try:
        given = np.array(sorted(set(goals)), dtype=object)
    except TypeError:
        raise PrudentError(f"goals is {goals!r}; it must be a collection of state numbers") from None
    for state in given:
        if isinstance(state, bool) or not isinstance(state, int | np.integer) or not 0 <= state < n_states:
            raise PrudentError(f"goals has {state!r}; it must hold state numbers, from 0 to {n_states - 1}")
    return given.astype(np.int64)


def _named(what: str, names: Sequence[Hashable] | None, size: int) -> Sequence[Hashable] | None:
    if names is None:
        return None
    if isinstance(names, Mapping | Set) or not isinstance(names, Sized) or not isinstance(names, Iterable):
        raise PrudentError(f"{what} is {names!r}; it must be a list of {size} names")
    if len(names) != size:
        raise PrudentError(f"{what} has {len(names)} entries; it must have {size}")
    return list(names)
