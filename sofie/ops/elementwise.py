"""Element-wise operators with multidirectional broadcasting: what their files have in common.

Broadcasting: https://onnx.ai/onnx/repo-docs/Broadcasting.html
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, DType
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Broadcast, Index, Tensor
from sofie.ops.registry import operator


def apply(node: Node, b: Builder, inputs: Sequence[Tensor], dtype: DType, template: str) -> Tensor:
    """``template`` for every element of the broadcast inputs."""
    shape = node.out_shape()
    aligned = [t if t.shape == shape else Broadcast(t, shape) for t in inputs]

    def element(index: Index) -> Expr:
        return Call(dtype, template, tuple(t.load(index) for t in aligned))

    return b.lazy(dtype, shape, inputs, element)


def given(inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The inputs that are present."""
    return [t for t in inputs if t is not None]


def unary(name: str, template: str, *, since: int, dtypes: Iterable[DType]) -> None:
    """Registers an operator of one input; ``{0}`` in ``template`` is its element."""

    @operator(name, since=since, dtypes=dtypes)
    def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        return [apply(node, b, given(inputs), node.out_dtype(), template)]


def binary(name: str, template: str, *, since: int, dtypes: Iterable[DType]) -> None:
    """Registers an operator of two inputs of one type, ``{0}`` and ``{1}``."""

    @operator(name, since=since, dtypes=dtypes)
    def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        return [apply(node, b, given(inputs), node.out_dtype(), template)]


def comparison(name: str, relation: str, *, since: int, dtypes: Iterable[DType]) -> None:
    """Registers a comparison; the result is bool."""

    @operator(name, since=since, dtypes=dtypes)
    def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        return [apply(node, b, given(inputs), BOOL, "{0} " + relation + " {1}")]


def variadic(name: str, template: str, *, since: int, dtypes: Iterable[DType]) -> None:
    """Registers an operator that folds any number of inputs from the left."""

    @operator(name, since=since, dtypes=dtypes)
    def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        folded = "{0}"
        for position in range(1, len(inputs)):
            folded = template.format(folded, f"{{{position}}}")
        return [apply(node, b, given(inputs), node.out_dtype(), folded)]
