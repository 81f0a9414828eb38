"""NonMaxSuppression: https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html"""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal, Select, compare
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Reshape, Strided, Tensor
from sofie.ops import arg_reduction
from sofie.ops import control_flow as flow
from sofie.ops.compaction import at, positions
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

_MOST, _OVERLAP, _SCORE = 2, 3, 4
# A box's edges, from corners in any order or from its centre: low and high.
_CORNERS = ("sofie::kernels::Minimum({0}, {1})", "sofie::kernels::Maximum({0}, {1})")
_CENTRE = ("{0} - {1} / 2", "{0} + {1} / 2")
_LOWEST = float(np.finfo(np.float32).min)


def _check(node: Node) -> Iterator[str]:
    if node.has(_MOST) and node.known(_MOST) is None:
        yield "a max_output_boxes_per_class that is not one number"


@shape_rule("NonMaxSuppression", types=(onnx_ir.DataType.INT64,))
def _shapes(node: Node) -> list[dims.Shape]:
    return [(node.counted(), sympy.Integer(3))]


@operator("NonMaxSuppression", since=10, dtypes={dtype.FLOAT32}, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """In each step every class takes the best box it has left, and drops what overlaps it."""
    boxes, scores, _, overlap, score_bound = (*inputs, *[None] * 3)[:5]
    assert boxes is not None and scores is not None
    batch, classes, count = scores.shape
    b.require_equal(boxes.shape[0], batch, "batches of boxes and scores")
    b.require_equal(boxes.shape[1], count, "numbers of boxes and scores")
    b.require_equal(boxes.shape[2], sympy.Integer(4), "a box's numbers and 4")
    known = node.known(_MOST) if node.has(_MOST) else (dims.ZERO,)
    assert known is not None
    most = dims.largest(dims.smallest(known[0], count), dims.ZERO)

    def is_candidate(index: Index) -> Expr:
        if score_bound is None:
            return Literal(dtype.BOOL, True)
        bound = Reshape(score_bound, ()).load(())
        return Call(dtype.BOOL, "{0} > {1}", (scores.load(index), bound))

    inputs_read = [scores, *([] if score_bound is None else [score_bound])]
    candidates = b.lazy(dtype.BOOL, scores.shape, inputs_read, is_candidate)
    left = flow.Carried(b, candidates, scores.shape)
    chosen = b.output(dtype.INT64, (batch, classes, most))
    edges = _CENTRE if node.attr_int("center_point_box", 0) else _CORNERS
    with b.repeat(most) as step:
        before = left.before(step)
        best = _best(b, scores, before)

        def stays(index: Index, before: Tensor = before, best: Tensor = best) -> Expr:
            item, _, place = index
            winner = at(best, *index[:2])
            overlaps = _overlap(boxes, (item, winner), (item, place), edges)
            bound: Expr = Literal(dtype.FLOAT32, 0)
            if overlap is not None:
                bound = Reshape(overlap, ()).load(())
            other = Call(
                dtype.BOOL,
                "{0} && !({1} > {2})",
                (compare("!=", place, winner), overlaps, bound),
            )
            no = Literal(dtype.BOOL, False)
            return Select(dtype.BOOL, before.load(index), other, no)

        def taken(index: Index, before: Tensor = before, best: Tensor = best) -> Expr:
            winner = at(best, *index)
            there = before.load((*index, winner))
            place = IndexExpr(dtype.INT64, winner)
            return Select(dtype.INT64, there, place, Literal(dtype.INT64, -1))

        read = [boxes, before, best, *([] if overlap is None else [overlap])]
        rest = b.lazy(dtype.BOOL, scores.shape, read, stays)
        found = b.lazy(dtype.INT64, (batch, classes), [before, best], taken)
        flow.store(b, [(rest, left.after(step)), (found, flow.along(b, chosen, 2, step))])
    return [_listed(node, b, chosen)]


def _best(b: Builder, scores: Tensor, left: Tensor) -> Strided:
    """The box with the largest score of those that are left, the first of equal ones."""
    number = dtype.FLOAT32

    def element(outer: Index, inner: Index) -> Expr:
        # Below every score, and below NaN, there is what is no longer left.
        score = Call(
            number,
            "sofie::kernels::AtLeast({0}, {1})",
            (Literal(number, _LOWEST), scores.load((*outer, *inner))),
        )
        gone = Call(number, "-std::numeric_limits<float>::infinity()", ())
        return arg_reduction.value_at(
            Select(number, left.load((*outer, *inner)), score, gone), inner[0]
        )

    place = Reduction(
        b,
        scores.shape[:2],
        scores.shape[2:],
        Combine("ArgMax", number),
        element,
        lambda _: arg_reduction.place(),
        dtype.INT64,
        [scores, left],
    )
    return place.strided()


def _overlap(boxes: Tensor, first: Index, second: Index, edges: tuple[str, str]) -> Expr:
    """Intersection over union of two boxes; NaN for two without an area."""
    number = dtype.FLOAT32

    def call(template: str, *arguments: Expr) -> Expr:
        return Call(number, template, arguments)

    def spans(box: Index) -> list[tuple[Expr, Expr]]:
        """Low and high along both axes."""
        # Corners are (y1, x1, y2, x2), boxes with a centre (x, y, width, height).
        parts = [boxes.load((*box, sympy.Integer(i))) for i in range(4)]
        return [
            (call(edges[0], *pair), call(edges[1], *pair))
            for pair in zip(parts[:2], parts[2:], strict=True)
        ]

    def area(sides: Sequence[tuple[Expr, Expr]]) -> Expr:
        (low_a, high_a), (low_b, high_b) = sides
        return call("({0} - {1}) * ({2} - {3})", high_a, low_a, high_b, low_b)

    a, c = spans(first), spans(second)
    common = [
        call(
            "sofie::kernels::Relu({0} - {1})",
            call("sofie::kernels::Minimum({0}, {1})", high, other_high),
            call("sofie::kernels::Maximum({0}, {1})", low, other_low),
        )
        for (low, high), (other_low, other_high) in zip(a, c, strict=True)
    ]
    shared = call("{0} * {1}", *common)
    return call("{0} / ({1} + {2} - {0})", shared, area(a), area(c))


def _listed(node: Node, b: Builder, chosen: Strided) -> Tensor:
    """Rows of batch, class and box for every place in ``chosen`` that has a box."""
    _, classes, most = chosen.shape
    flat = Reshape(chosen, (dims.product(chosen.shape),))

    def mark(index: Index) -> Expr:
        return Call(dtype.UINT8, "static_cast<uint8_t>({0} >= 0)", (flat.load(index),))

    found = positions(node, b, b.lazy(dtype.UINT8, flat.shape, [flat], mark))

    def element(index: Index) -> Expr:
        place = at(found, index[0])
        row = dims.FloorDiv(place, most)
        item, kind = dims.FloorDiv(row, classes), dims.FloorMod(row, classes)
        rest = Select(
            dtype.INT64,
            compare("==", index[1], dims.ONE),
            IndexExpr(dtype.INT64, kind),
            flat.load((place,)),
        )
        first = compare("==", index[1], dims.ZERO)
        return Select(dtype.INT64, first, IndexExpr(dtype.INT64, item), rest)

    return b.lazy(dtype.INT64, node.out_shape(), [found, flat], element)
