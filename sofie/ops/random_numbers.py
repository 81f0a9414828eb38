"""Random numbers: what the files of the operators have in common.

A number is a function of a seed and of its place, computed by ``sofie/runtime/kernels/random.h``
wherever it is needed. With the attribute ``seed`` every run gives the same numbers. Without it they
depend on the session's seed, on the node, and on how many runs the session has made.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir
import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import FLOATS, INT64, UINT32, UINT64, DType
from sofie.ir.expr import Call, Expr, Index, Literal, Load
from sofie.ir.node import Node
from sofie.ir.tensor import Index as At

_OPERATORS = (
    "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"
).split()
_STREAM = "stream"


def number_streams(graph: ir.Graph) -> None:
    """Gives every node without a seed numbers of its own; so no two of them are the same."""
    nodes = [
        node
        for node in ir.traversal.RecursiveGraphIterator(graph)
        if node.op_type in _OPERATORS and not node.domain and "seed" not in node.attributes
    ]
    for number, node in enumerate(nodes, 1):
        node.attributes[_STREAM] = ir.AttrInt64(_STREAM, number)


def draws(node: ir.Node) -> bool:
    """True for a node that may draw random numbers."""
    if node.op_type == "Dropout" and not node.domain:
        return len(node.inputs) > 2 and node.inputs[2] is not None
    return node.op_type in _OPERATORS and not node.domain


def _bits(seed: float) -> int:
    return int(np.float32(seed).view(np.uint32))


class Generator:
    """The random numbers of one node."""

    def __init__(self, node: Node, b: Builder) -> None:
        self.level = b.level
        self._seed: Expr
        self._run: Expr
        if "seed" in node.raw.attributes:
            # Dropout's is an integer, the others' a number.
            seed = node.raw.attributes["seed"].value
            bits = seed & (2**64 - 1) if isinstance(seed, int) else _bits(seed)
            self._seed, self._run = Literal(UINT64, bits), Literal(UINT64, 0)
        else:
            state = b.random_state()
            self._seed = Load(UINT64, state, dims.ZERO)
            self._run = Load(UINT64, state, dims.ONE)
        self._stream = Literal(UINT32, node.attr_int(_STREAM, 0))

    def uniform(self, dtype: DType, shape: dims.Shape, index: At) -> Expr:
        """A number in [0, 1) for an element of a tensor of that shape."""
        return self._draw("Uniform", dtype, shape, index)

    def normal(self, dtype: DType, shape: dims.Shape, index: At) -> Expr:
        """A standard normal number, likewise."""
        return self._draw("Normal", dtype, shape, index)

    def _draw(self, kind: str, dtype: DType, shape: dims.Shape, index: At) -> Expr:
        strides = dims.packed_strides(shape, range(len(shape)))
        place = sum((i * s for i, s in zip(index, strides, strict=True)), sympy.Integer(0))
        width = "Double" if dtype.cpp == "double" else "Float"
        template = f"sofie::kernels::{kind}{width}({{0}}, {{1}}, {{2}}, {{3}})"
        parts = (self._seed, self._run, self._stream, Index(INT64, place))
        return Call(dtype, template, parts)


def check(node: Node) -> Iterator[str]:
    """Numbers come in floating-point types."""
    if node.out_dtype() not in FLOATS:
        yield f"the element type {node.out_dtype().name}"
