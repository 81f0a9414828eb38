"""OneHot: https://onnx.ai/onnx/operators/onnx__OneHot.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Select
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if not _depths(node):
        yield "a depth that depends on data"


@shape_rule("OneHot", since=9, types=(2,))
def _shapes(node: Node) -> list[dims.Shape | None]:
    shape, axis = node.shape(0), _axis(node)
    depths = _depths(node)
    if not depths:
        raise ValueError("a depth that depends on data")
    return [(*shape[:axis], depths[0], *shape[axis:])]


def _depths(node: Node) -> Sequence[dims.Expr]:
    """The one number that the depth is, rounded down; none if it depends on data."""
    if not node.dtype(1).is_float:
        return node.known(1) or ()
    return [dims.Floor(depth) for depth in node.known_numbers(1) or ()]


def _axis(node: Node) -> int:
    return node.axis(-1, len(node.shape(0)) + 1)


@operator("OneHot", since=9, dtypes=dtype.NUMBERS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The second value where an index, counted from the end if negative, meets its position."""
    indices, values = inputs[0], inputs[2]
    assert indices is not None and values is not None
    shape, axis = _shapes(node)[0], _axis(node)
    assert shape is not None
    depth = shape[axis]
    b.require(dims.ZERO, depth, f"{node.label}: OneHot of depth {{high}}")

    def element(index: Index) -> Expr:
        given = indices.load((*index[:axis], *index[axis + 1 :]))
        whole = Call(dtype.INT64, "static_cast<int64_t>({0})", (given,))
        at, extent = IndexExpr(dtype.INT64, index[axis]), IndexExpr(dtype.INT64, depth)
        template = "({0} == {1}) || ({0} + {2} == {1})"
        on = Call(dtype.BOOL, template, (whole, at, extent))
        off, value = (values.load((dims.ONE * i,)) for i in range(2))
        return Select(values.dtype, on, value, off)

    return [b.lazy(values.dtype, shape, [indices, values], element)]
