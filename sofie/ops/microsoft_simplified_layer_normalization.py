"""SimplifiedLayerNormalization of com.microsoft, what ONNX Runtime writes for RMSNormalization."""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise, normalization
from sofie.ops.registry import operator


@operator("SimplifiedLayerNormalization", since=1, domain="com.microsoft", dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """As RMSNormalization."""
    x, scale = elementwise.given(inputs)
    axes, epsilon = normalization.trailing_axes(node), node.attr_float("epsilon", 1e-5)
    b.require_broadcast(scale.shape, x.shape)
    affine = normalization.scaled(scale, None, x.shape)
    return [normalization.divide_by_rms(b, x, axes, epsilon, affine, scale.dtype)]
