"""Imputer: https://onnx.ai/onnx/operators/onnx_aionnxml_Imputer.html"""

from collections.abc import Iterator, Sequence

import numpy as np

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Reshape, Tensor
from sofie.ops import elementwise
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


@shape_rule("Imputer", domain="ai.onnx.ml")
def _shapes(node: Node) -> list[dims.Shape]:
    return [node.shape(0)]


def _values(node: Node) -> Sequence[float]:
    floats = node.dtype(0).is_float
    name = "imputed_value_floats" if floats else "imputed_value_int64s"
    return (node.attr_floats(name) if floats else node.attr_ints(name)) or ()


def _check(node: Node) -> Iterator[str]:
    length = len(_values(node))
    if length != 1 and node.shape(0)[-1:] != (length,):
        yield f"{length} imputed values of the input's type"


@operator(
    "Imputer",
    domain="ai.onnx.ml",
    since=1,
    dtypes=dtype.ML,
    check=_check,
)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """What equals the replaced value (NaN equals NaN) becomes its feature's imputed value."""
    (x,) = elementwise.given(inputs)
    values = np.array(_values(node), x.dtype.name)
    table: Tensor = b.constant(f"{node.label}.values", x.dtype, values)
    imputed = Reshape(table, ()) if len(values) == 1 else table
    replaced: float = (
        node.attr_float("replaced_value_float", 0.0)
        if x.dtype.is_float
        else node.attr_int("replaced_value_int64", 0)
    )
    number = Literal(x.dtype, replaced)
    missing = replaced != replaced
    condition = "sofie::kernels::IsNaN({0})" if missing else "{0} == {1}"

    def element(index: Index) -> Expr:
        value = x.load(index)
        new = imputed.load(index[-1:] if imputed.rank else ())
        is_missing = Call(dtype.BOOL, condition, (value,) if missing else (value, number))
        return Call(x.dtype, "{0} ? {1} : {2}", (is_missing, new, value))

    return [b.lazy(x.dtype, x.shape, [x], element)]
