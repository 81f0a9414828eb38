"""MatMul: https://onnx.ai/onnx/operators/onnx__MatMul.html"""

from collections.abc import Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Broadcast, Index, Reduction, Reshape, Strided, Tensor
from sofie.ops.elementwise import given
from sofie.ops.registry import operator

# ONNX has products of these, of floating-point numbers, and of 8-bit ones under other names.
PRODUCTS = dtype.FLOATS | {dtype.INT32, dtype.INT64, dtype.UINT32, dtype.UINT64}


@operator("MatMul", since=1, dtypes=PRODUCTS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """One batched GEMM; operands are read through their strides."""
    left, right = given(inputs)
    return [multiply(b, left, right, node.out_shape())]


def multiply(
    b: Builder, left: Tensor, right: Tensor, shape: dims.Shape, alpha: float = 1.0
) -> Tensor:
    """The matrix product, of ``shape``, as NumPy's ``matmul`` has it.

    Args:
      b: where it is launched.
      left: the first factor.
      right: the second one.
      shape: of the result.
      alpha: a factor on floating-point products.
    """
    if left.rank == 1:
        left = Reshape(left, (dims.ONE, left.shape[0]))
    if right.rank == 1:
        right = Reshape(right, (right.shape[0], dims.ONE))
    b.require_equal(left.shape[-1], right.shape[-2], "columns and rows of the operands")
    rank = max(left.rank, right.rank) - 2
    batch = _broadcast(left.shape[:-2], right.shape[:-2], rank)
    b.require_broadcast(left.shape[:-2], batch)
    b.require_broadcast(right.shape[:-2], batch)
    if left.dtype in dtype.INTEGERS:
        return Reshape(_sums(b, left, right, batch), shape)
    a = _batched(b, left, batch)
    c = _batched(b, right, batch)
    out = b.output(left.dtype, (dims.product(batch), left.shape[-2], right.shape[-1]))
    b.matmul(a, c, out, alpha=alpha, sources=[left, right])
    return Reshape(out, shape)


def _sums(b: Builder, left: Tensor, right: Tensor, batch: dims.Shape) -> Tensor:
    """The product of integers, for which libraries have none: every element a sum of its own."""
    kind = left.dtype
    rows, terms, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    a = Broadcast(left, (*batch, rows, terms))
    c = Broadcast(right, (*batch, terms, columns))

    def element(index: Index, term: Index) -> Expr:
        factors = (
            a.load((*index[:-1], *term)),
            c.load((*index[:-2], *term, index[-1])),
        )
        return Call(kind, f"static_cast<{kind.cpp}>({{0}} * {{1}})", factors)

    total = Combine("Sum", kind)
    shape = (*batch, rows, columns)
    return Reduction(b, shape, [terms], total, element, lambda x: x, kind, [left, right])


def _broadcast(left: dims.Shape, right: dims.Shape, rank: int) -> dims.Shape:
    padded_left = (dims.ONE,) * (rank - len(left)) + left
    padded_right = (dims.ONE,) * (rank - len(right)) + right
    return tuple(dims.broadcast(x, y) for x, y in zip(padded_left, padded_right, strict=True))


def _batched(b: Builder, operand: Tensor, batch: dims.Shape) -> Strided:
    """The operand as [batch, rows, columns], its batch axes broadcast and merged."""
    rows, columns = operand.shape[-2:]
    matrix = (dims.product(batch), rows, columns)
    if all(extent == 1 for extent in operand.shape[:-2]):
        return b.in_memory(Broadcast(Reshape(operand, (rows, columns)), matrix))
    full = (*batch, rows, columns)
    stretched = operand if operand.shape == full else Broadcast(operand, full)
    return b.in_memory(Reshape(stretched, matrix))
