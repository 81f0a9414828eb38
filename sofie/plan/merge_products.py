"""Joins matrix products of one left operand: their weights side by side, one launch.

    [a b1ᵀ | a b2ᵀ] = a [b1; b2]ᵀ

EdgeConv's shortcut and the two halves of its first layer all multiply the same points. Small
products cost a launch more than their arithmetic, and large ones read their operand once less.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import sympy

from sofie.ir import dims, expr
from sofie.ir.program import (
    Buffer,
    BufferKind,
    DenseReduce,
    Gemm,
    Loop,
    Matrix,
    Pointwise,
    Program,
    Reduce,
    Region,
    Step,
    Store,
)


def merge_products(program: Program) -> Program:
    """The program with fewer products."""
    steps = list(program.steps)
    position = 0
    while position < len(steps):
        partner = _partner(steps, position)
        if partner is None:
            position += 1
        else:
            steps = _join(steps, position, partner)
    return dataclasses.replace(program, steps=tuple(steps))


def _partner(steps: list[Step], position: int) -> int | None:
    """A later product that can be computed with the one at ``position``."""
    first = steps[position]
    if not isinstance(first, Gemm) or not _is_simple(first):
        return None
    for later in range(position + 1, len(steps)):
        second = steps[later]
        if not isinstance(second, Gemm) or not _is_simple(second):
            continue
        same = (
            second.a.region.buffer is first.a.region.buffer
            and second.a.region.offset == first.a.region.offset
            and (second.a.ld, second.a.transposed) == (first.a.ld, first.a.transposed)
            and second.dtype is first.dtype
            and dims.same(second.m, first.m)
            and second.k == first.k
            and second.epilogue is first.epilogue
        )
        if same and all(_is_movable(steps, g) for g in (first, second)):
            return later
    return None


def _is_simple(product: Gemm) -> bool:
    """True for one matrix times constant weights [n, k], stored without gaps."""
    return (
        product.batch == 1
        and product.alpha == 1.0
        and product.beta == 0.0
        and product.n.is_Integer
        and product.k.is_Integer
        and product.b.transposed
        and product.b.region.offset == 0
        and product.b.region.buffer.data is not None
        and product.b.ld == product.k
        and product.d.region.offset == 0
        and product.d.ld == product.n
        and (product.bias is None or product.bias.buffer.data is not None)
    )


def _is_movable(steps: list[Step], product: Gemm) -> bool:
    """True where every reader of the result is an expression whose rows and columns are apart."""
    result = product.d.region.buffer
    if result.kind is not BufferKind.TEMPORARY:
        return False
    for step in steps:
        if all(buffer is not result for buffer in step.reads()):
            continue
        values = _values(step)
        if values is None:
            return False
        for value, loops in values:
            ranges = {loop.var: loop.extent for loop in loops}
            loads = [n for n in expr.walk(value) if isinstance(n, expr.Load)]
            for load in loads:
                if load.buffer is result and not _is_apart(load.offset, product.n, ranges):
                    return False
    return True


def _is_apart(
    offset: dims.Expr, width: dims.Expr, ranges: Mapping[sympy.Symbol, dims.Expr]
) -> bool:
    """True where an offset has a column that never leaves its row of ``width``."""
    return dims.stays_below(_split(offset, int(width))[1], width, ranges)


def _values(step: Step) -> list[tuple[expr.Expr, Sequence[Loop]]] | None:
    """The expressions of a step and their loops; None where it reads buffers in other ways."""
    if isinstance(step, Pointwise):
        return [(step.store.value, step.loops)]
    if isinstance(step, Reduce):
        every = (*step.kept, *step.reduced)
        return [(step.load, every), (step.store.value, every if step.per_element else step.kept)]
    if isinstance(step, DenseReduce):
        loading = (*step.kept, step.row, step.channel)
        return [(step.load, loading), (step.store.value, (*step.kept, step.output))]
    return None


def _split(offset: dims.Expr, width: int) -> tuple[dims.Expr, dims.Expr]:
    """Row and column of an offset into rows of ``width``, if the column stays below that."""
    row = column = dims.ZERO
    for term in sympy.Add.make_args(sympy.expand(offset)):
        factor, rest = term.as_coeff_Mul()
        if int(factor) % width == 0:
            row = row + (factor // width) * rest
        else:
            column = column + term
    return row, column


def _join(steps: list[Step], position: int, partner: int) -> list[Step]:
    first, second = steps[position], steps[partner]
    assert isinstance(first, Gemm) and isinstance(second, Gemm)
    widths = int(first.n), int(second.n)
    total = sympy.Integer(sum(widths))
    name = first.d.region.buffer.name
    shape = (first.m, total)
    result = Buffer(name, first.dtype, shape, (0, 1), BufferKind.TEMPORARY)
    joined = Gemm(
        nodes=first.nodes + tuple(n for n in second.nodes if n not in first.nodes),
        dtype=first.dtype,
        batch=first.batch,
        m=first.m,
        n=total,
        k=first.k,
        a=first.a,
        b=Matrix(Region(_stack(first, second)), first.k, dims.ZERO, transposed=True),
        d=Matrix(Region(result), total, dims.ZERO),
        bias=_bias(first, second),
        epilogue=first.epilogue,
    )
    moves = {
        id(first.d.region.buffer): (widths[0], 0),
        id(second.d.region.buffer): (widths[1], widths[0]),
    }
    kept = [s for i, s in enumerate(steps) if i not in (position, partner)]
    kept.insert(position, joined)
    return [_redirect(step, moves, result, total) for step in kept]


def _stack(first: Gemm, second: Gemm) -> Buffer:
    left, right = first.b.region.buffer, second.b.region.buffer
    assert left.data is not None and right.data is not None
    k = int(first.k)
    data = np.concatenate([left.data.reshape(-1, k), right.data.reshape(-1, k)])
    shape = (first.n + second.n, first.k)
    return Buffer(f"{left.name} + {right.name}", left.dtype, shape, (0, 1), BufferKind.WEIGHT, data)


def _bias(first: Gemm, second: Gemm) -> Region | None:
    if first.bias is None and second.bias is None:
        return None
    parts = []
    for product in (first, second):
        count = int(product.n)
        if product.bias is None:
            parts.append(np.zeros(count, product.dtype.numpy))
        else:
            assert product.bias.buffer.data is not None
            start = int(product.bias.offset)
            parts.append(product.bias.buffer.data.reshape(-1)[start : start + count])
    name = f"{first.d.region.buffer.name}.bias"
    shape = (first.n + second.n,)
    data = np.concatenate(parts)
    return Region(Buffer(name, first.dtype, shape, (0,), BufferKind.WEIGHT, data))


def _redirect(
    step: Step, moves: dict[int, tuple[int, int]], result: Buffer, total: dims.Expr
) -> Step:
    """The step with its loads of the old results turned to the joined one."""
    if all(id(buffer) not in moves for buffer in step.reads()):
        return step

    def replace(node: expr.Expr) -> expr.Expr | None:
        if not isinstance(node, expr.Load) or id(node.buffer) not in moves:
            return None
        width, start = moves[id(node.buffer)]
        row, column = _split(node.offset, width)
        return expr.Load(node.dtype, result, row * total + column + start)

    def moved(value: expr.Expr) -> expr.Expr:
        return expr.substitute(value, replace)

    assert isinstance(step, Pointwise | Reduce | DenseReduce)
    store = Store(step.store.buffer, step.store.offset, moved(step.store.value))
    if isinstance(step, Pointwise):
        return dataclasses.replace(step, store=store)
    return dataclasses.replace(step, load=moved(step.load), store=store)
