"""OneHotEncoder: https://onnx.ai/onnx/operators/onnx_aionnxml_OneHotEncoder.html"""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import elementwise
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


def _categories(node: Node) -> tuple[int, ...]:
    return node.attr_ints("cats_int64s") or ()


@shape_rule("OneHotEncoder", domain="ai.onnx.ml", types=(onnx_ir.DataType.FLOAT,))
def _shapes(node: Node) -> list[dims.Shape]:
    return [(*node.shape(0), sympy.Integer(len(_categories(node))))]


def _check(node: Node) -> Iterator[str]:
    if not _categories(node):
        yield "categories that are strings"
    if node.attr_int("zeros", 1) == 0:
        yield "zeros = 0, an error for unknown categories"


@operator(
    "OneHotEncoder",
    domain="ai.onnx.ml",
    since=1,
    dtypes=dtype.ML,
    check=_check,
)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """1 at the place of the category, 0 elsewhere; other numbers have zeros only."""
    (x,) = elementwise.given(inputs)
    values = np.array(_categories(node), np.int64)
    table = b.constant(f"{node.label}.categories", dtype.INT64, values)

    def element(index: Index) -> Expr:
        parts = (x.load(index[:-1]), table.load(index[-1:]))
        return Call(dtype.FLOAT32, "static_cast<float>(static_cast<int64_t>({0}) == {1})", parts)

    return [b.lazy(dtype.FLOAT32, node.out_shape(), [x], element)]
