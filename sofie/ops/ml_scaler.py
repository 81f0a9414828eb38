"""Scaler: https://onnx.ai/onnx/operators/onnx_aionnxml_Scaler.html"""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Reshape, Tensor
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


@shape_rule("Scaler", domain="ai.onnx.ml", types=(onnx_ir.DataType.FLOAT,))
def _shapes(node: Node) -> list[dims.Shape]:
    return [node.shape(0)]


def _check(node: Node) -> Iterator[str]:
    for name in ("offset", "scale"):
        length = len(node.attr_floats(name) or ())
        if length != 1 and node.shape(0)[-1:] != (length,):
            yield f"{name} with {length} values"


@operator(
    "Scaler",
    domain="ai.onnx.ml",
    since=1,
    dtypes=dtype.ML,
    check=_check,
)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """``(x - offset) * scale``, of each feature or of all alike."""
    x = inputs[0]
    assert x is not None
    constants = []
    for name in ("offset", "scale"):
        values = np.array(node.attr_floats(name), np.float32)
        tensor: Tensor = b.constant(f"{node.label}.{name}", dtype.FLOAT32, values)
        constants.append(Reshape(tensor, ()) if len(values) == 1 else tensor)

    def element(index: Index) -> Expr:
        parts = (c.load(index[-1:] if c.rank else ()) for c in constants)
        template = "(static_cast<float>({0}) - {1}) * {2}"
        return Call(dtype.FLOAT32, template, (x.load(index), *parts))

    return [b.lazy(dtype.FLOAT32, x.shape, [x], element)]
