"""Inverse of com.microsoft: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.Inverse"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal, Select, compare
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Slice, Tensor
from sofie.ops import control_flow as flow
from sofie.ops import elementwise, elimination
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

_DOMAIN = "com.microsoft"


@shape_rule("Inverse", domain=_DOMAIN)
def _shapes(node: Node) -> list[dims.Shape]:
    return [node.shape(0)]


def _check(node: Node) -> Iterator[str]:
    if len(node.shape(0)) < 2:
        yield "an input that is no matrix"


@operator("Inverse", since=1, domain=_DOMAIN, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Elimination above and below the diagonal, of the matrix and the identity beside it."""
    (x,) = elementwise.given(inputs)
    *batch, rows, columns = x.shape
    b.require_equal(rows, columns, "rows and columns of a matrix")
    number = dtype.wide(x.dtype)
    shape = (*batch, rows, 2 * rows)

    def beside(index: Index) -> Expr:
        *outer, row, column = index
        one, zero = Literal(number, 1), Literal(number, 0)
        unit = Select(number, compare("==", column, row + rows), one, zero)
        value = Call(number, "{0}", (x.load((*outer, row, column)),))
        return Select(number, compare("<", column, rows), value, unit)

    both = flow.Carried(b, b.lazy(number, shape, [x], beside), shape)
    with b.repeat(rows) as step:
        before = both.before(step)
        pivot = elimination.pivot(b, before, step)
        swapped = elimination.swapped(before, pivot, step)

        def eliminated(index: Index) -> Expr:
            *outer, row, column = index
            top = swapped((*outer, step, step))
            scaled = Call(number, "{0} / {1}", (swapped((*outer, step, column)), top))
            parts = swapped(index), swapped((*outer, row, step)), scaled
            rest = Call(number, "{0} - {1} * {2}", parts)
            return Select(number, compare("==", row, step), scaled, rest)

        flow.store(b, [(b.lazy(number, shape, [before, pivot], eliminated), both.after(step))])
    zero, one = dims.ZERO, dims.ONE
    starts = (*[zero] * (x.rank - 1), rows)
    right = Slice(both.before(rows), x.shape, starts, (one,) * x.rank)
    return [elementwise.call(b, x.dtype, "{0}", right)]
