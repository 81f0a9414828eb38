"""What is in a model's way is said all at once."""

import pytest
from onnx import helper

from sofie.importer.check import check
from sofie.importer.errors import ModelError
from sofie.testing.operators import Dims, graph, import_model


def test_every_node_is_named() -> None:
    nodes = [
        helper.make_node("Unheard", ["x"], ["a"], name="first", domain="nobody"),
        helper.make_node("Relu", ["x"], ["b"], name="fine"),
        helper.make_node("Unheard", ["b"], ["c"], name="second", domain="nobody"),
    ]
    shape: Dims = ["N", 3, 3]
    outputs = {name: ("float32", shape) for name in ("a", "c")}
    model = graph(nodes, {"x": ("float32", shape)}, outputs, domains={"nobody": 1})
    with pytest.raises(ModelError) as caught:
        check(import_model(model))
    message = str(caught.value)
    assert "2 things" in message
    assert "first (nobody.Unheard): the operator is not supported" in message
    assert "second (nobody.Unheard): the operator is not supported" in message
    assert "fine" not in message


def test_types_are_named() -> None:
    model = graph(
        [helper.make_node("Identity", ["x"], ["y"], name="same")],
        {"x": ("complex64", ["N"])},
        {"y": "complex64"},
    )
    with pytest.raises(ModelError, match=r"same \(Identity\): .*COMPLEX64.* not supported"):
        check(import_model(model))


def test_opsets_are_named() -> None:
    model = graph(
        [helper.make_node("Relu", ["x"], ["y"], name="old")],
        {"x": ("float32", ["N", 3])},
        {"y": ("float32", ["N", 3])},
        opset=5,
    )
    with pytest.raises(ModelError, match=r"old \(Relu\): opset 5 is not supported \(opsets 6"):
        check(import_model(model))
