"""IsInf: https://onnx.ai/onnx/operators/onnx__IsInf.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Literal
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator


@operator("IsInf", since=10, dtypes=dtype.FLOATS | dtype.FLOAT8)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Either sign may be left out."""
    (x,) = elementwise.given(inputs)
    signs = (node.attr_int("detect_negative", 1), node.attr_int("detect_positive", 1))
    wanted = tuple(Literal(dtype.BOOL, bool(sign)) for sign in signs)
    return [elementwise.call(b, dtype.BOOL, "sofie::kernels::IsInf({0}, {1}, {2})", x, *wanted)]
