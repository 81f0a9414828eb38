"""Binarizer: https://onnx.ai/onnx/operators/onnx_aionnxml_Binarizer.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator


@operator(
    "Binarizer",
    domain="ai.onnx.ml",
    since=1,
    dtypes=dtype.ML,
)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """1 above the threshold, else 0."""
    (x,) = elementwise.given(inputs)
    threshold = elementwise.scalar(x.dtype, node.attr_float("threshold", 0.0))
    template = f"static_cast<{x.dtype.cpp}>({{0}} > {{1}})"
    return [elementwise.call(b, x.dtype, template, x, threshold)]
