"""Shape rules for operators that the shape inference library does not know."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
import onnx_shape_inference as inference

from sofie.ir import dims

# The outputs' types and extents from the node; None where they can't be known.
Rule = Callable[[ir.Node], Sequence[tuple[ir.DataType, Sequence[dims.Expr]]] | None]


def register(name: str, domain: str, since: int, rule: Rule) -> None:
    """Registers a rule; a node whose inputs have no type or shape yet is left alone."""

    def infer(ctx: inference.ShapeInferenceContext, node: ir.Node) -> None:
        try:
            found = rule(node)
        except ValueError:  # An extent of an input is not known.
            return
        for output, (dtype, shape) in zip(node.outputs, found or (), strict=False):
            ctx.set_shape_and_dtype(output, ir.Shape([dims.as_dim(d) for d in shape]), dtype)

    inference.registry.register(domain, name, since_version=since)(infer)


def shape_of(value: ir.Value | None) -> dims.Shape:
    """The extents of a value.

    Raises:
      ValueError: they are not known.
    """
    if value is None or value.shape is None:
        raise ValueError("unknown shape")
    return tuple(dims.as_expr(d) for d in value.shape)


def type_of(value: ir.Value | None) -> ir.DataType:
    """The element type of a value.

    Raises:
      ValueError: it is not known.
    """
    if value is None or value.dtype is None:
        raise ValueError("unknown type")
    return value.dtype


def same_as_first(name: str, domain: str, since: int) -> None:
    """Registers the rule that the output is like the first input."""
    register(name, domain, since, lambda n: [(type_of(n.inputs[0]), shape_of(n.inputs[0]))])
