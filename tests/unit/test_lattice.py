import numpy as np
import pytest

from prudent.errors import PrudentError
from prudent.lattice import Lattice, find_lattice


@pytest.mark.parametrize(
    ("costs", "step", "multiples"),
    [
        ([0.5, 2, 3.5], 0.5, [1, 4, 7]),
        ([0.01, 19.99, 3.3], 0.01, [1, 1999, 330]),
        ([1 / 3, 2 / 3, 1.0], 1 / 3, [1, 2, 3]),
        ([0.1 + 0.2, 0.1], 0.1, [3, 1]),
        ([300 * 0.01, -299 * 0.01], 0.01, [300, -299]),
        ([6, 10, -4, 0], 2, [3, 5, -2, 0]),
        ([np.pi, 2 * np.pi, np.pi / 3], np.pi / 3, [3, 6, 1]),
        ([0, 0], 1, [0, 0]),
        ([1e20, 3e20], 1e20, [1, 3]),
        ([7.0], 7, [1]),
    ],
)
def test_steps_are_found(costs, step, multiples):
    lattice, whole = find_lattice(np.array(costs, dtype=float))
    assert lattice.step == pytest.approx(step, rel=1e-15)
    assert whole.tolist() == multiples
    assert lattice.deviation <= 1e-15 * max(map(abs, costs))


@pytest.mark.parametrize(
    "costs", [[1, np.sqrt(2)], [0.1, np.pi, np.e], [1, 1 + 1e-9], [1e-12, 1], [1e-320, 1], [1e200, 1]]
)
def test_no_step_is_made_up(costs):
    assert find_lattice(np.array(costs, dtype=float)) is None


def test_values_are_the_nearest_floats():
    assert Lattice(0.1, 0.0).value(np.array([3, 7])).tolist() == [0.3, 0.7]
    assert Lattice(0.01, 0.0).value(1999) == 19.99
    assert Lattice(5.0, 0.0).value(3) == 15


def test_multiples_are_recognised_or_refused():
    lattice = Lattice(0.1, 0.0)
    assert lattice.multiple(0.1 + 0.2) == 3
    with pytest.raises(PrudentError, match=r"spent is 0.25; it must be a multiple of the model's cost step 0.1"):
        lattice.multiple(0.25, "spent")
    with pytest.raises(PrudentError, match="finite"):
        lattice.multiple(float("nan"))
