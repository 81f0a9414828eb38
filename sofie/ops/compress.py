"""Compress: https://onnx.ai/onnx/operators/onnx__Compress.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Reshape, Tensor
from sofie.ops.compaction import at, positions
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


def _axis(node: Node) -> int | None:
    """The axis; None where the input is flattened."""
    return node.axis() if "axis" in node.raw.attributes else None


def _check(node: Node) -> Iterator[str]:
    if len(node.shape(1)) != 1:
        yield f"a condition of rank {len(node.shape(1))}"


@shape_rule("Compress")
def _shapes(node: Node) -> list[dims.Shape | None]:
    shape, axis, count = node.shape(0), _axis(node), node.counted()
    if axis is None:
        return [(count,)]
    return [(*shape[:axis], count, *shape[axis + 1 :])]


@operator("Compress", since=9, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A gather of the slices whose condition holds; conditions that are missing do not."""
    x, condition, axis = inputs[0], inputs[1], _axis(node)
    assert x is not None and condition is not None
    source = Reshape(x, (dims.product(x.shape),)) if axis is None else x
    along = 0 if axis is None else axis
    text = f"{node.label}: {{low}} conditions for an axis of {{high}}"
    b.require(condition.shape[0], source.shape[along], text)

    def mark(index: Index) -> Expr:
        return Call(dtype.UINT8, "static_cast<uint8_t>({0})", (condition.load(index),))

    found = positions(node, b, b.lazy(dtype.UINT8, condition.shape, [condition], mark))

    def element(index: Index) -> Expr:
        return source.load((*index[:along], at(found, index[along]), *index[along + 1 :]))

    return [b.lazy(x.dtype, node.out_shape(), [source, found], element)]
