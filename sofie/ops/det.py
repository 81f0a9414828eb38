"""Det: https://onnx.ai/onnx/operators/onnx__Det.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal, Select, compare
from sofie.ir.node import Node
from sofie.ir.tensor import Index as At
from sofie.ir.tensor import Tensor
from sofie.ops import control_flow as flow
from sofie.ops import elementwise, elimination
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
        pivot = elimination.pivot(b, before, step)
        swapped = elimination.swapped(before, pivot, step)

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
            (b.lazy(number, x.shape, [before, pivot], eliminated), matrix.after(step)),
            (b.lazy(number, batch, [before, pivot, so_far], multiplied), product.after(step)),
        ]
        flow.store(b, pairs)
    return [elementwise.call(b, x.dtype, "{0}", product.before(rows))]
