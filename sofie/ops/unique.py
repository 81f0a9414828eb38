"""Unique: https://onnx.ai/onnx/operators/onnx__Unique.html"""

from collections.abc import Iterator, Sequence

import onnx_ir

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal, Select, compare
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Reshape, Tensor
from sofie.ops.compaction import at, positions
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if "axis" in node.raw.attributes and len(node.shape(0)) > 1:
        yield "an axis of a tensor of rank above 1"


@shape_rule("Unique", since=11, types=(0, onnx_ir.DataType.INT64))
def _shapes(node: Node) -> list[dims.Shape | None]:
    count = node.counted()
    return [(count,), (count,), (dims.product(node.shape(0)),), (count,)]


@operator("Unique", since=11, dtypes=dtype.NUMBERS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Sorted, the elements that differ from the one before are the first of a run of equal ones."""
    x = inputs[0]
    assert x is not None
    size = dims.product(x.shape)
    flat = Reshape(x, (size,))
    ordered, origin = b.topk(flat, 0, size, False, True, (True, True))
    assert ordered is not None and origin is not None

    def mark(index: Index) -> Expr:
        (i,) = index
        before = ordered.load((i - 1,))
        differs = Call(dtype.BOOL, "{0} != {1}", (ordered.load((i,)), before))
        byte = Call(dtype.UINT8, "static_cast<uint8_t>({0})", (differs,))
        return Select(dtype.UINT8, compare("==", i, dims.ZERO), Literal(dtype.UINT8, 1), byte)

    runs = positions(node, b, b.lazy(dtype.UINT8, (size,), [ordered], mark))
    count = node.counted()
    shape = (count,)

    # The run that comes first, second, ... in the outputs.
    order = _sort(b, b.lazy(dtype.INT64, shape, [origin, runs], lambda i: _of(origin, runs, i[0])))
    if node.attr_int("sorted", 1):
        order = b.lazy(dtype.INT64, shape, (), lambda i: IndexExpr(dtype.INT64, i[0]))

    def run(index: Index) -> dims.Expr:
        return at(runs, at(order, index[0]))

    def length(index: Index) -> Expr:
        here = at(order, index[0])
        last = compare("==", here + 1, count)
        end = Select(dtype.INT64, last, IndexExpr(dtype.INT64, size), runs.load((here + 1,)))
        return Call(dtype.INT64, "{0} - {1}", (end, runs.load((here,))))

    inverse = None
    if node.is_used(2):
        place = _sort(b, origin)
        rank = _sort(b, order)
        inverse = _labels(b, runs, place, rank, size, count)
    return [
        b.lazy(x.dtype, shape, [ordered, runs, order], lambda i: ordered.load((run(i),))),
        b.lazy(dtype.INT64, shape, [origin, runs, order], lambda i: origin.load((run(i),))),
        inverse,
        b.lazy(dtype.INT64, shape, [runs, order], length),
    ]


def _of(values: Tensor, positions_: Tensor, index: dims.Expr) -> Expr:
    return values.load((at(positions_, index),))


def _sort(b: Builder, values: Tensor) -> Tensor:
    """Where each of the values, in ascending order, lies."""
    _, found = b.topk(values, 0, values.shape[0], False, True, (False, True))
    assert found is not None
    return found


def _labels(
    b: Builder, runs: Tensor, place: Tensor, rank: Tensor, size: dims.Expr, count: dims.Expr
) -> Tensor:
    """For each element of the input, which one of the outputs it is: its run's place among them."""

    def started(outer: Index, inner: Index) -> Expr:
        run, element = runs.load(inner), place.load(outer)
        one = Call(dtype.BOOL, "{0} <= {1}", (run, element))
        return Call(dtype.INT64, "static_cast<int64_t>({0})", (one,))

    run = Reduction(
        b,
        (size,),
        (count,),
        Combine("Sum", dtype.INT64),
        started,
        lambda value: Call(dtype.INT64, "{0} - 1", (value,)),
        dtype.INT64,
        [runs, place],
    )
    return b.lazy(dtype.INT64, (size,), [rank, run], lambda i: rank.load((at(run, i[0]),)))
