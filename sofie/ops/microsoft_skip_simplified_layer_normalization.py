"""SkipSimplifiedLayerNormalization of com.microsoft

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.SkipSimplifiedLayerNormalization
"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import normalization
from sofie.ops.normalization import with_skip
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.is_used(1) or node.is_used(2):
        yield "the outputs mean and inv_std_var"


@operator(
    "SkipSimplifiedLayerNormalization",
    since=1,
    domain="com.microsoft",
    dtypes=dtype.FLOATS,
    check=_check,
)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The sum is an output of its own where something reads it, else it stays in the kernel."""
    x, skip, gamma, bias = (*inputs, None)[:4]
    assert x is not None and skip is not None and gamma is not None
    total = with_skip(node, b, [x, skip, bias], 3)
    affine = normalization.scaled(gamma, None, x.shape)
    epsilon = node.attr_float("epsilon", 1e-5)
    y = normalization.divide_by_rms(b, total, [x.rank - 1], epsilon, affine, x.dtype)
    return [y, None, None, total]
