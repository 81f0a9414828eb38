"""AffineGrid: https://onnx.ai/onnx/operators/onnx__AffineGrid.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.elementwise import rounded
from sofie.ops.inference import known, shape_rule
from sofie.ops.registry import operator
from sofie.ops.sampling import size


def _check(node: Node) -> Iterator[str]:
    sizes = node.known(1)
    if sizes is None:
        yield "a size that depends on data"
    elif len(sizes) not in (4, 5):
        yield f"a size of {len(sizes)} numbers"


@shape_rule("AffineGrid", since=20)
def _shapes(node: Node) -> list[dims.Shape | None]:
    batch, _, *spatial = known(node, 1, "a size")
    return [(batch, *spatial, dims.ONE * len(spatial))]


@operator("AffineGrid", since=20, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Each point of a regular grid between -1 and 1, moved by the matrix of its batch."""
    theta = inputs[0]
    shape = _shapes(node)[0]
    assert theta is not None and shape is not None
    b.require_equal(theta.shape[0], shape[0], "batches of theta and size")
    spatial = len(shape) - 2
    aligned = node.attr_int("align_corners", 0) == 1
    number = dtype.wide(theta.dtype)
    one, two = Literal(number, 1), Literal(number, 2)

    def coordinate(at: dims.Expr, extent: dims.Expr) -> Expr:
        if not aligned:
            template = "({0} * {2} + {3}) / {1} - {3}"
            return Call(number, template, (size(at, number), size(extent, number), two, one))
        # A single point stands at the start.
        gaps = size(dims.largest(extent - 1, dims.ONE), number)
        return Call(number, "{0} * {2} / {1} - {3}", (size(at, number), gaps, two, one))

    def element(index: Index) -> Expr:
        def factor(column: int) -> Expr:
            entry = theta.load((index[0], index[-1], dims.ONE * column))
            return rounded(entry, number)

        value = factor(spatial)
        for column in range(spatial):
            # x, the first coordinate, runs along the last axis.
            axis = spatial - column
            place = coordinate(index[axis], shape[axis])
            value = Call(number, "{0} + {1} * {2}", (value, factor(column), place))
        return rounded(value, theta.dtype)

    return [b.lazy(theta.dtype, shape, [theta], element)]
