"""Joins matrix products of one left operand: their weights side by side, one launch.

    [a b1ᵀ | a b2ᵀ] = a [b1; b2]ᵀ

EdgeConv's shortcut and the two halves of its first layer all multiply the same points. Small
products cost a launch more than their arithmetic, and large ones read their operand once less.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

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
        if not step.reads_from(result):
            continue
        values = _values(step)
        if values is None:
            return False
        for value, loops in values:
            places: dict[int, tuple[dims.Expr, dims.Expr]] = {}
            for load, scope in _loads(value, _Scope.of(loops)):
                if load.buffer is not result:
                    continue
                row, column = scope.split(load.offset, int(product.n))
                if not dims.stays_below(scope.shifted(column), product.n, scope.ranges):
                    return False
                if places.setdefault(id(load), (row, column)) != (row, column):
                    return False
    return True


@dataclasses.dataclass(frozen=True)
class _Scope:
    """Where an expression is evaluated: each loop variable is a start and a rest from 0 on.

    Attributes:
      starts: the start, where it is not 0.
      ranges: how many values the rest takes.
    """

    starts: Mapping[sympy.Symbol, dims.Expr]
    ranges: Mapping[sympy.Symbol, dims.Expr]

    @classmethod
    def of(cls, loops: Sequence[Loop]) -> _Scope:
        """All points of some loops."""
        return cls({}, {loop.var: loop.extent for loop in loops})

    def shifted(self, index: dims.Expr) -> dims.Expr:
        """An index in terms of the rests, under the variables' names."""
        return index.xreplace({v: v + start for v, start in self.starts.items()})

    def split(self, offset: dims.Expr, width: int) -> tuple[dims.Expr, dims.Expr]:
        """Row and column of an offset into rows of ``width``, if the column stays below that."""
        back = {v: v - start for v, start in self.starts.items()}
        row, column = _split(self.shifted(offset), width)
        return row.xreplace(back), column.xreplace(back)

    def branches(self, condition: expr.Expr) -> tuple[_Scope, _Scope]:
        """The scopes of what is chosen where ``variable < number`` holds, and where not."""
        if isinstance(condition, expr.Call) and condition.template == "{0} < {1}":
            index, bound = (a.value if isinstance(a, expr.Index) else None for a in condition.args)
            extent = self.ranges.get(index)
            if extent is not None and bound is not None and bound.is_Integer:
                start = self.starts.get(index, dims.ZERO)
                below = dataclasses.replace(self, ranges={**self.ranges, index: bound - start})
                starts = {**self.starts, index: bound}
                rest = {**self.ranges, index: extent - (bound - start)}
                return below, _Scope(starts, rest)
        return self, self


def _loads(
    value: expr.Expr, scope: _Scope, seen: set[tuple[object, ...]] | None = None
) -> Iterator[tuple[expr.Load, _Scope]]:
    """Every load of an expression with the scopes that it is evaluated in."""
    seen = set() if seen is None else seen
    key = (id(value), *scope.starts.items(), *scope.ranges.items())
    if key in seen:
        return
    seen.add(key)
    if isinstance(value, expr.Load):
        yield value, scope
    for child in value.children():
        yield from _loads(child, scope, seen)
    if isinstance(value, expr.Select):
        for branch, inner in zip(
            (value.then, value.other), scope.branches(value.condition), strict=True
        ):
            yield from _loads(branch, inner, seen)


def _values(step: Step) -> list[tuple[expr.Expr, Sequence[Loop]]] | None:
    """The expressions of a step and their loops; None where it reads buffers in other ways."""
    if isinstance(step, Pointwise):
        return [(step.store.value, step.loops)]
    if isinstance(step, Reduce):
        every = (*step.kept, *step.reduced)
        return [(step.load, every), (step.store.value, every if step.per_element else step.kept)]
    if isinstance(step, DenseReduce):
        loading = (*step.kept, step.row, *step.channels)
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

    def moved(value: expr.Expr, loops: Sequence[Loop]) -> expr.Expr:
        offsets: dict[int, dims.Expr] = {}
        for load, scope in _loads(value, _Scope.of(loops)):
            if id(load.buffer) in moves:
                width, start = moves[id(load.buffer)]
                row, column = scope.split(load.offset, width)
                offsets[id(load)] = row * total + column + start

        def replace(node: expr.Expr) -> expr.Expr | None:
            if id(node) not in offsets:
                return None
            return expr.Load(node.dtype, result, offsets[id(node)])

        return expr.substitute(value, replace)

    assert isinstance(step, Pointwise | Reduce | DenseReduce)
    *loading, stored = [moved(value, loops) for value, loops in _values(step) or ()]
    store = Store(step.store.buffer, step.store.offset, stored)
    if isinstance(step, Pointwise):
        return dataclasses.replace(step, store=store)
    return dataclasses.replace(step, load=loading[0], store=store)
