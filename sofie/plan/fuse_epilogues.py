"""Computes what follows element by element from dense layers' results where these are stored.

One launch less, and a result that nothing else reads is never stored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import sympy

from sofie.ir import dims, expr
from sofie.ir.dtype import FLOAT32
from sofie.ir.program import (
    BufferKind,
    DenseReduce,
    Loop,
    Pointwise,
    Program,
    Read,
    Step,
    Store,
    is_among,
)


def fuse_epilogues(program: Program) -> Program:
    """The program with fewer launches."""
    steps: list[Step] = list(program.steps)
    for step in program.steps:
        if isinstance(step, Pointwise) and not step.also:
            for position in range(steps.index(step)):
                joined = _join(steps, position, step)
                if joined is not None:
                    steps[position] = joined
                    steps.remove(step)
                    break
    return dataclasses.replace(program, steps=tuple(steps))


def _join(steps: Sequence[Step], position: int, step: Pointwise) -> DenseReduce | None:
    """The dense layers at ``position`` with the later step; None where they do not go together."""
    dense = steps[position]
    if not isinstance(dense, DenseReduce):
        return None
    result = dense.store.buffer
    target = step.store.buffer
    if not step.reads_from(result) or result.dtype is not FLOAT32:
        return None
    change = _points(dense, step.loops)
    if change is None or target.dtype is not FLOAT32:
        return None
    loads = [n for n in expr.walk(step.store.value) if isinstance(n, expr.Load)]
    offsets = [n.offset.xreplace(change) for n in loads if n.buffer is result]
    if not offsets or any(sympy.expand(o - dense.store.offset) != 0 for o in offsets):
        return None
    # What else it reads must be there before, and nobody may miss what it overwrites.
    between = steps[position : steps.index(step)]
    if any(isinstance(s, Read) for s in between):
        return None
    sources = [buffer for buffer in step.reads() if buffer is not result]
    if any(is_among(b, sources) or b is target for s in between for b in s.writes()):
        return None
    if any(s.reads_from(target) for s in between):
        return None
    value = expr.substitute(
        step.store.value,
        lambda n: dense.store.value if isinstance(n, expr.Load) and n.buffer is result else None,
        lambda index: index.xreplace(change),
    )
    store = Store(target, step.store.offset.xreplace(change), value)
    nodes = dense.nodes + tuple(n for n in step.nodes if n not in dense.nodes)
    others = [s for s in steps if s is not step and s.reads_from(result)]
    if others or result.kind is not BufferKind.TEMPORARY:
        return dataclasses.replace(dense, nodes=nodes, also=(*dense.also, store))
    if dense.also:
        return None
    return dataclasses.replace(dense, nodes=nodes, store=store)


def _points(dense: DenseReduce, loops: Sequence[Loop]) -> dict[dims.Expr, dims.Expr] | None:
    """What takes the place of the loops' variables where they walk the same points in order.

    A loop of the later step may be several of the dense layers'.
    """
    own = [*dense.kept, dense.output]
    change: dict[dims.Expr, dims.Expr] = {}
    for loop in loops:
        place, extent = dims.ZERO, dims.ONE
        while own and (extent is dims.ONE or not dims.same(extent, loop.extent)):
            inner = own.pop(0)
            place, extent = place * inner.extent + inner.var, extent * inner.extent
        if not dims.same(extent, loop.extent):
            return None
        change[loop.var] = sympy.expand(place)
    return None if own else change
