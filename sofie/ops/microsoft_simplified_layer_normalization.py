"""SimplifiedLayerNormalization, which ONNX Runtime's optimiser writes for RMSNormalization.

It stands in com.microsoft or, from some versions, in ONNX's own domain.
"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise, normalization
from sofie.ops.registry import operator


def _lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """As RMSNormalization."""
    x, scale = elementwise.given(inputs)
    axes, epsilon = normalization.trailing_axes(node), node.attr_float("epsilon", 1e-5)
    b.require_broadcast(scale.shape, x.shape)
    affine = normalization.scaled(scale, None, x.shape)
    return [normalization.divide_by_rms(b, x, axes, epsilon, affine, scale.dtype)]


for _domain in ("", "com.microsoft"):
    operator("SimplifiedLayerNormalization", since=1, domain=_domain, dtypes=dtype.FLOATS)(_lower)
