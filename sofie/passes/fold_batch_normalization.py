"""Folds BatchNormalization into the convolution before it.

    BatchNormalization(Conv(x, W, b)) = Conv(x, W * scale, b * scale + shift)

holds where the convolution has no other reader and its weights are constants. Computed in float64.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sofie.importer.load import Model
from sofie.ir.node import Node, constant_array, version_of
from sofie.ops.batch_normalization import scale_and_shift
from sofie.passes.rewrite import add_initializer, replace


def run(model: Model) -> None:
    """Changes the model in place."""
    for node in list(model.graph):
        if node.op_type == "BatchNormalization" and not node.domain:
            _fold(model, node)


def _fold(model: Model, normalization: ir.Node) -> None:
    source = normalization.inputs[0]
    conv = None if source is None else source.producer()
    if source is None or conv is None or conv.op_type != "Conv" or conv.domain:
        return
    if len(source.uses()) != 1 or source.is_graph_output() or "activation" in conv.attributes:
        return
    weights = _constant(conv, 1)
    bias = _constant(conv, 2)
    if weights is None or (len(conv.inputs) > 2 and conv.inputs[2] is not None and bias is None):
        return
    constants = scale_and_shift(Node(normalization, version_of(model.ir_model, "")))
    if constants is None:
        return
    scale, shift = constants
    channels = (-1,) + (1,) * (weights.ndim - 1)
    folded = weights.astype(np.float64) * scale.reshape(channels)
    moved = shift if bias is None else bias.astype(np.float64) * scale + shift
    label = normalization.name or normalization.outputs[0].name
    inputs = [
        conv.inputs[0],
        add_initializer(model, f"{label}.folded_weight", folded.astype(weights.dtype)),
        add_initializer(model, f"{label}.folded_bias", moved.astype(weights.dtype)),
    ]
    replace(model, [conv, normalization], "Conv", inputs, conv.attributes.values())


def _constant(node: ir.Node, position: int) -> np.ndarray | None:
    if position >= len(node.inputs) or node.inputs[position] is None:
        return None
    value = node.inputs[position]
    assert value is not None
    return constant_array(value)
