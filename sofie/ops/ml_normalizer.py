"""Normalizer: https://onnx.ai/onnx/operators/onnx_aionnxml_Normalizer.html"""

from collections.abc import Iterator, Sequence

import onnx_ir

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Accumulator, Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Tensor
from sofie.ops import elementwise
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

# For a norm: how elements are combined, what is combined, and the norm from it.
_NORMS = {
    "MAX": ("Max", "{0}", "{1}"),
    "L1": ("Sum", "sofie::kernels::Abs({0})", "{1}"),
    "L2": ("Sum", "{0} * {0}", "sofie::kernels::Sqrt({1})"),
}


@shape_rule("Normalizer", domain="ai.onnx.ml", types=(onnx_ir.DataType.FLOAT,))
def _shapes(node: Node) -> list[dims.Shape]:
    return [node.shape(0)]


def _check(node: Node) -> Iterator[str]:
    if node.attr_string("norm", "MAX") not in _NORMS:
        yield f"the norm {node.attr_string('norm', 'MAX')!r}"
    if len(node.shape(0)) not in (1, 2):
        yield "an input that is not [features] or [rows, features]"


@operator(
    "Normalizer",
    domain="ai.onnx.ml",
    since=1,
    dtypes=dtype.ML,
    check=_check,
)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A row whose norm is 0 stays as it is."""
    (x,) = elementwise.given(inputs)
    number = dtype.FLOAT64 if x.dtype is dtype.FLOAT64 else dtype.FLOAT32
    combine, term, norm = _NORMS[node.attr_string("norm", "MAX")]
    numbers = elementwise.call(b, number, f"static_cast<{number.cpp}>({{0}})", x)

    def finish(value: Expr, _: Index) -> Expr:
        template = f"sofie::kernels::DivideOr({{0}}, {norm}, {{2}})"
        zero = Literal(number, 0)
        return Call(dtype.FLOAT32, template, (value, Accumulator(number), zero))

    def prepare(value: Expr) -> Expr:
        return Call(number, term, (value,))

    axis = [x.rank - 1]
    kind = Combine(combine, number)
    return [b.normalize(x.shape, axis, kind, numbers, finish, dtype.FLOAT32, prepare)]
