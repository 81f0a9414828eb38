"""PackedMultiHeadAttention of com.microsoft, which ONNX Runtime lacks on CPUs: against NumPy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import Array, Dims, compile_graph, graph, hold

_HEADS, _DEPTH = 2, 8
_LENGTHS = [[3, 0, 5], [1], [4, 4, 4, 1]]


def _model(*, joined: bool = False, bias: bool = False, **attributes: Any) -> onnx.ModelProto:
    width = _HEADS * _DEPTH
    inputs: dict[str, tuple[str, Dims]] = {
        "q": ("float32", ["T", _HEADS, 3, _DEPTH] if joined else ["T", width])
    }
    if not joined:
        inputs |= {name: ("float32", ["T", width]) for name in "kv"}
    if bias:
        inputs["bias"] = ("float32", [3 * width])
    inputs |= {"offsets": ("int32", ["B", "S"]), "ends": ("int32", ["E"])}
    names = ["q", "k", "v", "bias", "offsets", "ends"]
    node = helper.make_node(
        "PackedMultiHeadAttention",
        [name if name in inputs else "" for name in names],
        ["y"],
        domain="com.microsoft",
        num_heads=_HEADS,
        **attributes,
    )
    return graph(
        [node],
        inputs,
        {"y": ("float32", ["T", width])},
        domains={"com.microsoft": 1},
        opset=17,
    )


def _reference(scale: float) -> Any:
    def outputs(inputs: Mapping[str, Array]) -> list[Array]:
        width = _HEADS * _DEPTH
        if "k" in inputs:
            parts = [inputs[name].reshape(-1, _HEADS, _DEPTH) for name in "qkv"]
        else:
            parts = [inputs["q"][:, :, i] for i in range(3)]
        if "bias" in inputs:
            biases = inputs["bias"].reshape(3, _HEADS, _DEPTH)
            parts = [part + bias for part, bias in zip(parts, biases, strict=True)]
        query, key, value = (part.astype(np.float64) for part in parts)
        result = np.zeros_like(query)
        ends = inputs["ends"]
        for begin, end in zip(ends[:-1], ends[1:], strict=True):
            rows = slice(begin, end)
            scores = scale * np.einsum("qhc,khc->hqk", query[rows], key[rows])
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
            weights /= weights.sum(axis=-1, keepdims=True)
            result[rows] = np.einsum("hqk,khc->qhc", weights, value[rows])
        return [result.reshape(-1, width).astype(np.float32)]

    return outputs


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("scale", [None, 0.7])
def test_operands(joined: bool, bias: bool, scale: float | None) -> None:
    cases: list[dict[str, int | Array]] = []
    for lengths in _LENGTHS:
        ends = np.cumsum([0, *lengths]).astype(np.int32)
        sizes = {"T": int(ends[-1]), "B": len(lengths), "S": max(lengths), "E": len(ends)}
        offsets = np.zeros((len(lengths), max(lengths)), np.int32)
        cases.append({**sizes, "ends": ends, "offsets": offsets})
    model = _model(joined=joined, bias=bias, **({} if scale is None else {"scale": scale}))
    program = hold(model, cases, reference=_reference(scale or _DEPTH**-0.5))
    assert sum(type(step).__name__ == "Attention" for step in program.steps) == 1


def test_channels_that_do_not_divide_into_heads() -> None:
    model = _model()
    node = model.graph.node[-1]
    del node.attribute[:]
    node.attribute.append(helper.make_attribute("num_heads", 3))
    with pytest.raises(ModelError, match="do not divide into heads"):
        compile_graph(model)
