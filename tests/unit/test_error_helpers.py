import numpy as np
import pytest

from prudent import ModelError, PrudentError, amend
from prudent.errors import naming, whole_number
from prudent.io.formats import parse


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers_become_ints(value):
    assert type(whole_number("n", value, 3, 3)) is int


@pytest.mark.parametrize("value", [2, 4, 3.0, True, "3", None, np.bool_(True), 10**400])
def test_other_numbers_are_refused_with_the_limits(value):
    with pytest.raises(PrudentError) as caught:
        whole_number("n", value, 3, 3)
    assert str(caught.value) == f"n is {value!r}; it must be a whole number, from 3 to 3"
    with pytest.raises(PrudentError, match=r"^n is -1; it must be a number of steps, at least 0$"):
        whole_number("n", -1, 0, what="a number of steps")


def test_a_place_stands_before_every_problem():
    with pytest.raises(ModelError) as caught, naming("file"):
        raise ModelError(["one", "two"])
    assert caught.value.problems == ("file: one", "file: two")
    with pytest.raises(PrudentError, match=r"^file: wrong$"), naming("file"):
        raise PrudentError("wrong")


def test_what_is_no_model_and_what_has_no_reader_of_bytes():
    with pytest.raises(PrudentError, match=r"^model is a list; make one with prudent.build, from_arrays or load$"):
        amend([], horizon=1, horizon_cost=0)
    with pytest.raises(PrudentError, match=r"^m.prism: Storm reads such files only from the disk"):
        parse(b"", "m.prism")
