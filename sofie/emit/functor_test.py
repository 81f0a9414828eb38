"""Numbers in generated C++."""

import math

import pytest

from sofie.emit.functor import literal
from sofie.ir.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, DType
from sofie.ir.expr import Literal


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        (FLOAT32, 1.0, "1.0f"),
        (FLOAT64, -16.0, "(-16.0)"),
        (FLOAT64, 0.1, "0x1.999999999999ap-4"),
        (FLOAT32, 0.1, "0x1.99999a0000000p-4f"),
        (FLOAT32, 1e300, "std::numeric_limits<float>::infinity()"),
        (FLOAT32, math.inf, "std::numeric_limits<float>::infinity()"),
        (FLOAT32, -math.inf, "(-std::numeric_limits<float>::infinity())"),
        (FLOAT64, math.nan, "std::numeric_limits<double>::quiet_NaN()"),
        (INT64, 3, "int64_t{3}"),
        (FLOAT16, 1e9, "std::numeric_limits<float>::infinity()"),
        (BFLOAT16, 0.1, "0x1.9a00000000000p-4f"),
        (BOOL, True, "true"),
    ],
)
def test_literals(dtype: DType, value: float, text: str) -> None:
    assert literal(Literal(dtype, value)) == text
