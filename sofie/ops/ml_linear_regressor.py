"""LinearRegressor: https://onnx.ai/onnx/operators/onnx_aionnxml_LinearRegressor.html"""

from collections.abc import Iterator, Sequence

import onnx_ir
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise, linear_scores, scores
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


@shape_rule("LinearRegressor", domain="ai.onnx.ml", types=(onnx_ir.DataType.FLOAT,))
def _shapes(node: Node) -> list[dims.Shape]:
    return [(node.shape(0)[0], sympy.Integer(node.attr_int("targets", 1)))]


def _check(node: Node) -> Iterator[str]:
    yield from linear_scores.check(node, node.attr_int("targets", 1))
    yield from scores.check_transform(node)


@operator(
    "LinearRegressor",
    domain="ai.onnx.ml",
    since=1,
    dtypes=dtype.ML,
    check=_check,
)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """One product, then the post transform."""
    (x,) = elementwise.given(inputs)
    sums = linear_scores.linear(node, b, x, node.attr_int("targets", 1))
    return [scores.transformed(b, sums, node.attr_string("post_transform", "NONE"))]
