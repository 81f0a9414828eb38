"""BiasGelu of com.microsoft: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.BiasGelu"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator


@operator("BiasGelu", since=1, domain="com.microsoft", dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The bias is added first."""
    tensors = elementwise.given(inputs)
    total = " + ".join(f"{{{i}}}" for i in range(len(tensors)))
    template = f"sofie::kernels::Gelu({total})"
    return [elementwise.apply(node, b, tensors, node.out_dtype(), template)]
