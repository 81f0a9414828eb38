"""Size: https://onnx.ai/onnx/operators/onnx__Size.html"""

from collections.abc import Sequence

import onnx_ir
import onnx_shape_inference as inference

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops.registry import operator


@inference.registry.register("", "Size", since_version=1)  # type: ignore[untyped-decorator]
def infer(ctx: inference.ShapeInferenceContext, node: onnx_ir.Node) -> None:
    """A scalar whose value is known where the input's extents are."""
    output = node.outputs[0]
    ctx.set_shape_and_dtype(output, onnx_ir.Shape([]), onnx_ir.DataType.INT64)
    try:
        count = dims.product(Node(node, 0).shape(0))
    except ValueError:
        return
    ctx.set_symbolic_value(output, [dims.as_dim(count)])


@operator("Size", since=1, dtypes=dtype.EVERY)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A number that the host computes."""
    x = inputs[0]
    assert x is not None
    return [b.known((), [dims.product(x.shape)])]
