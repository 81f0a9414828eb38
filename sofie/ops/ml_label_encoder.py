"""LabelEncoder: https://onnx.ai/onnx/operators/onnx_aionnxml_LabelEncoder.html"""

from collections.abc import Iterator, Sequence

import numpy as np

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Accumulator, Call, Expr, Indirect, Literal, Select
from sofie.ir.expr import Index as IndexValue
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator


def _list(node: Node, name: str) -> np.ndarray | None:
    """Keys or values, however they are given; None for strings."""
    tensor = node.attr_tensor(f"{name}_tensor")
    if tensor is not None:
        return None if tensor.dtype.kind in "OSU" else tensor.reshape(-1)
    integers, floats = node.attr_ints(f"{name}_int64s"), node.attr_floats(f"{name}_floats")
    if integers is not None:
        return np.array(integers, np.int64)
    return None if floats is None else np.array(floats, np.float32)


def _default(node: Node, kind: np.dtype) -> np.ndarray:
    tensor = node.attr_tensor("default_tensor")
    if tensor is not None:
        return tensor.reshape(-1)[:1].astype(kind)
    if kind.kind == "f":
        return np.array([node.attr_float("default_float", -0.0)], kind)
    return np.array([node.attr_int("default_int64", -1)], kind)


def _check(node: Node) -> Iterator[str]:
    keys, values = _list(node, "keys"), _list(node, "values")
    if keys is None or values is None:
        yield "strings"
    elif len(keys) != len(values):
        yield f"{len(keys)} keys for {len(values)} values"


@operator(
    "LabelEncoder",
    domain="ai.onnx.ml",
    since=2,
    dtypes={dtype.FLOAT32, dtype.FLOAT64, dtype.INT16, dtype.INT32, dtype.INT64},
    check=_check,
)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Every element is compared with every key; NaN is a key like any other.

    Where nothing matches, the place is that of the default, after the last value.
    """
    (x,) = elementwise.given(inputs)
    keys, values = _list(node, "keys"), _list(node, "values")
    assert keys is not None and values is not None
    kind = node.out_dtype()
    table = np.concatenate([values.astype(kind.name), _default(node, np.dtype(kind.name))])
    known = b.constant(f"{node.label}.keys", x.dtype, keys.astype(x.dtype.name))
    results = b.constant(f"{node.label}.values", kind, table)
    last = IndexValue(dtype.INT64, dims.as_expr(len(values)))

    def element(outer: Index, inner: Index) -> Expr:
        parts = (x.load(outer), known.load(inner))
        same = Call(dtype.BOOL, "sofie::kernels::SameKey({0}, {1})", parts)
        return Select(dtype.INT64, same, IndexValue(dtype.INT64, inner[0]), last)

    count = known.shape[0]
    least = Combine("Min", dtype.INT64)
    bound = Literal(dtype.INT64, len(values))

    def finish(_: Expr) -> Expr:
        parts = (Accumulator(dtype.INT64), bound)
        place = Call(dtype.INT64, "sofie::kernels::Minimum({0}, {1})", parts)
        return results.load((Indirect(place),))

    found = Reduction(b, x.shape, [count], least, element, finish, kind, [x])
    return [found]
