"""LinearClassifier: https://onnx.ai/onnx/operators/onnx_aionnxml_LinearClassifier.html"""

from collections.abc import Iterator, Sequence

import onnx_ir

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise, linear_scores, scores
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


def _labels(node: Node) -> tuple[int, ...]:
    return node.attr_ints("classlabels_ints") or ()


@shape_rule(
    "LinearClassifier",
    domain="ai.onnx.ml",
    types=(onnx_ir.DataType.INT64, onnx_ir.DataType.FLOAT),
)
def _shapes(node: Node) -> list[dims.Shape]:
    return scores.label_and_score_shapes(node, len(_labels(node)))


def _check(node: Node) -> Iterator[str]:
    yield from scores.check_transform(node)
    yield from scores.check_labels(node, "classlabels_ints", "classlabels_strings")
    yield from linear_scores.check(node, len(_labels(node)))


@operator(
    "LinearClassifier",
    domain="ai.onnx.ml",
    since=1,
    dtypes=dtype.ML,
    check=_check,
)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A score for each class, and the label of the largest."""
    (x,) = elementwise.given(inputs)
    labels = _labels(node)
    sums = linear_scores.linear(node, b, x, len(labels))
    best = scores.best_label(b, node.label, sums, labels)
    return [best, scores.transformed(b, sums, node.attr_string("post_transform", "NONE"))]
