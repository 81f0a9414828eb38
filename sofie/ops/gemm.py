"""Gemm: https://onnx.ai/onnx/operators/onnx__Gemm.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.program import Epilogue
from sofie.ir.tensor import Broadcast, Index, Permute, Reshape, Tensor
from sofie.ops.matmul import PRODUCTS, multiply
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    factors = node.attr_float("alpha", 1.0), node.attr_float("beta", 1.0)
    if node.dtype(0) in dtype.INTEGERS and not all(f.is_integer() for f in factors):
        yield "an alpha or beta with a fraction, on integers"


@operator("Gemm", since=7, dtypes=PRODUCTS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """One GEMM; a bias of one row rides along, any other is added afterwards."""
    a, c = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    assert a is not None and c is not None
    alpha, beta = node.attr_float("alpha", 1.0), node.attr_float("beta", 1.0)
    left = Permute(a, (1, 0)) if node.attr_int("transA", 0) else a
    right = Permute(c, (1, 0)) if node.attr_int("transB", 0) else c
    m, n = left.shape[0], right.shape[1]
    b.require_equal(left.shape[1], right.shape[0], "columns and rows of the operands")
    if bias is not None:
        b.require_broadcast(bias.shape, (m, n))
    if a.dtype in dtype.INTEGERS:
        return [_of_integers(node, b, left, right, bias)]
    row = beta == 1.0 and bias is not None and _is_row(bias, n)
    fused_bias = b.packed(Reshape(bias, (n,))) if row and bias is not None else None
    relu = node.attr_string("activation", "") == "Relu"
    plain = bias is None or row or beta == 0.0
    out = b.output(a.dtype, (dims.ONE, m, n))
    b.matmul(
        b.in_memory(Reshape(left, (dims.ONE, *left.shape))),
        b.in_memory(Reshape(right, (dims.ONE, *right.shape))),
        out,
        bias=fused_bias,
        epilogue=Epilogue.RELU if relu and plain else Epilogue.NONE,
        alpha=alpha,
        sources=[left, right],
    )
    result: Tensor = Reshape(out, (m, n))
    if bias is None or plain:
        return [result]
    product, added = result, Broadcast(bias, (m, n))

    def element(index: Index) -> Expr:
        scaled = Call(a.dtype, "{0} * {1}", (Literal(a.dtype, beta), added.load(index)))
        total = Call(a.dtype, "{0} + {1}", (product.load(index), scaled))
        return Call(a.dtype, "sofie::kernels::Relu({0})", (total,)) if relu else total

    return [b.lazy(a.dtype, (m, n), [product, added], element)]


def _of_integers(
    node: Node, b: Builder, left: Tensor, right: Tensor, bias: Tensor | None
) -> Tensor:
    """``alpha * left @ right + beta * bias``, modulo the type's range."""
    kind, shape = left.dtype, (left.shape[0], right.shape[1])
    product = multiply(b, left, right, shape)
    added = None if bias is None else Broadcast(bias, shape)
    alpha, beta = (Literal(kind, int(node.attr_float(n, 1.0))) for n in ("alpha", "beta"))
    relu = node.attr_string("activation", "") == "Relu"

    def element(index: Index) -> Expr:
        value: Expr = Call(
            kind, f"static_cast<{kind.cpp}>({{0}} * {{1}})", (alpha, product.load(index))
        )
        if added is not None:
            template = f"static_cast<{kind.cpp}>({{0}} + {{1}} * {{2}})"
            value = Call(kind, template, (value, beta, added.load(index)))
        return Call(kind, "sofie::kernels::Relu({0})", (value,)) if relu else value

    return b.lazy(kind, shape, [product, *([] if added is None else [added])], element)


def _is_row(bias: Tensor, n: dims.Expr) -> bool:
    return bias.rank > 0 and dims.same(bias.shape[-1], n) and all(d == 1 for d in bias.shape[:-1])
