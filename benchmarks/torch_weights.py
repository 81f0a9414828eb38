"""Weights of ONNX files for PyTorch modules whose parameters have the names of the initializers."""

from __future__ import annotations

import onnx
import torch
from onnx import numpy_helper
from torch import nn

# One layer in PyTorch, and the layers in the file whose outputs it joins.
_JOINED, _PARTS = "query_key_value", ("query", "key", "value")


def _in_file(name: str) -> list[str]:
    """The initializers that a parameter or buffer of a network is made of, along the first axis."""
    return [name.replace(_JOINED, part) for part in _PARTS] if _JOINED in name else [name]


def load(network: nn.Module, model: onnx.ModelProto) -> None:
    """Gives a network the weights of the file and sets it to inference.

    Raises:
      ValueError: the file lacks a weight of the network.
    """
    # Linear has [outputs, inputs], MatMul the transpose.
    turned = {node.input[1] for node in model.graph.node if node.op_type == "MatMul"}
    weights = {}
    for tensor in model.graph.initializer:
        value = torch.from_numpy(numpy_helper.to_array(tensor).copy())
        weights[tensor.name] = value.T if tensor.name in turned else value
    wanted = [name for name in network.state_dict() if not name.endswith("num_batches_tracked")]
    if missing := {part for name in wanted for part in _in_file(name)} - set(weights):
        raise ValueError(f"the ONNX file lacks the weights {', '.join(sorted(missing))}")
    found = {name: torch.cat([weights[part] for part in _in_file(name)]) for name in wanted}
    network.load_state_dict(network.state_dict() | found)
    network.eval()
