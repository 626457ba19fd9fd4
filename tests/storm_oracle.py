"""Storm, the probabilistic model checker, as an oracle for least expected costs; needs the extra ``storm``."""

import numpy as np
import stormpy
from scipy.sparse import csr_array
from stormpy.environments import MinMaxMethod, sound

import prudent

METHODS = {
    "value iteration": MinMaxMethod.VALUE_ITERATION,
    "policy iteration": MinMaxMethod.POLICY_ITERATION,
    "interval iteration": MinMaxMethod.INTERVAL_ITERATION,
    "sound value iteration": MinMaxMethod.SOUND_VALUE_ITERATION,
    "optimistic value iteration": MinMaxMethod.OPTIMISTIC_VALUE_ITERATION,
}


def storm_model(model: prudent.SSP):
    """The model as Storm's sparse MDP; goals loop at no cost."""
    row_of_action, rows, group = np.empty(model.n_actions, dtype=np.int64), 0, []
    goal_row = {}
    for s in range(model.n_states):
        group.append(rows)
        first, last = int(model.action_start[s]), int(model.action_start[s + 1])
        if first == last:
            goal_row[rows] = s
            rows += 1
        row_of_action[first:last] = np.arange(rows, rows + last - first)
        rows += last - first
    action_of = np.repeat(np.arange(model.n_actions), np.diff(model.outcome_start))
    row, column, chance = row_of_action[action_of], model.successor, model.probability
    row = np.concatenate([row, np.array(list(goal_row), dtype=np.int64)])
    column = np.concatenate([column, np.array(list(goal_row.values()), dtype=np.int64)])
    chance = np.concatenate([chance, np.ones(len(goal_row))])
    moves = csr_array((chance, (row, column)), shape=(rows, model.n_states))
    moves.sum_duplicates()
    mean = np.bincount(row_of_action[action_of], weights=model.probability * model.cost, minlength=rows)
    least, most = (pick.reduceat(model.cost, model.outcome_start[:-1]) for pick in (np.minimum, np.maximum))
    alike = least == most  # then nothing is rounded: cost-bounded properties count every digit
    mean[row_of_action[alike]] = least[alike]

    builder = stormpy.datastructures.SparseMatrixBuilder[float](
        rows=rows, columns=model.n_states, entries=moves.nnz, has_custom_row_grouping=True, row_groups=model.n_states
    )
    starts, groups = moves.indptr.tolist(), set(group)
    columns, chances = moves.indices.tolist(), moves.data.tolist()
    for r in range(rows):
        if r in groups:
            builder.new_row_group(r)
        for i in range(starts[r], starts[r + 1]):
            builder.add_next_value(r, columns[i], chances[i])
    labels = stormpy.models.StateLabeling(model.n_states)
    for label in ("init", "goal"):
        labels.add_label(label)
    labels.add_label_to_state("init", int(model.initial_state[0]))
    for s in goal_row.values():
        labels.add_label_to_state("goal", s)
    costs = stormpy.models.SparseRewardModel[float](optional_state_action_reward_vector=mean.tolist())
    parts = stormpy.models.SparseModelComponents[float](
        transition_matrix=builder.build(), state_labeling=labels, reward_models={"cost": costs}
    )
    return stormpy.models.SparseMdp[float](parts)


def reaches_within(storm, budget: int, operator: str = "Pmax") -> float:
    """Storm's greatest, or least, probability of reaching a goal at a cost of at most this."""
    formula = stormpy.parse_property(f'{operator}=? [F{{"cost"}}<={budget} "goal"]')
    result = stormpy.model_checking(storm, formula, only_initial_states=True)
    return float(result.get_value(storm.initial_states[0]))


def quantile(storm, alpha: float) -> float:
    """Storm's least cost within which a goal is reached with a probability above 1 - alpha."""
    formula = stormpy.parse_property(f'quantile(k, Pmax>{1 - alpha} [F{{"cost"}}<=k "goal"])')
    result = stormpy.model_checking(storm, formula, only_initial_states=True)
    return float(result.get_value(storm.initial_states[0]))


def least_expected(storm, method: str, precision: float) -> np.ndarray:
    """Storm's least expected cost from every state by one of its methods, to this relative precision."""
    environment = sound()
    solver = environment.solver()
    solver.force_soundness = method != "value iteration"
    settings = solver.min_max()
    settings.method = METHODS[method]
    settings.precision = stormpy.Rational(precision)
    settings.relative_termination_criterion = True
    settings.maximal_number_of_iterations = 10**8
    formula = stormpy.parse_property('R{"cost"}min=? [F "goal"]')
    result = stormpy.model_checking(storm, formula, only_initial_states=False, environment=environment)
    return np.array([float(result.get_value(s)) for s in range(storm.nr_states)])
