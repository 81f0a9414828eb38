"""The weights blob: every constant tensor that kernels read, in one file.

Layout, little endian: a header of 256 bytes (magic ``SOFIEWT1``, u32 version, u32 header bytes,
32-byte hash of the graph, u64 payload bytes, SHA-256 of the payload, zeros), then the payload, in
which every tensor starts at a multiple of 256 bytes. ``sofie/runtime/weights.h`` reads it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

import numpy as np

from sofie.ir.program import Buffer

ALIGNMENT = 256
_HEADER = 256
_MAGIC = b"SOFIEWT1"


def offsets(weights: Sequence[Buffer]) -> tuple[list[int], int]:
    """Byte offsets of the tensors in the payload, and the payload's size."""
    starts: list[int] = []
    end = 0
    for weight in weights:
        assert weight.data is not None
        starts.append(end)
        size = weight.data.size * weight.dtype.size
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return starts, end


def blob(weights: Sequence[Buffer], graph_hash: bytes) -> bytes:
    """The file's bytes."""
    starts, end = offsets(weights)
    payload = bytearray(end)
    for weight, start in zip(weights, starts, strict=True):
        assert weight.data is not None
        data = np.ascontiguousarray(
            weight.data, dtype=np.uint8 if weight.packed else weight.dtype.numpy
        )
        raw = data.astype(data.dtype.newbyteorder("<"), copy=False).tobytes()
        payload[start : start + len(raw)] = raw
    digest = hashlib.sha256(payload).digest()
    header = _MAGIC + struct.pack("<II", 1, _HEADER) + graph_hash
    header += struct.pack("<Q", len(payload)) + digest
    return header.ljust(_HEADER, b"\0") + bytes(payload)
