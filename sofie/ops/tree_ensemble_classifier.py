"""TreeEnsembleClassifier

https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsembleClassifier.html
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Indirect
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import scores, tree_tables
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator
from sofie.ops.tree_ensemble_regressor import with_base


def _labels(node: Node) -> tuple[int, ...]:
    return node.attr_ints("classlabels_int64s") or ()


@shape_rule(
    "TreeEnsembleClassifier",
    domain="ai.onnx.ml",
    types=(onnx_ir.DataType.INT64, onnx_ir.DataType.FLOAT),
)
def _shapes(node: Node) -> list[dims.Shape]:
    return scores.label_and_score_shapes(node, len(_labels(node)))


def _check(node: Node) -> Iterator[str]:
    yield from tree_tables.check_rows(node)
    yield from scores.check_transform(node)
    yield from scores.check_labels(node, "classlabels_int64s", "classlabels_strings")
    if len(_labels(node)) == 2 and set(node.attr_ints("class_ids") or ()) == {1}:
        yield "two classes with votes for the second one only; make them votes for class_id 0"
    if _is_binary(node) and len(tree_tables.numbers(node, "base_values")) > 1:
        yield "a base value for each of two classes that have one score"
    if _is_binary(node) and node.attr_string("post_transform", "NONE") == "PROBIT":
        yield "the post_transform 'PROBIT' of one score for two classes"
    tree_tables.read(node, "class", max(len(_labels(node)), 1))


def _is_binary(node: Node) -> bool:
    """True where there is one score for two classes, that of the second one."""
    return len(_labels(node)) == 2 and set(node.attr_ints("class_ids") or ()) == {0}


@operator(
    "TreeEnsembleClassifier",
    domain="ai.onnx.ml",
    since=1,
    dtypes=dtype.ML,
    check=_check,
)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The class with the largest score; one score for two classes is that of the second."""
    x, labels = inputs[0], _labels(node)
    assert x is not None
    transform = node.attr_string("post_transform", "NONE")
    trees = tree_tables.read(node, "class", len(labels))
    base = tree_tables.numbers(node, "base_values")
    if not _is_binary(node):
        sums = with_base(node, b, trees.scores(node, b, x, "SUM"), base)
        best = scores.best_label(b, node.label, sums, labels)
        return [best, scores.transformed(b, sums, transform)]
    trees = dataclasses.replace(trees, targets=1)
    sums = with_base(node, b, trees.scores(node, b, x, "SUM"), base)
    positive = min(w for votes in trees.votes for _, w in votes) >= 0
    both, second = scores.of_two_classes(b, sums, positive, transform)
    return [_label(node, b, second, labels), both]


def _label(node: Node, b: Builder, second: Tensor, labels: Sequence[int]) -> Tensor:
    table = b.constant(f"{node.label}.labels", dtype.INT64, np.array(labels, np.int64))

    def element(index: Index) -> Expr:
        place = Call(dtype.INT64, "static_cast<int64_t>({0})", (second.load(index),))
        return table.load((Indirect(place),))

    return b.lazy(dtype.INT64, second.shape, [second], element)
