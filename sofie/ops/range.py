"""Range: https://onnx.ai/onnx/operators/onnx__Range.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


def _bounds(node: Node) -> list[dims.Expr] | None:
    """Start, limit and delta; None where one is no scalar."""
    read = node.known_numbers if node.dtype(0).is_float else node.known
    bounds = [read(position) for position in range(3)]
    if any(bound is None or len(bound) != 1 for bound in bounds):
        return None
    return [bound[0] for bound in bounds if bound is not None]


@shape_rule("Range", since=11)
def _shapes(node: Node) -> list[dims.Shape | None]:
    bounds = _bounds(node)
    return [None if bounds is None else (dims.Steps(*bounds),)]


def _check(node: Node) -> Iterator[str]:
    if _bounds(node) is None:
        yield "a start, limit or delta that is not one number"


@operator("Range", since=11, dtypes=dtype.NUMBERS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Arithmetic on the index; nothing is stored."""
    bounds = _bounds(node)
    assert bounds is not None
    start, _, delta = bounds
    b.require(dims.Equals(delta, dims.ZERO), dims.ZERO, f"{node.label}: Range with a delta of 0")
    result = node.out_dtype()
    tensors = [t for t in (inputs[0], inputs[2]) if t is not None]

    def integer(index: Index) -> Expr:
        value = IndexExpr(dtype.INT64, start + index[0] * delta)
        if result is dtype.INT64:
            return value
        return Call(result, f"static_cast<{result.cpp}>({{0}})", (value,))

    def number(index: Index) -> Expr:
        first, step = (t.load((dims.ZERO,) * t.rank) for t in tensors)
        at = IndexExpr(dtype.INT64, index[0])
        template = f"{{0}} + static_cast<{result.cpp}>({{1}}) * {{2}}"
        return Call(result, template, (first, at, step))

    element = number if result.is_float else integer
    return [b.lazy(result, node.out_shape(), tensors if result.is_float else (), element)]
