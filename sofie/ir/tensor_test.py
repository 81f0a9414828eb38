"""Which reshapes are views, and of what."""

import pytest
import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import FLOAT32
from sofie.ir.program import Buffer, BufferKind
from sofie.ir.tensor import Broadcast, Permute, Reshape, Slice, Strided

_N, _P = dims.symbol(0), dims.symbol(1)
_4 = sympy.Integer(4)


def _memory(shape: dims.Shape, order: tuple[int, ...] | None = None) -> Strided:
    axes = tuple(range(len(shape))) if order is None else order
    return Strided.whole(Builder(), Buffer("x", FLOAT32, shape, axes, BufferKind.INPUT))


def _strides(view: Strided | None) -> tuple[object, ...]:
    assert view is not None
    return tuple(sympy.expand(s) for s in view.strides)


def test_split_and_merge_of_packed_memory() -> None:
    x = _memory((_N, _P, _4))
    assert _strides(Reshape(x, (_N * _P, _4)).strided()) == (4, 1)
    assert _strides(Reshape(x, (_N, _P * 4)).strided()) == (4 * _P, 1)
    assert _strides(Reshape(x, (_N, _P, sympy.Integer(2), sympy.Integer(2))).strided()) == (
        4 * _P,
        4,
        2,
        1,
    )


def test_channels_last_memory_merges_where_its_axes_meet() -> None:
    x = _memory((_N, _4, _P), (0, 2, 1))
    back = Permute(x, (0, 2, 1))
    assert _strides(Reshape(back, (_N * _P, _4)).strided()) == (4, 1)
    # [N, 4, P] in memory as [N, P, 4]: 4 and P are not neighbours in this order.
    assert Reshape(x, (_N, _4 * _P)).strided() is None


@pytest.mark.parametrize("step", [1, 2])
def test_slices_move_the_start(step: int) -> None:
    x = _memory((_N, _P))
    view = Slice(x, (_N, _P - 3), (dims.ZERO, sympy.Integer(3)), (dims.ONE, sympy.Integer(step)))
    memory = view.strided()
    assert memory is not None
    assert memory.offset == 3
    assert _strides(memory) == (_P, step)


def test_broadcast_repeats_with_stride_zero() -> None:
    memory = Broadcast(_memory((_N, dims.ONE)), (_4, _N, _P)).strided()
    assert _strides(memory) == (0, 1, 0)
