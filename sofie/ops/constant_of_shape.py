"""ConstantOfShape: https://onnx.ai/onnx/operators/onnx__ConstantOfShape.html"""

from collections.abc import Sequence

import numpy as np
import onnx_ir
import onnx_shape_inference as inference

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Literal
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops.registry import operator


@inference.registry.register("", "ConstantOfShape", since_version=9)  # type: ignore[untyped-decorator]
def infer(ctx: inference.ShapeInferenceContext, node: onnx_ir.Node) -> None:
    """The shape is the input's value, sizes included: the library's own rule takes numbers only."""
    (shape,) = inference.check_inputs(node, "input")
    values = ctx.get_symbolic_value(shape)
    const = onnx_ir.convenience.get_const_tensor(shape)
    if const is not None:
        values = [int(x) for x in const.numpy().reshape(-1)]
    value = node.attributes.get("value")
    dtype = onnx_ir.DataType.FLOAT if value is None else value.as_tensor().dtype
    known = None if values is None else onnx_ir.Shape(values)
    ctx.set_shape_and_dtype(node.outputs[0], known, dtype)


@operator("ConstantOfShape", since=9, dtypes={dtype.INT64})
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The attribute's value wherever it is read."""
    value = node.attr_tensor("value")
    number = (np.zeros(1, np.float32) if value is None else value).reshape(-1)[0].item()
    result = node.out_dtype()
    return [b.lazy(result, node.out_shape(), (), lambda _: Literal(result, number))]
