"""InstanceNormalization: https://onnx.ai/onnx/operators/onnx__InstanceNormalization.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise, normalization
from sofie.ops.registry import operator


@operator("InstanceNormalization", since=6, dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A row is one channel of one instance."""
    x, scale, bias = elementwise.given(inputs)
    for parameter in (scale, bias):
        b.require_equal(parameter.shape[0], x.shape[1], "parameters and channels")
    affine = normalization.per_channel(scale, bias, lambda index: index[1])
    epsilon = node.attr_float("epsilon", 1e-5)
    return [normalization.standardize(b, x, range(2, x.rank), epsilon, affine, x.dtype)]
