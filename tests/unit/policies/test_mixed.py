"""A policy that draws one of two: which one, how often, and how it is packed."""

import numpy as np
import pytest

import prudent
from plans import same_policy
from prudent.policies.mixed import MixedPolicy


@pytest.fixture(scope="module")
def policy():
    return prudent.solve(prudent.domains.figure_2(), alpha=0.1, max_cvar=12, randomise=True).policy


def test_its_parts_are_drawn_with_their_chances(policy):
    (share, first), (rest, second) = policy.parts
    assert share == pytest.approx(5 / 9) and share + rest == 1
    assert (first("s1"), second("s1")) == ("d", "c")
    drawn = [policy.start(seed=seed)._policy for seed in range(300)]
    firsts = [same_policy(each, first) for each in drawn]
    assert all(is_first != same_policy(each, second) for each, is_first in zip(drawn, firsts, strict=True))
    assert abs(sum(firsts) / 300 - share) < 4 * (share * rest / 300) ** 0.5
    for seed in range(10):
        luck = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))).random()
        assert same_policy(policy.start(seed=seed)._policy, first if luck < share else second)


def test_its_mean_is_that_of_its_parts(policy):
    model = policy.prepared.model
    means = [share * prudent.evaluate(model, part).mean for share, part in policy.parts]
    assert prudent.evaluate(model, policy).mean == pytest.approx(sum(means), rel=1e-12)


def test_packed_and_unpacked_it_is_the_same(policy):
    packed = policy.packed()
    assert packed.keys() == MixedPolicy.tensors.keys()
    again = MixedPolicy.unpacked(policy.prepared, packed, 0)
    assert again.share == policy.share
    for name, table in again.packed().items():
        assert np.array_equal(table, packed[name]) and table.dtype == packed[name].dtype, name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"share": np.array([0.0])}, "its two policies do not go together"),
        ({"share": np.array([1.0])}, "its two policies do not go together"),
        ({"share": np.array([np.nan])}, "its two policies do not go together"),
        ({"share": np.array([0.5, 0.5])}, "its two policies do not go together"),
        ({"share": np.array([])}, "its two policies do not go together"),
        ({"other": np.zeros((1, 4), dtype=np.uint8)}, "its two policies do not go together"),
        ({"other": np.full((1, 4), 9)}, "tensor other has an action that prepared state 0 has not"),
        ({"choice": np.zeros((1, 3), dtype=np.uint8)}, r"tensor choice has shape \(1, 3\); the prepared model has 4"),
    ],
)
def test_what_does_not_fit_is_refused(policy, change, message):
    with pytest.raises(prudent.PrudentError, match=message):
        MixedPolicy.unpacked(policy.prepared, policy.packed() | change, 0)


def test_it_is_refused_where_one_policy_is_needed(policy):
    with pytest.raises(prudent.PrudentError, match=r"one of two policies is no table; use those of policy\.parts$"):
        policy.refuse_as("is no table")
    with pytest.raises(prudent.PrudentError, match=r"run it with policy\.start\(\), or use policy\.parts"):
        policy("s0")
    with pytest.raises(prudent.PrudentError, match=r"give start\(seed=\), another number for each run"):
        policy.start()
    policy.parts[0][1].refuse_as("is no table")  # a part is one
