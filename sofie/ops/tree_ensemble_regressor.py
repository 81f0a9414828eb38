"""TreeEnsembleRegressor: https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsembleRegressor.html"""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import scores, tree_tables
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


@shape_rule("TreeEnsembleRegressor", domain="ai.onnx.ml", types=(onnx_ir.DataType.FLOAT,))
def _shapes(node: Node) -> list[dims.Shape]:
    return [(node.shape(0)[0], sympy.Integer(node.attr_int("n_targets", 1)))]


def _check(node: Node) -> Iterator[str]:
    yield from tree_tables.check_rows(node)
    yield from scores.check_transform(node)
    aggregate = node.attr_string("aggregate_function", "SUM")
    if aggregate not in tree_tables.AGGREGATES:
        yield f"the aggregate_function {aggregate!r}"
    tree_tables.read(node, "target", node.attr_int("n_targets", 1))


@operator(
    "TreeEnsembleRegressor",
    domain="ai.onnx.ml",
    since=1,
    dtypes=dtype.ML,
    check=_check,
)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """One walk through all trees, then the base values and the post transform."""
    x, targets = inputs[0], node.attr_int("n_targets", 1)
    assert x is not None
    trees = tree_tables.read(node, "target", targets)
    sums = trees.scores(node, b, x, node.attr_string("aggregate_function", "SUM"))
    based = with_base(node, b, sums, tree_tables.numbers(node, "base_values"))
    return [scores.transformed(b, based, node.attr_string("post_transform", "NONE"))]


def with_base(node: Node, b: Builder, sums: Tensor, base: Sequence[float]) -> Tensor:
    """Scores with the base values, if there are any, added."""
    if not base:
        return sums
    if len(base) != sums.shape[1]:
        raise ValueError(f"{len(base)} base_values for {sums.shape[1]} targets")
    values = np.array(base, sums.dtype.name)
    constants = b.constant(f"{node.label}.base_values", sums.dtype, values)

    def element(index: Index) -> Expr:
        return Call(sums.dtype, "{0} + {1}", (sums.load(index), constants.load(index[1:])))

    return b.lazy(sums.dtype, sums.shape, [sums], element)
