"""If: https://onnx.ai/onnx/operators/onnx__If.html"""

from collections.abc import Iterator, Sequence

import onnx_ir as ir
import onnx_shape_inference as inference

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.node import Node, value_shape
from sofie.ir.tensor import Strided, Tensor
from sofie.ops import control_flow as flow
from sofie.ops.registry import operator

_BRANCHES = ("then_branch", "else_branch")


def _condition(node: Node) -> dims.Expr | None:
    """1 where the first branch is taken, 0 where the second one is; None if nobody can tell."""
    known = node.known(0)
    return None if known is None or len(known) != 1 else known[0]


def _infer(ctx: inference.ShapeInferenceContext, raw: ir.Node) -> None:
    """In place of the library's rule, which gives up extents in which the branches differ."""
    node = Node(raw, ctx.get_opset_version(""))
    condition = _condition(node)
    branches = [flow.graph_of(node, name).outputs for name in _BRANCHES]
    for output, then, other in zip(raw.outputs, *branches, strict=True):
        if not isinstance(then.type, ir.TensorType):
            output.type = then.type
            continue
        shape = None
        if condition is not None and then.shape is not None and other.shape is not None:
            extents = _either(condition, then, other)
            shape = None if extents is None else ir.Shape([dims.as_dim(d) for d in extents])
        ctx.set_shape_and_dtype(output, shape, then.dtype)


def _either(condition: dims.Expr, then: ir.Value, other: ir.Value) -> dims.Shape | None:
    try:
        pairs = list(zip(value_shape(then), value_shape(other), strict=True))
    except ValueError:  # Other ranks, or an extent that nobody knows.
        return None
    return tuple(a if dims.same(a, b) else dims.Where(condition, a, b) for a, b in pairs)


for _version in inference.registry.version_boundaries("", "If"):
    inference.registry.register("", "If", since_version=_version)(_infer)


def _check(node: Node) -> Iterator[str]:
    if _condition(node) is None:
        yield "a condition that is computed inside of a loop"
    for then, other in zip(*(flow.graph_of(node, name).outputs for name in _BRANCHES), strict=True):
        if not isinstance(then.type, ir.TensorType):
            yield f"{then.name!r}, which is no tensor, as a result that depends on data"
        elif len(value_shape(then)) != len(value_shape(other)):
            yield f"branches that give {then.name!r} and {other.name!r}, which differ in rank"


@operator("If", since=1, dtypes=None, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Each branch is a loop of one iteration, or of none."""
    condition = _condition(node)
    assert condition is not None
    targets = [
        b.output(node.out_dtype(i), node.out_shape(i)) if node.is_used(i) else None
        for i in range(len(node.raw.outputs))
    ]
    for name, times in zip(_BRANCHES, (condition, 1 - condition), strict=True):
        with b.repeat(times):
            pairs = []
            values = b.subgraph(flow.graph_of(node, name), [])
            for value, target in zip(values, targets, strict=True):
                if target is not None:
                    strides = dims.packed_strides(value.shape, range(value.rank))
                    here = Strided(b, target.buffer, value.shape, strides)
                    pairs.append((value, here))
            flow.store(b, pairs)
    return list(targets)
