"""What becomes of the scores of ai.onnx.ml's models: post transforms, and labels of classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, FLOAT32, INT64, DType
from sofie.ir.expr import Accumulator, Call, Expr, Indirect, Literal, Select, compare
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Tensor
from sofie.ops import arg_reduction, elementwise

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
# Scores nearer to 0 than this take no part in SOFTMAX_ZERO.
_NEARLY_ZERO = 1e-7


def check_transform(node: Node) -> Iterator[str]:
    """Reasons against the post transform."""
    transform = node.attr_string("post_transform", "NONE")
    if transform not in TRANSFORMS:
        yield f"the post_transform {transform!r}"


def check_labels(node: Node, ints: str, strings: str) -> Iterator[str]:
    """Reasons against the labels, given the names of their attributes."""
    if node.attr_strings(strings):
        yield "labels that are strings"
    elif len(node.attr_ints(ints) or ()) < 2:
        yield "fewer than two class labels"


def label_and_score_shapes(node: Node, classes: int) -> list[dims.Shape]:
    """Of a classifier: a label for each row, and a score for each row and class."""
    rows = node.shape(0)[0]
    return [(rows,), (rows, sympy.Integer(classes))]


def transformed(b: Builder, scores: Tensor, transform: str, dtype: DType = FLOAT32) -> Tensor:
    """The post transform of scores [rows, targets]."""
    number = scores.dtype
    functions = {"LOGISTIC": "Sigmoid", "PROBIT": "Probit"}
    if transform in functions:
        return elementwise.call(b, dtype, f"sofie::kernels::{functions[transform]}({{0}})", scores)
    if transform == "SOFTMAX":

        def finish(value: Expr, _: Index) -> Expr:
            parts = (value, Accumulator(number, "max"), Accumulator(number, "sum"))
            return Call(dtype, "sofie::kernels::Exp({0} - {1}) / {2}", parts)

        combine = Combine("MaxSumExp", number)
        return b.normalize(scores.shape, [1], combine, scores, finish, dtype)
    if transform == "SOFTMAX_ZERO":
        return _softmax_zero(b, scores, dtype)
    return elementwise.call(b, dtype, "{0}", scores)


def _softmax_zero(b: Builder, scores: Tensor, dtype: DType) -> Tensor:
    """Softmax in which a score of 0 stays 0."""
    number = scores.dtype
    largest = Reduction(
        b,
        scores.shape[:1],
        scores.shape[1:],
        Combine("Max", number),
        lambda outer, inner: scores.load((*outer, *inner)),
        lambda value: value,
        number,
        [scores],
    )
    bound = Literal(number, _NEARLY_ZERO)

    def share(index: Index) -> Expr:
        parts = (scores.load(index), largest.load(index[:1]), bound)
        return Call(number, "sofie::kernels::ExpUnlessZero({0}, {1}, {2})", parts)

    shares = b.lazy(number, scores.shape, [scores, largest], share)

    def finish(value: Expr, _: Index) -> Expr:
        parts = (value, Accumulator(number), Literal(number, 0.5))
        return Call(dtype, "sofie::kernels::DivideOr({0}, {1}, {2})", parts)

    return b.normalize(scores.shape, [1], Combine("Sum", number), shares, finish, dtype)


def best_label(b: Builder, label: str, scores: Tensor, labels: Sequence[int]) -> Tensor:
    """The label of every row's largest score, the first of equal ones."""
    places = Reduction(
        b,
        scores.shape[:1],
        scores.shape[1:],
        Combine("ArgMax", scores.dtype),
        lambda outer, inner: arg_reduction.value_at(scores.load((*outer, *inner)), inner[0]),
        lambda _: arg_reduction.place(),
        INT64,
        [scores],
    )
    if list(labels) == list(range(len(labels))):
        return places
    table = b.constant(f"{label}.labels", INT64, np.array(labels, np.int64))

    def element(index: Index) -> Expr:
        return table.load((Indirect(places.load(index)),))

    return b.lazy(INT64, places.shape, [places], element)


def of_two_classes(
    b: Builder, score: Tensor, positive: bool, transform: str
) -> tuple[Tensor, Tensor]:
    """Scores [rows, 2] and whether the second class is meant, from one score a row.

    As ONNX Runtime has it: weights that are all positive are votes for a probability, others for
    a margin.

    Args:
      b: where kernels are launched.
      score: [rows, 1].
      positive: whether all weights are.
      transform: the post transform.
    """
    number = score.dtype
    bound = Literal(number, 0.5 if positive else 0)

    def chosen(index: Index) -> Expr:
        parts = (score.load((*index, sympy.Integer(0))), bound)
        return Call(BOOL, "{0} > {1}", parts)

    shape = (score.shape[0], sympy.Integer(2))
    logistic = transform == "LOGISTIC"
    other = "1 - {0}" if positive and not logistic else "-{0}"
    template = "sofie::kernels::Sigmoid({0})" if logistic else "{0}"

    def element(index: Index) -> Expr:
        value = score.load((index[0], sympy.Integer(0)))
        first = Call(FLOAT32, template, (Call(number, other, (value,)),))
        second = Call(FLOAT32, template, (value,))
        return Select(FLOAT32, compare("==", index[1], sympy.Integer(0)), first, second)

    return b.lazy(FLOAT32, shape, [score], element), b.lazy(BOOL, shape[:1], [score], chosen)
