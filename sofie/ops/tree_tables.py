"""Decision trees as tables: what the tree ensemble operators have in common.

The tables are weights; ``sofie/runtime/kernels/tree_ensemble.h`` walks them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import sympy

from sofie.ir.builder import Builder
from sofie.ir.dtype import FLOAT32, FLOAT64, INT32, DType
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor

BRANCHES = (
    "BRANCH_LEQ",
    "BRANCH_LT",
    "BRANCH_GTE",
    "BRANCH_GT",
    "BRANCH_EQ",
    "BRANCH_NEQ",
    "BRANCH_MEMBER",
)
_EQUAL, _MEMBER = 4, 6
AGGREGATES = {"AVERAGE": "kAverage", "SUM": "kSum", "MIN": "kMin", "MAX": "kMax"}


@dataclasses.dataclass
class TreeNode:
    """An inner node.

    Attributes:
      branch: position in ``BRANCHES``.
      feature: the column that is compared.
      threshold: what it is compared with.
      missing: whether NaN takes the first child.
      children: of a comparison that holds, and of one that does not; leaves by their complement.
    """

    branch: int
    feature: int
    threshold: float
    missing: bool
    children: tuple[int, int]


@dataclasses.dataclass
class Trees:
    """An ensemble.

    Attributes:
      nodes: the inner nodes of all trees.
      roots: of the trees, as children are.
      votes: of every leaf, pairs of target and weight.
      targets: number of targets.
    """

    nodes: list[TreeNode]
    roots: list[int]
    votes: list[list[tuple[int, float]]]
    targets: int

    def without_sets(self, members: Sequence[Sequence[float]]) -> Trees:
        """Tests for membership as chains of tests for equality; one set for each such node."""
        nodes, sets = list(self.nodes), iter(members)
        for position, node in enumerate(self.nodes):
            if node.branch != _MEMBER:
                continue
            values = list(next(sets)) or [float("nan")]
            inside, outside = node.children
            at = position
            for value in values:
                last = value is values[-1]
                following = outside if last else len(nodes)
                nodes[at] = TreeNode(_EQUAL, node.feature, value, node.missing, (inside, following))
                if not last:
                    at = len(nodes)
                    nodes.append(node)
        return dataclasses.replace(self, nodes=nodes)

    def scores(self, node: Node, b: Builder, x: Tensor, aggregate: str) -> Tensor:
        """Launches the walk: the scores [rows, targets] of ``x[rows, features]``."""
        number = FLOAT64 if x.dtype is FLOAT64 else FLOAT32
        joined = [_joined(votes, aggregate) for votes in self.votes]
        flat = [vote for votes in joined for vote in votes]
        begins = np.cumsum([0, *map(len, joined)])
        packed = [[n.feature * 16 + n.missing * 8 + n.branch, *n.children] for n in self.nodes]

        def table(name: str, dtype: DType, values: object) -> Tensor:
            array = np.array(values, dtype.name)
            return b.constant(f"{node.label}.{name}", dtype, array)

        shape = (x.shape[0], sympy.Integer(self.targets))
        out = b.output(number, shape)
        b.require(
            sympy.Integer(max((n.feature for n in self.nodes), default=-1) + 1),
            x.shape[1],
            f"{node.label}: the trees look at {{low}} features, but the input has {{high}}",
        )
        b.routine(
            "TreeEnsemble",
            (x.dtype, number),
            {
                "x": x,
                "thresholds": table("thresholds", number, [n.threshold for n in self.nodes]),
                "nodes": table("nodes", INT32, packed),
                "roots": table("roots", INT32, self.roots),
                "vote_begin": table("vote_begin", INT32, begins),
                "vote_target": table("vote_target", INT32, [t for t, _ in flat]),
                "vote_weight": table("vote_weight", number, [w for _, w in flat]),
            },
            {"scores": out},
            {
                "rows": x.shape[0],
                "features": x.shape[1],
                "trees": sympy.Integer(len(self.roots)),
                "targets": sympy.Integer(self.targets),
            },
            {"aggregate": f"sofie::kernels::TreeAggregate::{AGGREGATES[aggregate]}"},
        )
        return out


def _joined(votes: Sequence[tuple[int, float]], aggregate: str) -> list[tuple[int, float]]:
    """A leaf's votes with one for each target."""
    lists: dict[int, list[float]] = {}
    for target, weight in votes:
        lists.setdefault(target, []).append(weight)
    functions: dict[str, Callable[[list[float]], float]] = {"MIN": min, "MAX": max}
    join = functions.get(aggregate, sum)
    return [(target, join(weights)) for target, weights in lists.items()]


def check_rows(node: Node) -> Iterator[str]:
    """Reasons against the input."""
    if len(node.shape(0)) != 2:
        yield "an input that is not [rows, features]"


def read(node: Node, votes: str, targets: int) -> Trees:
    """The trees of TreeEnsembleRegressor and TreeEnsembleClassifier.

    Args:
      node: the operator.
      votes: how the attributes of the votes begin: ``target`` or ``class``.
      targets: number of targets.

    Raises:
      ValueError: the attributes contradict each other.
    """
    trees, ids = node.attr_ints("nodes_treeids") or (), node.attr_ints("nodes_nodeids") or ()
    modes = node.attr_strings("nodes_modes") or ()
    thresholds = numbers(node, "nodes_values")
    features = node.attr_ints("nodes_featureids") or ()
    true, false = (node.attr_ints(f"nodes_{n}nodeids") or () for n in ("true", "false"))
    missing = node.attr_ints("nodes_missing_value_tracks_true") or (0,) * len(trees)
    columns = (trees, ids, modes, thresholds, features, true, false, missing)
    if len({len(column) for column in columns}) != 1:
        raise ValueError("the attributes nodes_* differ in length")
    # Children are nodes, or leaves by their complement.
    places: dict[tuple[int, int], int] = {}
    inner = leaves = 0
    for key, mode in zip(zip(trees, ids, strict=True), modes, strict=True):
        if mode == "LEAF":
            places[key] = ~leaves
            leaves += 1
        else:
            places[key] = inner
            inner += 1
    nodes: list[TreeNode] = []
    parents: dict[tuple[int, int], int] = {}
    for row in zip(*columns, strict=True):
        tree, own, mode, threshold, feature, yes, no, tracks = row
        if mode == "LEAF":
            continue
        if mode not in BRANCHES or mode == "BRANCH_MEMBER":
            raise ValueError(f"the node mode {mode!r}")
        children = [(tree, yes), (tree, no)]
        if any(child not in places for child in children):
            raise ValueError(f"node {own} of tree {tree} has a child that does not exist")
        for child in children:
            parents[child] = own
        pair = (places[children[0]], places[children[1]])
        nodes.append(TreeNode(BRANCHES.index(mode), feature, float(threshold), bool(tracks), pair))
    roots: dict[int, int] = {}
    for key, place in places.items():
        if key not in parents:
            roots.setdefault(key[0], place)
    if set(roots) != set(trees):
        raise ValueError("a tree without a root")
    lists: list[list[tuple[int, float]]] = [[] for _ in range(leaves)]
    weights = numbers(node, f"{votes}_weights")
    for tree, own, target, weight in zip(
        *(node.attr_ints(f"{votes}_{n}") or () for n in ("treeids", "nodeids", "ids")),
        weights,
        strict=True,
    ):
        place = places.get((tree, own), 0)
        if place >= 0 or not 0 <= target < targets:
            raise ValueError(f"a vote of node {own} of tree {tree} for target {target}")
        lists[~place].append((target, float(weight)))
    result = Trees(nodes, list(roots.values()), lists, targets)
    check_acyclic(result)
    return result


def check_acyclic(trees: Trees) -> None:
    """Raises ValueError if a walk may never end."""
    state = [0] * len(trees.nodes)
    for root in trees.roots:
        stack = [root]
        while stack:
            at = stack.pop()
            if at < 0:
                continue
            if state[at] == 1:
                raise ValueError("a node with two parents, or a circle of nodes")
            state[at] = 1
            stack.extend(trees.nodes[at].children)


def numbers(node: Node, name: str) -> Sequence[float]:
    """A list of floats, or of doubles as ``<name>_as_tensor``."""
    doubles = node.attr_tensor(f"{name}_as_tensor")
    if doubles is not None:
        return [float(v) for v in doubles.reshape(-1)]
    return node.attr_floats(name) or ()
