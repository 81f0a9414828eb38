"""Damaged and malicious ONNX files, made of good ones by a ``random.Random``."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, TensorProto, helper

# Extents and other integers that are rarely thought of.
_NUMBERS = (
    0,
    1,
    -1,
    2,
    -2,
    7,
    2**31 - 1,
    2**31,
    2**32,
    2**40,
    2**62,
    2**63 - 1,
    -(2**31),
    -(2**63),
)
_NAMES = (
    "",
    " ",
    "x0",
    "nothing",
    "a\nb",
    '"); int x; //',
    "*/",
    "é",
    "x" * 5000,
    "%s{0}",
    "class",
)
_LOCATIONS = (
    "../secret.bin",
    "/etc/passwd",
    "a/../../secret.bin",
    "link.bin",
    ".",
    "",
    "missing.bin",
    "weights.bin",
    "/dev/zero",
)


def mutate(rng: random.Random, good: bytes) -> bytes:
    """A file that differs from a good one in a few places."""
    content = good
    while content == good:
        content = _mutate(rng, good)
    return content


def _mutate(rng: random.Random, content: bytes) -> bytes:
    model = onnx.ModelProto()
    if rng.random() < 0.75:
        model.ParseFromString(content)
        for _ in range(rng.randint(1, 4)):
            try:
                rng.choice(_STRUCTURE)(rng, model)
            except (ValueError, IndexError, TypeError, DecodeError):
                continue  # It has no place here, such as where there are no nodes.
        content = model.SerializeToString()
    if rng.random() < 0.4:
        for _ in range(rng.randint(1, 4)):
            content = rng.choice(_BYTES)(rng, content)
    return content


def _flip(rng: random.Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) or 1)
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def _cut(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content) or 1)]


def _drop(rng: random.Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) or 1)
    return content[:at] + content[at + rng.randint(1, 16) :]


def _repeat(rng: random.Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) or 1)
    piece = content[at : at + rng.randint(1, 64)]
    return content[:at] + piece * rng.randint(2, 4) + content[at + len(piece) :]


def _insert(rng: random.Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) or 1)
    return content[:at] + rng.randbytes(rng.randint(1, 16)) + content[at:]


_BYTES: tuple[Callable[[random.Random, bytes], bytes], ...] = (_flip, _cut, _drop, _repeat, _insert)


def _any_name(rng: random.Random, graph: onnx.GraphProto) -> str:
    names: list[str] = [name for node in graph.node for name in (*node.input, *node.output)]
    return rng.choice([*names, *(str(v.name) for v in graph.input), rng.choice(_NAMES)])


def _rename(rng: random.Random, model: onnx.ModelProto) -> None:
    """An input or output of a node becomes another: dangling, cyclic, defined twice, absent."""
    node = rng.choice(model.graph.node)
    names = rng.choice([node.input, node.output])
    names[rng.randrange(len(names))] = _any_name(rng, model.graph)


def _rename_value(rng: random.Random, model: onnx.ModelProto) -> None:
    graph = model.graph
    value = rng.choice([*graph.input, *graph.output, *graph.initializer, *graph.node])
    value.name = _any_name(rng, graph)


def _arity(rng: random.Random, model: onnx.ModelProto) -> None:
    node = rng.choice(model.graph.node)
    names = rng.choice([node.input, node.output])
    if rng.random() < 0.5:
        names.append(_any_name(rng, model.graph))
    else:
        del names[rng.randrange(len(names))]


def _operator(rng: random.Random, model: onnx.ModelProto) -> None:
    node = rng.choice(model.graph.node)
    schemas = [s.name for s in onnx.defs.get_all_schemas()]
    node.op_type = rng.choice([*schemas, rng.choice(_NAMES)])
    if rng.random() < 0.1:
        node.domain = rng.choice(["ai.onnx", "ai.onnx.ml", "com.microsoft", "nobody", ""])


def _nodes(rng: random.Random, model: onnx.ModelProto) -> None:
    """Nodes go, come twice, or come in another order."""
    nodes = list(model.graph.node)
    kind = rng.randrange(3)
    if kind == 0:
        del nodes[rng.randrange(len(nodes))]
    elif kind == 1:
        nodes.insert(rng.randrange(len(nodes)), rng.choice(nodes))
    else:
        rng.shuffle(nodes)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies)


def _extent(rng: random.Random, model: onnx.ModelProto) -> None:
    value = rng.choice([*model.graph.input, *model.graph.output])
    dims = value.type.tensor_type.shape.dim
    if rng.random() < 0.2:
        dims.add().dim_value = rng.choice(_NUMBERS)
        return
    dim = dims[rng.randrange(len(dims))]
    if rng.random() < 0.3:
        dim.dim_param = rng.choice(_NAMES)
    else:
        dim.dim_value = rng.choice(_NUMBERS)


def _type(rng: random.Random, model: onnx.ModelProto) -> None:
    value = rng.choice([*model.graph.input, *model.graph.output])
    kind = rng.randrange(4)
    if kind == 0:
        value.ClearField("type")
    elif kind == 1:
        value.type.sequence_type.elem_type.tensor_type.elem_type = 1
    elif kind == 2:
        value.type.tensor_type.ClearField("shape")
    else:
        value.type.tensor_type.elem_type = rng.randint(0, 27)


def _attribute(rng: random.Random, model: onnx.ModelProto) -> None:
    attributes = [a for node in model.graph.node for a in node.attribute]
    attribute = rng.choice(attributes)
    kind = rng.randrange(6)
    if kind == 0:
        attribute.name = rng.choice(["axis", "perm", "value", "to", *_NAMES])
    elif kind == 1:
        attribute.type = rng.choice(list(AttributeProto.AttributeType.values()))
    elif kind == 2 and attribute.ints:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(_NUMBERS)
    elif kind == 3:
        attribute.ints.extend([rng.choice(_NUMBERS)] * rng.randint(1, 9))
    elif kind == 4:
        attribute.f = rng.choice([float("nan"), float("inf"), -1.0, 1e38])
    else:
        attribute.i = rng.choice(_NUMBERS)


def _new_attribute(rng: random.Random, model: onnx.ModelProto) -> None:
    node = rng.choice(model.graph.node)
    schema = onnx.defs.get_schema(node.op_type) if onnx.defs.has(node.op_type) else None
    names = list(schema.attributes) if schema else ["axis"]
    values: Sequence[Any] = (rng.choice(_NUMBERS), [rng.choice(_NUMBERS)] * 3, "SAME_UPPER", 0.5)
    node.attribute.append(helper.make_attribute(rng.choice(names), rng.choice(values)))


def _tensors(model: onnx.ModelProto) -> list[TensorProto]:
    inner = [a.t for n in model.graph.node for a in n.attribute if a.HasField("t")]
    return [*model.graph.initializer, *inner]


def _tensor(rng: random.Random, model: onnx.ModelProto) -> None:
    """Data that does not fit its shape and type."""
    tensor = rng.choice(_tensors(model))
    kind = rng.randrange(6)
    if kind == 0:
        tensor.dims.append(rng.choice(_NUMBERS))
    elif kind == 1:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(_NUMBERS)
    elif kind == 2:
        tensor.data_type = rng.randint(0, 27)
    elif kind == 3:
        tensor.raw_data = tensor.raw_data[: rng.randint(0, len(tensor.raw_data))]
    elif kind == 4:
        tensor.raw_data = tensor.raw_data + rng.randbytes(rng.randint(1, 9))
    else:
        size = len(tensor.raw_data)
        word = rng.choice(_NUMBERS).to_bytes(8, "little", signed=True)
        tensor.raw_data = (word * (size // 8 + 1))[:size]


def _external(rng: random.Random, model: onnx.ModelProto) -> None:
    tensor = rng.choice(_tensors(model))
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    numbers = [str(rng.choice(_NUMBERS)), "0", "1", "x"]
    entries = {
        "location": rng.choice(_LOCATIONS),
        "offset": rng.choice(numbers),
        "length": rng.choice(numbers),
    }
    for key, text in entries.items():
        if rng.random() < 0.9:
            entry = tensor.external_data.add()
            entry.key, entry.value = key, text


def _versions(rng: random.Random, model: onnx.ModelProto) -> None:
    kind = rng.randrange(3)
    number = rng.choice([0, 1, 6, 7, 13, 26, 27, 1000, *_NUMBERS])
    if kind == 0:
        model.ir_version = number
    elif kind == 1:
        model.opset_import[0].version = number
    else:
        model.opset_import.append(helper.make_opsetid("nobody", number))


def _nest(rng: random.Random, model: onnx.ModelProto) -> None:
    """The graph becomes the branch of a condition, and so on."""
    depth = rng.choice([1, 2, 5, 20, 90])
    graph = model.graph
    for level in range(depth):
        outer = onnx.GraphProto()
        outer.name = f"level{level}"
        outer.input.add().CopyFrom(
            helper.make_tensor_value_info(f"condition{level}", TensorProto.BOOL, [])
        )
        for output in graph.output:
            outer.output.add().CopyFrom(output)
        branch = onnx.GraphProto.FromString(graph.SerializeToString())
        outer.input.extend(branch.input)
        del branch.input[:]
        names = [f"{output.name}_{level}" for output in branch.output]
        node = helper.make_node("If", [f"condition{level}"], names)
        for name in ("then_branch", "else_branch"):
            node.attribute.append(helper.make_attribute(name, branch))
            if depth > 5:
                break  # Two copies at each level would be 2^depth.
        for output, name in zip(outer.output, names, strict=True):
            output.name = name
        outer.node.append(node)
        graph = outer
    model.graph.CopyFrom(graph)


def _function(rng: random.Random, model: onnx.ModelProto) -> None:
    """A function of the model: recursive, or doubling with each level."""
    node = rng.choice(model.graph.node)
    levels = rng.choice([1, 3, 24])
    recursive = rng.random() < 0.3
    for level in range(levels):
        inner = "f0" if recursive else f"f{level - 1}"
        nodes = [helper.make_node("Relu", ["x"], ["y"])]
        if level or recursive:
            nodes = [
                helper.make_node(inner, ["x"], ["t"], domain="local"),
                helper.make_node(inner, ["t"], ["y"], domain="local"),
            ]
        imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
        model.functions.append(
            helper.make_function("local", f"f{level}", ["x"], ["y"], nodes, imports)
        )
    model.opset_import.append(helper.make_opsetid("local", 1))
    call = helper.make_node(f"f{levels - 1}", [node.output[0]], ["called"], domain="local")
    model.graph.node.append(call)
    model.graph.output.add().CopyFrom(helper.make_tensor_value_info("called", 1, None))


def _inputs(rng: random.Random, model: onnx.ModelProto) -> None:
    values = rng.choice([model.graph.input, model.graph.output, model.graph.initializer])
    if rng.random() < 0.5:
        del values[rng.randrange(len(values))]
    else:
        values.add().CopyFrom(rng.choice(values))


_STRUCTURE: tuple[Callable[[random.Random, onnx.ModelProto], None], ...] = (
    _rename,
    _rename,
    _rename_value,
    _arity,
    _operator,
    _operator,
    _nodes,
    _extent,
    _extent,
    _type,
    _attribute,
    _attribute,
    _new_attribute,
    _tensor,
    _tensor,
    _external,
    _versions,
    _nest,
    _function,
    _inputs,
)
