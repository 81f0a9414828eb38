"""LpNormalization: https://onnx.ai/onnx/operators/onnx__LpNormalization.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Accumulator, Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Tensor
from sofie.ops.registry import operator

# For p: what is summed, and the norm from the sum.
_NORMS = {1: ("sofie::kernels::Abs({0})", "{1}"), 2: ("{0} * {0}", "sofie::kernels::Sqrt({1})")}


def _check(node: Node) -> Iterator[str]:
    p = node.attr_int("p", 2)
    if p not in _NORMS:
        yield f"p = {p}"


@operator("LpNormalization", since=1, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A row of zeros stays as it is."""
    x = inputs[0]
    assert x is not None
    number = dtype.wide(x.dtype)
    term, norm = _NORMS[node.attr_int("p", 2)]

    def finish(value: Expr, _: Index) -> Expr:
        template = f"sofie::kernels::DivideOr({{0}}, {norm}, {{2}})"
        return Call(x.dtype, template, (value, Accumulator(number), Literal(number, 0)))

    def prepare(value: Expr) -> Expr:
        return Call(number, term, (value,))

    combine = Combine("Sum", number)
    return [b.normalize(x.shape, [node.axis(-1)], combine, x, finish, x.dtype, prepare)]
