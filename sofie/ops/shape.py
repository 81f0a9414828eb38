"""Shape: https://onnx.ai/onnx/operators/onnx__Shape.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node, known_values
from sofie.ir.tensor import Tensor
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if known_values(node.raw.outputs[0]) is None:
        yield "the shape of a tensor whose shape depends on data"


@operator("Shape", since=1, dtypes=dtype.EVERY, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Sizes that the host knows."""
    values = known_values(node.raw.outputs[0])
    assert values is not None
    return [b.known(node.out_shape(), values)]
