"""Einsum: https://onnx.ai/onnx/operators/onnx__Einsum.html

Operands are contracted from the left, two at a time. A contraction of two is a matrix product: the
labels that both have and the result too are its batch, those that both have and the result has not
are summed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Broadcast, Index, Permute, Reshape, Tensor
from sofie.ops.elementwise import given
from sofie.ops.inference import shape_rule
from sofie.ops.matmul import multiply
from sofie.ops.reduction import Rule, over_axes
from sofie.ops.registry import operator


@dataclasses.dataclass(frozen=True)
class _Equation:
    """Labels of the operands and of the result; those of an ellipsis are numbers from the back."""

    operands: list[list[str]]
    result: list[str]


@dataclasses.dataclass(frozen=True)
class _Operand:
    """A tensor and the label of each axis; no label stands twice."""

    tensor: Tensor
    labels: list[str]


def _parse(equation: str, ranks: Sequence[int]) -> _Equation:
    """Reads an equation.

    Raises:
      ValueError: it contradicts itself or the operands.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"the equation {equation!r} for {len(ranks)} operands")
    operands = [_labels(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    hidden = max((sum(c.isdigit() for c in labels) for labels in operands), default=0)
    ellipsis = [str(hidden - 1 - i) for i in range(hidden)]
    every = [label for labels in operands for label in labels]
    if arrow:
        head, dots, tail = right.partition("...")
        result = [*head, *(ellipsis if dots else []), *tail]
    else:
        once = sorted({c for c in every if c.isalpha() and every.count(c) == 1})
        result = [*ellipsis, *once]
    if len(set(result)) != len(result) or not set(result) <= set(every):
        raise ValueError(f"the result of the equation {equation!r}")
    return _Equation(operands, result)


def _labels(term: str, rank: int) -> list[str]:
    head, dots, tail = term.partition("...")
    hidden = rank - len(head) - len(tail)
    letters = all(c.isalpha() for c in head + tail)
    if hidden < 0 or (hidden and not dots) or not letters:
        raise ValueError(f"the term {term!r} for an operand of rank {rank}")
    return [*head, *(str(hidden - 1 - i) for i in range(hidden)), *tail]


def _extents(equation: _Equation, shapes: Sequence[dims.Shape]) -> dict[str, dims.Expr]:
    """The extent of every label; those of an ellipsis broadcast."""
    extents: dict[str, dims.Expr] = {}
    for labels, shape in zip(equation.operands, shapes, strict=True):
        for label, extent in zip(labels, shape, strict=True):
            if label not in extents:
                extents[label] = extent
            elif label.isdigit():
                extents[label] = dims.broadcast(extents[label], extent)
    return extents


def _read(node: Node) -> tuple[_Equation, dict[str, dims.Expr]]:
    shapes = [node.shape(i) for i in range(node.arity)]
    equation = _parse(node.attr_string("equation", ""), [len(s) for s in shapes])
    return equation, _extents(equation, shapes)


@shape_rule("Einsum", since=12)
def _shapes(node: Node) -> list[dims.Shape]:
    equation, extents = _read(node)
    return [tuple(extents[label] for label in equation.result)]


def _check(node: Node) -> Iterator[str]:
    _read(node)
    yield from ()


@operator("Einsum", since=12, dtypes=dtype.NUMBERS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Pairs of operands from the left, then the labels that are left over are summed."""
    equation, extents = _read(node)
    operands = [
        _operand(b, tensor, labels, extents)
        for tensor, labels in zip(given(inputs), equation.operands, strict=True)
    ]
    total = operands[0]
    for position, other in enumerate(operands[1:], 1):
        later = {label for operand in operands[position + 1 :] for label in operand.labels}
        total = _contract(b, total, other, later | set(equation.result))
    total = _summed(b, total, set(equation.result))
    order = [total.labels.index(label) for label in equation.result]
    return [total.tensor if order == sorted(order) else Permute(total.tensor, order)]


def _operand(
    b: Builder, x: Tensor, labels: Sequence[str], extents: dict[str, dims.Expr]
) -> _Operand:
    """The operand with every label once, stretched where others are wider."""
    unique = list(dict.fromkeys(labels))
    for label, extent in zip(labels, x.shape, strict=True):
        if label.isalpha():
            b.require_equal(extent, extents[label], f"extents of the label {label!r}")
    if len(unique) < len(labels):
        shape = [x.shape[labels.index(label)] for label in unique]

        def diagonal(index: Index) -> Expr:
            return x.load(tuple(index[unique.index(label)] for label in labels))

        return _Operand(b.lazy(x.dtype, shape, [x], diagonal), unique)
    shape = [extents[label] for label in unique]
    b.require_broadcast(x.shape, tuple(shape))
    same = all(dims.same(d, e) for d, e in zip(x.shape, shape, strict=True))
    return _Operand(x if same else Broadcast(x, shape), unique)


def _summed(b: Builder, x: _Operand, kept: set[str]) -> _Operand:
    """The operand without the labels that are not kept."""
    axes = [a for a, label in enumerate(x.labels) if label not in kept]
    if not axes:
        return x
    labels = [label for label in x.labels if label in kept]
    return _Operand(over_axes(b, x.tensor, axes, Rule("Sum")), labels)


def _contract(b: Builder, x: _Operand, y: _Operand, kept: set[str]) -> _Operand:
    x = _summed(b, x, kept | set(y.labels))
    y = _summed(b, y, kept | set(x.labels))
    shared = [label for label in x.labels if label in y.labels]
    batch = [label for label in shared if label in kept]
    inner = [label for label in shared if label not in kept]
    rows = [label for label in x.labels if label not in shared]
    columns = [label for label in y.labels if label not in shared]
    labels = [*batch, *rows, *columns]
    if not inner:
        return _Operand(_outer(b, x, y, labels), labels)
    left = _grouped(x, batch, rows, inner)
    right = _grouped(y, batch, inner, columns)
    matrix = (left.shape[0], left.shape[1], right.shape[2])
    out = multiply(b, left, right, matrix)
    shape = [*_shape(x, [*batch, *rows]), *_shape(y, columns)]
    return _Operand(Reshape(out, shape), labels)


def _shape(x: _Operand, labels: Sequence[str]) -> list[dims.Expr]:
    return [x.tensor.shape[x.labels.index(label)] for label in labels]


def _grouped(x: _Operand, *groups: Sequence[str]) -> Tensor:
    """The operand with one axis for each group of labels."""
    order = [x.labels.index(label) for group in groups for label in group]
    return Reshape(Permute(x.tensor, order), [dims.product(_shape(x, group)) for group in groups])


def _outer(b: Builder, x: _Operand, y: _Operand, labels: Sequence[str]) -> Tensor:
    """Products of elements: nothing is summed."""
    shape = [_shape(x if label in x.labels else y, [label])[0] for label in labels]

    def element(index: Index) -> Expr:
        at = dict(zip(labels, index, strict=True))
        parts = (t.tensor.load(tuple(at[label] for label in t.labels)) for t in (x, y))
        return Call(x.tensor.dtype, "{0} * {1}", tuple(parts))

    return b.lazy(x.tensor.dtype, shape, [x.tensor, y.tensor], element)
