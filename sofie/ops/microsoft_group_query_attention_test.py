"""GroupQueryAttention of com.microsoft against ONNX Runtime."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing import interpreter
from sofie.testing.operators import Array, Dims, compile_graph, graph, hold

_DEPTH = 16
# Rows of queries, and of caches; all are new in a prompt.
_PROMPTS = [(2, 5, 5, [4, 4]), (1, 1, 1, [0]), (3, 9, 9, [8, 8, 8])]
_STEPS = [(2, 1, 7, [6, 4]), (1, 1, 2, [1]), (3, 1, 12, [11, 0, 5])]


def _model(
    *,
    past: bool = False,
    past_rows: str = "T",
    packed: bool = False,
    rotary: bool = False,
    outputs: int = 3,
    bias: bool = False,
    dtype: str = "float32",
    **attributes: Any,
) -> onnx.ModelProto:
    """Four heads share the keys of two; total_sequence_length is the extent of an input."""
    inputs: dict[str, tuple[str, Dims]] = {
        "q": (dtype, ["B", "S", (8 if packed else 4) * _DEPTH]),
        "last": ("int32", ["B"]),
        "whole": (dtype, ["T"]),
    }
    if not packed:
        inputs |= {name: (dtype, ["B", "S", 2 * _DEPTH]) for name in "kv"}
    if past:
        inputs |= {f"past_{name}": (dtype, ["B", 2, past_rows, _DEPTH]) for name in "kv"}
    if rotary:
        inputs |= {name: (dtype, [20, _DEPTH // 2]) for name in ("cos", "sin")}
    if bias:
        inputs |= {"bias": (dtype, [1, 1, "S", "T"])}
    wanted = ["q", "k", "v", "past_k", "past_v", "last", "total", "cos", "sin", "", "bias"]
    names = [name if name in inputs or name == "total" else "" for name in wanted]
    while not names[-1]:
        names.pop()
    nodes = [
        helper.make_node("Shape", ["whole"], ["length"]),
        helper.make_node("Cast", ["length"], ["total"], to=onnx.TensorProto.INT32),
        helper.make_node(
            "GroupQueryAttention",
            names,
            ["y", "present_k", "present_v"][:outputs],
            domain="com.microsoft",
            num_heads=4,
            kv_num_heads=2,
            do_rotary=int(rotary),
            **attributes,
        ),
    ]
    shapes: dict[str, tuple[str, Dims]] = {"y": (dtype, ["B", "S", 4 * _DEPTH])}
    if outputs > 1:
        present = "T" if past_rows == "T" else "R"
        shapes |= {f"present_{name}": (dtype, ["B", 2, present, _DEPTH]) for name in "kv"}
    return graph(nodes, inputs, shapes, domains={"com.microsoft": 1}, opset=17)


def _cases(table: list[tuple[int, int, int, list[int]]]) -> list[dict[str, int | Array]]:
    return [
        {"B": batch, "S": rows, "T": total, "last": np.array(last, np.int32)}
        for batch, rows, total, last in table
    ]


def _hold(model: onnx.ModelProto, table: list[tuple[int, int, int, list[int]]]) -> None:
    program = hold(model, _cases(table), against_runtime=True, tolerance=1e-5)
    assert sum(type(step).__name__ == "Attention" for step in program.steps) == 1


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"packed": True},
        {"rotary": True},
        {"rotary": True, "rotary_interleaved": 1},
        {"local_window_size": 3},
        {"scale": 0.3, "softcap": 2.0},
        {"bias": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("table", [_PROMPTS, _STEPS], ids=["prompts", "steps"])
def test_options(options: dict[str, Any], table: list[tuple[int, int, int, list[int]]]) -> None:
    _hold(_model(past=True, **options), table)


def test_a_prompt_without_caches() -> None:
    _hold(_model(), _PROMPTS)


@pytest.mark.parametrize("last", [-50, -1, 11, 50])
@pytest.mark.parametrize("table", [_PROMPTS, _STEPS], ids=["prompts", "steps"])
def test_lengths_that_make_no_sense_read_nothing_outside(
    last: int, table: list[tuple[int, int, int, list[int]]]
) -> None:
    """The interpreter raises where memory outside of an operand is read."""
    random = np.random.default_rng(5)
    for past in (0, 3):
        model = _model(past=True, rotary=True, past_rows="P")
        program = compile_graph(model)
        for batch, rows, total, _ in table:
            extents = {"B": batch, "S": rows, "T": total, "P": past}
            inputs = {
                value.name: random.standard_normal(
                    [
                        extents[d.dim_param] if d.dim_param else d.dim_value
                        for d in value.type.tensor_type.shape.dim
                    ]
                ).astype(np.float32)
                for value in model.graph.input
            }
            inputs["last"] = np.full(batch, last, np.int32)
            result, *_ = interpreter.run(program, inputs)
            assert result.shape == (batch, rows, 4 * _DEPTH)


def test_tables_of_different_sizes_are_refused() -> None:
    model = _model(rotary=True)
    (sin,) = (value for value in model.graph.input if value.name == "sin")
    sin.type.tensor_type.shape.dim[0].dim_value = 19
    with pytest.raises(ModelError, match="must be equal, but are 20 and 19"):
        compile_graph(model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smooth_softmax": 1}, "a smooth softmax"),
        ({"kv_num_heads": 3}, "do not divide"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    model = _model()
    node = model.graph.node[-1]
    for name, value in options.items():
        kept = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, value)])
    with pytest.raises(ModelError, match=message):
        compile_graph(model)
