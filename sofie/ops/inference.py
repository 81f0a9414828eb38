"""Shape rules: what the files of operators register where the library's own rule says too little.

The library's rules take most operands as numbers only. These take them as sizes too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir
import onnx_shape_inference as inference

from sofie.ir import dims
from sofie.ir.node import Node

# The outputs' extents, or None where nothing is known of an output; raises ValueError where an
# operand's value or extent is needed that is not known.
Rule = Callable[[Node], Sequence[dims.Shape | None]]
# An output's element type: that of the input at a position, always the same one, or the node's.
TypeOf = int | onnx_ir.DataType | Callable[[Node], onnx_ir.DataType]


def shape_rule(
    name: str,
    *,
    since: int = 1,
    domain: str = "",
    types: Sequence[TypeOf] = (0,),
    is_view: bool = False,
) -> Callable[[Rule], Rule]:
    """Makes the decorated function the rule of an operator, in place of the library's.

    Args:
      name: the operator.
      since: first opset in which the rule holds.
      domain: the operator's domain.
      types: the outputs' types; the last one stands for all further outputs.
      is_view: True where the output has the first input's elements in order: sizes stay known.
    """

    def register(rule: Rule) -> Rule:
        def infer(ctx: inference.ShapeInferenceContext, raw: onnx_ir.Node) -> None:
            node = Node(raw, ctx.get_opset_version(raw.domain))
            try:
                shapes = rule(node)
            except ValueError:
                shapes = ()
            for position, output in enumerate(raw.outputs):
                shape = shapes[position] if position < len(shapes) else None
                known = None if shape is None else onnx_ir.Shape([dims.as_dim(d) for d in shape])
                source = types[min(position, len(types) - 1)]
                ctx.set_shape_and_dtype(output, known, _type(node, source))
            values = ctx.get_symbolic_value(raw.inputs[0]) if is_view else None
            if values is not None:
                ctx.set_symbolic_value(raw.outputs[0], values)

        library = inference.registry
        boundaries = {since, *(v for v in library.version_boundaries(domain, name) if v > since)}
        for version in boundaries:
            library.register(domain, name, since_version=version)(infer)
        return rule

    return register


def _type(node: Node, source: TypeOf) -> onnx_ir.DataType | None:
    if isinstance(source, onnx_ir.DataType):
        return source
    return node.input(source).dtype if isinstance(source, int) else source(node)


def known(node: Node, position: int, what: str) -> tuple[dims.Expr, ...]:
    """The elements of an operand in terms of sizes.

    Raises:
      ValueError: they depend on data.
    """
    values = node.known(position)
    if values is None:
        raise ValueError(f"{what} that depend on data")
    return values


def known_axes(
    node: Node, position: int, rank: int, attribute: str = "axes"
) -> tuple[int, ...] | None:
    """Axes from an input or an attribute, counted from the front; None where neither is given.

    Raises:
      ValueError: they depend on data, or lie outside of the rank.
    """
    axes: Sequence[dims.Expr] | None = node.attr_ints(attribute)
    if axes is None and node.has(position):
        axes = known(node, position, "axes")
    if axes is None:
        return None
    if any(not isinstance(a, int) and not a.is_Integer for a in axes):
        raise ValueError("axes that depend on data")
    for a in axes:
        if not -rank <= int(a) < rank:
            raise ValueError(f"axis {a} is out of range for rank {rank}")
    return tuple(int(a) % rank for a in axes)
