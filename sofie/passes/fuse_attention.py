"""Takes two matrix products with a softmax between them for attention, which keeps no scores.

    MatMul(Softmax(scale * MatMul(q, k) + bias), v)

with any number of scales and biases, and scales of q and k. What lies between has no other reader;
heads have fixed numbers of channels, as kernels are compiled for those.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx_ir as ir

from sofie.importer.load import Model
from sofie.ir import dims, dtype
from sofie.ir.node import constant_array, element_count, value_dtype, value_shape, version_of
from sofie.ops import attending, sofie_attention
from sofie.ops.elementwise import broadcast_shapes
from sofie.passes.rewrite import replace


def run(model: Model) -> None:
    """Changes the model in place."""
    for node in list(model.graph):
        if node.op_type == "MatMul" and not node.domain:
            try:
                _fuse(model, node)
            except ValueError:
                continue  # A rank or a type that is not known, or no type to compute in.


@dataclasses.dataclass(frozen=True)
class _Scores:
    """``scale * MatMul(q, k) + bias``.

    Attributes:
      chain: the nodes that it is made of, the product first.
      scale: the numbers among the factors, multiplied.
      factors: the other ones, with the operators that apply them.
      biases: what is added.
    """

    chain: tuple[ir.Node, ...]
    scale: float = 1.0
    factors: tuple[tuple[str, ir.Value], ...] = ()
    biases: tuple[ir.Value, ...] = ()


def _fuse(model: Model, last: ir.Node) -> None:
    softmax = _only_producer(last.inputs[0], "Softmax")
    value = last.inputs[1]
    if softmax is None or value is None:
        return
    shape = value_shape(softmax.outputs[0])
    if not 2 <= len(shape) <= 4 or not _is_over_last_axis(softmax, len(shape), model):
        return
    scores = _scores(softmax.inputs[0], shape)
    if scores is None:
        return
    factors = scores.chain[0].inputs
    assert factors[0] is not None and factors[1] is not None
    query, query_scale = _unscaled(factors[0])
    key, key_scale = _unscaled(factors[1])
    ranks = {len(value_shape(v)) for v in (query, key, value)}
    if ranks != {len(shape)} or value_dtype(query) not in dtype.FLOATS:
        return
    if not attending.is_number(value_shape(query)[-1], value_shape(value)[-1]):
        return
    for op_type, factor in scores.factors:
        query = _insert(model, last, op_type, [query, factor], value_shape(query))
    axes = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    turned = tuple(value_shape(key)[axis] for axis in axes)
    key = _insert(model, last, "Transpose", [key], turned, ir.AttrInt64s("perm", axes))
    inputs: list[ir.Value | None] = [query, key, value]
    if scores.biases:
        bias = scores.biases[0]
        for further in scores.biases[1:]:
            both = broadcast_shapes([tuple(v.shape or ()) for v in (bias, further)])
            bias = _insert(model, last, "Add", [bias, further], both or shape)
        inputs.append(bias)
    scale = ir.AttrFloat32("scale", float(scores.scale * query_scale * key_scale))
    model.ir_model.opset_imports[sofie_attention.DOMAIN] = sofie_attention.VERSION
    nodes = [*scores.chain, softmax, last]
    replace(model, nodes, "Attention", inputs, [scale], sofie_attention.DOMAIN)


def _insert(
    model: Model,
    before: ir.Node,
    op_type: str,
    inputs: list[ir.Value],
    shape: dims.Shape,
    *attributes: ir.Attr,
) -> ir.Value:
    """A new node ahead of another one; gives its output."""
    new = ir.Node("", op_type, inputs, attributes, num_outputs=1)
    new.name = f"{before.name or before.op_type}/{op_type}"
    model.graph.insert_before(before, new)
    output = new.outputs[0]
    output.name = f"{before.outputs[0].name}.{op_type.lower()}{len(model.graph)}"
    output.type = inputs[0].type
    output.shape = ir.Shape([dims.as_dim(extent) for extent in shape])
    return output


def _only_producer(value: ir.Value | None, op_type: str | None = None) -> ir.Node | None:
    """The node of ONNX's own domain that computes a value for one reader alone."""
    node = None if value is None else value.producer()
    if value is None or node is None or node.domain or len(node.outputs) != 1:
        return None
    if len(value.uses()) != 1 or value.is_graph_output():
        return None
    return node if op_type in (None, node.op_type) else None


def _is_over_last_axis(softmax: ir.Node, rank: int, model: Model) -> bool:
    attribute = softmax.attributes.get("axis")
    default = -1 if version_of(model.ir_model, "") >= 13 else 1
    axis = default if attribute is None else attribute.as_int()
    return axis in (-1, rank - 1)


def _scores(value: ir.Value | None, shape: dims.Shape) -> _Scores | None:
    """What a value is as scores of a shape; None where it is something else."""
    node = _only_producer(value)
    if node is None or value_shape(node.outputs[0]) != shape:
        return None
    if node.op_type == "MatMul":
        return _Scores((node,))
    if node.op_type not in ("Add", "Mul", "Div"):
        return None
    first, second = node.inputs
    for inner, other in ((first, second), (second, first)):
        if other is None or (node.op_type == "Div" and inner is second):
            continue
        below = _scores(inner, shape)
        if below is None:
            continue
        chain = (*below.chain, node)
        if node.op_type == "Add":
            if not attending.broadcasts_to(value_shape(other), shape):
                return None
            return dataclasses.replace(below, chain=chain, biases=(*below.biases, other))
        if below.biases or element_count(other) != 1:
            return None
        number = constant_array(other)
        if number is None:
            factors = (*below.factors, (node.op_type, other))
            return dataclasses.replace(below, chain=chain, factors=factors)
        scale = below.scale * _factor(node.op_type, number)
        return dataclasses.replace(below, chain=chain, scale=scale)
    return None


def _unscaled(value: ir.Value) -> tuple[ir.Value, float]:
    """What a value is a multiple of, and how much of it."""
    node = value.producer()
    if node is not None and not node.domain and node.op_type in ("Mul", "Div"):
        first, second = node.inputs
        for inner, other in ((first, second), (second, first)):
            number = None if other is None else constant_array(other)
            if inner is None or number is None or (node.op_type == "Div" and inner is second):
                continue
            if number.size == 1 and number.ndim <= len(value_shape(inner)):
                base, scale = _unscaled(inner)
                return base, scale * _factor(node.op_type, number)
    return value, 1.0


def _factor(op_type: str, number: np.ndarray) -> float:
    factor = float(number.reshape(-1)[0])
    if op_type == "Mul":
        return factor
    if factor == 0:
        raise ValueError("a division by 0")
    return 1 / factor
