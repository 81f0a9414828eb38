"""ONNX files whose large tensors stay in the file.

protobuf has no views of a file: what it reads of a model lies in memory once in its own messages
and again in every array made of them. So the bytes of large initializers are left out of what it
gets to read, and the tensors become external ones that lie in the model's own file, from where
onnx_ir maps them.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import pathlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

# Bytes from which on a tensor stays in the file.
LARGE = 1 << 20

# https://protobuf.dev/programming-guides/encoding; numbers of fields are those of onnx.proto.
_VARINT = 0
_LENGTH_DELIMITED = 2
_FIXED_SIZES = {1: 8, 5: 4}
_LONGEST_VARINT = 10
_GRAPH = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_INITIALIZER = onnx.GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
_RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number


class _Field(NamedTuple):
    """A field of a message: where it begins, where its content does, and where both end."""

    number: int
    wire_type: int
    start: int
    content: int
    end: int


def read(path: pathlib.Path) -> tuple[onnx.ModelProto, pathlib.Path]:
    """Reads a model.

    Returns:
      The model and the folder that the files of its external tensors lie in.

    Raises:
      OSError: the file can't be read.
      DecodeError: it is no ONNX file.
      ValueError: likewise.
    """
    if path.stat().st_size > LARGE:
        # What is no such file, protobuf says better.
        with contextlib.suppress(DecodeError):
            real = path.resolve()
            model, left = _without_large(real)
            tensors = model.graph.initializer
            if left == [tensor.name for tensor in tensors if _is_external(tensor)]:
                return model, real.parent
    return onnx.load(str(path), load_external_data=False), path.parent


def _without_large(path: pathlib.Path) -> tuple[onnx.ModelProto, list[str]]:
    """A model with the large tensors in its file, and their names."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        reader = _Reader(mapped, path.name)
        return onnx.ModelProto.FromString(b"".join(reader.model())), reader.left


def _is_external(tensor: onnx.TensorProto) -> bool:
    return bool(tensor.data_location == tensor.EXTERNAL)


class _Reader:
    """Goes through a model's file.

    Attributes:
      left: names of the tensors that stay in the file.
    """

    def __init__(self, file: mmap.mmap, name: str) -> None:
        self._file = file
        self._name = name
        self.left: list[str] = []

    def model(self) -> Iterator[bytes]:
        """The model without the bytes of large tensors."""
        for field in self._fields(0, len(self._file)):
            yield self._changed(field, self._graph) if field.number == _GRAPH else self._kept(field)

    def _graph(self, graph: _Field) -> bytes:
        return b"".join(
            self._changed(field, self._tensor)
            if field.number == _INITIALIZER and field.end - field.content > LARGE
            else self._kept(field)
            for field in self._fields(graph.content, graph.end)
        )

    def _tensor(self, field: _Field) -> bytes:
        fields = list(self._fields(field.content, field.end))
        data = [part for part in fields if part.number == _RAW_DATA]
        rest = b"".join(self._kept(part) for part in fields if part.number != _RAW_DATA)
        tensor = onnx.TensorProto.FromString(rest)
        # What has not the size that it claims is protobuf's and the importer's to judge.
        if (
            len(data) != 1
            or _is_external(tensor)
            or _bytes(tensor) != data[0].end - data[0].content
        ):
            return bytes(self._file[field.content : field.end])
        self.left.append(tensor.name)
        tensor.data_location = tensor.EXTERNAL
        place = {"location": self._name, "offset": data[0].content, "length": _bytes(tensor)}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        return bytes(tensor.SerializeToString())

    def _kept(self, field: _Field) -> bytes:
        return bytes(self._file[field.start : field.end])

    def _changed(self, field: _Field, change: Callable[[_Field], bytes]) -> bytes:
        if field.wire_type != _LENGTH_DELIMITED:
            return self._kept(field)
        content = change(field)
        return _varint(field.number << 3 | _LENGTH_DELIMITED) + _varint(len(content)) + content

    def _fields(self, begin: int, end: int) -> Iterator[_Field]:
        while begin < end:
            tag, content = self._number(begin)
            number, wire_type = tag >> 3, tag & 7
            if wire_type == _VARINT:
                after = self._number(content)[1]
            elif wire_type == _LENGTH_DELIMITED:
                size, content = self._number(content)
                after = content + size
            elif wire_type in _FIXED_SIZES:
                after = content + _FIXED_SIZES[wire_type]
            else:
                raise DecodeError(f"a field of the unknown kind {wire_type} at byte {begin}")
            if after > end:
                raise DecodeError(f"the field at byte {begin} ends after what it is part of")
            yield _Field(number, wire_type, begin, content, after)
            begin = after

    def _number(self, position: int) -> tuple[int, int]:
        """The varint at a position, and where it ends."""
        value = 0
        for place, byte in enumerate(self._file[position : position + _LONGEST_VARINT]):
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value, position + place + 1
        raise DecodeError(f"no number at byte {position}")


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _bytes(tensor: onnx.TensorProto) -> int | None:
    """How many bytes the elements take; None for a type without such a number."""
    try:
        bits = int(ir.DataType(tensor.data_type).bitwidth)
    except (ValueError, TypeError):
        return None
    return -(-int(math.prod(tensor.dims)) * bits // 8)
