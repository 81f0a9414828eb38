"""Nodes of attention for tests that count kernels: of many sizes, and of few layout classes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import onnx
from onnx import helper

from sofie import nodes
from sofie.testing.operators import Dims, graph

_Inputs = dict[str, tuple[str, Dims]]
_Outputs = dict[str, str | tuple[str, Dims]]
# Nodes with the model's inputs and outputs that they read and write.
Part = tuple[list[onnx.NodeProto], _Inputs, _Outputs]

# The orders of sums' axes in which sequences are padded.
PADDED = ["".join(order) for order in itertools.permutations("bhs")]


def model(parts: Sequence[Part]) -> onnx.ModelProto:
    """One model of all the parts."""
    every, inputs, outputs = list[onnx.NodeProto](), _Inputs(), _Outputs()
    for part in parts:
        every += part[0]
        inputs |= part[1]
        outputs |= part[2]
    return graph(every, inputs, outputs, opset=25, domains={nodes.DOMAIN: nodes.VERSION})


def packed(
    number: int,
    depth: int = 64,
    lse: str = "",
    batch: int | str = 3,
    heads: tuple[int, int] = (8, 2),
    rows: int | str = 100,
    keys: int | str = 200,
    longest: int = 70,
    dtype: str = "bfloat16",
    value_depth: int | None = None,
    ends: str = "int32",
    **options: Any,
) -> Part:
    """A node of packed attention; its values' names end with its number."""
    width = depth if value_depth is None else value_depth
    count = batch + 1 if isinstance(batch, int) else batch

    def name(text: str) -> str:
        return f"{text}{number}"

    node = nodes.packed_attention(
        name("q"),
        name("k"),
        name("v"),
        name("rows"),
        name("y"),
        cumulative_keys=name("keys"),
        lse=name("lse") if lse else "",
        lse_layout=lse,
        lse_rows=name("most") if "b" in lse else "",
        **options,
    )
    inputs: _Inputs = {
        name("q"): (dtype, [rows, heads[0], depth]),
        name("k"): (dtype, [keys, heads[1], depth]),
        name("v"): (dtype, [keys, heads[1], width]),
        name("rows"): (ends, [count]),
        name("keys"): (ends, [count]),
    }
    outputs: _Outputs = {name("y"): (dtype, [rows, heads[0], width])}
    if lse:
        extents = {"b": batch, "h": heads[0], "s": longest if "b" in lse else rows}
        outputs[name("lse")] = ("float32", [extents[axis] for axis in lse])
    if "b" not in lse:
        return [node], inputs, outputs
    most = helper.make_tensor("most", onnx.TensorProto.INT64, [], [longest])
    constant = helper.make_node("Constant", [], [name("most")], value=most)
    return [constant, node], inputs, outputs


def dense(
    number: int, sizes: Sequence[int | str], order: Sequence[int], dtype: str = "float32"
) -> Part:
    """Attention whose operands lie in memory with their axes in an order."""
    batch, heads, key_heads, rows, keys = sizes
    made, inputs, names = [], _Inputs(), []
    back = [list(order).index(axis) for axis in range(4)]
    shapes = {
        "q": [batch, heads, rows, 64],
        "k": [batch, key_heads, keys, 64],
        "v": [batch, key_heads, keys, 32],
    }
    for name, shape in shapes.items():
        stored, turned = f"{name}{number}", f"{name}t{number}"
        inputs[stored] = (dtype, [shape[axis] for axis in order])
        made.append(helper.make_node("Transpose", [stored], [turned], perm=back))
        names.append(turned)
    made.append(helper.make_node("Attention", names, [f"y{number}"], is_causal=1))
    return made, inputs, {f"y{number}": (dtype, [batch, heads, rows, 32])}


def serving(count: int) -> list[Part]:
    """Packed prefill as FlashInfer uses it: two depths, with and without sums, in all layouts."""
    draw = random.Random(17)
    parts = []
    for number in range(count):
        keys = draw.choice([1, 2, 4, 8])
        parts.append(
            packed(
                number,
                depth=(64, 128)[number % 2],
                lse=draw.choice(["sh", "hs", *PADDED]) if number % 4 < 2 else "",
                batch=draw.randint(1, 64),
                heads=(keys * draw.choice([1, 2, 4, 7]), keys),
                rows=draw.randint(1, 20000),
                keys=draw.randint(1, 20000),
                longest=draw.randint(1, 9000),
                is_causal=True,
            )
        )
    return parts


def strided(dtype: str) -> list[Part]:
    """Dense attention of operands whose axes lie in memory in any order, channels last."""
    draw = random.Random(3)
    parts = []
    for number, order in enumerate(list(itertools.permutations(range(3))) * 6):
        keys = draw.randint(1, 4)
        sizes = [draw.randint(1, 9), keys * draw.randint(1, 4), keys]
        sizes += [draw.randint(1, 3000), draw.randint(1, 3000)]
        parts.append(dense(number, sizes, [*order, 3], dtype))
    parts.append(dense(len(parts), ["B", 8, 2, "L", "S"], [0, 2, 1, 3], dtype))
    return parts
