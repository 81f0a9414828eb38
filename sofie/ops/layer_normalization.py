"""LayerNormalization: https://onnx.ai/onnx/operators/onnx__LayerNormalization.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import normalization
from sofie.ops.registry import operator


@operator("LayerNormalization", since=17, dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Statistics and result in one kernel; the optional outputs in kernels of their own."""
    x, scale, bias = (*inputs, None)[:3]
    assert x is not None and scale is not None
    axes, epsilon = normalization.trailing_axes(node), node.attr_float("epsilon", 1e-5)
    for parameter in (scale, bias):
        if parameter is not None:
            b.require_broadcast(parameter.shape, x.shape)
    affine = normalization.scaled(scale, bias, x.shape)
    return [
        normalization.standardize(b, x, axes, epsilon, affine, x.dtype),
        *normalization.optional_statistics(node, b, x, axes, epsilon),
    ]
