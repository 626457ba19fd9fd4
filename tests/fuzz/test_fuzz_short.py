"""A short hunt each day, with hypothesis: changes of real files, and every input that once showed a bug."""

from importlib.util import find_spec

import pytest
import targets
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import examples

EACH = examples(150)
NO_PLADO = pytest.mark.skipif(find_spec("plado") is None, reason="needs the extra pddl")
NAMES = [pytest.param(name, marks=[NO_PLADO] if name == "pddl" else []) for name in targets.TARGETS]


@pytest.mark.parametrize("name", NAMES)
def test_real_files_and_those_that_once_showed_a_bug(name):
    for raw in targets.seeds()[name] + targets.kept(name):
        targets.TARGETS[name](raw)
    assert targets.accepted[name]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=EACH)
@given(data=st.data())
def test_bytes(name, data):
    targets.TARGETS[name](data.draw(st.binary(max_size=200)))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=EACH)
@given(data=st.data())
def test_real_files_changed(name, data):
    raw = bytearray(data.draw(st.sampled_from(targets.seeds()[name])))
    for at, cut, piece in data.draw(
        st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 20), st.binary(max_size=8)), min_size=1, max_size=4)
    ):
        begin = at % (len(raw) + 1)
        raw[begin : begin + cut] = piece
    targets.TARGETS[name](bytes(raw))


def test_make_fuzz_hunts_in_every_format():
    makefile = (targets.CORPUS.parents[2] / "Makefile").read_text()
    assert f"FORMATS ?= {' '.join(targets.TARGETS)}\n" in makefile
