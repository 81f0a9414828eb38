"""Unique: https://onnx.ai/onnx/operators/onnx__Unique.html"""

from collections.abc import Sequence

import onnx_ir

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal, Select, compare, fold
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Permute, Reduction, Reshape, Strided, Tensor
from sofie.ops import control_flow as flow
from sofie.ops.compaction import at, positions
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


def _axis(node: Node) -> int | None:
    return node.axis() if "axis" in node.raw.attributes else None


@shape_rule("Unique", since=11, types=(0, onnx_ir.DataType.INT64))
def _shapes(node: Node) -> list[dims.Shape | None]:
    count, shape, axis = node.counted(), node.shape(0), _axis(node)
    if axis is None:
        return [(count,), (count,), (dims.product(shape),), (count,)]
    slices = (*shape[:axis], count, *shape[axis + 1 :])
    return [slices, (count,), (shape[axis],), (count,)]


@operator("Unique", since=11, dtypes=dtype.NUMBERS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Sorted, the rows that differ from the one before are the first of a run of equal ones."""
    x, axis = inputs[0], _axis(node)
    assert x is not None
    size = dims.product(x.shape) if axis is None else x.shape[axis]
    others = [] if axis is None else [a for a in range(x.rank) if a != axis]
    columns = dims.product([x.shape[a] for a in others])
    first = x if axis is None else Permute(x, (axis, *others))
    rows = b.in_memory(Reshape(first, (size, columns)))
    origin = _sorted_rows(b, rows)

    def mark(index: Index) -> Expr:
        (i,) = index

        def differs(column: dims.Expr) -> Expr:
            pair = (at(origin, i), column), (at(origin, i - 1), column)
            return Call(dtype.BOOL, "{0} != {1}", tuple(map(rows.load, pair)))

        if columns == 1:
            found = differs(dims.ZERO)
        else:
            no = Literal(dtype.BOOL, False)
            found = fold("{0} || {1}", no, IndexExpr(dtype.INT64, columns), differs)
        byte = Call(dtype.UINT8, "static_cast<uint8_t>({0})", (found,))
        return Select(dtype.UINT8, compare("==", i, dims.ZERO), Literal(dtype.UINT8, 1), byte)

    runs = positions(node, b, b.lazy(dtype.UINT8, (size,), [rows, origin], mark))
    count = node.counted()
    shape = (count,)

    # The run that comes first, second, ... in the outputs.
    order = _sort(b, b.lazy(dtype.INT64, shape, [origin, runs], lambda i: _of(origin, runs, i[0])))
    if node.attr_int("sorted", 1):
        order = b.lazy(dtype.INT64, shape, (), lambda i: IndexExpr(dtype.INT64, i[0]))

    def start(place: dims.Expr) -> dims.Expr:
        return at(origin, at(runs, at(order, place)))

    def value(index: Index) -> Expr:
        if axis is None:
            return rows.load((start(index[0]), dims.ZERO))
        return x.load((*index[:axis], start(index[axis]), *index[axis + 1 :]))

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
        b.lazy(x.dtype, node.out_shape(), [x, rows, origin, runs, order], value),
        b.lazy(
            dtype.INT64,
            shape,
            [origin, runs, order],
            lambda i: IndexExpr(dtype.INT64, start(i[0])),
        ),
        inverse,
        b.lazy(dtype.INT64, shape, [runs, order], length),
    ]


def _sorted_rows(b: Builder, rows: Strided) -> Tensor:
    """Where the rows, in ascending order, lie: sorted by the last column first, then by others."""
    size, columns = rows.shape
    if columns == 1:
        return _sort(b, Reshape(rows, (size,)))
    unsorted = b.lazy(dtype.INT64, (size,), (), lambda i: IndexExpr(dtype.INT64, i[0]))
    order = flow.Carried(b, unsorted, (size,))
    with b.repeat(columns) as step:
        before = order.before(step)

        def key(index: Index, before: Tensor = before) -> Expr:
            return rows.load((at(before, index[0]), columns - 1 - step))

        # Of equal keys the sort takes those first that came first.
        places = _sort(b, b.lazy(rows.dtype, (size,), [rows, before], key))
        sorted_now = b.lazy(
            dtype.INT64, (size,), [before, places], lambda i: _of(before, places, i[0])
        )
        flow.store(b, [(sorted_now, order.after(step))])
    return order.before(columns)


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
