"""Operands that decide about shapes: which inputs of which operators the host has to know.

Shape inference must know them before it comes to the operator, so they are listed here and not
with the operators' lowerings. What ``Node.known`` says of them, the library's rules see too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import onnx_ir as ir
import onnx_shape_inference as inference

from sofie.importer import arithmetic
from sofie.ir import dims
from sofie.ir.node import READS, Node, data_symbols, element_count

# By operator: positions of the inputs.
_OPERANDS: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "CumProd": (1,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "If": (0,),
    "Loop": (0, 1),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2),
    "NonMaxSuppression": (2,),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (2, 3),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
    "sofie.PackedAttention": (5,),
    **{
        f"Reduce{name}": (1,)
        for name in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()
    },
}


def find_inputs(graph: ir.Graph) -> None:
    """Makes data symbols of the inputs that decide about shapes, directly or by arithmetic."""
    for node in ir.traversal.RecursiveGraphIterator(graph):
        name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        for position in _OPERANDS.get(name, ()):
            operand = node.inputs[position] if position < len(node.inputs) else None
            for value in _sources(operand):
                # A number that is no integer is read only where it is the operand itself.
                is_integer = value.dtype is not None and value.dtype.is_integer()
                if value.graph is graph and (is_integer or value is operand):
                    data_symbols(value)


def _sources(value: ir.Value | None) -> Iterator[ir.Value]:
    """The inputs of graphs from which a value is computed by arithmetic that the host can do."""
    seen: set[ir.Value] = set()
    stack = [value]
    while stack:
        value = stack.pop()
        if value is None or value in seen:
            continue
        seen.add(value)
        producer = value.producer()
        if producer is None:
            if value.is_graph_input():
                yield value
        elif producer.op_type in arithmetic.RULES and not producer.domain:
            stack.extend(producer.inputs)


@functools.cache
def prepare_rules() -> None:
    """Has the library's rules, and this project's, see the operands' elements."""
    library = inference.registry
    for domain, name, versions in library.iter_supported():
        if domain or (name not in _OPERANDS and name not in arithmetic.RULES):
            continue
        for version in versions:
            rule = library.get(domain, name, version)
            library.register(domain, name, since_version=version)(_informed(name, rule))


Rule = Callable[[inference.ShapeInferenceContext, ir.Node], None]


def _informed(name: str, rule: Rule) -> Rule:
    def infer(ctx: inference.ShapeInferenceContext, node: ir.Node) -> None:
        for value in _known(name, node):
            symbols = value.meta.get(READS)
            if symbols is not None and all(s.is_integer for s in symbols):
                ctx.set_symbolic_value(value, [dims.as_dim(s) for s in symbols])
        rule(ctx, node)
        elements = arithmetic.evaluate(node)
        if elements is not None:
            output = node.outputs[0]
            spelled = [dims.as_dim(e) for e in elements]
            if output.dtype is ir.DataType.BOOL:
                spelled = [bool(d) if isinstance(d, int) else d for d in spelled]
            ctx.set_symbolic_value(output, spelled)

    return infer


def _known(name: str, node: ir.Node) -> Iterator[ir.Value]:
    """The inputs whose elements the rule may use, read by the session where need be."""
    given = Node(node, 0)
    for position in _OPERANDS.get(name, ()):
        if given.known(position) is None:
            given.known_numbers(position)
    for value in node.inputs:
        if value is not None and READS in value.meta and element_count(value) is not None:
            yield value
