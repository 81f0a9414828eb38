"""LessOrEqual against the reference, at several sizes."""

from onnx import helper

from sofie.ir import expr
from sofie.ir.program import Pointwise
from sofie.testing.operators import compile_graph, graph, hold, hold_elementwise


def test_every_type_and_broadcast() -> None:
    hold_elementwise("LessOrEqual", ["float32", "float64", "int32", "uint8"], "bool", arity=2)


def test_a_size_and_itself() -> None:
    """The same C++ on both sides does not compile where warnings are errors."""
    relations = {"Less": 0, "LessOrEqual": 1, "Greater": 0, "GreaterOrEqual": 1, "Equal": 1}
    model = graph(
        [
            helper.make_node("Shape", ["x"], ["n"]),
            helper.make_node("Shape", ["x"], ["same"], start=0),
            *(helper.make_node(name, ["n", "same"], [name]) for name in relations),
        ],
        {"x": ("float32", ["N"])},
        dict.fromkeys(relations, "bool"),
    )
    values = [s.store.value for s in compile_graph(model).steps if isinstance(s, Pointwise)]
    assert [v.value for v in values if isinstance(v, expr.Literal)] == list(relations.values())
    hold(model, [{"N": 3}, {"N": 0}, {"N": 1}])
