"""Turns products with constant weights into dense layers, which compute their rows on the way.

    relu(a bᵀ + c), a computed element by element: one launch instead of two, and a is never stored.

Dense layers also take the products before them along, so that a small network is one launch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import sympy

from sofie.ir import dims, expr
from sofie.ir.dtype import FLOAT32
from sofie.ir.program import (
    BufferKind,
    Combine,
    DenseLayer,
    DenseReduce,
    Epilogue,
    Gemm,
    Loop,
    Pointwise,
    Program,
    Region,
    Step,
    Store,
    is_among,
)

# A tile of long rows leaves shared memory for few of them: that is worth it where the rows need no
# launch of their own, in Hopper's kernel, whose outputs come in steps of 64 (``split_weights``). On
# an H200, 112,640 rows of 448 times 384 columns take 0.65 ms there, rows included, and 0.99 ms in
# cuBLASLt after a launch for them; one row of 384 times 256 takes 9.5 µs there, 4.6 µs in cuBLASLt.
_MOST_INPUTS = 256
_MOST_INPUTS_OF_HOPPER = 512
_OUTPUT_STEP_OF_HOPPER = 64
_MOST_OUTPUTS = 1024
_MOST_OUTPUTS_OF_SEVERAL = 256
_OUTPUT_STEP = 8
# One block computes all layers of its rows: with few rows, larger weights are faster spread over
# many. Measured on an H200, one row: 384-256-8 takes 21 µs in one launch, 16 µs in two.
_MOST_WEIGHTS_OF_SEVERAL = 16384
_MOST_LAYERS = 4

_ROW, _CHANNEL, _OUTPUT = (sympy.Symbol(f"r{i}", integer=True, nonnegative=True) for i in range(3))
_POINT = sympy.Symbol("i0", integer=True, nonnegative=True)


def dense_products(program: Program) -> Program:
    """The program with fewer launches."""
    steps: list[Step] = list(program.steps)
    for step in program.steps:
        if isinstance(step, Gemm) and _fits(step):
            position = steps.index(step)
            dense = _dense(step)
            producer = _producer(steps, position)
            joined = None if producer is None else _join(producer, step, dense)
            if producer is not None and joined is not None:
                steps[position] = joined
                steps.remove(producer)
            elif step.k <= _MOST_INPUTS:
                steps[position] = dense
    return dataclasses.replace(program, steps=tuple(steps))


def _fits(product: Gemm) -> bool:
    """True for one matrix times constant weights [n, k] of a size that the kernels take."""
    weight = product.b.region
    return (
        product.dtype is FLOAT32
        and product.batch == 1
        and product.alpha == 1.0
        and product.beta == 0.0
        and product.k.is_Integer
        and product.n.is_Integer
        and 1 <= int(product.k) <= _most_inputs(int(product.n))
        and int(product.n) % _OUTPUT_STEP == 0
        and int(product.n) <= _MOST_OUTPUTS
        and not product.a.transposed
        and product.b.transposed
        and product.b.ld == product.k
        and weight.offset == 0
        and weight.buffer.kind is BufferKind.WEIGHT
        and (product.bias is None or product.bias.buffer.kind is BufferKind.WEIGHT)
    )


def _most_inputs(outputs: int) -> int:
    return _MOST_INPUTS if outputs % _OUTPUT_STEP_OF_HOPPER else _MOST_INPUTS_OF_HOPPER


def _dense(product: Gemm) -> DenseReduce:
    """The product as a dense layer over rows that are in memory."""
    a, d = product.a, product.d
    load = expr.Load(product.dtype, a.region.buffer, a.region.offset + _POINT * a.ld + _CHANNEL)
    return DenseReduce(
        nodes=product.nodes,
        kept=(Loop(_POINT, product.m),),
        row=Loop(_ROW, dims.ONE),
        channels=(Loop(_CHANNEL, product.k),),
        load=load,
        layers=(_layer(product),),
        combine=Combine("Sum", product.dtype),
        store=Store(
            d.region.buffer,
            d.region.offset + _POINT * d.ld + _OUTPUT,
            expr.Accumulator(product.dtype),
        ),
        output=Loop(_OUTPUT, product.n),
        precision=product.precision,
    )


def _layer(product: Gemm) -> DenseLayer:
    return DenseLayer(
        Region(product.b.region.buffer),
        product.bias,
        product.epilogue is Epilogue.RELU,
        int(product.n),
    )


def _producer(steps: Sequence[Step], position: int) -> Step | None:
    """The step that computes the left operand for this product alone."""
    product = steps[position]
    assert isinstance(product, Gemm)
    buffer = product.a.region.buffer
    if (
        buffer.kind is not BufferKind.TEMPORARY
        or product.a.region.offset != 0
        or product.a.ld != product.k
        or not dims.same(buffer.elements, product.m * product.k)
    ):
        return None
    readers = [s for s in steps if s.reads_from(buffer)]
    writers = [s for s in steps if is_among(buffer, s.writes())]
    if len(readers) != 1 or len(writers) != 1:
        return None
    # What the rows are computed from must still be there.
    between = steps[steps.index(writers[0]) + 1 : position]
    stays = not any(writers[0].reads_from(b) for step in between for b in step.writes())
    return writers[0] if stays else None


def _join(producer: Step, product: Gemm, dense: DenseReduce) -> DenseReduce | None:
    """The product with what computes its rows; None where they do not go together."""
    nodes = producer.nodes + tuple(n for n in product.nodes if n not in producer.nodes)
    if isinstance(producer, Pointwise) and len(producer.stores) == 1:
        if not producer.loops or not _is_packed(producer.loops, producer.store):
            return None
        nest = _rows_and_channels(producer.loops, product.k)
        if nest is None:
            return None
        kept, channels, change = nest
        load = expr.substitute(
            producer.store.value, lambda _: None, lambda index: index.xreplace(change)
        )
        place = {_POINT: _packed(kept)}
        store = Store(dense.store.buffer, dense.store.offset.xreplace(place), dense.store.value)
        return dataclasses.replace(
            dense, nodes=nodes, kept=kept, channels=channels, load=load, store=store
        )
    if (
        isinstance(producer, DenseReduce)
        and producer.row.extent == 1
        and isinstance(producer.store.value, expr.Accumulator)
        and len(producer.layers) < _MOST_LAYERS
        and max(producer.layers[-1].outputs, int(product.n)) <= _MOST_OUTPUTS_OF_SEVERAL
        and _weights(producer) + int(product.n * product.k) <= _MOST_WEIGHTS_OF_SEVERAL
        and producer.precision is product.precision
    ):
        if not _is_packed([*producer.kept, producer.output], producer.store):
            return None
        store = Store(
            dense.store.buffer,
            dense.store.offset.xreplace({_POINT: _packed(producer.kept)}),
            dense.store.value,
        )
        return dataclasses.replace(
            producer,
            nodes=nodes,
            layers=(*producer.layers, *dense.layers),
            store=store,
            output=dense.output,
        )
    return None


def _rows_and_channels(
    loops: Sequence[Loop], width: dims.Expr
) -> tuple[tuple[Loop, ...], tuple[Loop, ...], dict[dims.Expr, dims.Expr]] | None:
    """Loops over packed rows of ``width`` channels as those over rows and those over channels.

    With what takes the place of their variables. A row's channels may be several loops, such as a
    window's axes and its channels. Or they became one with the loops around them. None where rows
    end inside of a loop.
    """
    first = len(loops)
    inner = dims.ONE
    while first > 0 and (first == len(loops) or inner != width):
        if not loops[first - 1].extent.is_Integer:
            break
        first -= 1
        inner = inner * loops[first].extent
    if inner == width:
        return tuple(loops[:first]), tuple(loops[first:]), {}
    *kept, last = loops
    rows = sympy.expand(last.extent / width)
    if any(not term.as_coeff_Mul()[0].is_Integer for term in sympy.Add.make_args(rows)):
        return None
    change = {last.var: last.var * width + _CHANNEL}
    return (*kept, Loop(last.var, rows)), (Loop(_CHANNEL, width),), change


def _is_packed(loops: Sequence[Loop], store: Store) -> bool:
    return bool(sympy.expand(_packed(loops) - store.offset) == 0)


def _weights(step: DenseReduce) -> int:
    """Elements of all layers' weights."""
    widths = [step.width, *(layer.outputs for layer in step.layers)]
    return sum(a * b for a, b in zip(widths, widths[1:], strict=False))


def _packed(loops: Sequence[Loop]) -> dims.Expr:
    """The place of a point in row-major order."""
    place = dims.ZERO
    for loop in loops:
        place = place * loop.extent + loop.var
    return sympy.expand(place)
