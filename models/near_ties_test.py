"""Tests of the search for near ties, on models small enough to see the answer."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from models import near_ties

_APART = 1.0
_NEARLY = np.float32(1.0) + np.float32(5e-7)


def _model(after: str, k: int = 2, largest: int = 1) -> onnx.ModelProto:
    """The k best of x[N, P]; of these the sum, the first, or the payload's sum at their places."""
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["values", "places"], axis=-1, largest=largest),
    ]
    if after == "payload":
        nodes += [
            helper.make_node("GatherElements", ["payload", "places"], ["chosen"], axis=1),
            helper.make_node("ReduceSum", ["chosen", "last"], ["y"], keepdims=0),
        ]
    elif after == "first":
        nodes += [
            helper.make_node("Slice", ["places", "zero", "one", "last"], ["best"]),
            helper.make_node("Cast", ["best"], ["y"], to=TensorProto.FLOAT),
        ]
    constants = {"k": [k], "last": [-1], "zero": [0], "one": [1]}
    inputs = ["x", "payload"] if after == "payload" else ["x"]
    graph = helper.make_graph(
        nodes,
        "selection",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", "P"]) for name in inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def _payload(x: np.ndarray) -> np.ndarray:
    """Distinct numbers to select."""
    return np.broadcast_to(np.array([10, 20, 40, 80], np.float32), x.shape).copy()


def _loose(model: onnx.ModelProto, inputs: dict[str, np.ndarray], output: np.ndarray) -> list[int]:
    return [int(row) for row in near_ties.loose_rows(model, inputs, [output])[0]]


def test_a_tie_at_the_border_is_loose_and_one_inside_is_not() -> None:
    x = np.array(
        [
            [4, 3, 2, 1],
            [4, _NEARLY, _APART, 0],  # Second and third: the border.
            [_NEARLY, _APART, 0.5, 0.2],  # First and second: their sum does not change.
            [4, 3, _NEARLY, _APART],  # Third and fourth: neither is chosen.
        ],
        np.float32,
    )
    output = np.full(4, 30, np.float32)
    inputs = {"x": x, "payload": _payload(x)}
    assert _loose(_model("payload"), inputs, output) == [1]


def test_a_tie_between_equal_payloads_is_not_loose() -> None:
    x = np.array([[4, _NEARLY, _APART, 0]], np.float32)
    payload = np.array([[10, 20, 20, 80]], np.float32)
    output = np.array([30], np.float32)
    assert _loose(_model("payload"), {"x": x, "payload": payload}, output) == []


def test_the_order_of_the_chosen_counts_where_it_is_used() -> None:
    x = np.array([[0, _NEARLY, _APART, 0.5], [4, 3, 2, 1]], np.float32)
    output = np.array([[1], [0]], np.float32)
    assert _loose(_model("first"), {"x": x}, output) == [0]


def test_smallest() -> None:
    x = np.array([[0, _APART, _NEARLY, 4], [1, 2, 3, 4]], np.float32)
    inputs = {"x": x, "payload": _payload(x)}
    assert _loose(_model("payload", largest=0), inputs, np.full(2, 30, np.float32)) == [0]


@pytest.mark.parametrize("k", [0, 4])
def test_nothing_to_choose(k: int) -> None:
    x = np.array([[_NEARLY, _APART, 1, 1]], np.float32)
    total = np.array([150 if k else 0], np.float32)
    assert _loose(_model("payload", k=k), {"x": x, "payload": _payload(x)}, total) == []


def test_a_result_that_rounding_does_not_explain_is_loose() -> None:
    x = np.array([[4, 3, 2, 1]] * 20, np.float32)
    output = np.full(20, 30, np.float32)
    output[[3, 17]] = [30.01, np.nan]
    assert _loose(_model("payload"), {"x": x, "payload": _payload(x)}, output) == [3, 17]


def test_no_rows() -> None:
    x = np.zeros((0, 4), np.float32)
    inputs = {"x": x, "payload": x}
    assert _loose(_model("payload"), inputs, np.zeros(0, np.float32)) == []


def test_the_number_chosen_may_be_an_input() -> None:
    model = _model("first")
    del model.graph.initializer[0]
    model.graph.input.append(helper.make_tensor_value_info("k", TensorProto.INT64, [1]))
    x = np.array([[4, 3, 2, 1], [0, _NEARLY, _APART, 0.5], [4, 3, 2, 1]], np.float32)
    output = np.array([[0], [1], [0]], np.float32)
    assert _loose(model, {"x": x, "k": np.array([2])}, output) == [1]


def test_more_rows_than_are_evaluated_at_once() -> None:
    x = np.array([[4, 3, 2, 1]] * 21, np.float32)
    x[[2, 19]] = np.array([0, _NEARLY, _APART, 0.5], np.float32)
    output = np.argmax(x, axis=1)[:, None].astype(np.float32)
    assert _loose(_model("first"), {"x": x}, output) == [2, 19]


def test_has_choices() -> None:
    model = _model("payload")
    assert near_ties.has_choices(model)
    del model.graph.node[0]
    assert not near_ties.has_choices(model)
