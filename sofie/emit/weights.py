"""The weights file: every constant tensor that kernels read, in the safetensors format.

https://huggingface.co/docs/safetensors: the number of the header's bytes (u64, little endian), the
header, which is JSON, and the payload, the tensors' bytes one after another. The format knows no
holes, so what lies between tensors, which start at multiples of 256 bytes, are tensors too, called
``padding``, ``padding.2`` and so on. The header begins with what ``sofie/runtime/weights.cc``
checks, each entry of a fixed size::

    {"__metadata__":{"sofie_weights":"2","graph":"<hash of the graph>","sha256":"<of the payload>"}

Both hashes are 64 hexadecimal digits. Blanks at its end make the payload start at a multiple of 256
bytes, too.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sofie.emit.files import Bytes
from sofie.ir.program import Buffer

ALIGNMENT = 256
_METADATA = "__metadata__"
_VERSION = "2"

# Other types are stored as the bytes of their elements.
_TYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _bytes(weight: Buffer) -> int:
    assert weight.data is not None
    return weight.data.size * weight.dtype.size


def offsets(weights: Sequence[Buffer]) -> tuple[list[int], int]:
    """Byte offsets of the tensors in the payload, and the payload's size."""
    starts: list[int] = []
    end = 0
    for weight in weights:
        starts.append(end)
        end += _aligned(_bytes(weight))
    return starts, end


def _unique(name: str, taken: set[str]) -> str:
    """The name, with a number where it is taken; it is taken from then on."""
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name}.{count}"
    taken.add(found)
    return found


def names(weights: Sequence[Buffer]) -> list[str]:
    """The tensors' names in the file."""
    taken = {_METADATA}
    return [_unique(weight.name, taken) for weight in weights]


def _elements(weight: Buffer) -> np.ndarray:
    """The tensor's elements as they lie in the file, row-major."""
    dtype = np.dtype(np.uint8) if weight.packed else weight.dtype.numpy
    data = np.ascontiguousarray(weight.data, dtype=dtype)
    return data.astype(dtype.newbyteorder("<"), copy=False)


def _header(weights: Sequence[Buffer], graph_hash: bytes, payload_hash: str) -> bytes:
    hashes = {"graph": graph_hash.hex(), "sha256": payload_hash}
    entries: dict[str, Any] = {_METADATA: {"sofie_weights": _VERSION, **hashes}}

    def add(name: str, kind: str, shape: Sequence[int], begin: int, end: int) -> None:
        entries[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [begin, end]}

    called = names(weights)
    taken = {_METADATA, *called}
    starts, _ = offsets(weights)
    for weight, name, start in zip(weights, called, starts, strict=True):
        assert weight.data is not None
        end = start + _bytes(weight)
        following = start + _aligned(_bytes(weight))
        kind = "U8" if weight.packed else _TYPES.get(weight.dtype.name, "U8")
        add(name, kind, weight.data.shape, start, end)
        if end < following:
            add(_unique("padding", taken), "U8", [following - end], end, following)
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=True).encode()
    header_size = _aligned(8 + len(text)) - 8
    return struct.pack("<Q", header_size) + text.ljust(header_size)


def _payload(weights: Sequence[Buffer]) -> Iterator[Bytes]:
    for weight in weights:
        raw = _elements(weight).reshape(-1).view(np.uint8).data
        yield raw
        yield bytes(_aligned(len(raw)) - len(raw))


class File:
    """The file as stretches of bytes, to be gone through as often as one likes.

    They are the tensors' own memory: no second copy of the weights comes about, but of one tensor
    at a time where its elements lie otherwise than in the file.
    """

    def __init__(self, weights: Sequence[Buffer], graph_hash: bytes) -> None:
        self._weights = weights
        digest = hashlib.sha256()
        for part in _payload(weights):
            digest.update(part)
        self._header = _header(weights, graph_hash, digest.hexdigest())

    def __iter__(self) -> Iterator[Bytes]:
        yield self._header
        yield from _payload(self._weights)
