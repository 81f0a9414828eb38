"""The weights blob's bytes."""

import hashlib
import struct

import numpy as np
import sympy

from sofie.emit import weights
from sofie.ir.dtype import BOOL, FLOAT32, INT64, DType
from sofie.ir.program import Buffer, BufferKind


def _weight(dtype: DType, data: np.ndarray) -> Buffer:
    shape = tuple(sympy.Integer(d) for d in data.shape)
    return Buffer("w", dtype, shape, tuple(range(data.ndim)), BufferKind.WEIGHT, data)


def test_layout() -> None:
    tensors = [
        _weight(FLOAT32, np.arange(65, dtype=np.float32)),
        _weight(INT64, np.array(-7)),
        _weight(BOOL, np.array([True, False])),
    ]
    starts, size = weights.offsets(tensors)
    assert starts == [0, 512, 768]
    assert size == 1024
    blob = weights.blob(tensors, b"h" * 32)
    assert blob[:8] == b"SOFIEWT1"
    assert struct.unpack_from("<II", blob, 8) == (1, 256)
    assert blob[16:48] == b"h" * 32
    assert struct.unpack_from("<Q", blob, 48) == (1024,)
    payload = blob[256:]
    assert blob[56:88] == hashlib.sha256(payload).digest()
    assert len(payload) == size
    np.testing.assert_array_equal(np.frombuffer(payload, "<f4", 65), np.arange(65))
    assert struct.unpack_from("<q", payload, 512) == (-7,)
    assert payload[768:770] == b"\x01\x00"


def test_elements_are_row_major_whatever_the_array_is() -> None:
    blob = weights.blob(
        [_weight(FLOAT32, np.arange(6, dtype=np.float32).reshape(2, 3).T)], bytes(32)
    )
    np.testing.assert_array_equal(np.frombuffer(blob, "<f4", 6, 256), [0, 3, 1, 4, 2, 5])
