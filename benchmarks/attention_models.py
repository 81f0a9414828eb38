"""Writes models of one attention node: dense and packed, full and causal, of two depths, bfloat16.

attention_models --output=FOLDER
"""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Sequence

import onnx
from absl import app, flags
from onnx import TensorProto, helper

from sofie import nodes

_OUTPUT = flags.DEFINE_string("output", None, "Folder for the models.", required=True)

_DEPTHS = (64, 128)
_OPSET = 23


def _value(
    name: str, shape: list[int | str], kind: int = TensorProto.BFLOAT16
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def build(*, packed: bool, causal: bool, depth: int) -> onnx.ModelProto:
    """One node; all sizes but the number of channels are symbols.

    Dense: query [B, S, H, depth], keys and values [B, S, G, depth], as linear layers give them.
    Packed: [T, H, depth], [T, G, depth], and the cumulative lengths.
    """
    imports = [helper.make_opsetid("", _OPSET)]
    if packed:
        imports.append(helper.make_opsetid(nodes.DOMAIN, nodes.VERSION))
        body = [nodes.packed_attention("q", "k", "v", "ends", "y", is_causal=causal)]
        inputs = [_value("q", ["T", "H", depth])]
        inputs += [_value(name, ["T", "G", depth]) for name in "kv"]
        inputs.append(_value("ends", ["E"], TensorProto.INT32))
        output = _value("y", ["T", "H", depth])
    else:
        order = [0, 2, 1, 3]
        heads = [helper.make_node("Transpose", [n], [f"{n}_heads"], perm=order) for n in "qkv"]
        attention = helper.make_node(
            "Attention", [f"{n}_heads" for n in "qkv"], ["heads"], is_causal=int(causal)
        )
        back = helper.make_node("Transpose", ["heads"], ["y"], perm=order)
        body = [*heads, attention, back]
        inputs = [_value("q", ["B", "S", "H", depth])]
        inputs += [_value(name, ["B", "S", "G", depth]) for name in "kv"]
        output = _value("y", ["B", "S", "H", depth])
    graph = helper.make_graph(body, "attention", inputs, [output])
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def main(argv: Sequence[str]) -> None:
    """Writes all of them."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    for packed, causal, depth in itertools.product((False, True), (False, True), _DEPTHS):
        kind = ("packed" if packed else "dense") + ("_causal" if causal else "")
        path = pathlib.Path(_OUTPUT.value) / f"attention_{kind}_{depth}.onnx"
        path.write_bytes(build(packed=packed, causal=causal, depth=depth).SerializeToString())


if __name__ == "__main__":
    app.run(main)
