"""Resize and Upsample against the reference, which ONNX's own tests follow."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import Dims, compile_graph, graph, hold

_CASES = [{"N": 2, "H": 4}, {"N": 1, "H": 7}]


def _resize(
    scales: list[float] | None = None,
    sizes: list[int] | None = None,
    dtype: str = "float32",
    **attributes: Any,
) -> onnx.ModelProto:
    constants: dict[str, np.ndarray] = {}
    names = ["x", "roi"]
    constants["roi"] = np.zeros(0, np.float32)
    if scales is not None:
        constants["scales"] = np.array(scales, np.float32)
        names.append("scales")
    else:
        constants["sizes"] = np.array(sizes, np.int64)
        names += ["", "sizes"]
    return graph(
        [helper.make_node("Resize", names, ["y"], name="grow", axes=[2, 3], **attributes)],
        {"x": (dtype, ["N", 2, "H", 5])},
        {"y": dtype},
        constants,
    )


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(
    "transformation",
    ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"],
)
@pytest.mark.parametrize("scales", [[2.0, 3.0], [0.6, 1.7], [1.0, 0.5]])
def test_scales(mode: str, transformation: str, scales: list[float]) -> None:
    model = _resize(scales, mode=mode, coordinate_transformation_mode=transformation)
    hold(model, _CASES, tolerance=1e-4)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [[8, 3], [1, 5], [3, 10]])
def test_sizes(mode: str, sizes: list[int]) -> None:
    hold(_resize(sizes=sizes, mode=mode), _CASES, tolerance=1e-4)


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("transformation", ["half_pixel", "asymmetric"])
@pytest.mark.parametrize("scales", [[2.0, 3.0], [1.5, 0.5]])
def test_nearest(nearest: str, transformation: str, scales: list[float]) -> None:
    attributes: dict[str, Any] = {
        "nearest_mode": nearest,
        "coordinate_transformation_mode": transformation,
    }
    hold(_resize(scales, mode="nearest", **attributes), _CASES)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude", [0, 1])
@pytest.mark.parametrize("antialias", [0, 1])
@pytest.mark.parametrize("scales", [[0.4, 1.5], [0.7, 0.3]])
def test_antialias_and_borders(
    mode: str, exclude: int, antialias: int, scales: list[float]
) -> None:
    attributes: dict[str, Any] = {
        "exclude_outside": exclude,
        "antialias": antialias,
        "cubic_coeff_a": -0.5,
    }
    hold(_resize(scales, mode=mode, **attributes), _CASES, tolerance=1e-4)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_aspect_ratio(policy: str) -> None:
    model = graph(
        [
            helper.make_node(
                "Resize", ["x", "roi", "", "s"], ["y"], axes=[1, 2], keep_aspect_ratio_policy=policy
            )
        ],
        {"x": ("float32", ["N", 4, 5])},
        {"y": "float32"},
        {"s": np.array([9, 7], np.int64), "roi": np.zeros(0, np.float32)},
    )
    hold(model, [{"N": 2}])


@pytest.mark.parametrize("antialias", [0, 1])
def test_sizes_in_terms_of_sizes(antialias: int) -> None:
    # As a U-Net has it: up to the extents of another tensor.
    model = graph(
        [
            helper.make_node("Shape", ["like"], ["s"], start=2),
            helper.make_node(
                "Resize", ["x", "", "", "s"], ["r"], axes=[2], mode="linear", antialias=antialias
            ),
            helper.make_node("Add", ["r", "like"], ["y"]),
        ],
        {"x": ("float32", ["N", 2, "H"]), "like": ("float32", ["N", 2, "M"])},
        {"y": "float32"},
    )
    hold(model, [{"N": 2, "H": 4, "M": 7}, {"N": 1, "H": 9, "M": 4}, {"N": 1, "H": 3, "M": 3}])


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_crop(mode: str) -> None:
    model = graph(
        [
            helper.make_node(
                "Resize",
                ["x", "r", "", "s"],
                ["y"],
                axes=[1, 2],
                mode=mode,
                coordinate_transformation_mode="tf_crop_and_resize",
                extrapolation_value=7.0,
            )
        ],
        {"x": ("float32", ["N", 4, 5]), "r": ("float32", [4])},
        {"y": "float32"},
        {"s": np.array([3, 6], np.int64)},
    )
    for roi in ([0.2, 0.1, 0.9, 0.6], [0.4, -0.3, 1.3, 1.0]):
        hold(model, [{"N": 2}], {"r": np.array(roi, np.float32)}, tolerance=1e-4)


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_types(dtype: str, mode: str) -> None:
    hold(_resize([1.7, 2.0], dtype=dtype, mode=mode), _CASES)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("opset", [7, 9, 10])
def test_older_opsets(mode: str, opset: int) -> None:
    name = "Resize" if opset == 10 else "Upsample"
    scales: dict[str, Any] = {"scales": [1.0, 1.0, 2.0, 3.0]} if opset == 7 else {}
    inputs = ["x"] if opset == 7 else ["x", "s"]
    model = graph(
        [helper.make_node(name, inputs, ["y"], mode=mode, **scales)],
        {"x": ("float32", ["N", 2, "H", 5])},
        {"y": "float32"},
        {} if opset == 7 else {"s": np.array([1, 1, 2, 3], np.float32)},
        opset=opset,
    )
    hold(model, [*_CASES, {"N": 0, "H": 3}], against_runtime=True)


def test_repeating_takes_no_table() -> None:
    assert len(compile_graph(_resize([2.0, 2.0], mode="nearest")).steps) == 1


@pytest.mark.parametrize(
    ("mode", "antialias"),
    [("nearest", 0), ("linear", 0), ("linear", 1), ("cubic", 0), ("cubic", 1)],
)
@pytest.mark.parametrize("transformation", ["half_pixel", "align_corners", "asymmetric"])
def test_scales_that_are_an_input(mode: str, transformation: str, antialias: int) -> None:
    node = helper.make_node(
        "Resize",
        ["x", "", "s"],
        ["y"],
        mode=mode,
        coordinate_transformation_mode=transformation,
        antialias=antialias,
    )
    inputs: dict[str, tuple[str, Dims]] = {"x": ("float32", ["N", 5]), "s": ("float32", [2])}
    model = graph([node], inputs, {"y": "float32"})
    scales = [[2.0, 0.6], [1.0, 1.7], [0.4, 3.0], [1.0, 1.0]]
    cases: list[dict[str, int | np.ndarray]] = [
        {"N": n, "s": np.array(s, np.float32)} for n, s in zip([4, 7, 3, 0], scales, strict=True)
    ]
    hold(model, cases[:3] if antialias else cases, tolerance=1e-4)


def test_scales_must_be_positive() -> None:
    model = graph(
        [helper.make_node("Resize", ["x", "", "s"], ["y"], name="grow")],
        {"x": ("float32", ["N"]), "s": ("float32", [1])},
        {"y": "float32"},
    )
    x = np.ones(3, np.float32)
    for scale in (0.0, -1.0):
        with pytest.raises(interpreter.RequirementError, match="is not positive"):
            interpreter.run(compile_graph(model), {"x": x, "s": np.array([scale], np.float32)})


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_one_scale_for_all_axes(policy: str, mode: str) -> None:
    node = helper.make_node(
        "Resize", ["x", "", "", "s"], ["y"], mode=mode, keep_aspect_ratio_policy=policy
    )
    inputs: dict[str, tuple[str, Dims]] = {"x": ("float32", ["N", 5]), "s": ("int64", [2])}
    model = graph([node], inputs, {"y": "float32"})
    sizes = [(4, [7, 8]), (7, [3, 9]), (1, [1, 2])]
    hold(model, [{"N": n, "s": np.array(s)} for n, s in sizes], tolerance=1e-4)
