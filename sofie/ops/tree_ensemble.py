"""TreeEnsemble: https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsemble.html"""

from collections.abc import Iterator, Sequence

import numpy as np
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise, scores, tree_tables
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator
from sofie.ops.tree_tables import TreeNode, Trees

_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@shape_rule("TreeEnsemble", domain="ai.onnx.ml", since=5)
def _shapes(node: Node) -> list[dims.Shape]:
    return [(node.shape(0)[0], sympy.Integer(node.attr_int("n_targets", 1)))]


def _check(node: Node) -> Iterator[str]:
    yield from tree_tables.check_rows(node)
    aggregate, transform = _choices(node)
    if not 0 <= aggregate < len(_AGGREGATES):
        yield f"the aggregate_function {aggregate}"
    if not 0 <= transform < len(scores.TRANSFORMS):
        yield f"the post_transform {transform}"
    _read(node)


def _choices(node: Node) -> tuple[int, int]:
    return node.attr_int("aggregate_function", 1), node.attr_int("post_transform", 0)


def _read(node: Node) -> Trees:
    """The trees; tests for membership are still nodes of their own."""

    def integers(name: str) -> Sequence[int]:
        return node.attr_ints(name) or ()

    def numbers(name: str) -> list[float]:
        array = node.attr_tensor(name)
        return [] if array is None else [float(v) for v in array.reshape(-1)]

    modes = [int(v) for v in numbers("nodes_modes")]
    missing = integers("nodes_missing_value_tracks_true") or (0,) * len(modes)
    true, false = (
        [
            ~at if is_leaf else at
            for at, is_leaf in zip(
                integers(f"nodes_{side}nodeids"), integers(f"nodes_{side}leafs"), strict=True
            )
        ]
        for side in ("true", "false")
    )
    columns = (modes, integers("nodes_featureids"), numbers("nodes_splits"), missing, true, false)
    if len({len(column) for column in columns}) != 1:
        raise ValueError("the attributes nodes_* differ in length")
    nodes = [
        TreeNode(mode, feature, split, bool(tracks), (yes, no))
        for mode, feature, split, tracks, yes, no in zip(*columns, strict=True)
    ]
    targets, weights = integers("leaf_targetids"), numbers("leaf_weights")
    if len(targets) != len(weights):
        raise ValueError("the attributes leaf_* differ in length")
    votes = [[vote] for vote in zip(targets, weights, strict=True)]
    count = node.attr_int("n_targets", 1)
    roots = list(integers("tree_roots"))
    ends = [*roots, *(child for n in nodes for child in n.children)]
    if any(not -len(votes) <= at < len(nodes) for at in ends):
        raise ValueError("a root or a child that does not exist")
    if any(not 0 <= mode < len(tree_tables.BRANCHES) for mode in modes):
        raise ValueError("a node mode that does not exist")
    if any(not 0 <= target < count for target in targets):
        raise ValueError("a vote for a target that does not exist")
    trees = Trees(nodes, roots, votes, count)
    tree_tables.check_acyclic(trees)
    return trees


def _sets(node: Node) -> list[list[float]]:
    """The members of each set, which NaN ends."""
    array = node.attr_tensor("membership_values")
    sets: list[list[float]] = [[]]
    for value in () if array is None else array.reshape(-1):
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(float(value))
    return sets


@operator("TreeEnsemble", domain="ai.onnx.ml", since=5, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """One walk through all trees, then the post transform."""
    x = inputs[0]
    assert x is not None
    number = dtype.wide(x.dtype)
    if x.dtype is not number:
        x = elementwise.call(b, number, "{0}", x)
    aggregate, transform = _choices(node)
    trees = _read(node).without_sets(_sets(node))
    sums = trees.scores(node, b, x, _AGGREGATES[aggregate])
    return [scores.transformed(b, sums, scores.TRANSFORMS[transform], node.out_dtype())]
