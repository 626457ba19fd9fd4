"""Plans as safetensors: ``read`` and ``write``.

A sealed file: the policy's actions as tensors, and the plan's numbers, the model's fingerprint and what the
preparation looked like as metadata.

A digest can be forged, so nothing is believed for having one: every field is checked for its kind and range, every
number of a state or an action for being one of the model's, and the policy for reaching a goal.  Reading takes memory
of at most 64 times the file's size and 1 MiB, besides what preparing the model takes.
"""

import json
import math
import sys
from dataclasses import astuple
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared, choice_type, restrict
from prudent.errors import PrudentError, printable
from prudent.io.sealed import Tensors, seal, unseal
from prudent.methods.cvar_wc import pack_unrolled, unpack_unrolled
from prudent.methods.objectives import Achieved
from prudent.methods.registry import METHODS
from prudent.models.graph import towards
from prudent.models.ssp import SSP
from prudent.policies.policy import BudgetPolicy, MixedPolicy, UnrolledPolicy
from prudent.results.plan import STATUS, Plan
from prudent.runtime.atomic_files import read_bytes, write_bytes

__all__ = ["content_of", "parse", "read", "write"]

FORMAT, VERSION = "prudent-plan", 1
OBJECTIVES = ("exceedance", "var", "mean-plus-cvar", "worst-case")
ODD = ("inf", "-inf", "nan")
NUMBERS: dict[str, tuple[str, ...]] = {
    "alpha": (),
    "step": (),
    "cvar": ODD,
    "var": ODD,
    "expected": ODD,
    "expected_lower": (),
    "lower": ("-inf",),
    "upper": ("inf",),
    "worst_case": ("inf",),
    "max_cvar": ("inf",),
    "seconds": (),
}
"""The plan's numbers, and what each may be besides a finite number, as it is written."""

TEXTS = ("prudent", "model", "fingerprint", "prepared", "method", "status")
FIELDS = {*TEXTS, *NUMBERS, "version", "notes", "objective"}

PLAIN = {"choice": (2, "iu")}
UNROLLED = {
    **PLAIN,
    "node_state": (1, "iu"),
    "node_memory": (1, "f"),
    "node_acts": (1, "iu"),
    "node_action": (1, "iu"),
    "node_successor": (1, "iu"),
    "start": (1, "iu"),
}
MIXED = {**PLAIN, "other": (2, "iu"), "share": (1, "f")}
"""The tensors of a plan that remembers only the cost so far, of one that remembers more, and of one that draws one of
two policies: dimensions and kinds."""

DAMAGED = "is damaged or is not a plan: write it again with prudent.save"


def write(plan: Plan, path: Path) -> None:
    """Write a plan."""
    write_bytes(path, content_of(plan))


def content_of(plan: Plan) -> bytes:
    """Return the bytes of a plan's file."""
    policy = plan.policy
    tensors = {"choice": policy.choice}
    if isinstance(policy, UnrolledPolicy):
        tensors = pack_unrolled(policy)
    if isinstance(policy, MixedPolicy):
        tensors |= {"other": policy.other, "share": np.array([policy.share])}
    tensors = {name: _small(table) for name, table in tensors.items()}
    content = {
        "version": VERSION,
        "prudent": prudent.__version__,
        "model": plan.model.name,
        "fingerprint": plan.model.fingerprint,
        "prepared": _prepared_digest(policy.prepared, tensors["choice"].shape[1]),
        "method": plan.method,
        "status": plan.status,
        "notes": list(plan.notes),
        "objective": None if plan.objective is None else list(astuple(plan.objective)),
        **{name: _text(getattr(plan, name)) for name in NUMBERS},
    }
    return seal(FORMAT, content, tensors)


def read(path: Path, model: SSP) -> Plan:
    """Read a plan for a model; refuse a damaged file, and one made for another model."""
    return parse(read_bytes(path), path, model)


def parse(raw: bytes, path: Path, model: SSP) -> Plan:
    """Return the plan that a file's bytes are; refuse a damaged file, a forged one, and one made for another model."""
    found = unseal(FORMAT, raw)
    if found is None:
        raise PrudentError(f"{path}: {DAMAGED}")
    content, tensors = found
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise PrudentError(f"{path}: is of version {_shown(version)}; this release reads version {VERSION}")
    try:
        _check_content(content)
        _check_tensors(tensors)
    except PrudentError as error:
        raise PrudentError(f"{path}: {error}; it {DAMAGED}") from None
    if content["fingerprint"] != model.fingerprint:
        raise PrudentError(
            f"{path}: was made for another model, {_shown(content['model'])}, not for {model!r}; solve this one, or "
            "make the model with the same parameters and options as for the plan; one from a PRISM, JANI, DRN or UMB "
            "file must be read with the same property= (--property) and constants= (--const)"
        )
    try:
        prepared = prepare(model, float(content["step"]))
    except PrudentError as error:
        raise PrudentError(f"{path}: {error}") from None
    if content["prepared"] != _prepared_digest(prepared, prepared.n_states) or content["step"] != prepared.scale.step:
        raise PrudentError(
            f"{path}: was made by prudent {_shown(content['prudent'])}, which prepares models differently; solve again"
        )
    try:
        policy = _policy(prepared, tensors, content["objective"])
    except PrudentError as error:
        raise PrudentError(f"{path}: {error}; it {DAMAGED}") from None
    return Plan(
        model=model,
        policy=policy,
        method=content["method"],
        status=content["status"],
        notes=tuple(content["notes"]),
        objective=None if content["objective"] is None else Achieved(*content["objective"]),
        **{name: float(content[name]) for name in NUMBERS},
    )


def _check_content(content: dict[str, Any]) -> None:
    """Refuse metadata that no plan has."""
    if set(content) != FIELDS:
        raise PrudentError(f"has or lacks the field {min(set(content) ^ FIELDS)[:60]!r}")
    for name in TEXTS:
        if not isinstance(content[name], str):
            raise PrudentError(f"{name} is not a text")
    for name, known in (("method", METHODS), ("status", STATUS)):
        if content[name] not in known:
            raise PrudentError(f"{name} is {_shown(content[name])}, which is not one of {', '.join(known)}")
    notes = content["notes"]
    if not isinstance(notes, list) or not all(isinstance(note, str) and note.isprintable() for note in notes):
        raise PrudentError("notes is not a list of texts that can be printed")
    about = content["objective"]
    if about is not None and not (
        isinstance(about, list)
        and len(about) == 5
        and about[0] in OBJECTIVES
        and (about[4] is None) == (about[0] in ("var", "worst-case"))
        and all(isinstance(number, float) and math.isfinite(number) for number in about[1:] if number is not None)
    ):
        raise PrudentError("objective is not one that a plan can have")
    for name, odd in NUMBERS.items():
        value = content[name]
        if isinstance(value, str) and value in odd:
            continue
        # A whole number may be too large for a float.
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
            raise PrudentError(f"{name} is {_shown(value)}, which is not a number it can have")
    if not (0 < content["alpha"] <= 1 and content["step"] > 0 and content["seconds"] >= 0):
        raise PrudentError("alpha is not above 0 and at most 1, step not above 0, or seconds below 0")


def _check_tensors(tensors: Tensors) -> None:
    """Refuse tensors of other names, dimensions and kinds than a plan's."""
    wanted = UNROLLED if "node_state" in tensors else MIXED if "other" in tensors else PLAIN
    if set(tensors) != set(wanted):
        raise PrudentError(f"has the tensors {', '.join(sorted(tensors))[:200]}, not {', '.join(wanted)}")
    for name, (dimensions, kinds) in wanted.items():
        table = tensors[name]
        if table.ndim != dimensions or table.dtype.kind not in kinds:
            raise PrudentError(f"tensor {name} has {table.ndim} dimensions of {table.dtype}")


def _policy(prepared: Prepared, tensors: Tensors, objective: list[Any] | None) -> BudgetPolicy:
    """Return the policy; refuse one that plays what there is not, or that may never reach a goal."""
    choice = _choice(prepared, tensors["choice"])
    policy: BudgetPolicy
    if "node_state" in tensors:
        policy = unpack_unrolled(prepared, tensors)
    elif "other" in tensors:
        other, share = _choice(prepared, tensors["other"]), tensors["share"]
        if len(share) != 1 or not 0 < share[0] < 1 or other.shape != choice.shape:
            raise PrudentError("its two policies do not go together")
        _check_proper(BudgetPolicy(prepared, other))
        policy = MixedPolicy(prepared, choice, other=other, share=float(share[0]))
    else:
        counted = objective is not None and objective[0] in ("exceedance", "var")  # how often it is exceeded
        policy = BudgetPolicy(prepared, choice, beyond=int(counted))
    _check_proper(policy)
    return policy


def _choice(prepared: Prepared, choice: NDArray[Any]) -> NDArray[Any]:
    """Return a table of actions; refuse one that plays what there is not."""
    if len(choice) == 0 or choice.shape[1] != prepared.n_states:
        raise PrudentError(f"tensor choice has shape {choice.shape}; the prepared model has {prepared.n_states} states")
    n_actions = np.diff(prepared.action_start)
    wrong = (choice.min(axis=0) < 0) | (choice.max(axis=0) >= np.maximum(n_actions, 1))  # a goal's is 0
    if wrong.any():
        raise PrudentError(f"tensor choice has an action that prepared state {np.flatnonzero(wrong)[0]} has not")
    return choice.astype(choice_type(prepared))


def _check_proper(policy: BudgetPolicy) -> None:
    """Refuse a policy that may never reach a goal."""
    # While a budget is left no policy can stay for ever: staying for free was collapsed away, and the rest pays.
    alone = restrict(policy.prepared, policy.prepared.action_start[:-1] + policy.choice[0])
    ends = np.diff(alone.action_start) == 0
    if ((towards(alone.outcome_state, alone.successor, alone.n_states, ends) < 0) & ~ends).any():
        raise PrudentError("its policy may never reach a goal")


def _shown(value: Any) -> str:
    """Return a value as a message shows it: short, and in characters that any terminal can print."""
    if isinstance(value, str):
        return printable(value, 60)
    return json.dumps(value)[:60] if isinstance(value, int | float) else f"a {type(value).__name__}"


def _small(table: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in the smallest type that holds them."""
    if table.dtype.kind != "i":
        return table
    least, most = int(table.min(initial=0)), int(table.max(initial=0))
    return table.astype(np.promote_types(np.min_scalar_type(least), np.min_scalar_type(most)))


def _prepared_digest(prepared: Prepared, n_states: int) -> str:
    """Return a digest of how a policy's numbers for plain states, their actions and budgets are to be read."""
    scale, action_start = prepared.scale, prepared.action_start[: n_states + 1]
    digest = sha256(f"{scale.lattice.step!r} {scale.stride} {scale.start_luck}".encode())
    for array in (prepared.members.state_of, scale.luck, action_start, prepared.model_action[: action_start[-1]]):
        digest.update(array.astype("<i8").tobytes())
    return digest.hexdigest()


def _text(number: float) -> float | str:
    """JSON has no infinity; a string keeps it, and float() reads both."""
    return number if math.isfinite(number) else str(number)
