"""Where against the reference."""

from onnx import helper

from sofie.testing.operators import graph, hold


def test_broadcasts_all_three() -> None:
    model = graph(
        [helper.make_node("Where", ["c", "x", "y"], ["z"])],
        {"c": ("bool", ["N", 1]), "x": ("int64", ["M"]), "y": ("int64", ["N", "M"])},
        {"z": "int64"},
    )
    hold(model, [{"N": 3, "M": 4}, {"N": 0, "M": 2}, {"N": 1, "M": 1}])
