"""Scan: https://onnx.ai/onnx/operators/onnx__Scan.html"""

from collections.abc import Iterator, Sequence

from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Strided, Tensor
from sofie.ops import control_flow as flow
from sofie.ops.registry import operator


class _Layout:
    """Which of the node's inputs and outputs are what."""

    def __init__(self, node: Node) -> None:
        self.body = flow.graph_of(node, "body")
        self.inputs = node.attr_int("num_scan_inputs")
        self.states = len(node.raw.inputs) - self.inputs
        self.outputs = len(self.body.outputs) - self.states

    def axes(self, node: Node, name: str, ranks: Sequence[int]) -> list[int]:
        """The scanned axes, counted from the front."""
        given = node.attr_ints(name) or (0,) * len(ranks)
        return [axis % rank for axis, rank in zip(given, ranks, strict=True)]


def _check(node: Node) -> Iterator[str]:
    layout = _Layout(node)
    yield from flow.check_carried(layout.body, [(i, i) for i in range(layout.states)])


@operator("Scan", since=9, dtypes=None, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The body once for every position along the scanned axes."""
    layout = _Layout(node)
    tensors = [t for t in inputs if t is not None]
    sources = [b.in_memory(t) for t in tensors[layout.states :]]
    into = layout.axes(node, "scan_input_axes", [t.rank for t in sources])
    steps = sources[0].shape[into[0]]
    for source, axis in zip(sources, into, strict=True):
        b.require_equal(source.shape[axis], steps, "extents of the scanned axes")
    directions = node.attr_ints("scan_input_directions") or (0,) * layout.inputs
    scanned = [(s, a, d != 0) for s, a, d in zip(sources, into, directions, strict=True)]
    places = range(layout.states, layout.states + layout.outputs)
    targets = [
        b.output(node.out_dtype(i), node.out_shape(i)) if node.is_used(i) else None for i in places
    ]
    ranks = [len(node.out_shape(i)) for i in places]
    out_of = layout.axes(node, "scan_output_axes", ranks)
    backward = node.attr_ints("scan_output_directions") or (0,) * layout.outputs
    results = [(t, a, d != 0) for t, a, d in zip(targets, out_of, backward, strict=True)]

    def at(whole: Strided, axis: int, from_end: bool) -> Strided:
        return flow.along(b, whole, axis, steps - 1 - step if from_end else step)

    carried = [flow.Carried(b, tensor, tensor.shape) for tensor in tensors[: layout.states]]
    with b.repeat(steps) as step:
        slices = [at(*source) for source in scanned]
        values = b.subgraph(layout.body, [*(c.before(step) for c in carried), *slices])
        pairs = [(value, c.after(step)) for value, c in zip(values, carried, strict=False)]
        for value, (target, axis, from_end) in zip(values[layout.states :], results, strict=True):
            if target is not None:
                pairs.append((value, at(target, axis, from_end)))
        flow.store(b, pairs)
    return [*(c.before(steps) for c in carried), *targets]
