"""Det: https://onnx.ai/onnx/operators/onnx__Det.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal, Select, compare
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index as At
from sofie.ir.tensor import Reduction, Tensor
from sofie.ops import arg_reduction, elementwise
from sofie.ops import control_flow as flow
from sofie.ops.compaction import at
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if len(node.shape(0)) < 2:
        yield "an input that is no matrix"


@shape_rule("Det")
def _shapes(node: Node) -> list[dims.Shape]:
    return [node.shape(0)[:-2]]


@operator("Det", since=11, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Gaussian elimination, one column after the other, with the column's largest as its pivot."""
    (x,) = elementwise.given(inputs)
    *batch, rows, columns = x.shape
    b.require_equal(rows, columns, "rows and columns of a matrix")
    number = dtype.wide(x.dtype)
    matrix = flow.Carried(b, elementwise.call(b, number, "{0}", x), x.shape)
    one = b.lazy(number, batch, (), lambda _: Literal(number, 1))
    product = flow.Carried(b, one, one.shape)
    with b.repeat(rows) as step:
        before, so_far = matrix.before(step), product.before(step)
        pivot = _pivot(b, before, step)
        # Outside of what is left, nothing is read again.
        inner = (*batch, rows, columns)

        def swapped(index: At, before: Tensor = before, pivot: Tensor = pivot) -> Expr:
            """The matrix with the pivot's row in the place of the row at the step."""
            *outer, row, column = index
            up, down = compare("==", row, step), compare("==", row, at(pivot, *outer))
            there = before.load((*outer, at(pivot, *outer), column))
            here = before.load((*outer, step, column))
            kept = Select(number, down, here, before.load(index))
            return Select(number, up, there, kept)

        def eliminated(index: At) -> Expr:
            *outer, row, column = index
            top = swapped((*outer, step, step))
            factor = Call(number, "{0} / {1}", (swapped((*outer, row, step)), top))
            rest = Call(
                number,
                "{0} - {1} * {2}",
                (swapped(index), factor, swapped((*outer, step, column))),
            )
            singular = Call(dtype.BOOL, "{0} == 0", (top,))
            below = compare(">", row, step)
            value = Select(number, singular, swapped(index), rest)
            return Select(number, below, value, swapped(index))

        def multiplied(outer: At) -> Expr:
            top = swapped((*outer, step, step))
            signed = Select(
                number,
                compare("==", at(pivot, *outer), step),
                top,
                Call(number, "-{0}", (top,)),
            )
            return Call(number, "{0} * {1}", (so_far.load(outer), signed))

        pairs = [
            (b.lazy(number, inner, [before, pivot], eliminated), matrix.after(step)),
            (b.lazy(number, batch, [before, pivot, so_far], multiplied), product.after(step)),
        ]
        flow.store(b, pairs)
    return [elementwise.call(b, x.dtype, "{0}", product.before(rows))]


def _pivot(b: Builder, matrix: Tensor, step: dims.Expr) -> Tensor:
    """The row, from the step's on, whose element in the step's column is the largest."""
    number, rows = matrix.dtype, matrix.shape[-2]

    def element(outer: At, inner: At) -> Expr:
        (row,) = inner
        size = Call(number, "sofie::kernels::Abs({0})", (matrix.load((*outer, row, step)),))
        left = Select(number, compare("<", row, step), Literal(number, -1), size)
        return arg_reduction.value_at(left, row)

    place = Reduction(
        b,
        matrix.shape[:-2],
        [rows],
        Combine("ArgMax", number),
        element,
        lambda _: arg_reduction.place(),
        dtype.INT64,
        [matrix],
    )
    return place.strided()
