"""MaxUnpool: https://onnx.ai/onnx/operators/onnx__MaxUnpool.html

Indices count in the output that the attributes lead to; a larger ``output_shape`` adds zeros at the
end of every axis.
"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Literal, Select
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Reshape, Tensor
from sofie.ops.indexing import indirect, inside, require_elements
from sofie.ops.inference import known, shape_rule
from sofie.ops.registry import operator
from sofie.ops.spatial import check_window, kernel_shape


def _check(node: Node) -> Iterator[str]:
    yield from check_window(node)
    if node.has(2) and node.known(2) is None:
        yield "an output_shape that depends on data"


@shape_rule("MaxUnpool", since=9)
def _shapes(node: Node) -> list[dims.Shape | None]:
    return [known(node, 2, "an output_shape") if node.has(2) else _unpooled(node)]


def _unpooled(node: Node) -> dims.Shape:
    """The shape that the pooling had as input, as far as its attributes say."""
    shape, kernel = node.shape(0), kernel_shape(node)
    rank = len(kernel)
    strides = node.attr_ints("strides") or (1,) * rank
    pads = node.attr_ints("pads") or (0,) * (2 * rank)
    spatial = [
        (shape[2 + a] - 1) * strides[a] - pads[a] - pads[rank + a] + kernel[a] for a in range(rank)
    ]
    return (*shape[:2], *spatial)


@operator("MaxUnpool", since=9, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Every element to where its index says, zeros elsewhere."""
    x, indices = inputs[0], inputs[1]
    assert x is not None and indices is not None
    shape, wanted = _unpooled(node), _shapes(node)[0]
    assert wanted is not None
    for axis, (have, want) in enumerate(zip(indices.shape, x.shape, strict=True)):
        b.require_equal(have, want, f"extents of axis {axis} of the input and the indices")
    for axis, extent in enumerate(shape):
        b.require(dims.ZERO, extent, f"{b.node}: an output of {{high}} elements along axis {axis}")
    total = dims.product(shape)
    require_elements(b, x.shape, (total,))
    zero = Literal(x.dtype, 0)
    zeros = b.lazy(x.dtype, (total,), (), lambda _: zero)

    def position(index: Index) -> Index:
        return (indirect(indices.load(index), total),)

    flat = b.scatter(zeros, x, range(x.rank), position, "Replace", [indices])
    image = Reshape(flat, shape)
    if all(dims.same(have, want) for have, want in zip(shape, wanted, strict=True)):
        return [image]
    for axis, (have, want) in enumerate(zip(shape, wanted, strict=True)):
        message = f"{b.node}: output_shape has {{high}} elements of {{low}} along axis {axis}"
        b.require(have, want, message)
    margins = [(dims.ZERO, want - have) for have, want in zip(shape, wanted, strict=True)]

    def element(index: Index) -> Select:
        within = inside(index, shape, margins)
        assert within is not None
        return Select(x.dtype, within, image.load(index), zero)

    return [b.lazy(x.dtype, wanted, [image], element)]
