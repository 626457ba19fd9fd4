"""What the fuzzers call: for each format a function of bytes that ends quietly or shows a bug.

A reader may return or refuse the file by its name; any other exception is a bug, and so is what comes of a
file that was accepted.  A format is an entry of ``TARGETS`` and one of ``seeds``.
"""

import contextlib
import gzip
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import pddl_problems
import prudent
from plans import in_ranges
from prudent.domains.navigation import autonomous_navigation, parse_traffic
from prudent.engine.sweep.levels import LevelSweep
from prudent.io import checkpoint as checkpoint_file
from prudent.io import json as json_file
from prudent.io import plan as plan_file
from prudent.io.pddl import Problem
from prudent.io.properties import PropertiesFile
from prudent.io.sealed import seal, unseal
from prudent.io.study import key_of
from prudent.io.study import parse as parse_study
from prudent.io.umb import read as umb
from prudent.io.umb.archive import packed
from prudent.io.umb.write import members_of
from prudent.results.study import FIELDS, Study
from prudent.runtime.limits import Limits
from umb_by_hand import rich

PROPERTIES = b"""const int k; const double p = k/4; // of a walk
label "far" = x>p;
"cost": R{"cost"}min=? [ F "far" ]
"chance": Pmax=?
  [ F x=9 ];
"""

LOG = b"""episode,state,action,next_state,cost
1,home,walk,stop,1
1,stop,bus,work,2.5
2,home,walk,stop,1
2,stop,bus,work,9
"""

STUDY = b"""{"format": "prudent-study", "version": 1, "parameters": ["n", "way"]}
{"n": 2, "way": "by sea", "model": "m", "method": "exact", "alpha": 0.1, "step": 1.0, "status": "optimal", \
"cvar": 5.5, "var": 5, "expected": 2.5, "expected_lower": 2.5, "lower": 5.5, "upper": 5.5, "worst_case": "inf", \
"states": 3, "actions": 4, "outcomes": 5, "seconds": 0.1, "device": "cpu", "notes": ["rounded"], "error": null}
{"n": 3, "way": null, "model": null, "method": "exact", "alpha": 0.1, "step": null, "status": null, "cvar": null, \
"var": null, "expected": null, "expected_lower": null, "lower": null, "upper": null, "worst_case": null, \
"states": null, "actions": null, "outcomes": null, "seconds": null, "device": null, "notes": [], "error": "n is 3"}
"""

CORPUS = Path(__file__).parent / "corpus"
PLANNING = pddl_problems.DELIVERY.encode(), pddl_problems.PROBLEM.encode()

accepted: Counter[str] = Counter()
"""How many files were accepted, by format: where none is, the hunt says nothing about what comes after reading."""


@contextlib.contextmanager
def refused(*beginnings: str) -> Iterator[None]:
    """Take a refusal that begins so for an answer; every other one is a finding."""
    try:
        yield
    except prudent.PrudentError as error:
        if not str(error).startswith(beginnings):
            raise


def json_text(data: bytes) -> None:
    """Read a model: the bytes as they are, and a real document changed by them."""
    use_model(data)
    if data:
        use_model(changed(models()[data[0] % len(models())], Source(data[1:])))


def use_model(data: bytes) -> None:
    """Read a model; what is accepted is checked, and written and read again as the same."""
    with refused("fuzz.json:"):
        model = json_file.parse(data, Path("fuzz.json"))
        accepted["json"] += 1
        prudent.check(model)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "again.json"
            with unsynced():
                prudent.save(model, path)
            if prudent.load(path).fingerprint != model.fingerprint:
                raise AssertionError("written and read again, the model is another one")


def json_gzip(data: bytes) -> None:
    """Read a gzipped model: the bytes as they are, and as a text, their own or a changed one, that is gzipped first."""
    text = changed(models()[len(data) % len(models())], Source(data))
    for raw in (data, gzip.compress(data, 1, mtime=0), gzip.compress(text, 1, mtime=0)):
        with refused("fuzz.json.gz:"):
            json_file.parse(raw, Path("fuzz.json.gz"))
            accepted["json.gz"] += 1


def umb_archive(data: bytes) -> None:
    """Read a UMB file: the bytes as they are, and a real one whose index and members are changed by them."""
    use_umb(data)
    if data:
        use_umb(repacked(archives()[data[0] % len(archives())], Source(data[1:])))


def use_umb(data: bytes) -> None:
    """Read a UMB file; what is accepted is checked, and written and read again as the same where it can be written."""
    with refused("fuzz.umb:"):
        model = umb.parse(data, Path("fuzz.umb"))
        accepted["umb"] += 1
        prudent.check(model)
        again = umb.parse(packed(members_of(model)), Path("again.umb"))
        if again.fingerprint != model.fingerprint:
            raise AssertionError("written and read again, the model is another one")


def traffic(data: bytes) -> None:
    """Read a traffic file: the bytes as they are, and a real file changed by them."""
    use_traffic(data)
    if data:
        use_traffic(spliced(ROADS[data[0] % len(ROADS)].encode(), Source(data[1:])))


def use_traffic(data: bytes) -> None:
    """Read a traffic file, and build the model of what is accepted, from its first junction to its last."""
    with refused("fuzz.csv:"):
        roads = parse_traffic(data, Path("fuzz.csv"))
        accepted["traffic"] += 1
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "roads.csv"
            path.write_bytes(data)
            prudent.check(autonomous_navigation(str(path), start=next(iter(roads)), goal=list(roads)[-1]))


def plan(data: bytes) -> None:
    """Read a plan: the bytes as they are, and a real plan's content forged by them, with a right digest."""
    model, _ = plans()[0]
    use_plan(data, model)
    if data:
        model, raw = plans()[data[0] % len(plans())]
        use_plan(forged(plan_file.FORMAT, raw, data[1:]), model)


def checkpoint(data: bytes) -> None:
    """Read a checkpoint: the bytes as they are, and a real one's content forged by them, with a right digest."""
    use_checkpoint(data, *checkpoints()[0][:2])
    if data:
        model, alpha, raw = checkpoints()[data[0] % len(checkpoints())]
        use_checkpoint(forged(checkpoint_file.KIND, raw, data[1:]), model, alpha)


def properties(data: bytes) -> None:
    """Read a file of properties: the bytes as they are, and put into a real one."""
    middle = len(PROPERTIES) // 2
    for raw in (data, PROPERTIES[:middle] + data + PROPERTIES[middle:]):
        with refused("fuzz.props:"):
            file = PropertiesFile(raw, Path("fuzz.props"))
            accepted["props"] += 1
            for name in file.text:
                with refused("fuzz.props:"):
                    file.chosen(name, {"k": "1"}, bool)


def study(data: bytes) -> None:
    """Read the rows of a study: the bytes as they are, and a real file changed by them."""
    use_study(data)
    if data:
        use_study(spliced(STUDY, Source(data)))


def use_study(data: bytes) -> None:
    """Read the rows of a study, and show those that are done."""
    with refused("fuzz.jsonl:"):
        header, rows = parse_study(data, Path("fuzz.jsonl"))
        accepted["study"] += 1
        names = tuple(name for name in header["parameters"] if name not in FIELDS)
        done = tuple(row for row in rows if row["error"] is None)
        found = Study("fuzz", names, done, len(rows), 1.0)
        found.to_csv(), str(found.table()), json.dumps(found.to_dict(), allow_nan=False)
        [key_of(row, names) for row in done]


def pddl(data: bytes) -> None:
    """Read a planning problem: the bytes as domain, as problem, and both changed by them."""
    domain, problem = PLANNING
    pairs = [(data, problem), (domain, data)]
    if data:
        pairs += [(spliced(domain, Source(data), PDDL), problem), (domain, spliced(problem, Source(data), PDDL))]
    for pair in pairs:
        use_pddl(*pair)


def use_pddl(domain: bytes, problem: bytes) -> None:
    """Read a planning problem, and take a first step in it; a whole model may have no end."""
    with tempfile.TemporaryDirectory() as folder, refused("fuzz.pddl", folder):
        path = Path(folder) / "problem.pddl"
        path.write_bytes(problem)
        task = Problem(domain, Path("fuzz.pddl"), path)
        accepted["pddl"] += 1
        task.heuristic(task.initial)
        for outcomes in task.actions(task.initial).values():
            for _, after, _ in outcomes:
                task.heuristic(after)


def log(data: bytes) -> None:
    """Read logged runs: the bytes as they are, and a real log changed by them."""
    use_log(data)
    if data:
        use_log(spliced(LOG, Source(data)))


def use_log(data: bytes) -> None:
    """Read logged runs; what is accepted has intervals, and is checked."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fuzz.csv"
        path.write_bytes(data)
        with refused(f"{path}:"):
            found = prudent.from_episodes(path)
            accepted["log"] += 1
            found.intervals(0.9).within(found.model)
            prudent.check(found.model)
            str(found.table()), json.dumps(found.to_dict(), allow_nan=False)


TARGETS = {
    "json": json_text,
    "json.gz": json_gzip,
    "umb": umb_archive,
    "plan": plan,
    "checkpoint": checkpoint,
    "traffic": traffic,
    "props": properties,
    "study": study,
    "pddl": pddl,
    "log": log,
}


def use_plan(raw: bytes, model: prudent.SSP) -> None:
    """Read a plan, and do with it what a plan is for."""
    with refused("fuzz.safetensors:"):
        loaded = plan_file.parse(raw, Path("fuzz.safetensors"), model)
        accepted["plan"] += 1
        repr(loaded), loaded.message, loaded._repr_html_(), json.dumps(loaded.to_dict(), allow_nan=False)
        with refused("following the policy"):
            prudent.evaluate(model, loaded.policy)
        with refused("a run of"):
            prudent.simulate(model, loaded.policy, episodes=3, threads=1, max_steps=1000, paths=1)
        with refused("a plan that remembers", "a plan that draws"):
            loaded.decisions().to_csv()


def use_checkpoint(raw: bytes, model: prudent.SSP, alpha: float) -> None:
    """Go on from a checkpoint to a plan, and evaluate it."""
    with tempfile.TemporaryDirectory() as folder, refused(folder, "the checkpoint does not fit"):
        path = Path(folder) / "solve.checkpoint"
        path.write_bytes(raw)
        with unsynced():
            found = prudent.solve(model, alpha, checkpoint=path, memory="100MB", time_limit=5)
        accepted["checkpoint"] += 1
        prudent.evaluate(model, found.policy)


class Source:
    """Takes a stream of bytes for decisions; once it has run dry, every decision is the first."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def below(self, n: int) -> int:
        size = 1 if n <= 256 else 4
        piece = self.data[self.at : self.at + size]
        self.at += size
        return int.from_bytes(piece, "little") % n

    def changes(self) -> range:
        """Return how many changes to make: few, since a file with many is hardly ever accepted."""
        return range((1, 2, 3, 8)[self.below(4)])


ODD = (0, 1, -1, 2, 0.5, 1e308, -1e308, 5e-324, 10**400, "inf", "-inf", "nan", "x", None, True, [], {}, [[1]], -0.0)
NAMES = ("", "s", "g", "s0", "\0", "\ud800", "\U0001f600", "p", "to", "cost", "states", "x" * 100)
WHOLE = (0, 1, 2, 3, 7, 127, 128, 255, 256, 2**31 - 1, 2**31, 2**63 - 1, -1, -2, -128, -(2**31), -(2**63))
KINDS = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?")


def changed(document: Any, source: Source) -> bytes:
    """Return a document as JSON with some of its parts replaced, dropped, doubled or renamed as the bytes say."""
    document = deepcopy(document)
    for _ in source.changes():
        part, before = document, None
        while isinstance(part, dict | list) and part and (before is None or source.below(4)):
            keys = list(part) if isinstance(part, dict) else range(len(part))
            before, at = part, keys[source.below(len(keys))]
            part = part[at]
        if before is None:
            break
        how = source.below(6)
        if how == 0:
            before[at] = deepcopy(ODD[source.below(len(ODD))])
        elif how == 1:
            before[at] = NAMES[source.below(len(NAMES))]
        elif how == 2:
            del before[at]
        elif how == 3 and isinstance(before, list):
            before.insert(source.below(len(before) + 1), deepcopy(part))
        elif how == 4 and isinstance(before, dict):
            before[NAMES[source.below(len(NAMES))]] = before.pop(at)
        elif isinstance(part, int | float) and abs(part) < 1e300:
            before[at] = float(part) * (0.5, 2, -1, 1e-300, 1e300)[source.below(5)]
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


TOKENS = ("", "1", "-", "0", "9" * 30, "nan", "inf", "1e308", "1e-308", ",", ", ", ": ", '"', "'", "[{", "}]")
TOKENS += ("\n", "\r", "\0", " ", "0.5", "1.0", "freeway", "non-freeway", "'ID'", "'ID': 'freeway'", "1", "2", "3")
TOKENS += ("\u0663", "1_0")


PDDL = (
    "(",
    ")",
    "?x",
    "(not",
    "(and",
    "(or",
    "(forall (?x)",
    "(when",
    "(exists (?x)",
    "(probabilistic",
    "(=",
    ";",
    "a",
)
PDDL += (
    "(increase (total-cost) 1)",
    "1.5",
    "-1",
    "1/0",
    "- place",
    "- object",
    "(either",
    ":derived",
    ":constants",
    "\0",
)


def spliced(raw: bytes, source: Source, tokens: tuple[str, ...] = TOKENS) -> bytes:
    """Return a text with some pieces replaced by others that matter, as the bytes say."""
    for _ in source.changes():
        at, cut = source.below(len(raw) + 1), source.below(16)
        raw = raw[:at] + tokens[source.below(len(tokens))].encode() + raw[at + cut :]
    return raw


def forged(kind: str, raw: bytes, data: bytes) -> bytes:
    """Return a sealed file with some of its content changed as the bytes say, and the digest that fits it."""
    source = Source(data)
    content, tensors = unseal(kind, raw)
    for _ in source.changes():
        if source.below(4) == 0:
            name = sorted(content)[source.below(len(content))]
            content[name] = ODD[source.below(len(ODD))]
        else:
            name = sorted(tensors)[source.below(len(tensors))]
            tensors[name] = bent(tensors[name], source)
    return seal(kind, content, tensors)


def repacked(members: dict[str, bytes], source: Source) -> bytes:
    """Return an archive with some of its members changed, dropped or renamed as the bytes say, the index most often."""
    members = dict(members)
    for _ in source.changes():
        name = sorted(members)[source.below(len(members))]
        how = source.below(6)
        if how < 2 and "index.json" in members:
            with contextlib.suppress(ValueError):
                members["index.json"] = changed(json.loads(members["index.json"]), source)
        elif how == 2:
            kind = "<f8" if "rewards" in name or "prob" in name else "<u4" if "actions" in name else "<u8"
            with contextlib.suppress(ValueError):
                members[name] = bent(np.frombuffer(members[name], kind), source).tobytes()
        elif how == 3:
            del members[name]
        elif how == 4:
            members[sorted(members)[source.below(len(members))]] = members[name]
        else:
            members[name] = spliced(members[name], source)
    return packed(members)


def bent(table: np.ndarray, source: Source) -> np.ndarray:
    """Return a tensor with one thing about it changed."""
    how = source.below(8)
    if how == 0:
        with np.errstate(invalid="ignore", over="ignore"):
            return table.astype(KINDS[source.below(len(KINDS))])
    if how == 1 and 0 < table.size < 10_000:
        return np.append(table.reshape(-1), table.reshape(-1)[: source.below(table.size) + 1])
    if how == 2:
        return table[: source.below(len(table) + 1)] if table.ndim else table
    if how == 3 and table.ndim and len(table):
        return np.repeat(table, source.below(4), axis=0)
    if how == 4:
        return table[None] if source.below(2) else table.reshape(-1)
    if table.size == 0:
        return table
    table = table.copy()
    at = source.below(table.size)
    if how == 5 and table.dtype.kind in "iu":  # a small step, which may well be allowed
        table = table.astype(np.int64)
        table.flat[at] ^= 1
        return table
    if table.dtype.kind in "iu":
        wide = table.astype(np.int64)
        wide.flat[at] = WHOLE[source.below(len(WHOLE))] if how == 6 else source.below(4)
        return wide
    table.flat[at] = (0, 1, 0.5, -1, np.nan, np.inf)[source.below(6)]
    return table


@cache
def plans() -> list[tuple[prudent.SSP, bytes]]:
    """Return models, each with the file of a plan for it, as this release writes it."""
    slow = prudent.build(
        {"s": 0.5, "t": 0.5},
        {
            "s": {"try": [(0.5, "s", 1), (0.5, "g", 1)], "walk": [(1, "t", 1)], "wait": [(1, "s", 1)]},
            "t": {"go": [(0.9, "g", 1), (0.1, "s", 5)], "back": [(1, "s", 0)]},
        },
    )
    free = prudent.build(  # a free cycle, which is collapsed, and a negative cost
        "a",
        {
            "a": {"over": [(1, "b", 0)], "out": [(0.5, "g", 3), (0.5, "a", 0)]},
            "b": {"back": [(1, "a", 0)], "away": [(0.5, "g", -1), (0.5, "c", 4)]},
            "c": {"stay": [(1, "c", 1)], "go": [(1, "g", 1)]},
        },
    )
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.safetensors"
        for model in (prudent.domains.figure_2(), slow, free):
            for method in ("exact", "cvar-ev", "cvar-wc"):
                prudent.save(prudent.solve(model, 0.3, method=method), path)
                found.append((model, path.read_bytes()))
        whole = prudent.solve(slow, 0.3)
        some = {s: (1, whole.policy.level // 2 + 1) for s in range(1, whole.policy.prepared.n_states)}
        prudent.save(replace(whole, policy=in_ranges(whole.policy, some)), path)
        found.append((slow, path.read_bytes()))
        p = slow.probability
        prudent.save(prudent.solve(slow, 0.3, uncertainty=prudent.Intervals(0.9 * p, 0.9 * p + 0.1)), path)
        found.append((slow, path.read_bytes()))
    return found


@cache
def checkpoints() -> list[tuple[prudent.SSP, float, bytes]]:
    """Return models, each with an alpha and the checkpoint of a solve that was stopped on its way."""
    rough = prudent.build("s", {"s": {"a": [(0.5, "s", 2**0.5), (0.5, "g", 1)], "b": [(1, "g", 3.7)]}})
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solve.checkpoint"
        for model, alpha in ((plans()[3][0], 0.01), (plans()[6][0], 0.05), (rough, 0.1), (rough, 0.3)):
            for levels in (0, 1, 3):
                asked = iter(range(1000))
                stop = property(lambda self, asked=asked, most=levels: "interrupted" if next(asked) >= most else "")
                with mock.patch.object(Limits, "stop", stop), mock.patch.object(LevelSweep, "batch", 10):
                    prudent.solve(model, alpha, checkpoint=path)
                if path.exists():
                    found.append((model, alpha, path.read_bytes()))
                    path.unlink()
    return found


@cache
def models() -> list[Any]:
    """Return models as the documents that this release writes."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for model in (prudent.domains.figure_2(), *(model for model, _ in plans()[3::3])):
            prudent.save(model, Path(folder) / "m.json")
            found.append(json.loads((Path(folder) / "m.json").read_bytes()))
    return found


def between(members: dict[str, bytes]) -> dict[str, bytes]:
    """Return the members of a file whose probabilities are intervals."""
    index = json.loads(members["index.json"])
    index["transition-system"]["branch-probability-type"] = {"type": "double-interval", "size": 128}
    chance = np.frombuffer(members["branch-to-probability.bin"], "<f8")
    ends = np.stack([0.9 * chance, np.minimum(1.1 * chance, 1)], 1).tobytes()
    return {**members, "index.json": json.dumps(index).encode(), "branch-to-probability.bin": ends}


@cache
def archives() -> list[dict[str, bytes]]:
    """Return UMB files by their members: as this release writes them, and one with all that others may write."""
    found = [members_of(model) for model in (prudent.domains.figure_2(), *(model for model, _ in plans()[3::3]))]
    return [*found, rich(found[0]), between(found[0])]


FAST = "[{3.5: 0.5, 148.51999999999998: 0.5, 'ID': 'freeway', 'start': 1, 'end': 2}]"
STREET = "[{5.0: 0.5, 7.25: 0.49, 9.0: 0.01, 'ID': 'non-freeway', 'start': 1, 'end': 2}]"
ROADS = (
    f',1,2,3\n1,-,"{FAST}","{STREET}"\n2,-,-,"{STREET}"\n3,-,-,-\n',
    f',a,b\na,"{FAST}","{STREET}"\nb,"{STREET}",-\n',
)


def seeds() -> dict[str, list[bytes]]:
    """Return small real files by format, made anew: they are never older than the formats."""
    texts = [json.dumps(document).encode() for document in models()]
    orders = [bytes([i]) + bytes(range(i, i + 40)) for i in range(9)]  # for what is changed as the bytes say
    return {
        "json": texts + orders,
        "json.gz": texts + [gzip.compress(text, mtime=0) for text in texts],
        "umb": [packed(members) for members in archives()] + orders,
        "plan": [raw for _, raw in plans()] + orders,
        "checkpoint": [raw for _, _, raw in checkpoints()] + orders,
        "traffic": [text.encode() for text in ROADS] + orders,
        "props": [PROPERTIES, *orders],
        "study": [STUDY, *orders],
        "pddl": [*PLANNING, *orders],
        "log": [LOG, *orders],
    }


def kept(name: str) -> list[bytes]:
    """Return the inputs that once showed a bug, each named by what it did, or what it holds."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*")) if path.is_file()]


@contextlib.contextmanager
def unsynced() -> Iterator[None]:
    """Leave out fsync, which is not what is looked at here and takes longer than all the rest."""
    real, os.fsync = os.fsync, lambda handle: None
    try:
        yield
    finally:
        os.fsync = real
