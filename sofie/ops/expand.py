"""Expand: https://onnx.ai/onnx/operators/onnx__Expand.html"""

from collections.abc import Iterator, Sequence

import onnx_ir
import onnx_shape_inference as inference

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Broadcast, Tensor
from sofie.ops.elementwise import broadcast_shapes
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.known(1) is None:
        yield "a rank that is not known at build time"


@inference.registry.register("", "Expand", since_version=8)  # type: ignore[untyped-decorator]
def infer(ctx: inference.ShapeInferenceContext, node: onnx_ir.Node) -> None:
    """The shapes broadcast both ways; of two symbols either may be 1."""
    data = node.inputs[0]
    assert data is not None
    given = Node(node, 0)
    target = given.known(1)
    if data.shape is None or data.dtype is None:
        return
    known = None if target is None else [dims.as_dim(d) for d in target]
    shape = None if known is None else broadcast_shapes([tuple(data.shape), known])
    result = None if shape is None else onnx_ir.Shape([dims.as_dim(d) for d in shape])
    ctx.set_shape_and_dtype(node.outputs[0], result, data.dtype)


@operator("Expand", since=8, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A view with stride 0 along the stretched axes."""
    x, target = inputs[0], node.known(1)
    assert x is not None and target is not None
    b.require_broadcast(x.shape, node.out_shape())
    b.require_broadcast(target, node.out_shape())
    return [Broadcast(x, node.out_shape())]
