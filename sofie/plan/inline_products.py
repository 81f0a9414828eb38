"""Computes products of few factors where TopK reads them.

Distances of points in a plane are sums of two products each: they cost less than a launch, and than
the memory that they would take.
"""

from __future__ import annotations

import dataclasses
import itertools

import sympy

from sofie.ir import dims, expr
from sofie.ir.program import (
    BufferKind,
    Epilogue,
    Gemm,
    Matrix,
    Program,
    Step,
    TopK,
)

_MOST_FACTORS = 4


def inline_products(program: Program) -> Program:
    """The program with fewer launches."""
    steps: list[Step] = list(program.steps)
    for step in program.steps:
        if isinstance(step, Gemm) and _is_small(step):
            readers = [s for s in steps if s.reads_from(step.d.region.buffer)]
            if len(readers) == 1 and isinstance(readers[0], TopK):
                reader = readers[0]
                inlined = _inlined(step, reader)
                between = steps[steps.index(step) : steps.index(reader)]
                stays = not any(step.reads_from(b) for s in between for b in s.writes())
                if inlined is not None and stays:
                    steps[steps.index(reader)] = inlined
                    steps.remove(step)
    return dataclasses.replace(program, steps=tuple(steps))


def _is_small(product: Gemm) -> bool:
    return (
        product.k.is_Integer
        and 1 <= int(product.k) <= _MOST_FACTORS
        and product.alpha == 1.0
        and product.beta == 0.0
        and product.bias is None
        and product.epilogue is Epilogue.NONE
        and product.dtype.storage == product.dtype.cpp
        and product.d.region.buffer.kind is BufferKind.TEMPORARY
    )


def _inlined(product: Gemm, reader: TopK) -> TopK | None:
    """The selection with the product computed in it; None where it reads that in other ways."""
    result = product.d.region.buffer
    values: dict[int, expr.Expr] = {}
    for load in expr.walk(reader.load):
        if isinstance(load, expr.Load) and load.buffer is result:
            place = _place(product, load.offset, reader)
            if place is None:
                return None
            values[id(load)] = _element(product, *place)
    nodes = product.nodes + tuple(n for n in reader.nodes if n not in product.nodes)
    value = expr.substitute(reader.load, lambda node: values.get(id(node)))
    return dataclasses.replace(reader, nodes=nodes, load=value)


def _place(
    product: Gemm, offset: dims.Expr, reader: TopK
) -> tuple[dims.Expr, dims.Expr, dims.Expr] | None:
    """Batch, row, and column of an element, each a variable of the reader's loops or 0."""
    loops = (*reader.kept, reader.along)

    def candidates(extent: dims.Expr) -> list[dims.Expr]:
        found = [loop.var for loop in loops if dims.same(loop.extent, extent)]
        return [*found, dims.ZERO] if extent == 1 else found

    d = product.d
    extents = (product.batch, product.m, product.n)
    for batch, row, column in itertools.product(*map(candidates, extents)):
        place = d.region.offset + batch * d.batch_stride + row * d.ld + column
        if sympy.expand(place - offset) == 0:
            return batch, row, column
    return None


def _element(product: Gemm, batch: dims.Expr, row: dims.Expr, column: dims.Expr) -> expr.Expr:
    """The sum of products at a place."""

    def load(matrix: Matrix, major: dims.Expr, minor: dims.Expr) -> expr.Expr:
        if matrix.transposed:
            major, minor = minor, major
        offset = matrix.region.offset + batch * matrix.batch_stride + major * matrix.ld + minor
        return expr.Load(product.dtype, matrix.region.buffer, offset)

    total: expr.Expr | None = None
    for k in map(sympy.Integer, range(int(product.k))):
        factors = (load(product.a, row, k), load(product.b, k, column))
        term = expr.Call(product.dtype, "{0} * {1}", factors)
        total = term if total is None else expr.Call(product.dtype, "{0} + {1}", (total, term))
    assert total is not None
    return total
