"""OptionalHasElement: https://onnx.ai/onnx/operators/onnx__OptionalHasElement.html"""

from collections.abc import Sequence

import onnx_ir

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Literal
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops.elementwise import given
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


@shape_rule("OptionalHasElement", since=18, types=(onnx_ir.DataType.BOOL,))
def _shapes(node: Node) -> list[dims.Shape]:
    return [()]


@operator("OptionalHasElement", since=18, dtypes=dtype.EVERY)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """True for a tensor, false for no input at all."""
    present = Literal(dtype.BOOL, bool(given(inputs)))
    return [b.lazy(dtype.BOOL, (), (), lambda _: present)]
