"""Replaces constant matrices of weights by products of two of a lower rank, as the caller asks.

    x @ W  becomes  (x @ L) @ R   with W [k, n], L [k, r], R [r, n], r (k + n) < k n

in MatMul, Gemm and 1x1 Conv of the graph itself. L @ R is the truncated singular value
decomposition, of all matrices of rank r the nearest to W. What it costs in accuracy is measured on
the factors as they are stored, and the bound holds for every row x::

    |x @ L @ R - x @ W| <= error * |W| * |x|      error = |L @ R - W| / |W|

where |W| is the root of the sum of squares. Rounding in the products comes on top.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sofie.importer.load import Model
from sofie.ir import dtype
from sofie.ir.node import Node, constant_array, version_of
from sofie.passes.rewrite import add_initializer, replace

_Matrix = npt.NDArray[np.float64]


class Criterion(enum.Enum):
    """What is given: the error of a matrix, or the share of the operations that is left."""

    ERROR = "error"
    RATIO = "ratio"


@dataclasses.dataclass(frozen=True)
class LowRank:
    """Which rank a matrix gets.

    Attributes:
      criterion: ERROR: the lowest rank whose error is at most ``limit``, if it saves operations.
        RATIO: the highest rank whose products take at most ``limit`` times the operations of one.
      limit: above 0 and below 1.
    """

    criterion: Criterion
    limit: float

    @staticmethod
    def parse(text: str) -> LowRank:
        """Reads ``error=1e-3`` or ``ratio=0.5``.

        Raises:
          ValueError: it is neither.
        """
        name, _, number = text.partition("=")
        try:
            found = LowRank(Criterion(name), float(number))
        except ValueError:
            found = LowRank(Criterion.ERROR, math.nan)
        if not 0 < found.limit < 1:
            raise ValueError(
                f"low_rank = {text!r} is neither 'error=' nor 'ratio=' with a number between 0 and "
                "1, such as 'error=1e-3' or 'ratio=0.5'"
            )
        return found


@dataclasses.dataclass(frozen=True)
class Reduced:
    """A matrix that was replaced.

    Attributes:
      weight: its name.
      nodes: whose product it is.
      shape: k and n.
      rank: r.
      error: of the factors as they are stored.
    """

    weight: str
    nodes: tuple[str, ...]
    shape: tuple[int, int]
    rank: int
    error: float


@dataclasses.dataclass(frozen=True)
class _Factors:
    left: _Matrix
    right: _Matrix
    error: float


def run(model: Model, low_rank: LowRank) -> tuple[Reduced, ...]:
    """Changes the model in place; says what it replaced, in the order of the graph."""
    # By weight, and whether it is transposed: several nodes may read one.
    products: dict[tuple[ir.Value, bool], list[ir.Node]] = {}
    for node in model.graph:
        if _is_product(Node(node, version_of(model.ir_model, node.domain))):
            weight = node.inputs[1]
            assert weight is not None
            products.setdefault((weight, _is_transposed(node)), []).append(node)
    reduced = []
    for (weight, transposed), nodes in products.items():
        array = constant_array(weight)
        assert array is not None
        matrix = array.reshape(array.shape[:2]).astype(np.float64)
        factors = _factors(matrix.T if transposed else matrix, array.dtype, low_rank)
        if factors is None:
            continue
        (k, rank), n = factors.left.shape, factors.right.shape[1]
        names = tuple(node.name or node.op_type for node in nodes)
        reduced.append(Reduced(weight.name or "", names, (k, n), rank, factors.error))
        _replace(model, weight, nodes, factors)
    return tuple(reduced)


def _is_product(node: Node) -> bool:
    """True where the second input is a constant matrix that the first one is multiplied with."""
    if node.raw.domain or node.op_type not in ("MatMul", "Gemm", "Conv"):
        return False
    array = node.array(1)
    if array is None or node.dtype(1) not in dtype.FLOATS:
        return False
    if node.op_type == "Conv":
        return node.attr_int("group", 1) == 1 and all(k == 1 for k in array.shape[2:])
    return array.ndim == 2


def _is_transposed(node: ir.Node) -> bool:
    """True where the weight is [n, k]: outputs first."""
    if node.op_type == "Conv":
        return True
    trans_b = node.attributes.get("transB")
    return trans_b is not None and bool(trans_b.as_int())


def _factors(matrix: _Matrix, kind: np.dtype[Any], low_rank: LowRank) -> _Factors | None:
    """The factors, as numbers of a type; None where they would save nothing or miss the limit."""
    k, n = matrix.shape
    norm = float(np.linalg.norm(matrix))
    most = (k * n - 1) // (k + n) if k and n else 0
    if most == 0 or not np.isfinite(norm):
        return None
    if low_rank.criterion is Criterion.RATIO:
        most = min(most, math.floor(low_rank.limit * k * n / (k + n)))
        if most == 0:
            return None
    u, singular, v = np.linalg.svd(matrix, full_matrices=False)

    def of_rank(rank: int) -> _Factors:
        root = np.sqrt(singular[:rank])
        left = (u[:, :rank] * root).astype(kind).astype(np.float64)
        right = (root[:, None] * v[:rank]).astype(kind).astype(np.float64)
        error = float(np.linalg.norm(left @ right - matrix))
        return _Factors(left, right, error / norm if norm else 0.0)

    if low_rank.criterion is Criterion.RATIO:
        return of_rank(most)
    # The squared error that truncation makes, by rank: of rank 0, of rank 1 ...
    squares = np.append(np.cumsum(singular[::-1] ** 2)[::-1], 0.0) / (norm**2 or 1.0)
    rank, allowed = 0, low_rank.limit**2
    while allowed >= 0:
        rank = max(rank + 1, int(np.flatnonzero(squares <= allowed)[0]))
        if rank > most:
            break
        factors = of_rank(rank)
        if factors.error <= low_rank.limit:
            return factors
        # What rounding the factors takes is not left for truncation.
        allowed = low_rank.limit**2 - (factors.error**2 - squares[rank])
    return None


def _replace(model: Model, weight: ir.Value, nodes: list[ir.Node], factors: _Factors) -> None:
    """Two nodes in the place of each that reads a weight."""
    assert weight.const_value is not None and weight.shape is not None
    kind = weight.const_value.dtype.numpy()
    matrices = {"left": factors.left, "right": factors.right}
    is_conv = nodes[0].op_type == "Conv"
    if is_conv:
        ones = (1,) * (len(weight.shape) - 2)
        matrices = {key: m.T.reshape(*m.T.shape, *ones) for key, m in matrices.items()}
    left, right = (
        add_initializer(model, f"{weight.name}.{key}", m.astype(kind))
        for key, m in matrices.items()
    )
    for node in nodes:
        given = dict(node.attributes)
        last = {key: given.pop(key) for key in ("alpha", "beta") if key in given}
        given.pop("transB", None)
        first = ir.Node(
            "",
            node.op_type,
            [node.inputs[0], left],
            list(given.values()),
            name=f"{node.name or node.op_type}.left",
            num_outputs=1,
        )
        old, new = node.outputs[0], first.outputs[0]
        assert old.shape is not None
        extents = list(old.shape)
        extents[1 if is_conv else -1] = len(factors.right)
        new.name, new.type, new.shape = f"{old.name}.left", old.type, ir.Shape(extents)
        model.graph.insert_before(node, first)
        replace(model, [node], node.op_type, [new, right, *node.inputs[2:]], last.values())
