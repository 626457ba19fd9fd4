"""Plans as safetensors.

The file is sealed: the policy's actions are tensors, as :mod:`prudent.policies.policy` describes; the plan's numbers,
the model's fingerprint and a digest of the prepared model are metadata.

A digest can be forged, so it proves nothing.  Reading checks the type and range of every field, that the bounds do not
contradict each other, every number of a state or an action against the model, and that the policy reaches a goal.
"""

import math
from collections.abc import Sequence
from dataclasses import astuple, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import prudent
from prudent.engine.prepare import prepare
from prudent.engine.prepared import Prepared, restrict
from prudent.errors import PrudentError, naming, printable
from prudent.io.sealed import Tensors, seal, unseal
from prudent.io.untrusted import checked, shown
from prudent.methods.objectives import OBJECTIVES, Achieved
from prudent.methods.registry import METHODS
from prudent.methods.solution import Nominal
from prudent.models.graph import towards
from prudent.models.intervals import Intervals
from prudent.models.ssp import SSP
from prudent.policies.mixed import MixedPolicy
from prudent.policies.policy import BudgetPolicy, tensors_of
from prudent.policies.unrolled import UnrolledPolicy
from prudent.results.plan import FIELDS, NOT_FINITE, STATUS, Exploration, Plan
from prudent.runtime.limits import Limits

FORMAT, VERSION = "prudent-plan", 1
DEVICES = ("cpu", "gpu")
NUMBERS: dict[str, tuple[str, ...]] = {
    name: NOT_FINITE.get(name, ()) for name, kind in FIELDS.items() if kind == "number" and name != "goal_probability"
}
"""The plan's numbers, each with the texts that may stand for it if it is not finite."""

TEXTS = ("prudent", "model", "fingerprint", "prepared", "method", "status", "device")
CONTENT = {*TEXTS, *NUMBERS, "version", "notes", "objective"}
DAMAGED = "is damaged or is not a plan; write it again with prudent.save"


def content_of(plan: Plan) -> bytes:
    """Return the bytes of a plan's file."""
    policy = plan.policy
    tensors = {name: _small(table) for name, table in policy.packed().items()}
    content = {
        "version": VERSION,
        "prudent": prudent.__version__,
        "model": plan.model.name,
        "fingerprint": plan.model.fingerprint,
        "prepared": _prepared_digest(policy.prepared, int(policy.plain_state.max()) + 1),
        "method": plan.method,
        "status": plan.status,
        "device": plan.device,
        "notes": list(plan.notes),
        "objective": None if plan.objective is None else list(astuple(plan.objective)),
        **{name: in_json(getattr(plan, name)) for name in NUMBERS},
    }
    if plan.goal_probability < 1:
        content["goal_probability"] = plan.goal_probability
    if plan.explored is not None:
        content["explored"] = list(astuple(plan.explored))
    if plan.nominal is not None and plan.intervals is not None:
        content["nominal"] = [in_json(number) for number in astuple(plan.nominal)]
        tensors |= {"low": plan.intervals.low, "high": plan.intervals.high}
    return seal(FORMAT, content, tensors)


def parse(raw: bytes, path: Path, model: SSP) -> Plan:
    """Return the plan in a file's bytes; refuse a damaged file, a forged one, and one made for another model."""
    found = unseal(FORMAT, raw)
    if found is None:
        raise PrudentError(f"{path}: {DAMAGED}")
    content, tensors = found
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise PrudentError(f"{path}: is of version {shown(version)}; this release reads version {VERSION}")
    try:
        _check_content(content)
        bounds = None
        if "nominal" in content:
            low, high = tensors.pop("low", None), tensors.pop("high", None)
            if low is None or high is None or low.dtype.kind != "f" or high.dtype.kind != "f":
                raise PrudentError("low or high, the bounds of its set of models, is missing")
            bounds = Intervals(low, high)
        kind = _kind(tensors)
    except PrudentError as error:
        raise PrudentError(f"{path}: {error}; the file {DAMAGED}") from None
    if content["fingerprint"] != model.fingerprint:
        raise PrudentError(
            f"{path}: was made for another model, {printable(content['model'], 60)}, not for {model!r}; solve this "
            "one, or make the model with the parameters and options of the plan; read a PRISM, JANI, DRN or UMB file "
            "with the same property= (--property), constants= (--const) and initial= (--initial)"
        )
    with naming(path):
        prepared = prepare(model, float(content["step"]), Limits.of(None, None))
    if content["prepared"] != _prepared_digest(prepared, prepared.n_states) or content["step"] != prepared.scale.step:
        raise PrudentError(
            f"{path}: was made by prudent {printable(content['prudent'], 60)}, which prepares models differently; "
            "solve again"
        )
    try:
        policy = _policy(kind, prepared, tensors, content["objective"])
        intervals = None if bounds is None else bounds.within(model)
    except PrudentError as error:
        raise PrudentError(f"{path}: {error}; the file {DAMAGED}") from None
    return Plan(
        model=model,
        policy=policy,
        method=content["method"],
        status=content["status"],
        device=content["device"],
        notes=tuple(content["notes"]),
        objective=None if content["objective"] is None else Achieved(*content["objective"]),
        goal_probability=float(content.get("goal_probability", 1.0)),
        explored=Exploration(*content["explored"]) if "explored" in content else None,
        nominal=None if intervals is None else Nominal(*map(float, content["nominal"])),
        intervals=intervals,
        **{name: float(content[name]) for name in NUMBERS},
    )


def _check_content(content: dict[str, Any]) -> None:
    """Refuse metadata that no plan has; plans of releases without devices were made on the CPU."""
    content.setdefault("device", "cpu")
    found = set(content) - {"explored", "goal_probability", "nominal"}  # which only some plans have
    if found != CONTENT:
        raise PrudentError(f"the field {min(found ^ CONTENT)[:60]!r} is missing or unknown")
    counts = content.get("explored", [0] * len(fields(Exploration)))
    chance = content.get("goal_probability", 1.0)
    if not isinstance(chance, float) or not 0 < chance <= 1:
        raise PrudentError("goal_probability must be above 0 and at most 1")
    whole = isinstance(counts, list) and all(type(count) is int and count >= 0 for count in counts)
    if not whole or not len(fields(Exploration)) - 1 <= len(counts) <= len(fields(Exploration)):  # one is recent
        raise PrudentError("explored must be the list of the counts of a search")
    if "nominal" in content:
        nominal = [from_json(each, "nominal", NUMBERS["cvar"]) for each in checked(content["nominal"], list, "nominal")]
        if len(nominal) != len(fields(Nominal)):
            raise PrudentError("nominal must be a list of three numbers")
    for name in TEXTS:
        checked(content[name], str, name)
    for name, known in (("method", METHODS), ("status", STATUS), ("device", DEVICES)):
        if content[name] not in known:
            raise PrudentError(f"{name} is {printable(content[name], 60)!r}; it must be one of {', '.join(known)}")
    notes = content["notes"]
    if not isinstance(notes, list) or not all(isinstance(note, str) and note.isprintable() for note in notes):
        raise PrudentError("notes must be a list of printable strings")
    about = content["objective"]
    if about is not None and not (
        isinstance(about, list)
        and len(about) == 5
        and about[0] in tuple(OBJECTIVES)
        and (about[4] is None) == (not OBJECTIVES[about[0]].sought)
        and all(isinstance(x, float) and math.isfinite(x) for x in (about[1:4] if about[4] is None else about[1:]))
    ):
        raise PrudentError("objective is not valid")
    value = {name: from_json(content[name], name, texts) for name, texts in NUMBERS.items()}
    if not (0 < value["alpha"] <= 1 and value["step"] > 0 and value["seconds"] >= 0):
        raise PrudentError("alpha must be above 0 and at most 1, step above 0, and seconds at least 0")
    # Bounds must not contradict each other or the plan's own numbers, which may differ by rounding errors.
    ordered = [("lower", "upper"), ("lower", "cvar"), ("expected_lower", "expected")]
    if content["objective"] is None and value["max_cvar"] == math.inf:  # else its CVaR need not be the lowest
        ordered.append(("cvar", "upper"))
    if content["objective"] is not None:
        _, value["its value"], value["its lower bound"], value["its upper bound"], _ = content["objective"]
        ordered += [("its lower bound", "its upper bound"), ("its lower bound", "its value")]
    for low, high in ordered:
        if value[low] > value[high] and not math.isclose(value[low], value[high]):
            raise PrudentError(f"{low} is {value[low]!r}, which is above {high}, {value[high]!r}")


def _kind(tensors: Tensors) -> type[BudgetPolicy]:
    """Return the kind of policy that has these tensors; refuse tensors that none has."""
    kinds: tuple[type[BudgetPolicy], ...] = (BudgetPolicy, MixedPolicy, UnrolledPolicy)
    kind = max(kinds, key=lambda kind: len(set(kind.tensors) & set(tensors)))
    needed = tensors_of(kind.tensors, tensors)
    if set(tensors) != set(needed):
        found = ", ".join(sorted(tensors))[:200] or "missing"
        raise PrudentError(f"its tensors are {found}; they must be {', '.join(needed)}")
    for name, (dimensions, dtypes) in needed.items():
        table = tensors[name]
        if table.ndim != dimensions or table.dtype.kind not in dtypes:
            raise PrudentError(f"tensor {name} has {table.ndim} dimensions of {table.dtype}")
    return kind


def _policy(
    kind: type[BudgetPolicy], prepared: Prepared, tensors: Tensors, objective: list[Any] | None
) -> BudgetPolicy:
    """Return the policy; refuse one that plays unknown actions or may never reach a goal."""
    counted = objective is not None and OBJECTIVES[objective[0]].tail
    policy = kind.unpacked(prepared, tensors, int(counted))
    for _, part in policy.parts:
        # With budget left every run comes to an end: free cycles were collapsed, and all other actions use up budget.
        alone = restrict(part.prepared, part.without_budget)
        hop = towards(alone.outcome_state, alone.successor, alone.n_states, alone.is_goal)
        if ((hop < 0) & ~alone.is_goal).any():
            raise PrudentError("its policy may never reach a goal")
    return policy


def _small(table: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in the smallest type that holds them."""
    if table.dtype.kind != "i":
        return table
    least, most = int(table.min(initial=0)), int(table.max(initial=0))
    return table.astype(np.promote_types(np.min_scalar_type(least), np.min_scalar_type(most)))


def _prepared_digest(prepared: Prepared, n_states: int) -> str:
    """Return a digest of what a policy's numbers of plain states, actions and budgets refer to."""
    scale, action_start = prepared.scale, prepared.action_start[: n_states + 1]
    digest = sha256(f"{scale.lattice.step!r} {scale.stride} {scale.start_luck}".encode())
    for array in (prepared.members.state_of, scale.luck, action_start, prepared.model_action[: action_start[-1]]):
        digest.update(array.astype("<i8").tobytes())
    return digest.hexdigest()


def in_json(value: Any) -> Any:
    """Return a value for JSON: infinities and nan, which JSON does not have, as text that float() reads."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def from_json(value: Any, name: str, texts: Sequence[str]) -> float:
    """Return a number from JSON, which may be given as one of some texts if it is not finite."""
    if isinstance(value, str) and value in texts:
        return float(value)
    wanted = " or ".join(["a finite number", *(f'"{text}"' for text in texts)])
    number = checked(value, float, name, wanted)
    if not math.isfinite(number):
        raise PrudentError(f"{name} is {shown(value)}; it must be {wanted}")
    return float(number)
