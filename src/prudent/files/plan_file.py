"""Plans as safetensors: ``read`` and ``write``.

The policy's actions as tensors, and one entry of metadata, a JSON object with the plan's numbers, the model's
fingerprint, what the preparation looked like, and a digest of all of it.  A file is accepted only if it is,
byte for byte, what this module writes for its content: a flipped byte anywhere is noticed.
"""

import json
import math
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

import prudent
from prudent.errors import PrudentError
from prudent.files.atomic import read_bytes, write_bytes
from prudent.methods.cvar_game import pack_unrolled, unpack_unrolled
from prudent.model import SSP
from prudent.plan import Plan
from prudent.policy import BudgetPolicy, UnrolledPolicy
from prudent.prepare import Prepared, prepare

__all__ = ["read", "write"]

FORMAT, VERSION = "prudent-plan", 1
NUMBERS = ("alpha", "step", "cvar", "var", "expected", "lower", "upper", "worst_case", "seconds")
Tensors = dict[str, NDArray[Any]]
DAMAGED = "is damaged or is not a plan: write it again with prudent.save"


def write(plan: Plan, path: Path) -> None:
    """Write a plan."""
    policy = plan.policy
    tensors = {"choice": policy.choice}
    if isinstance(policy, UnrolledPolicy):
        tensors = pack_unrolled(policy)
    tensors = {name: _small(table) for name, table in tensors.items()}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "prudent": prudent.__version__,
        "model": plan.model.name,
        "fingerprint": plan.model.fingerprint,
        "prepared": _prepared_digest(plan.policy.prepared),
        "method": plan.method,
        "status": plan.status,
        "notes": list(plan.notes),
        **{name: _text(getattr(plan, name)) for name in NUMBERS},
    }
    write_bytes(path, _packed(content, tensors))


def read(path: Path, model: SSP) -> Plan:
    """Read a plan for a model; refuse a damaged file, and one made for another model."""
    content, tensors = _unpacked(read_bytes(path), path)
    if content["version"] != VERSION:
        raise PrudentError(f"{path}: is of version {content['version']}; this release reads version {VERSION}")
    if content["fingerprint"] != model.fingerprint:
        raise PrudentError(
            f"{path}: was made for another model, {content['model']}, not for {model!r}; solve this one, or give "
            "the same parameters and options as when it was solved"
        )
    prepared = prepare(model, float(content["step"]))
    policy: BudgetPolicy
    if "node_state" in tensors:
        policy = unpack_unrolled(prepared, tensors)
    else:
        policy = BudgetPolicy(prepared, tensors["choice"].astype(np.int32))
    if content["prepared"] != _prepared_digest(policy.prepared) or policy.choice.shape[1] != policy.prepared.n_states:
        raise PrudentError(
            f"{path}: was made by prudent {content['prudent']}, which prepares models differently; solve again"
        )
    return Plan(
        model=model,
        policy=policy,
        method=content["method"],
        status=content["status"],
        notes=tuple(content["notes"]),
        **{name: float(content[name]) for name in NUMBERS},
    )


def _unpacked(raw: bytes, path: Path) -> tuple[dict[str, Any], Tensors]:
    try:
        tensors = unpack(raw)
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        content = json.loads(header["__metadata__"]["plan"])
        digest = content.pop("digest")
        whole = content["format"] == FORMAT and digest == _digest(content, tensors) and raw == _packed(content, tensors)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise PrudentError(f"{path}: {DAMAGED}")
    return content, tensors


def _packed(content: dict[str, Any], tensors: Tensors) -> bytes:
    signed = {**content, "digest": _digest(content, tensors)}
    tidy = {name: np.ascontiguousarray(tensors[name]) for name in sorted(tensors)}
    return pack(tidy, metadata={"plan": json.dumps(signed, sort_keys=True)})


def _digest(content: dict[str, Any], tensors: Tensors) -> str:
    digest = sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(tensors):
        table = np.ascontiguousarray(tensors[name])
        digest.update(f"{name}{table.dtype}{table.shape}".encode() + table.tobytes())
    return digest.hexdigest()


def _small(table: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in the smallest type that holds them."""
    if table.dtype.kind != "i":
        return table
    least, most = int(table.min(initial=0)), int(table.max(initial=0))
    return table.astype(np.promote_types(np.min_scalar_type(least), np.min_scalar_type(most)))


def _prepared_digest(prepared: Prepared) -> str:
    """Return a digest of how the policy's numbers for states, actions and budgets are to be read."""
    digest = sha256(f"{prepared.lattice.step!r} {prepared.stride} {prepared.start_luck}".encode())
    for array in (prepared.state_of, prepared.luck, prepared.action_start, prepared.model_action):
        digest.update(array.astype("<i8").tobytes())
    return digest.hexdigest()


def _text(number: float) -> float | str:
    """JSON has no infinity; a string keeps it, and float() reads both."""
    return number if math.isfinite(number) else str(number)
