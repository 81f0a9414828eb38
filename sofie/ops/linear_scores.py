"""Scores that are linear in the features: LinearRegressor and LinearClassifier of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import FLOAT32, FLOAT64
from sofie.ir.node import Node
from sofie.ir.tensor import Permute, Reshape, Tensor
from sofie.ops import elementwise


def check(node: Node, targets: int) -> Iterator[str]:
    """Reasons against the input and the coefficients."""
    shape, count = node.shape(0), len(node.attr_floats("coefficients") or ())
    if len(shape) != 2 or not shape[1].is_Integer:
        yield "an input that is not [rows, features] with a known number of features"
    elif count != targets * int(shape[1]):
        yield f"{count} coefficients for {targets} targets and {shape[1]} features"
    if len(node.attr_floats("intercepts") or ()) not in (0, targets):
        yield "intercepts that are not one for each target"


def linear(node: Node, b: Builder, x: Tensor, targets: int) -> Tensor:
    """``x @ coefficients.T + intercepts``, [rows, targets]."""
    number = FLOAT64 if x.dtype is FLOAT64 else FLOAT32
    if x.dtype is not number:
        x = elementwise.call(b, number, f"static_cast<{number.cpp}>({{0}})", x)
    rows, features = x.shape
    values = np.array(node.attr_floats("coefficients"), number.name).reshape(targets, -1)
    weights = b.constant(f"{node.label}.coefficients", number, values)
    intercepts = node.attr_floats("intercepts")
    bias = (
        b.constant(f"{node.label}.intercepts", number, np.array(intercepts, number.name))
        if intercepts
        else None
    )
    out = b.output(number, (dims.ONE, rows, sympy.Integer(targets)))
    b.matmul(
        b.in_memory(Reshape(x, (dims.ONE, rows, features))),
        b.in_memory(Reshape(Permute(weights, (1, 0)), (dims.ONE, features, weights.shape[0]))),
        out,
        bias=bias,
        sources=[x],
    )
    return Reshape(out, (rows, sympy.Integer(targets)))
