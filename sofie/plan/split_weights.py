"""Splits the constant weights of dense layers as Hopper's tensor cores read them.

The kernel (``sofie/runtime/kernels/dense_wgmma.h``) copies the parts to shared memory as they are.
They lie beside the weights, which other devices read.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import sympy

from sofie.ir.dtype import UINT16
from sofie.ir.program import (
    Buffer,
    BufferKind,
    DenseLayer,
    DenseReduce,
    Precision,
    Program,
    Region,
    Repeat,
    Step,
)

# Of what the kernel takes.
_ROWS = (1, 16)
_OUTPUT_STEP = 64

# Number and type of the parts of an element.
_PARTS = {
    Precision.FP32: (3, "bfloat16"),
    Precision.TF32: (2, "bfloat16"),
    Precision.BF16: (1, "bfloat16"),
    Precision.FP16: (1, "float16"),
}


def split_weights(program: Program) -> Program:
    """The program with parts of every weight that the kernel can use."""
    return dataclasses.replace(program, steps=tuple(map(_changed, program.steps)))


def _changed(step: Step) -> Step:
    if isinstance(step, Repeat):
        return dataclasses.replace(step, steps=tuple(map(_changed, step.steps)))
    if isinstance(step, DenseReduce) and _fits(step):
        layers = tuple(_with_parts(layer, step.precision) for layer in step.layers)
        return dataclasses.replace(step, layers=layers)
    return step


def _fits(step: DenseReduce) -> bool:
    return step.row.extent in _ROWS and all(
        layer.outputs % _OUTPUT_STEP == 0
        and layer.weight.buffer.kind is BufferKind.WEIGHT
        and layer.weight.offset == 0
        for layer in step.layers
    )


def _with_parts(layer: DenseLayer, precision: Precision) -> DenseLayer:
    weight = layer.weight.buffer
    assert weight.data is not None
    data = parts(weight.data.reshape(layer.outputs, -1), precision)
    shape = (sympy.Integer(data.size),)
    buffer = Buffer(f"{weight.name}.parts", UINT16, shape, (0,), BufferKind.WEIGHT, data)
    return dataclasses.replace(layer, parts=Region(buffer))


def parts(weight: np.ndarray, precision: Precision) -> np.ndarray:
    """The parts of a float32 weight [outputs, inputs], in the order of ``PartPlace`` in C++.

    Their sum is the weight, exactly in float32 precision, else rounded.
    """
    count, dtype = _PARTS[precision]
    outputs, inputs = weight.shape
    rest = np.zeros((outputs, -(-inputs // 32) * 32), np.float32)
    rest[:, :inputs] = weight
    found = []
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(count):
            part = rest.astype(dtype)
            rest = rest - part.astype(np.float32)
            found.append(part.view(np.uint16))
    # Axes: part, outputs in eights, inputs in steps of four pairs of pairs.
    split = np.stack(found).reshape(count, outputs // 8, 8, -1, 4, 2, 2)
    return np.ascontiguousarray(split.transpose(3, 0, 1, 5, 2, 4, 6)).reshape(-1)
