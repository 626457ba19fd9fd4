"""Arrays and numbers in one safetensors file, sealed by a digest: ``seal`` and ``unseal``.

A file is accepted only if it is, byte for byte, what this module writes for its content: a flipped byte anywhere is
noticed.  Besides the copy it is compared with, nothing larger than the file is allocated for it.
"""

import json
from hashlib import sha256
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

from prudent.io.untrusted import document

Tensors = dict[str, NDArray[Any]]


def seal(kind: str, content: dict[str, Any], tensors: Tensors) -> bytes:
    """Return a file with one entry of metadata, named by its kind, and tensors."""
    signed = {**content, "digest": _digest(content, tensors)}
    tidy = {name: np.ascontiguousarray(tensors[name]) for name in sorted(tensors)}
    return pack(tidy, metadata={kind: json.dumps(signed, sort_keys=True)})


def unseal(kind: str, raw: bytes) -> tuple[dict[str, Any], Tensors] | None:
    """Return what a file holds; None if it is damaged or of another kind."""
    try:
        tensors = unpack(raw)
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        content = document(header["__metadata__"][kind])
        digest = content.pop("digest")
        whole = digest == _digest(content, tensors) and raw == seal(kind, content, tensors)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return (content, tensors) if whole else None


def _digest(content: dict[str, Any], tensors: Tensors) -> str:
    digest = sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(tensors):
        table = np.ascontiguousarray(tensors[name])
        digest.update(f"{name}{table.dtype}{table.shape}".encode())
        digest.update(table.data if table.size else b"")
    return digest.hexdigest()
