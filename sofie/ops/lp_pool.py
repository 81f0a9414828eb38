"""LpPool: https://onnx.ai/onnx/operators/onnx__LpPool.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import pooling
from sofie.ops.elementwise import rounded
from sofie.ops.norms import power, root
from sofie.ops.registry import operator
from sofie.ops.spatial import kernel_shape, window

pooling.infer("LpPool")


@operator("LpPool", since=2, dtypes=dtype.FLOATS, check=pooling.check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The p-norm over every window."""
    x, p = inputs[0], node.attr_int("p", 2)
    assert x is not None
    taps = window(node, kernel_shape(node))
    total = pooling.pool(b, x, taps, "Sum", 0, lambda value: power(value, p))

    def element(index: Index) -> Expr:
        return rounded(root(total.load(index), p), x.dtype)

    return [b.lazy(x.dtype, total.shape, [total], element)]
