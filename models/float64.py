"""Turns an fp32 model into the same model in float64, to tell rounding from error."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

_FLOAT = onnx.TensorProto.FLOAT
_DOUBLE = onnx.TensorProto.DOUBLE


def to_float64(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a copy of `model` in which every fp32 value is a float64 value.

    Inputs, outputs, initializers, tensor attributes and the targets of Cast change type; the graph
    stays as it is. Subgraphs are converted too.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    _convert_graph(result.graph)
    return result


def _convert_graph(graph: onnx.GraphProto) -> None:
    del graph.value_info[:]
    for value in [*graph.input, *graph.output]:
        if value.type.tensor_type.elem_type == _FLOAT:
            value.type.tensor_type.elem_type = _DOUBLE
    for tensor in graph.initializer:
        _convert_tensor(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                _convert_tensor(attribute.t)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                _convert_graph(attribute.g)
            elif attribute.name in ("to", "dtype") and attribute.i == _FLOAT:
                attribute.i = _DOUBLE


def _convert_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == _FLOAT:
        array = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
