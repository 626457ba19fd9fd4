import json
from pathlib import Path

import pytest

import prudent
from prudent.io.study import StudyFile, parse
from prudent.results.study import FIELDS

HEADER = {"format": "prudent-study", "version": 1, "parameters": ["n"]}
ROW = {
    "n": 1,
    **{name: {"text": "x", "number": 1.5, "count": 2, "texts": ["note"]}[kind] for name, kind in FIELDS.items()},
    "error": None,
}


def content(*rows, header=HEADER):
    return "".join(json.dumps(line) + "\n" for line in (header, *rows)).encode()


def test_written_and_read_again_it_is_the_same(tmp_path):
    path = tmp_path / "rows.jsonl"
    row = {**ROW, "notes": ("note",), "var": float("inf")}
    StudyFile(path, {"make": "x"}, ["n"]).add(row)
    with path.open("ab") as file:
        file.write(b'{"n": 2, "mod')  # broken off
    again = StudyFile(path, {"make": "x"}, ["n"])
    assert list(again.rows.values()) == [row]
    again.add({**row, "n": 2})
    assert [found["n"] for found in StudyFile(path, {"make": "x"}, ["n"]).rows.values()] == [1, 2]
    assert "Infinity" not in path.read_text()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"\xff\n", "f.jsonl: not UTF-8 text"),
        (b"[]\n", "f.jsonl: the first line is a list; it must be an object"),
        (content(header={"format": "x"}), "f.jsonl: is not a study of this version"),
        (content(header={**HEADER, "parameters": 3}), "f.jsonl: parameters is 3; it must be a list"),
        (content(ROW, {"n": 1}), "f.jsonl: line 3: must have the fields n, model, method"),
        (content({**ROW, "cvar": "much"}), 'f.jsonl: line 2: cvar is "much"; it must be a finite number or "inf" or'),
        (content({**ROW, "seconds": "inf"}), 'f.jsonl: line 2: seconds is "inf"; it must be a finite number'),
        (content(ROW).replace(b"1.5", b"1e999", 1), "f.jsonl: line 2: alpha is Infinity; it must be a finite number"),
        (
            content({**ROW, "cvar": 2.5}).replace(b"2.5", b"1e999"),
            'f.jsonl: line 2: cvar is Infinity; it must be a finite number or "inf"',
        ),
        (content(ROW).replace(b'"n": 1', b'"n": 1e999'), "f.jsonl: line 2: n is Infinity; it must be a finite number"),
        (content({**ROW, "states": 1.5}), "f.jsonl: line 2: states is 1.5; it must be a whole number"),
        (content({**ROW, "notes": [1]}), "f.jsonl: line 2: notes is 1; it must be a string"),
        (content({**ROW, "cvar": None}), "f.jsonl: line 2: has neither all its numbers nor an error"),
        (content() + b"{\n", "f.jsonl: line 2: not valid JSON"),
    ],
)
def test_what_is_no_study_is_refused(raw, message):
    with pytest.raises(prudent.PrudentError) as error:
        parse(raw, Path("f.jsonl"))
    assert str(error.value).startswith(message)


def test_a_first_line_may_lack_its_end(tmp_path):
    path = tmp_path / "rows.jsonl"
    StudyFile(path, {"make": "x"}, ["n"])
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(prudent.PrudentError, match=r"rows.jsonl: belongs to another study: its make is 'x', not 'y'"):
        StudyFile(path, {"make": "y"}, ["n"])
    StudyFile(path, {"make": "x"}, ["n"]).add({**ROW, "notes": ()})
    assert path.read_bytes().startswith(whole) and len(StudyFile(path, {"make": "x"}, ["n"]).rows) == 1


def test_a_file_of_something_else_is_not_overwritten(tmp_path):
    path = tmp_path / "rows.jsonl"
    for content in (b"precious\n", b"precious"):
        path.write_bytes(content)
        with pytest.raises(prudent.PrudentError, match=r"rows.jsonl: not valid JSON"):
            StudyFile(path, {}, [])
        assert path.read_bytes() == content
    with pytest.raises(prudent.PrudentError, match="there is no folder"):
        StudyFile(tmp_path / "none" / "rows.jsonl", {}, [])
