"""MaxRoiPool: https://onnx.ai/onnx/operators/onnx__MaxRoiPool.html"""

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, INT64
from sofie.ir.expr import Call, Expr, Indirect, Literal, Select, fold
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.elementwise import rounded
from sofie.ops.indexing import indirect, require_elements
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator
from sofie.ops.sampling import size


def _check(node: Node) -> Iterator[str]:
    pooled = node.attr_ints("pooled_shape")
    if pooled is None or len(pooled) != 2:
        yield "a pooled_shape that is not two numbers"


@shape_rule("MaxRoiPool")
def _shapes(node: Node) -> list[dims.Shape | None]:
    height, width = node.attr_ints("pooled_shape") or (1, 1)
    return [(node.shape(1)[0], node.shape(0)[1], sympy.Integer(height), sympy.Integer(width))]


@operator("MaxRoiPool", since=1, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The maximum of every bin of a region; 0 where a bin has no element."""
    x, regions = inputs
    assert x is not None and regions is not None
    shape = _shapes(node)[0]
    assert shape is not None
    require_elements(b, regions.shape[:1], x.shape[:1])
    number = dtype.wide(x.dtype)
    scale = Literal(number, node.attr_float("spatial_scale", 1.0))

    def corner(region: dims.Expr, column: int) -> Expr:
        value = rounded(regions.load((region, dims.ONE * column)), number)
        # Halves away from zero, as C's round.
        half = Literal(number, 0.5)
        return Call(number, "sofie::kernels::Floor({0} * {1} + {2})", (value, scale, half))

    def whole(value: Expr) -> Expr:
        return Call(INT64, "static_cast<int64_t>({0})", (value,))

    def element(index: Index) -> Expr:
        region, channel, *place = index
        image = indirect(whole(regions.load((region, dims.ZERO))), x.shape[0])
        firsts, counts = [], []
        for axis in range(2):
            # A region is its batch, x and y of its first corner, then of its last.
            start, end = corner(region, 2 - axis), corner(region, 4 - axis)
            template = "sofie::kernels::Maximum({1} - {0} + {2}, {2})"
            length = Call(number, template, (start, end, Literal(number, 1)))
            bin_size = Call(number, "{0} / {1}", (length, Literal(number, int(shape[2 + axis]))))
            extent = size(x.shape[2 + axis], number)

            def bound(template: str, at: dims.Expr) -> Expr:
                inner = f"sofie::kernels::Clip({template} + {{2}}, {{3}}, {{4}})"
                parts = (size(at, number), bin_size, start, Literal(number, 0), extent)  # noqa: B023
                return whole(Call(number, inner, parts))

            first = bound("sofie::kernels::Floor({0} * {1})", place[axis])
            last = bound("sofie::kernels::Ceil({0} * {1})", place[axis] + 1)
            firsts.append(Indirect(first))
            counts.append(Call(INT64, "{0} - {1}", (last, first)))
        lowest = Literal(number, float("-inf"))
        join = "sofie::kernels::Maximum({0}, {1})"

        def row(y: dims.Expr) -> Expr:
            def point(column: dims.Expr) -> Expr:
                at = (firsts[0] + y, firsts[1] + column)
                return rounded(x.load((image, channel, *at)), number)

            return fold(join, lowest, counts[1], point)

        value = fold(join, lowest, counts[0], row)
        zero = Literal(INT64, 0)
        some = Call(BOOL, "({0} > {2}) && ({1} > {2})", (*counts, zero))
        return rounded(Select(number, some, value, Literal(number, 0)), x.dtype)

    return [b.lazy(x.dtype, shape, [x, regions], element)]
