"""GridSample: https://onnx.ai/onnx/operators/onnx__GridSample.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.elementwise import rounded
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator
from sofie.ops.sampling import Axis, sampled, size

# Opset 16 has other names.
_MODES = {
    "nearest": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "cubic": "cubic",
    "bicubic": "cubic",
}


def _mode(node: Node) -> str:
    return node.attr_string("mode", "linear")


def check(node: Node) -> Iterator[str]:
    """Reasons against modes and types."""
    mode = _mode(node)
    if mode not in _MODES:
        yield f"the mode {mode!r}"
    elif _MODES[mode] != "nearest" and not node.dtype(0).is_float:
        yield "interpolation of integers"
    padding = node.attr_string("padding_mode", "zeros")
    if padding not in ("zeros", "border", "reflection"):
        yield f"the padding_mode {padding!r}"
    if node.dtype(1) not in dtype.FLOATS:
        yield f"a grid of type {node.dtype(1).name}"


@shape_rule("GridSample", since=16)
def shapes(node: Node) -> list[dims.Shape | None]:
    """Batch and channels of the input, the rest of the grid."""
    return [(*node.shape(0)[:2], *node.shape(1)[1:-1])]


@operator("GridSample", since=16, dtypes=dtype.ALL, check=check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Elements, or sums of the elements around them, at coordinates between -1 and 1."""
    x, grid = inputs[0], inputs[1]
    assert x is not None and grid is not None
    shape = shapes(node)[0]
    assert shape is not None
    spatial = x.rank - 2
    b.require_equal(grid.shape[0], x.shape[0], "batches of the input and the grid")
    b.require_equal(grid.shape[-1], dims.ONE * spatial, "the grid's last extent and the rank")
    for axis, extent in enumerate(x.shape[2:], 2):
        message = f"{b.node}: axis {axis} has no element to sample"
        b.require(dims.smallest(dims.product(shape), dims.ONE), extent, message)
    mode, padding = _MODES[_mode(node)], node.attr_string("padding_mode", "zeros")
    aligned = node.attr_int("align_corners", 0) == 1
    number = dtype.wide(grid.dtype)
    result = dtype.wide(x.dtype) if mode != "nearest" else x.dtype

    def coordinate(value: Expr, extent: dims.Expr) -> Expr:
        one, two = Literal(number, 1), Literal(number, 2)
        length = size(extent, number)
        template = "(({0} + {2}) * {1} - {2}) / {3}"
        if aligned:
            template = "({0} + {2}) / {3} * ({1} - {2})"
        return Call(number, template, (rounded(value, number), length, one, two))

    def element(index: Index) -> Expr:
        axes = []
        for axis in range(spatial):
            # The grid's coordinates are those of the last axis first.
            place = grid.load((index[0], *index[2:], dims.ONE * (spatial - 1 - axis)))
            extent = x.shape[2 + axis]
            axes.append(Axis(coordinate(place, extent), extent, mode, padding, aligned))
        value = sampled(axes, x.dtype, result, lambda at: x.load((*index[:2], *at)))
        return rounded(value, x.dtype)

    return [b.lazy(x.dtype, shape, [x, grid], element)]
