"""Element types: ONNX's, and what they are called in C++."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes  # NumPy knows bfloat16 and its like by name from here on.
import numpy as np
import onnx_ir as ir


@dataclasses.dataclass(frozen=True)
class DType:
    """One element type.

    Attributes:
      name: the name in messages and in the manifest, as NumPy and ml_dtypes spell it.
      cpp: the C++ type that generated code computes in.
      enum: the enumerator of ``sofie::DType``.
      size: bytes of one element in memory.
      narrow: the C++ type of an element in memory where that is not ``cpp``: operands are widened
        to ``cpp``, and every result is rounded.
      per_byte: elements in a byte of inputs, outputs and weights; intermediate results take a byte
        each.
    """

    name: str
    cpp: str
    enum: str
    size: int
    narrow: str = ""
    per_byte: int = 1

    @property
    def storage(self) -> str:
        """The C++ type of an element in memory."""
        return self.narrow or self.cpp

    @property
    def packed(self) -> str:
        """The C++ type of a byte with several elements."""
        return self.storage.replace("sofie::", "sofie::Packed")

    @property
    def is_float(self) -> bool:
        """True for floating-point types."""
        return self.cpp in ("float", "double")

    @property
    def is_native(self) -> bool:
        """True where C++ computes in the type that is in memory."""
        return not self.narrow

    @property
    def limits(self) -> tuple[int, int]:
        """The lowest and the largest number of an integer type."""
        info = ml_dtypes.iinfo(self.numpy)  # type: ignore[no-untyped-call]
        return int(info.min), int(info.max)

    @property
    def numpy(self) -> np.dtype[Any]:
        """The type in NumPy."""
        return np.dtype(self.name)


FLOAT16 = DType("float16", "float", "kFloat16", 2, "sofie::Float16")
BFLOAT16 = DType("bfloat16", "float", "kBFloat16", 2, "sofie::BFloat16")
FLOAT32 = DType("float32", "float", "kFloat32", 4)
FLOAT64 = DType("float64", "double", "kFloat64", 8)
INT8 = DType("int8", "int8_t", "kInt8", 1)
INT16 = DType("int16", "int16_t", "kInt16", 2)
INT32 = DType("int32", "int32_t", "kInt32", 4)
INT64 = DType("int64", "int64_t", "kInt64", 8)
UINT8 = DType("uint8", "uint8_t", "kUInt8", 1)
UINT16 = DType("uint16", "uint16_t", "kUInt16", 2)
UINT32 = DType("uint32", "uint32_t", "kUInt32", 4)
UINT64 = DType("uint64", "uint64_t", "kUInt64", 8)
BOOL = DType("bool", "bool", "kBool", 1)
FLOAT8E4M3FN = DType("float8_e4m3fn", "float", "kFloat8E4M3FN", 1, "sofie::Float8E4M3FN")
FLOAT8E4M3FNUZ = DType("float8_e4m3fnuz", "float", "kFloat8E4M3FNUZ", 1, "sofie::Float8E4M3FNUZ")
FLOAT8E5M2 = DType("float8_e5m2", "float", "kFloat8E5M2", 1, "sofie::Float8E5M2")
FLOAT8E5M2FNUZ = DType("float8_e5m2fnuz", "float", "kFloat8E5M2FNUZ", 1, "sofie::Float8E5M2FNUZ")
FLOAT8E8M0 = DType("float8_e8m0fnu", "float", "kFloat8E8M0", 1, "sofie::Float8E8M0")
FLOAT4E2M1 = DType("float4_e2m1fn", "float", "kFloat4E2M1", 1, "sofie::Float4E2M1", 2)
INT4 = DType("int4", "int8_t", "kInt4", 1, "sofie::Int4", 2)
UINT4 = DType("uint4", "uint8_t", "kUInt4", 1, "sofie::UInt4", 2)
INT2 = DType("int2", "int8_t", "kInt2", 1, "sofie::Int2", 4)
UINT2 = DType("uint2", "uint8_t", "kUInt2", 1, "sofie::UInt2", 4)

FLOATS = frozenset({FLOAT16, BFLOAT16, FLOAT32, FLOAT64})
SIGNED = FLOATS | {INT8, INT16, INT32, INT64}
UNSIGNED = frozenset({UINT8, UINT16, UINT32, UINT64})
NUMBERS = SIGNED | UNSIGNED
INTEGERS = NUMBERS - FLOATS
WIDE_INTEGERS = frozenset({INT32, INT64, UINT32, UINT64})
ALL = NUMBERS | {BOOL}
# What the operators of ai.onnx.ml take.
ML = frozenset({FLOAT32, FLOAT64, INT32, INT64})
# Types to store and to convert, not to compute in.
FLOAT8 = frozenset({FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ})
SMALL_FLOATS = FLOAT8 | {FLOAT4E2M1}
SMALL_INTEGERS = frozenset({INT4, UINT4, INT2, UINT2})
EVERY = ALL | SMALL_FLOATS | SMALL_INTEGERS | {FLOAT8E8M0}

_FROM_ONNX = {
    ir.DataType.FLOAT16: FLOAT16,
    ir.DataType.BFLOAT16: BFLOAT16,
    ir.DataType.FLOAT: FLOAT32,
    ir.DataType.DOUBLE: FLOAT64,
    ir.DataType.INT8: INT8,
    ir.DataType.INT16: INT16,
    ir.DataType.INT32: INT32,
    ir.DataType.INT64: INT64,
    ir.DataType.UINT8: UINT8,
    ir.DataType.UINT16: UINT16,
    ir.DataType.UINT32: UINT32,
    ir.DataType.UINT64: UINT64,
    ir.DataType.BOOL: BOOL,
    ir.DataType.FLOAT8E4M3FN: FLOAT8E4M3FN,
    ir.DataType.FLOAT8E4M3FNUZ: FLOAT8E4M3FNUZ,
    ir.DataType.FLOAT8E5M2: FLOAT8E5M2,
    ir.DataType.FLOAT8E5M2FNUZ: FLOAT8E5M2FNUZ,
    ir.DataType.FLOAT8E8M0: FLOAT8E8M0,
    ir.DataType.FLOAT4E2M1: FLOAT4E2M1,
    ir.DataType.INT4: INT4,
    ir.DataType.UINT4: UINT4,
    ir.DataType.INT2: INT2,
    ir.DataType.UINT2: UINT2,
}


def wide(dtype: DType) -> DType:
    """The type to compute in where several results in a row are not to be rounded to ``dtype``."""
    return FLOAT32 if dtype.cpp == "float" else dtype


def from_onnx(data_type: ir.DataType | None) -> DType | None:
    """The element type for an ONNX one; None where this project has none."""
    return None if data_type is None else _FROM_ONNX.get(data_type)
