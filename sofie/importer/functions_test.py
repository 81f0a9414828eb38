"""Functions of the model and of ONNX become plain nodes."""

import onnx
import onnx.parser
import pytest
from onnx import helper

from sofie.importer.check import check
from sofie.importer.errors import ModelError
from sofie.ops import registry
from sofie.testing.operators import graph, hold, import_model


def _operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in import_model(model).graph]


@pytest.fixture
def no_celu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Celu, which ONNX defines by other operators, has no lowering."""
    find = registry.find
    monkeypatch.setattr(
        registry, "find", lambda node: None if node.raw.op_type == "Celu" else find(node)
    )


@pytest.mark.usefixtures("no_celu")
def test_an_operator_with_a_definition_and_no_lowering() -> None:
    model = graph(
        [helper.make_node("Celu", ["x"], ["y"], name="act", alpha=2.0)],
        {"x": ("float32", ["N", 3])},
        {"y": "float32"},
    )
    assert "Celu" not in _operators(model)


@pytest.mark.usefixtures("no_celu")
def test_a_definition_takes_the_defaults_of_attributes() -> None:
    model = graph(
        [helper.make_node("Celu", ["x"], ["y"])], {"x": ("float32", ["N", 3])}, {"y": "float32"}
    )
    assert "Celu" not in _operators(model)


def test_an_own_lowering_comes_first() -> None:
    model = graph(
        [helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", ["N"])}, {"y": "float32"}
    )
    assert _operators(model) == ["Relu"]


_TWICE = """
<ir_version: 10, opset_import: ["": 21, "mine": 1]>
main (float[N, 3] x) => (float[N, 3] y)
<float[3] w = {2.0, 3.0, 0.5}>
{
    a = mine.Twice(x, w)
    y = mine.Twice(a, w)
}
<domain: "mine", opset_import: ["": 21]>
Scale (p, q) => (r)
{
    r = Mul(p, q)
}
<domain: "mine", opset_import: ["": 21, "mine": 1]>
Twice (p, q) => (r)
{
    once = mine.Scale(p, q)
    r = mine.Scale(once, q)
}
"""


def test_functions_of_the_model_call_each_other() -> None:
    hold(onnx.parser.parse_model(_TWICE), [{"N": 4}, {"N": 1}, {"N": 0}])


def test_what_is_not_supported_inside_of_a_function_is_named() -> None:
    body = """
    flat = Constant<value_ints = [-1]>()
    row = Reshape(p, flat)
    bytes = Cast<to = 2>(row)
    [thumbnail] image = ImageDecoder(bytes)
    r = Mul(p, q)
"""
    model = onnx.parser.parse_model(_TWICE.replace("r = Mul(p, q)", body))
    with pytest.raises(ModelError, match=r"thumbnail.* \(ImageDecoder\): .* not supported"):
        check(import_model(model))


def test_a_function_that_calls_itself_is_an_error() -> None:
    model = onnx.parser.parse_model(_TWICE.replace("r = Mul(p, q)", "r = mine.Twice(p, q)"))
    with pytest.raises(ModelError):
        import_model(model)
