"""RoiAlign: https://onnx.ai/onnx/operators/onnx__RoiAlign.html"""

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, INT64
from sofie.ir.expr import Call, Expr, Literal, Select, fold
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.elementwise import rounded
from sofie.ops.indexing import indirect, require_elements
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator
from sofie.ops.sampling import clamped, size


def _check(node: Node) -> Iterator[str]:
    mode = node.attr_string("mode", "avg")
    if mode not in ("avg", "max"):
        yield f"the mode {mode!r}"


@shape_rule("RoiAlign", since=10)
def _shapes(node: Node) -> list[dims.Shape | None]:
    height, width = node.attr_int("output_height", 1), node.attr_int("output_width", 1)
    return [(node.shape(1)[0], node.shape(0)[1], sympy.Integer(height), sympy.Integer(width))]


@operator("RoiAlign", since=10, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The mean, or the maximum, of points inside of every bin of a region."""
    x, regions, batches = inputs
    assert x is not None and regions is not None and batches is not None
    shape = _shapes(node)[0]
    assert shape is not None
    b.require_equal(batches.shape[0], regions.shape[0], "numbers of regions and of their batches")
    require_elements(b, batches.shape, (x.shape[0], *x.shape[2:]))
    number = dtype.wide(x.dtype)
    # Opset 10 has no such attribute, and this was its meaning.
    default = "half_pixel" if node.version >= 16 else "output_half_pixel"
    centred = node.attr_string("coordinate_transformation_mode", default) == "half_pixel"
    ratio = node.attr_int("sampling_ratio", 0)
    averages = node.attr_string("mode", "avg") == "avg"

    def literal(value: float) -> Expr:
        return Literal(number, value)

    def calculate(template: str, *arguments: Expr) -> Expr:
        return Call(number, template, arguments)

    scale = literal(node.attr_float("spatial_scale", 1.0))
    margin = literal(0.5 if centred else 0.0)

    def edge(region: dims.Expr, column: int) -> Expr:
        value = rounded(regions.load((region, dims.ONE * column)), number)
        return calculate("{0} * {1} - {2}", value, scale, margin)

    def element(index: Index) -> Expr:
        region, channel, *place = index
        image = indirect(batches.load((region,)), x.shape[0])
        starts, bins, counts = [], [], []
        for axis in range(2):
            # A region is x, y of its first corner, then of its last.
            start, end = edge(region, 1 - axis), edge(region, 3 - axis)
            length = calculate("{0} - {1}", end, start)
            if not centred:
                length = calculate("sofie::kernels::Maximum({0}, {1})", length, literal(1))
            bin_size = calculate("{0} / {1}", length, literal(int(shape[2 + axis])))
            count: Expr = Literal(INT64, ratio)
            if ratio <= 0:
                template = "static_cast<int64_t>(sofie::kernels::Ceil({0}))"
                count = Call(INT64, template, (bin_size,))
            first = calculate("{0} + {1} * {2}", start, size(place[axis], number), bin_size)
            starts.append(first)
            bins.append(bin_size)
            counts.append(count)

        def point(steps: Sequence[dims.Expr]) -> Expr:
            at = []
            for axis in range(2):
                template = "{0} + ({1} + {4}) * {2} / {3}"
                count = rounded(counts[axis], number)
                step = size(steps[axis], number)
                at.append(calculate(template, starts[axis], step, bins[axis], count, literal(0.5)))
            return _bilinear(x, (image, channel), at, number, averages)

        def row(y: dims.Expr) -> Expr:
            return fold(join, begin, counts[1], lambda x_: point((y, x_)))

        join = "{0} + {1}" if averages else "sofie::kernels::Maximum({0}, {1})"
        begin = literal(0.0 if averages else float("-inf"))
        value: Expr = fold(join, begin, counts[0], row)
        points = Call(INT64, "{0} * {1}", tuple(counts))
        if averages:
            template = "{0} / static_cast<{1}>(sofie::kernels::Maximum({{1}}, {{2}}))"
            template = template.format("{0}", number.cpp)
            value = calculate(template, value, points, Literal(INT64, 1))
        else:
            some = Call(BOOL, "{0} > {1}", (points, Literal(INT64, 0)))
            value = Select(number, some, value, literal(0))
        return rounded(value, x.dtype)

    return [b.lazy(x.dtype, shape, [x, regions, batches], element)]


def _bilinear(x: Tensor, lead: Index, at: Sequence[Expr], number: dtype.DType, adds: bool) -> Expr:
    """The four elements around a point with their weights, added or the largest of them.

    Points up to one element outside count as if they lay on the border; beyond, the value is 0.
    """
    zero, one = Literal(number, 0), Literal(number, 1)
    outside = []
    sides = []
    for place, extent in zip(at, x.shape[2:], strict=True):
        length = size(extent, number)
        test = "({0} < -{2}) || ({0} > {1})"
        outside.append(Call(BOOL, test, (place, length, one)))
        kept = Call(
            number,
            "sofie::kernels::Clip({0}, {1}, {2} - {3})",
            (place, zero, length, one),
        )
        low = Call(number, "sofie::kernels::Floor({0})", (kept,))
        high = Call(number, "{0} + {1}", (low, one))
        rest = Call(number, "{0} - {1}", (kept, low))
        share = Call(number, "{0} - {1}", (one, rest))
        sides.append([(clamped(low, extent), share), (clamped(high, extent), rest)])
    value: Expr | None = None
    for row, row_share in sides[0]:
        for column, column_share in sides[1]:
            element = rounded(x.load((*lead, row, column)), number)
            term = Call(number, "{0} * {1} * {2}", (row_share, column_share, element))
            if value is None:
                value = term
            else:
                join = "{0} + {1}" if adds else "sofie::kernels::Maximum({0}, {1})"
                value = Call(number, join, (value, term))
    assert value is not None
    return Select(number, Call(BOOL, "{0} || {1}", tuple(outside)), zero, value)
