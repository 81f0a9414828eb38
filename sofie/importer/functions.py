"""Nodes that ONNX defines in terms of other operators, replaced by that definition.

An operator's own lowering comes first: only what has none is expanded. Model-local functions are
inlined before, by onnx_ir.
"""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir
from onnx_ir.passes import common

from sofie.ir.node import Node, version_of
from sofie.ops import registry


def expand(model: ir.Model) -> bool:
    """Expands every node once that has a definition and no lowering; its types must be known.

    A definition may use operators that have definitions themselves.

    Returns:
      Whether anything was expanded; shapes must be inferred again then.
    """
    count = 0
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        version = version_of(model, node.domain)
        if registry.find(Node(node, version)) is not None:
            continue
        definition = _definition(node, version)
        if definition is not None:
            _make_call(model, node, definition, f"definition{count}")
            count += 1
    if count:
        common.InlinePass()(model)
    return count > 0


def _definition(node: ir.Node, version: int) -> ir.Function | None:
    """What ONNX says that the node computes; None where it says so in words only."""
    try:
        # Typed as Any: onnx's stubs lack what concerns definitions.
        schema: Any = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return None
    # A definition refers to attributes, whose defaults it does not repeat.
    for name, attribute in schema.attributes.items():
        if name not in node.attributes and attribute.default_value.type:
            node.attributes[name] = ir.serde.deserialize_attribute(attribute.default_value)
    if schema.has_function:
        body = _latest(schema.function_opset_versions, version)
        if body is None:
            return None
        proto = schema.get_function_with_opset_version(body)
    elif schema.has_context_dependent_function:
        body = _latest(schema.context_dependent_function_opset_versions, version)
        if body is None:
            return None
        types = [_type(value) for value in node.inputs]
        proto = schema.get_context_dependent_function_with_opset_version(
            body, ir.to_proto(node).SerializeToString(), types
        )
        # It contains them already, and the inliner takes none.
        for name in [n for n, a in node.attributes.items() if a.type is ir.AttributeType.GRAPH]:
            del node.attributes[name]
    else:
        return None
    return _function(onnx.FunctionProto.FromString(proto), len(node.outputs)) if proto else None


def _function(proto: onnx.FunctionProto, outputs: int) -> ir.Function:
    """The definition with the first so many outputs."""
    del proto.output[outputs:]
    computed = {*proto.input, *(name for inner in proto.node for name in inner.output)}
    for name in proto.output:
        if name not in computed:  # A definition leaves out what the node does not ask for.
            proto.node.append(onnx.helper.make_node("Identity", [proto.input[0]], [name]))
    return ir.serde.deserialize_function(proto)


def _latest(versions: list[int], version: int) -> int | None:
    """The newest definition that an opset version knows."""
    return max((v for v in versions if v <= version), default=None)


def _type(value: ir.Value | None) -> bytes:
    proto = onnx.TypeProto()
    if value is not None and value.type is not None:
        proto = ir.to_proto(value).type
    serialized: bytes = proto.SerializeToString()
    return serialized


def _make_call(model: ir.Model, node: ir.Node, definition: ir.Function, overload: str) -> None:
    """Makes the node a call of a function of its own."""
    label = Node(node, 0).label
    for inner in ir.traversal.RecursiveGraphIterator(definition.graph):
        inner.name = f"{label}/{inner.op_type}"
    for domain in definition.opset_imports:
        # Definitions are the same in all versions from the one that they were written for.
        definition.opset_imports[domain] = version_of(model, domain)
    node.overload = overload
    definition.domain, definition.name = node.domain, node.op_type
    definition.overload = overload
    model.functions[definition.identifier()] = definition
