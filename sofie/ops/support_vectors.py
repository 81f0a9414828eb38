"""How like support vectors the rows are: what SVMRegressor and SVMClassifier have in common."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy

from sofie.ir.builder import Builder
from sofie.ir.dtype import FLOAT32
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Tensor
from sofie.ops import elementwise, linear_scores

# C++ of the kernel functions of a scalar product {0}, with gamma, the constant, and the degree.
_FUNCTIONS = {
    "LINEAR": "{0}",
    "POLY": "sofie::kernels::Pow({1} * {0} + {2}, {3})",
    "SIGMOID": "sofie::kernels::Tanh({1} * {0} + {2})",
}


def floats(node: Node, name: str) -> np.ndarray:
    """A list of numbers, empty where it is absent."""
    return np.array(node.attr_floats(name) or (), np.float32)


def check(node: Node, vectors: int) -> Iterator[str]:
    """Reasons against the input, the kernel function, and ``vectors`` support vectors."""
    shape, kind = node.shape(0), node.attr_string("kernel_type", "LINEAR")
    if len(shape) != 2 or not shape[1].is_Integer:
        yield "an input that is not [rows, features] with a known number of features"
    elif vectors and floats(node, "support_vectors").size != vectors * int(shape[1]):
        yield f"support_vectors that are not {vectors} of {shape[1]} numbers"
    if kind != "RBF" and kind not in _FUNCTIONS:
        yield f"the kernel_type {kind!r}"
    elif vectors and kind != "LINEAR" and floats(node, "kernel_params").size != 3:
        yield "kernel_params that are not gamma, coef0 and degree"


def similarities(node: Node, b: Builder, x: Tensor, vectors: int) -> Tensor:
    """The kernel function of each row of ``x`` and each support vector, [rows, vectors]."""
    kind = node.attr_string("kernel_type", "LINEAR")
    values = floats(node, "support_vectors").reshape(vectors, -1)
    parameters = [Literal(FLOAT32, float(value)) for value in floats(node, "kernel_params")]
    if kind != "RBF":
        products = linear_scores.product(b, f"{node.label}.vectors", x, values, None)
        return elementwise.call(b, FLOAT32, _FUNCTIONS[kind], products, *parameters)
    table = b.constant(f"{node.label}.vectors", FLOAT32, values)

    def square(outer: Index, inner: Index) -> Expr:
        row, vector = outer
        difference = Call(
            FLOAT32, "{0} - {1}", (x.load((row, *inner)), table.load((vector, *inner)))
        )
        return Call(FLOAT32, "{0} * {0}", (difference,))

    return Reduction(
        b,
        (x.shape[0], sympy.Integer(vectors)),
        x.shape[1:],
        Combine("Sum", FLOAT32),
        square,
        lambda total: Call(FLOAT32, "sofie::kernels::Exp(-{1} * {0})", (total, parameters[0])),
        FLOAT32,
        [x],
    )
