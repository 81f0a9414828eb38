"""SVMClassifier: https://onnx.ai/onnx/operators/onnx_aionnxml_SVMClassifier.html

There is a score for each pair of classes, and the class that wins most pairs is the label.
Probabilities of classes from those of pairs: method 2 of T.-F. Wu, C.-J. Lin, R. C. Weng,
Probability estimates for multi-class classification by pairwise coupling, JMLR 5 (2004) 975,
stopped where LIBSVM and ONNX Runtime stop.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import onnx_ir
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Indirect, Literal, Select, compare
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Broadcast, Index, Reduction, Reshape, Strided, Tensor
from sofie.ops import control_flow as flow
from sofie.ops import elementwise, linear_scores, scores, support_vectors
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

_NUMBER = dtype.FLOAT32
_ROUNDS = 100
# Of the error at which a round is the last, times the number of classes.
_GOOD_ENOUGH = 0.005
_LEAST_PROBABILITY = 1e-7


def _labels(node: Node) -> tuple[int, ...]:
    return node.attr_ints("classlabels_ints") or ()


def _per_class(node: Node) -> tuple[int, ...]:
    counts = node.attr_ints("vectors_per_class") or ()
    return counts if sum(counts) else ()


def _pairs(classes: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(classes), 2))


def _has_probabilities(node: Node) -> bool:
    return bool(_per_class(node)) and support_vectors.floats(node, "prob_a").size > 0


@shape_rule(
    "SVMClassifier",
    domain="ai.onnx.ml",
    types=(onnx_ir.DataType.INT64, onnx_ir.DataType.FLOAT),
)
def _shapes(node: Node) -> list[dims.Shape]:
    classes = len(_labels(node))
    pairwise = _per_class(node) and not _has_probabilities(node)
    count = len(_pairs(classes)) if pairwise and classes > 2 else classes
    return scores.label_and_score_shapes(node, count)


def _check(node: Node) -> Iterator[str]:
    yield from scores.check_labels(node, "classlabels_ints", "classlabels_strings")
    yield from scores.check_transform(node)
    classes, per_class = len(_labels(node)), _per_class(node)
    pairs, vectors = len(_pairs(classes)), sum(per_class)
    yield from support_vectors.check(node, vectors)
    if min(per_class, default=0) < 0 or len(per_class) not in (0, classes):
        yield "vectors_per_class that are not one number for each class"
    features = node.shape(0)[-1]
    wanted = vectors * (classes - 1) if vectors else classes * features
    sizes = {"coefficients": wanted, "rho": pairs if vectors else 1}
    if _has_probabilities(node):
        sizes |= {"prob_a": pairs, "prob_b": pairs}
    for name, size in sizes.items():
        if support_vectors.floats(node, name).size != size:
            yield f"{support_vectors.floats(node, name).size} numbers in {name} instead of {size}"
    transform = node.attr_string("post_transform", "NONE")
    if classes == 2 and not vectors:
        yield "two classes without support vectors, for which runtimes give different labels"
    elif classes == 2 and not _has_probabilities(node) and transform != "NONE":
        yield f"the post_transform {transform!r} of one score for two classes"


@operator("SVMClassifier", domain="ai.onnx.ml", since=1, dtypes=dtype.ML, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Scores of pairs and their votes, or scores of classes where there are no support vectors."""
    (x,) = elementwise.given(inputs)
    x = linear_scores.as_number(b, x, _NUMBER)
    labels, transform = _labels(node), node.attr_string("post_transform", "NONE")
    if not _per_class(node):
        coefficients = support_vectors.floats(node, "coefficients").reshape(len(labels), -1)
        rho = np.repeat(support_vectors.floats(node, "rho"), len(labels))
        sums = linear_scores.product(b, node.label, x, coefficients, rho)
        best = scores.best_label(b, node.label, sums, labels)
        return [best, scores.transformed(b, sums, transform)]
    of_pairs = _scores_of_pairs(node, b, x)
    best = scores.best_label(b, node.label, _votes(node, b, of_pairs), labels)
    if _has_probabilities(node):
        result = _probabilities(node, b, of_pairs)
    elif len(labels) == 2:
        result = _of_both(b, of_pairs)
    else:
        result = of_pairs
    return [best, scores.transformed(b, result, transform)]


def _scores_of_pairs(node: Node, b: Builder, x: Tensor) -> Tensor:
    """[rows, pairs]; above 0 where the first class of the pair wins."""
    per_class = _per_class(node)
    classes, vectors = len(per_class), sum(per_class)
    coefficients = support_vectors.floats(node, "coefficients").reshape(classes - 1, vectors)
    ends = np.cumsum(per_class)
    spans = [slice(end - count, end) for end, count in zip(ends, per_class, strict=True)]
    # Row j of the coefficients is about class j, or about class j + 1 for the classes after it.
    weights = np.zeros((len(_pairs(classes)), vectors), np.float32)
    for row, (first, second) in zip(weights, _pairs(classes), strict=True):
        row[spans[first]] = coefficients[second - 1, spans[first]]
        row[spans[second]] = coefficients[first, spans[second]]
    terms = support_vectors.similarities(node, b, x, vectors)
    rho = support_vectors.floats(node, "rho")
    result = linear_scores.product(b, node.label, terms, weights, rho)
    result.share(1)
    return result


def _votes(node: Node, b: Builder, of_pairs: Tensor) -> Tensor:
    """How many pairs each class wins, [rows, classes]."""
    classes = len(_labels(node))
    pairs = np.array(_pairs(classes), np.int64)
    table = b.constant(f"{node.label}.pairs", dtype.INT64, pairs)

    def element(outer: Index, inner: Index) -> Expr:
        first, second = (table.load((*inner, sympy.Integer(side))) for side in (0, 1))
        won = Call(dtype.BOOL, "{0} > 0", (of_pairs.load((outer[0], *inner)),))
        winner = Indirect(Select(dtype.INT64, won, first, second))
        mine = compare("==", outer[1], winner)
        return Call(_NUMBER, "static_cast<float>({0})", (mine,))

    return Reduction(
        b,
        (of_pairs.shape[0], sympy.Integer(classes)),
        of_pairs.shape[1:],
        Combine("Sum", _NUMBER),
        element,
        lambda total: total,
        _NUMBER,
        [of_pairs],
    )


def _of_both(b: Builder, of_pairs: Tensor) -> Tensor:
    """The score of the only pair, negative and as it is."""

    def element(index: Index) -> Expr:
        score = of_pairs.load((index[0], dims.ZERO))
        first = compare("==", index[1], dims.ZERO)
        return Select(_NUMBER, first, Call(_NUMBER, "-{0}", (score,)), score)

    return b.lazy(_NUMBER, (of_pairs.shape[0], sympy.Integer(2)), [of_pairs], element)


def _probabilities(node: Node, b: Builder, of_pairs: Tensor) -> Tensor:
    """The classes' probabilities, [rows, classes].

    They add up to 1 and minimise ``p @ Q @ p``. A round improves one after the other, and keeps
    ``Q @ p`` and ``p @ Q @ p`` up to date.
    """
    rows, classes = of_pairs.shape[0], sympy.Integer(len(_labels(node)))
    shape = (rows, classes)
    matrix = b.packed(_coupling(node, b, of_pairs))
    equal = b.lazy(_NUMBER, shape, (), lambda _: Literal(_NUMBER, 1 / int(classes)))
    # The last one is the same for all classes of a row.
    values, products, totals = (flow.Carried(b, equal, shape) for _ in range(3))
    bound = Literal(_NUMBER, _GOOD_ENOUGH / int(classes))
    with b.repeat(sympy.Integer(_ROUNDS)) as round_:
        first = round_ * classes
        p = values.before(first)
        product = _sum(b, shape, classes, lambda i, j: [matrix.load((*i, *j)), p.load((i[0], *j))])
        total = _sum(b, (rows,), classes, lambda i, j: [p.load((*i, *j)), product.load((*i, *j))])
        worst = _largest_error(b, product, total)
        spread = Broadcast(Reshape(total, (rows, dims.ONE)), shape)
        flow.store(b, [(product, products.before(first)), (spread, totals.before(first))])
        with b.repeat(classes) as turn:
            at = first + turn
            flow.store(b, _turn(b, matrix, (values, products, totals), at, turn, worst, bound))
    return values.before(_ROUNDS * classes)


def _sum(
    b: Builder,
    shape: dims.Shape,
    terms: dims.Expr,
    factors: Callable[[Index, Index], Sequence[Expr]],
) -> Strided:
    """Sums of products of two factors."""
    return Reduction(
        b,
        shape,
        [terms],
        Combine("Sum", _NUMBER),
        lambda outer, inner: Call(_NUMBER, "{0} * {1}", tuple(factors(outer, inner))),
        lambda value: value,
        _NUMBER,
        (),
    ).strided()


def _largest_error(b: Builder, product: Tensor, total: Tensor) -> Strided:
    """By how much the elements of ``Q @ p``, which are equal in the end, differ from their mean."""
    return Reduction(
        b,
        total.shape,
        product.shape[1:],
        Combine("Max", _NUMBER),
        lambda outer, inner: Call(
            _NUMBER,
            "sofie::kernels::Abs({0} - {1})",
            (product.load((*outer, *inner)), total.load(outer)),
        ),
        lambda value: value,
        _NUMBER,
        [product, total],
    ).strided()


def _turn(
    b: Builder,
    matrix: Tensor,
    states: Sequence[flow.Carried],
    at: dims.Expr,
    turn: dims.Expr,
    worst: Tensor,
    bound: Expr,
) -> list[tuple[Tensor, Strided]]:
    """Improves the probability of one class in the rows that are not good enough."""
    p, product, total = (state.before(at) for state in states)

    def change(index: Index) -> Expr:
        parts = (
            total.load(index),
            product.load((index[0], turn)),
            matrix.load((index[0], turn, turn)),
        )
        return Call(_NUMBER, "({0} - {1}) / {2}", parts)

    def improved(index: Index) -> Expr:
        step = change(index)
        mine = compare("==", index[1], turn)
        old = p.load(index)
        raised = Select(_NUMBER, mine, Call(_NUMBER, "{0} + {1}", (old, step)), old)
        new = Call(_NUMBER, "{0} / (1 + {1})", (raised, step))
        unfinished = Call(dtype.BOOL, "{0} >= {1}", (worst.load(index[:1]), bound))
        return Select(_NUMBER, unfinished, new, old)

    def new_product(index: Index) -> Expr:
        parts = product.load(index), change(index), matrix.load((index[0], turn, index[1]))
        return Call(_NUMBER, "({0} + {1} * {2}) / (1 + {1})", parts)

    def new_total(index: Index) -> Expr:
        diagonal = matrix.load((index[0], turn, turn))
        parts = total.load(index), change(index), diagonal, product.load((index[0], turn))
        template = "({0} + {1} * ({1} * {2} + 2 * {3})) / (1 + {1}) / (1 + {1})"
        return Call(_NUMBER, template, parts)

    elements = improved, new_product, new_total
    return [
        (b.lazy(_NUMBER, p.shape, [p, product, total, worst], element), state.after(at))
        for element, state in zip(elements, states, strict=True)
    ]


def _coupling(node: Node, b: Builder, of_pairs: Tensor) -> Tensor:
    """The matrix Q, [rows, classes, classes]."""
    count = len(_labels(node))
    classes = sympy.Integer(count)
    places = np.zeros((count, count), np.int64)
    for place, (first, second) in enumerate(_pairs(count)):
        places[first, second] = places[second, first] = place
    table = b.constant(f"{node.label}.places", dtype.INT64, places)
    slopes, offsets = (
        b.constant(f"{node.label}.{name}", _NUMBER, support_vectors.floats(node, name))
        for name in ("prob_a", "prob_b")
    )

    def wins(index: Index) -> Expr:
        """How probable the first class is where it is one of the two."""
        row, one, other = index
        pair = Indirect(table.load((one, other)))
        parts = of_pairs.load((row, pair)), slopes.load((pair,)), offsets.load((pair,))
        least, most = Literal(_NUMBER, _LEAST_PROBABILITY), Literal(_NUMBER, 1 - _LEAST_PROBABILITY)
        score = Call(_NUMBER, "1 - sofie::kernels::Sigmoid({0} * {1} + {2})", parts)
        first = Call(_NUMBER, "sofie::kernels::Clip({0}, {1}, {2})", (score, least, most))
        return Select(_NUMBER, compare("<", one, other), first, Call(_NUMBER, "1 - {0}", (first,)))

    shape = (of_pairs.shape[0], classes, classes)
    chances = b.packed(b.lazy(_NUMBER, shape, [of_pairs], wins))

    def square(outer: Index, inner: Index) -> Expr:
        value = chances.load((outer[0], *inner, outer[1]))
        nothing = compare("==", inner[0], outer[1])
        return Select(_NUMBER, nothing, Literal(_NUMBER, 0), Call(_NUMBER, "{0} * {0}", (value,)))

    squares = Reduction(
        b,
        shape[:2],
        [classes],
        Combine("Sum", _NUMBER),
        square,
        lambda total: total,
        _NUMBER,
        [chances],
    )

    def element(index: Index) -> Expr:
        row, i, j = index
        both = chances.load(index), chances.load((row, j, i))
        return Select(
            _NUMBER,
            compare("==", i, j),
            squares.load((row, i)),
            Call(_NUMBER, "-{0} * {1}", both),
        )

    return b.lazy(_NUMBER, shape, [squares, chances], element)
