"""EyeLike: https://onnx.ai/onnx/operators/onnx__EyeLike.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr, Literal, Select, compare
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.registry import operator


@operator("EyeLike", since=9, dtypes=dtype.ALL)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Ones on a diagonal; of the input only the shape counts."""
    x = inputs[0]
    assert x is not None
    k, result = node.attr_int("k", 0), node.out_dtype()

    def element(index: Index) -> Expr:
        on = compare("==", index[0] + k, index[1])
        return Select(result, on, Literal(result, 1), Literal(result, 0))

    return [b.lazy(result, x.shape, (), element)]
