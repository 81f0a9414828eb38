"""Constant: https://onnx.ai/onnx/operators/onnx__Constant.html"""

from collections.abc import Iterator, Sequence

import numpy as np

from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    for name in ("sparse_value", "value_string", "value_strings"):
        if name in node.raw.attributes:
            yield f"the attribute {name}"


@operator("Constant", since=1, dtypes=None, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A weight. The importer has made initializers of constants, but for those that are outputs."""
    return [b.constant(node.raw.outputs[0].name or "", node.out_dtype(), _value(node))]


def _value(node: Node) -> np.ndarray:
    tensor = node.attr_tensor("value")
    if tensor is not None:
        return tensor
    attribute = next(iter(node.raw.attributes.values()))
    kind = np.float32 if "float" in attribute.name else np.int64
    return np.asarray(attribute.value, kind)
