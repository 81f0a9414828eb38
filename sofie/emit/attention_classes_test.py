"""How many kernels attention needs: one for each layout class, whatever the sizes are.

Kernels are counted as functors in the generated source. The object has each for the same few entry
points (tensor cores of either kind, or none) and index types, whatever the sizes are.
"""

import itertools
import random
import re
from collections.abc import Sequence
from typing import Any

import onnx
import pytest
from onnx import helper

from sofie import nodes
from sofie.emit import sources
from sofie.testing.operators import Dims, compile_graph, graph

_Inputs = dict[str, tuple[str, Dims]]
_Outputs = dict[str, str | tuple[str, Dims]]
_Part = tuple[list[onnx.NodeProto], _Inputs, _Outputs]


def _kernels(parts: Sequence[_Part]) -> int:
    """The number of attention's functors in one model of all the parts."""
    every, inputs, outputs = list[onnx.NodeProto](), _Inputs(), _Outputs()
    for part in parts:
        every += part[0]
        inputs |= part[1]
        outputs |= part[2]
    domains = {nodes.DOMAIN: nodes.VERSION}
    program = compile_graph(graph(every, inputs, outputs, opset=25, domains=domains))
    count = sum(type(step).__name__ == "Attention" for step in program.steps)
    assert count == len(parts)
    files = sources.render(program, sources.Options("m", "m", "", 1))
    return len(
        re.findall(r"static constexpr bool kPacked", b"".join(files["m_kernels.h"]).decode())
    )


def _packed(
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
) -> _Part:
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


_PADDED = ["".join(order) for order in itertools.permutations("bhs")]


def test_a_serving_suite_needs_four_kernels() -> None:
    """Packed prefill as FlashInfer uses it: two depths, with and without sums, in all layouts."""
    draw = random.Random(17)
    parts = []
    for number in range(128):
        keys = draw.choice([1, 2, 4, 8])
        parts.append(
            _packed(
                number,
                depth=(64, 128)[number % 2],
                lse=draw.choice(["sh", "hs", *_PADDED]) if number % 4 < 2 else "",
                batch=draw.randint(1, 64),
                heads=(keys * draw.choice([1, 2, 4, 7]), keys),
                rows=draw.randint(1, 20000),
                keys=draw.randint(1, 20000),
                longest=draw.randint(1, 9000),
                is_causal=True,
            )
        )
    assert len(parts) >= 100
    assert _kernels(parts) == 4


# Nodes that differ in what is no part of a class; each names a rule that makes them equal.
@pytest.mark.parametrize(
    "other",
    [
        {"batch": 7},
        {"batch": 1},
        {"batch": "B"},
        {"heads": (16, 2)},
        {"heads": (8, 8)},
        {"heads": (2, 1)},
        {"heads": (1, 1)},
        {"rows": 1},
        {"rows": "T"},
        {"keys": 1},
        {"keys": "U"},
        {"longest": 1},
        {"scale": 0.3},
        {"softcap": 7.0},
        {"window": (9, 3)},
        {"window": (0, 0)},
        *({"lse": layout} for layout in ["sh", "hs", *_PADDED]),
    ],
    ids=str,
)
def test_what_is_no_part_of_a_class(other: dict[str, Any]) -> None:
    options: dict[str, Any] = {"lse": "bhs", "softcap": 3.0, "window": (4, 4)}
    assert _kernels([_packed(0, **options), _packed(1, **{**options, **other})]) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"depth": 128, "value_depth": 64},
        {"value_depth": 32},
        {"dtype": "float16"},
        {"dtype": "float32"},
        {"ends": "int64"},
        {"lse": ""},
        {"is_causal": True},
        {"window": (4, -1)},
        {"is_causal": True, "alignment": "top_left"},
        {"softcap": 3.0},
    ],
    ids=str,
)
def test_what_is_part_of_a_class(other: dict[str, Any]) -> None:
    assert _kernels([_packed(0, lse="sh"), _packed(1, **{"lse": "sh", **other})]) == 2


def _dense(number: int, sizes: Sequence[int | str], order: Sequence[int]) -> _Part:
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
        inputs[stored] = ("float32", [shape[axis] for axis in order])
        made.append(helper.make_node("Transpose", [stored], [turned], perm=back))
        names.append(turned)
    made.append(helper.make_node("Attention", names, [f"y{number}"], is_causal=1))
    return made, inputs, {f"y{number}": ("float32", [batch, heads, rows, 32])}


def test_dense_operands_of_any_strides_are_one_class() -> None:
    draw = random.Random(3)
    parts = []
    # Channels come last, in any order of the other axes.
    for number, order in enumerate(list(itertools.permutations(range(3))) * 6):
        keys = draw.randint(1, 4)
        sizes = [draw.randint(1, 9), keys * draw.randint(1, 4), keys]
        sizes += [draw.randint(1, 3000), draw.randint(1, 3000)]
        parts.append(_dense(number, sizes, [*order, 3]))
    parts.append(_dense(len(parts), ["B", 8, 2, "L", "S"], [0, 2, 1, 3]))
    assert _kernels(parts) == 1
