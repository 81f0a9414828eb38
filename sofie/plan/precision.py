"""Gives a program's products the precision that the model is compiled for.

Products that are selected from keep float32: where TopK finds the nearest neighbours of a point,
a rounded distance would choose others.
"""

from __future__ import annotations

import dataclasses

from sofie.ir.program import (
    Buffer,
    DenseReduce,
    Gemm,
    Pointwise,
    Precision,
    Program,
    Repeat,
    Step,
    TopK,
    launches,
)


def with_precision(program: Program, precision: Precision) -> Program:
    """The program with every product at ``precision``, but for those that TopK selects from.

    That is a product from which only element-wise operations lead to TopK.
    """
    exact = _selected_from(program)

    def changed(step: Step) -> Step:
        if isinstance(step, Repeat):
            return dataclasses.replace(step, steps=tuple(map(changed, step.steps)))
        if isinstance(step, Gemm | DenseReduce) and id(step) not in exact:
            return dataclasses.replace(step, precision=precision)
        return step

    return dataclasses.replace(program, steps=tuple(map(changed, program.steps)))


def _selected_from(program: Program) -> set[int]:
    """The ``id`` of every step from which element-wise steps lead to TopK."""
    writers: dict[int, list[Step]] = {}
    steps = list(launches(program.steps))
    for step in steps:
        for buffer in step.writes():
            writers.setdefault(id(buffer), []).append(step)
    found: set[int] = set()
    waiting: list[Buffer] = [b for s in steps if isinstance(s, TopK) for b in s.reads()]
    while waiting:
        for step in writers.get(id(waiting.pop()), ()):
            if id(step) not in found:
                found.add(id(step))
                if isinstance(step, Pointwise):
                    waiting += step.reads()
    return found
