"""Scores that are linear in the features: what ai.onnx.ml's linear models share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import FLOAT32, FLOAT64, DType
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
    values = np.array(node.attr_floats("coefficients"), number.name).reshape(targets, -1)
    intercepts = node.attr_floats("intercepts")
    bias = np.array(intercepts, number.name) if intercepts else None
    return product(b, node.label, as_number(b, x, number), values, bias)


def as_number(b: Builder, x: Tensor, number: DType) -> Tensor:
    """``x`` in a type that there are products of."""
    if x.dtype is number:
        return x
    return elementwise.call(b, number, f"static_cast<{number.cpp}>({{0}})", x)


def product(
    b: Builder, label: str, x: Tensor, coefficients: np.ndarray, intercepts: np.ndarray | None
) -> Tensor:
    """``x @ coefficients.T + intercepts`` of the same type, [rows, targets].

    Args:
      b: where it is launched.
      label: what the constants' names start with.
      x: [rows, features].
      coefficients: [targets, features].
      intercepts: [targets], or None.
    """
    rows, features = x.shape
    targets = sympy.Integer(len(coefficients))
    weights = b.constant(f"{label}.coefficients", x.dtype, coefficients)
    bias = None if intercepts is None else b.constant(f"{label}.intercepts", x.dtype, intercepts)
    out = b.output(x.dtype, (dims.ONE, rows, targets))
    b.matmul(
        b.in_memory(Reshape(x, (dims.ONE, rows, features))),
        b.in_memory(Reshape(Permute(weights, (1, 0)), (dims.ONE, features, targets))),
        out,
        bias=bias,
        sources=[x],
    )
    return Reshape(out, (rows, targets))
