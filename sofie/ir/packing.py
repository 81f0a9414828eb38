"""Elements of less than 8 bits in bytes, the first in a byte's lowest bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from sofie.ir.dtype import DType

Array = np.ndarray[Any, Any]


def pack(array: Array, dtype: DType) -> Array:
    """The elements in row-major order, as uint8; what the last byte lacks is 0."""
    bits = 8 // dtype.per_byte
    numbers = array.astype(dtype.numpy).reshape(-1)
    small = numbers.view(np.uint8) if dtype.is_float else numbers.astype(np.int8).view(np.uint8)
    padded = np.zeros(-(-small.size // dtype.per_byte) * dtype.per_byte, np.uint8)
    padded[: small.size] = small & (2**bits - 1)
    parts = padded.reshape(-1, dtype.per_byte) << (bits * np.arange(dtype.per_byte, dtype=np.uint8))
    packed: Array = np.bitwise_or.reduce(parts, axis=1).astype(np.uint8)
    return packed


def unpack(data: Array, positions: Array, dtype: DType) -> Array:
    """Of every byte the element at a position in it."""
    bits = 8 // dtype.per_byte
    small = (data >> (bits * positions).astype(np.uint8)) & (2**bits - 1)
    if dtype.is_float:
        return np.asarray(small, np.uint8).view(dtype.numpy)
    low = int(dtype.limits[0])
    signed = small.astype(np.int8)
    wrapped = np.where(signed > dtype.limits[1], signed + 2 * low, signed)
    return np.asarray(wrapped, np.int8).astype(dtype.numpy)
