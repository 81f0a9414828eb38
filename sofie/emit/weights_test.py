"""The weights file, read by the library that the format comes from."""

import hashlib
import pathlib
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import sympy

from sofie.emit import weights
from sofie.ir import dtype
from sofie.ir.dtype import BFLOAT16, BOOL, FLOAT32, INT4, INT64, DType
from sofie.ir.program import Buffer, BufferKind


def _weight(kind: DType, data: np.ndarray, name: str = "w", packed: bool = False) -> Buffer:
    shape = tuple(sympy.Integer(d) for d in data.shape)
    order = tuple(range(data.ndim))
    return Buffer(name, kind, shape, order, BufferKind.WEIGHT, data, packed)


def _file(tensors: Sequence[Buffer], graph_hash: bytes) -> bytes:
    return b"".join(weights.File(tensors, graph_hash))


def _read(file: bytes) -> dict[str, dict[str, Any]]:
    """Every tensor's type, shape and bytes."""
    return dict(safetensors.deserialize(file))  # type: ignore[no-untyped-call]


def test_layout() -> None:
    """What the runtime relies on."""
    tensors = [
        _weight(FLOAT32, np.arange(65, dtype=np.float32)),
        _weight(INT64, np.array(-7)),
        _weight(BOOL, np.array([True, False])),
    ]
    starts, size = weights.offsets(tensors)
    assert starts == [0, 512, 768]
    assert size == 1024
    file = _file(tensors, b"h" * 32)
    (header_size,) = struct.unpack_from("<Q", file)
    assert (8 + header_size) % 256 == 0
    payload = file[8 + header_size :]
    assert len(payload) == size
    checked = f'{{"__metadata__":{{"sofie_weights":"2","graph":"{"68" * 32}","sha256":"'
    checked += hashlib.sha256(payload).hexdigest() + '"}'
    assert file[8:].startswith(checked.encode())
    np.testing.assert_array_equal(np.frombuffer(payload, "<f4", 65), np.arange(65))
    assert struct.unpack_from("<q", payload, 512) == (-7,)
    assert payload[768:770] == b"\x01\x00"


def test_the_library_loads_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m_weights.safetensors"
    bias, matrix = np.arange(65, dtype=np.float32), np.arange(12, dtype=np.int16).reshape(3, 4)
    tensors = [_weight(FLOAT32, bias, "bias"), _weight(dtype.INT16, matrix, "a/b")]
    path.write_bytes(_file(tensors, bytes(range(32))))

    for name, tensor in safetensors.numpy.load_file(path).items():
        print(name, tensor.dtype, tensor.shape)

    found = safetensors.numpy.load_file(path)
    assert set(found) == {"bias", "a/b", "padding", "padding.2"}
    np.testing.assert_array_equal(found["bias"], bias)
    np.testing.assert_array_equal(found["a/b"], matrix)
    assert found["a/b"].dtype == np.int16
    with safetensors.safe_open(path, framework="numpy") as opened:
        assert opened.metadata()["graph"] == bytes(range(32)).hex()


def test_without_weights() -> None:
    assert _read(_file([], bytes(32))) == {}


@pytest.mark.parametrize("kind", sorted(dtype.EVERY, key=str))
@pytest.mark.parametrize("shape", [(), (0,), (3, 5)])
def test_every_type(kind: DType, shape: tuple[int, ...]) -> None:
    """Also those that the format has no name for: their bytes are there."""
    data = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind.numpy)
    tensor = _read(_file([_weight(kind, data)], bytes(32)))["w"]
    assert tuple(tensor["shape"]) == shape
    assert bytes(tensor["data"]) == data.tobytes()


def test_packed_elements_are_bytes() -> None:
    data = np.array([0x21, 0x43], np.uint8)
    file = _file([_weight(INT4, data, packed=True)], bytes(32))
    tensor = _read(file)["w"]
    assert (tensor["dtype"], tensor["shape"], bytes(tensor["data"])) == ("U8", [2], b"\x21\x43")


def test_names_are_distinct() -> None:
    names = ["w", "w", "__metadata__", "padding", "", 'a"\n€', "w.2", "w"]
    tensors = [_weight(BFLOAT16, np.full(3, i), name) for i, name in enumerate(names)]
    found = _read(_file(tensors, bytes(32)))
    assert len(found) == 2 * len(names)
    assert len(set(weights.names(tensors))) == len(names)
    for i, name in enumerate(weights.names(tensors)):
        values = np.frombuffer(found[name]["data"], BFLOAT16.numpy)
        np.testing.assert_array_equal(values.astype(int), [i] * 3)


def test_elements_are_row_major_whatever_the_array_is() -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3).T
    file = _file([_weight(FLOAT32, data)], bytes(32))
    (header_size,) = struct.unpack_from("<Q", file)
    np.testing.assert_array_equal(
        np.frombuffer(file, "<f4", 6, 8 + header_size), [0, 3, 1, 4, 2, 5]
    )
