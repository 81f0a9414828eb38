"""ScatterElements against the reference, and against ONNX Runtime where updates are fewer."""

import numpy as np
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing import interpreter
from sofie.testing.operators import Array, compile_graph, graph, hold

_REDUCTIONS = ["none", "add", "mul", "max", "min"]


@pytest.mark.parametrize("reduction", _REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_reductions_along_each_axis(reduction: str, axis: int) -> None:
    model = graph(
        [
            helper.make_node(
                "ScatterElements", ["x", "i", "u"], ["y"], axis=axis, reduction=reduction
            )
        ],
        {"x": ("float32", [5, "M"]), "i": ("int64", ["N", 4]), "u": ("float32", ["N", 4])},
        {"y": "float32"},
    )
    for n, m in ((3, 6), (0, 5), (1, 4), (5, 4)):
        # Without a reduction no element may be updated twice.
        one = np.arange(n)[:, None] if axis == 0 else np.arange(4)[None, :]
        many = np.arange(n * 4).reshape(n, 4) % 3 - 1
        indices = np.broadcast_to(one, (n, 4)) if reduction == "none" else many
        hold(model, [{"N": n, "M": m}], {"i": indices.astype(np.int64)}, against_runtime=True)


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint16", "int32", "int64", "uint64"])
@pytest.mark.parametrize("reduction", _REDUCTIONS)
def test_types(dtype: str, reduction: str) -> None:
    model = graph(
        [helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], reduction=reduction)],
        {"x": (dtype, [4]), "i": ("int32", ["N"]), "u": (dtype, ["N"])},
        {"y": dtype},
    )
    indices = [3, 0, -2] if reduction == "none" else [3, 0, 3]
    hold(model, [{"N": 3}], {"i": np.array(indices, np.int32)})


def test_bool_and_the_old_name() -> None:
    for name, opset in (("Scatter", 9), ("Scatter", 10), ("ScatterElements", 11)):
        model = graph(
            [helper.make_node(name, ["x", "i", "u"], ["y"], axis=1)],
            {"x": ("bool", ["N", 5]), "i": ("int64", ["N", 2]), "u": ("bool", ["N", 2])},
            {"y": "bool"},
            opset=opset,
        )
        indices = np.array([[3, -5], [1, 2]])
        hold(model, [{"N": 2}], {"i": indices}, against_runtime=True)


def test_sums_on_edge_lists() -> None:
    # What graph networks do: messages are summed at the nodes that they go to.
    nodes = [
        helper.make_node("Shape", ["nodes"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["zeros"]),
        helper.make_node("Relu", ["messages"], ["positive"]),
        helper.make_node("ScatterElements", ["zeros", "to", "positive"], ["y"], reduction="add"),
    ]
    model = graph(
        nodes,
        {
            "nodes": ("float32", ["V", 3]),
            "messages": ("float32", ["E", 3]),
            "to": ("int64", ["E", 3]),
        },
        {"y": "float32"},
    )
    for v, e in ((4, 9), (1, 3), (6, 0), (0, 0)):
        to = np.broadcast_to(np.arange(e)[:, None] % max(v, 1), (e, 3)).astype(np.int64)
        program = hold(model, [{"V": v, "E": e}], {"to": to}, against_runtime=True)
    assert [type(step).__name__ for step in program.steps] == ["Pointwise", "Scatter"]


def test_data_that_something_else_reads_is_left_alone() -> None:
    model = graph(
        [
            helper.make_node("Exp", ["x"], ["e"]),
            helper.make_node("ScatterElements", ["e", "i", "u"], ["s"]),
            helper.make_node("Sub", ["s", "e"], ["y"]),
        ],
        {"x": ("float32", ["N"]), "i": ("int64", [2]), "u": ("float32", [2])},
        {"y": "float32", "e": "float32"},
    )
    hold(model, [{"N": 4}, {"N": 2}], {"i": np.array([1, 0])})


def test_an_empty_axis_has_nothing_to_update() -> None:
    model = graph(
        [helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], name="put")],
        {"x": ("float32", ["N"]), "i": ("int64", ["M"]), "u": ("float32", ["M"])},
        {"y": "float32"},
    )
    hold(model, [{"N": 0, "M": 0}], against_runtime=True)
    inputs: dict[str, Array] = {
        "x": np.ones(0, np.float32),
        "i": np.zeros(2, np.int64),
        "u": np.ones(2, np.float32),
    }
    with pytest.raises(interpreter.RequirementError, match="put: indices into an axis without"):
        interpreter.run(compile_graph(model), inputs)


def test_sums_of_bool_are_refused() -> None:
    model = graph(
        [helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], reduction="add", name="put")],
        {"x": ("bool", ["N"]), "i": ("int64", ["M"]), "u": ("bool", ["M"])},
        {"y": "bool"},
    )
    with pytest.raises(ModelError, match=r"put \(ScatterElements\): the reduction 'add' of bool"):
        compile_graph(model)
