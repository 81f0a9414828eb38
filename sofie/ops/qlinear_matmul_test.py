"""MatMulInteger and QLinearMatMul against the reference: integers are exact."""

import numpy as np
import pytest
from onnx import helper

from sofie.testing import interpreter
from sofie.testing.operators import Dims, graph, hold

_CASES = [{"N": 3}, {"N": 0}, {"N": 1}]


def _numbers(dtype: str, shape: list[int], seed: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("left", ["int8", "uint8"])
@pytest.mark.parametrize("right", ["int8", "uint8"])
@pytest.mark.parametrize("zeros", ["none", "numbers", "vectors"])
# float32 holds the sums of the first, float64 those of the second.
@pytest.mark.parametrize("terms", [7, 300])
def test_sums_are_exact(left: str, right: str, zeros: str, terms: int) -> None:
    names, constants = ["a", "b"], {}
    if zeros != "none":
        shapes: tuple[list[int], list[int]] = ([], []) if zeros == "numbers" else ([4], [5])
        constants = {"az": _numbers(left, shapes[0], 1), "bz": _numbers(right, shapes[1], 2)}
        names += ["az", "bz"]
    model = graph(
        [helper.make_node("MatMulInteger", names, ["y"])],
        {"a": (left, [4, terms]), "b": (right, [terms, 5])},
        {"y": "int32"},
        constants,
    )
    feeds = {"a": _numbers(left, [4, terms], 3), "b": _numbers(right, [terms, 5], 4)}
    if zeros == "vectors":
        # The reference takes a vector of zero points for one of the columns.
        shifted = feeds["a"].astype(np.int64) - constants["az"].astype(np.int64)[:, None]
        total = shifted @ (feeds["b"].astype(np.int64) - constants["bz"].astype(np.int64))
        hold(model, [{}], feeds, reference=lambda _: [total.astype(np.int32)])
    else:
        hold(model, [{}], feeds)


@pytest.mark.parametrize(
    ("a", "b"),
    [(["N", 2, 3, 6], [6, 5]), (["N", 6], [6, 5]), ([6], [6]), ([2, 3, 6], ["N", 1, 6, 4])],
)
def test_batches(a: Dims, b: Dims) -> None:
    model = graph(
        [helper.make_node("MatMulInteger", ["a", "b", "z"], ["y"])],
        {"a": ("uint8", a), "b": ("int8", b)},
        {"y": "int32"},
        {"z": np.array(3, np.uint8)},
    )
    hold(model, _CASES)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("scale", ["float32", "float16"])
@pytest.mark.parametrize("shape", [["N", 6], ["N", 2, 6]])
def test_products_are_quantized_again(dtype: str, scale: str, shape: Dims) -> None:
    constants = {
        "as": np.array(0.0625, scale),
        "az": np.array(3, dtype),
        "bs": np.array(0.03125, scale),
        "bz": np.array(5, dtype),
        "ys": np.array(0.125, scale),
        # Even, so that halves go where the reference lets them go, which rounds the sum with it.
        "yz": np.array(18, dtype),
    }
    names = ["a", "as", "az", "b", "bs", "bz", "ys", "yz"]
    model = graph(
        [helper.make_node("QLinearMatMul", names, ["y"])],
        {"a": (dtype, shape), "b": (dtype, [6, 5])},
        {"y": dtype},
        constants,
    )
    hold(model, _CASES)


@pytest.mark.parametrize("zeros", [1, 4])
def test_zero_points_of_any_number(zeros: int) -> None:
    model = graph(
        [helper.make_node("MatMulInteger", ["a", "b", "z"], ["y"])],
        {"a": ("uint8", [4, 3]), "b": ("int8", [3, 5]), "z": ("uint8", ["Z"])},
        {"y": "int32"},
    )
    rng = np.random.default_rng(9)
    feeds = {name: rng.integers(0, 99, shape) for name, shape in (("a", (4, 3)), ("b", (3, 5)))}
    points = rng.integers(0, 99, zeros)
    total = (feeds["a"] - points[:, None]) @ feeds["b"]
    inputs = {"a": feeds["a"].astype(np.uint8), "b": feeds["b"].astype(np.int8)}
    program = hold(
        model,
        [{"z": points.astype(np.uint8)}],
        inputs,
        reference=lambda _: [total.astype(np.int32)],
    )
    with pytest.raises(interpreter.RequirementError, match="does not broadcast"):
        interpreter.run(program, {**inputs, "z": np.zeros(3, np.uint8)})
