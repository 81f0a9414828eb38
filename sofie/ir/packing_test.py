"""Elements that share bytes, against arithmetic on bits."""

import numpy as np
import pytest

from sofie.ir import dtype, packing
from sofie.ir.dtype import DType


def test_the_first_element_lies_lowest() -> None:
    assert packing.pack(np.array([1, -2, 7], "int4"), dtype.INT4).tolist() == [0xE1, 0x07]
    assert packing.pack(np.array([3, 1, 0, 2, 3], "uint2"), dtype.UINT2).tolist() == [0x87, 0x03]


@pytest.mark.parametrize(
    "kind", [dtype.INT4, dtype.UINT4, dtype.INT2, dtype.UINT2, dtype.FLOAT4E2M1]
)
@pytest.mark.parametrize("count", [0, 1, 3, 4, 9])
def test_what_is_packed_comes_back(kind: DType, count: int) -> None:
    numbers = np.random.default_rng(3).integers(-8, 8, count).astype(kind.numpy)
    packed = packing.pack(numbers, kind)
    assert packed.dtype == np.uint8 and packed.size == -(-count // kind.per_byte)
    place = np.arange(count)
    back = packing.unpack(packed[place // kind.per_byte], place % kind.per_byte, kind)
    np.testing.assert_array_equal(back.astype(np.float32), numbers.astype(np.float32))
