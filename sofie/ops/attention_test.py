"""Attention against the reference: one kernel wherever its features are covered."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.ir.program import Program
from sofie.testing.operators import Array, Dims, compile_graph, graph, hold

_CASES = [{"B": 2, "L": 5, "S": 7}, {"B": 1, "L": 1, "S": 1}, {"B": 3, "L": 9, "S": 4}]
_INPUTS: dict[str, Dims] = {
    "q": ["B", 4, "L", 8],
    "k": ["B", 2, "S", 8],
    "v": ["B", 2, "S", 6],
    "mask": [],
    "past_key": ["B", 2, "P", 8],
    "past_value": ["B", 2, "P", 6],
    "lengths": ["B"],
}


def _model(
    names: Sequence[str],
    dtype: str = "float32",
    mask: tuple[str, Dims] = ("float32", []),
    outputs: Sequence[str] = ("y",),
    shapes: Mapping[str, Dims] | None = None,
    opset: int = 25,
    **attributes: Any,
) -> onnx.ModelProto:
    kinds = {name: (dtype, shape) for name, shape in {**_INPUTS, **(shapes or {})}.items()}
    kinds["mask"], kinds["lengths"] = mask, ("int64", ["B"])
    node = helper.make_node("Attention", list(names), list(outputs), **attributes)
    given = {name: kinds[name] for name in names if name}
    # ONNX infers no shapes of caches.
    results: dict[str, str | tuple[str, Dims]] = {
        name: dtype if name[:7] != "present" else (dtype, ["B", 2, "T", "C"])
        for name in outputs
        if name
    }
    return graph([node], given, results, opset=opset)


def _in_float64(
    inputs: Mapping[str, Array], is_causal: bool = False, scale: float = 8**-0.5
) -> list[Array]:
    """The formula, for masks with which ONNX's reference errs: of one row, or over infinities."""
    query, key, value = (inputs[name].astype(np.float64) for name in "qkv")
    shared = query.shape[1] // key.shape[1]
    key, value = (np.repeat(x, shared, axis=1) for x in (key, value))
    with np.errstate(all="ignore"):
        scores = scale * np.einsum("bhic,bhjc->bhij", query, key)
    mask = inputs.get("mask", np.zeros(1))
    if mask.dtype == bool:
        mask = np.where(mask, 0, -np.inf)
    mask = np.broadcast_to(mask, scores.shape).copy()
    if is_causal:
        mask[..., np.triu(np.ones(scores.shape[-2:], bool), 1)] = -np.inf
    with np.errstate(all="ignore"):
        weights = np.exp(np.where(np.isneginf(mask), -np.inf, scores + mask))
        means = np.einsum("bhij,bhjc->bhic", weights, value) / weights.sum(axis=-1, keepdims=True)
    hidden = np.isneginf(mask).all(axis=-1, keepdims=True)
    return [np.where(hidden, 0, means).astype(inputs["q"].dtype)]


def _kernels(program: Program) -> list[str]:
    return [type(step).__name__ for step in program.steps]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("opset", [23, 24, 25])
def test_every_type_is_one_kernel(dtype: str, opset: int) -> None:
    model = _model(["q", "k", "v"], dtype, opset=opset)
    assert _kernels(hold(model, _CASES)) == ["Attention"]


@pytest.mark.parametrize("attributes", [{"scale": 0.7}, {"softcap": 0.5}, {"is_causal": 1}])
def test_attributes(attributes: dict[str, Any]) -> None:
    assert _kernels(hold(_model(["q", "k", "v"], **attributes), _CASES)) == ["Attention"]


@pytest.mark.parametrize("dtype", ["float32", "bool"])
@pytest.mark.parametrize(
    "shape",
    [["S"], ["L", "S"], [4, 1, "S"], [4, "L", "S"], ["B", 1, "L", "S"], [1, 1, 1, "S"]],
)
@pytest.mark.parametrize("is_causal", [0, 1])
def test_masks_broadcast(dtype: str, shape: Dims, is_causal: int) -> None:
    model = _model(["q", "k", "v", "mask"], mask=(dtype, shape), is_causal=is_causal)
    program = hold(model, _CASES, reference=lambda inputs: _in_float64(inputs, is_causal == 1))
    assert _kernels(program) == ["Attention"]


def test_a_row_that_sees_nothing_is_zero() -> None:
    def masks(x: Array) -> Array:
        return np.where(x < 0, -np.inf, x) if x.ndim == 2 else x

    model = _model(["q", "k", "v", "mask"], mask=("float32", ["L", "S"]))
    rows = np.zeros((5, 3), np.float32)
    rows[1], rows[3, :2] = -np.inf, -np.inf
    hold(model, [{"B": 2, "L": 5, "S": 3, "mask": rows}], values=masks)


def test_a_masked_number_may_be_anything() -> None:
    model = _model(["q", "k", "v", "mask"], mask=("bool", ["L", "S"]))
    program = compile_graph(model)
    assert _kernels(program) == ["Attention"]
    key = np.ones((1, 2, 3, 8), np.float32)
    key[:, :, 1] = np.inf
    seen = np.array([[True, False, True], [False, False, False]])
    case: Mapping[str, int | Array] = {"B": 1, "L": 2, "S": 3, "k": key, "mask": seen}
    hold(model, [case], reference=_in_float64)


@pytest.mark.parametrize("window", [(-1, -1), (0, -1), (2, 1), (-1, 0), (1, 0)])
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("further", [[], ["", "past_key", "past_value"], ["", "", "", "lengths"]])
def test_windows(window: tuple[int, int], is_causal: int, further: list[str]) -> None:
    model = _model(
        ["q", "k", "v", *further],
        is_causal=is_causal,
        left_window_size=window[0],
        right_window_size=window[1],
    )
    cases: list[dict[str, int | Array]] = [
        {"B": 2, "L": 5, "S": 7, "P": 3, "lengths": np.array([7, 3])},
        {"B": 1, "L": 1, "S": 1, "P": 0, "lengths": np.array([1])},
        {"B": 3, "L": 6, "S": 4, "P": 2, "lengths": np.array([0, 4, 2])},
    ]
    assert "Attention" in _kernels(hold(model, cases))


def test_caches() -> None:
    names = ["q", "k", "v", "", "past_key", "past_value"]
    model = _model(names, outputs=["y", "present_key", "present_value"])
    kernels = _kernels(hold(model, [{**case, "P": 2} for case in _CASES]))
    assert kernels.count("Attention") == 1 and "Gemm" not in kernels


def test_a_mask_that_may_be_shorter_than_the_keys_is_expanded() -> None:
    model = _model(["q", "k", "v", "mask"], mask=("float32", ["L", "M"]))
    cases = [{**case, "M": case["S"]} for case in _CASES]
    assert "Attention" not in _kernels(hold(model, cases))


def test_heads_that_lie_in_the_channels() -> None:
    shapes: dict[str, Dims] = {"q": ["B", "L", 12], "k": ["B", "S", 6], "v": ["B", "S", 10]}
    model = _model(
        ["q", "k", "v"], shapes=shapes, outputs=["y"], q_num_heads=4, kv_num_heads=2, is_causal=1
    )
    assert _kernels(hold(model, _CASES)) == ["Attention"]


def test_heads_that_are_none_are_an_error() -> None:
    shapes: dict[str, Dims] = {"q": ["B", "L", 13], "k": ["B", "S", 6], "v": ["B", "S", 10]}
    wide = _model(["q", "k", "v"], shapes=shapes, q_num_heads=4, kv_num_heads=2)
    with pytest.raises(ModelError, match="do not divide into heads"):
        compile_graph(wide)
    with pytest.raises(ModelError, match="can't share the keys"):
        compile_graph(_model(["q", "k", "v"], shapes={"q": ["B", 3, "L", 8]}))


def test_no_rows_and_no_keys() -> None:
    program = compile_graph(_model(["q", "k", "v"]))
    assert _kernels(program) == ["Attention"]
    hold(_model(["q", "k", "v"]), [{"B": 2, "L": 0, "S": 3}, {"B": 0, "L": 2, "S": 2}])

    def zeros(inputs: Mapping[str, Array]) -> list[Array]:
        return [np.zeros((*inputs["q"].shape[:3], 6), np.float32)]

    hold(_model(["q", "k", "v"]), [{"B": 2, "L": 3, "S": 0}], reference=zeros)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_scores_that_are_an_output_are_computed_as_onnx_defines_it(mode: int) -> None:
    # ONNX's reference caps the scores of mode 0, too.
    softcap = 0.5 if mode else 0.0
    outputs = ["y", "", "", "scores"]
    model = _model(["q", "k", "v"], outputs=outputs, qk_matmul_output_mode=mode, softcap=softcap)
    assert "Attention" not in _kernels(hold(model, _CASES))


def test_channels_that_the_model_leaves_open_are_expanded() -> None:
    shapes: dict[str, Dims] = {"q": ["B", 2, "L", "D"], "k": ["B", 2, "S", "D"]}
    model = _model(["q", "k", "v"], shapes=shapes)
    assert "Attention" not in _kernels(hold(model, [{**case, "D": 4} for case in _CASES]))


def test_operands_that_are_computed_on_the_way() -> None:
    nodes = [
        helper.make_node("Mul", ["q", "half"], ["scaled"]),
        helper.make_node("Transpose", ["kt"], ["once"], perm=[0, 2, 3, 1]),
        helper.make_node("Mul", ["once", "once"], ["squared"]),
        helper.make_node("Sigmoid", ["squared"], ["small"]),
        helper.make_node("Div", ["small", "kt2"], ["k"]),
        helper.make_node("Exp", ["bias"], ["grown"]),
        helper.make_node("Attention", ["scaled", "k", "v", "grown"], ["a"]),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    inputs: dict[str, tuple[str, Dims]] = {
        "q": ("float32", ["B", 4, "L", 8]),
        "kt": ("float32", ["B", 8, 4, "S"]),
        "kt2": ("float32", ["B", 4, "S", 8]),
        "v": ("float32", ["B", 4, "S", 8]),
        "bias": ("float32", ["L", "S"]),
    }
    half = {"half": np.array(0.5, np.float32)}
    model = graph(nodes, inputs, {"y": "float32"}, half, opset=23)
    program = hold(model, _CASES, values=lambda x: np.abs(x) + 0.5)
    # What is cheap is computed in the kernel; what is not, before it, as many rows read it.
    assert _kernels(program) == ["Pointwise", "Attention", "Pointwise"]
    assert {"Mul(scaled)", "Exp(grown)"} < set(program.steps[1].nodes)
