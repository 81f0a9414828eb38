"""GroupNormalization: https://onnx.ai/onnx/operators/onnx__GroupNormalization.html"""

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Reshape, Tensor
from sofie.ops import elementwise, normalization
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    channels, groups = node.shape(0)[1], node.attr_int("num_groups")
    if not channels.is_Integer:
        yield "a symbolic number of channels"
    elif groups < 1 or int(channels) % groups:
        yield f"num_groups = {groups}, which does not divide the {channels} channels"


@operator("GroupNormalization", since=21, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A row is one group of channels of one instance. (Opset 18's definition is withdrawn.)"""
    x, scale, bias = elementwise.given(inputs)
    for parameter in (scale, bias):
        b.require_equal(parameter.shape[0], x.shape[1], "parameters and channels")
    groups = sympy.Integer(node.attr_int("num_groups"))
    channels = x.shape[1] / groups
    grouped = Reshape(x, (x.shape[0], groups, channels, *x.shape[2:]))
    affine = normalization.per_channel(scale, bias, lambda index: index[1] * channels + index[2])
    axes, epsilon = range(2, grouped.rank), node.attr_float("epsilon", 1e-5)
    rows = normalization.standardize(b, grouped, axes, epsilon, affine, x.dtype)
    return [Reshape(rows, x.shape)]
