"""Hardmax: https://onnx.ai/onnx/operators/onnx__Hardmax.html"""

from collections.abc import Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.expr import Index as IndexValue
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Tensor
from sofie.ops import arg_reduction, softmax_rows


def _lower(b: Builder, x: Tensor, axes: Sequence[int]) -> list[Tensor]:
    """1 at the first of a row's largest elements, 0 elsewhere."""
    strides = dims.packed_strides([x.shape[a] for a in axes], range(len(axes)))

    def place(index: Index) -> dims.Expr:
        return sum((index[a] * s for a, s in zip(axes, strides, strict=True)), dims.ZERO)

    def pair(index: Index) -> Expr:
        return arg_reduction.value_at(x.load(index), place(index))

    def finish(_: Expr, index: Index) -> Expr:
        parts = (IndexValue(dtype.INT64, place(index)), arg_reduction.place())
        here = Call(dtype.BOOL, "{0} == {1}", parts)
        numbers = (Literal(x.dtype, 1), Literal(x.dtype, 0))
        return Call(x.dtype, "{0} ? {1} : {2}", (here, *numbers))

    pairs = b.lazy(pair((dims.ZERO,) * x.rank).dtype, x.shape, [x], pair)
    combine = Combine("ArgMax", dtype.wide(x.dtype))
    return [b.normalize(x.shape, axes, combine, pairs, finish, x.dtype)]


softmax_rows.on_rows("Hardmax", _lower)
