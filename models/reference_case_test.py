"""Tests of the reference: inputs, expected outputs and the file that carries them."""

from __future__ import annotations

import json
import pathlib
import zipfile
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from models import jet_inputs, near_ties, reference_case

_MODELS = pathlib.Path(reference_case.__file__).parent


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[int, list[int | str | None]]],
    output: tuple[int, list[int | str]],
    initializers: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info("y", *output)],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def _convolution() -> onnx.ModelProto:
    """A Conv over an axis of any length, which ONNX Runtime refuses where the length is 0."""
    weight = numpy_helper.from_array(np.full((2, 3, 1), 0.5, np.float32), "w")
    return _model(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        {"x": (TensorProto.FLOAT, ["N", 3, "L"])},
        (TensorProto.FLOAT, ["N", 2, "L"]),
        [weight],
    )


def test_parse_case() -> None:
    assert reference_case.parse_case("N=1,n_pf=100") == {"N": 1, "n_pf": 100}
    assert reference_case.parse_case("x:0=3,a=b=0") == {"x:0": 3, "a=b": 0}
    assert reference_case.parse_case("") == {}


@pytest.mark.parametrize("text", ["N", "N=", "=1", "N=-1", "N=1.5"])
def test_parse_case_refuses(text: str) -> None:
    with pytest.raises(reference_case.CaseError, match="symbol=extent"):
        reference_case.parse_case(text)


def test_input_shapes() -> None:
    model = _model(
        [helper.make_node("Add", ["a", "b"], ["y"])],
        {
            "a": (TensorProto.FLOAT, ["N", 3]),
            "b": (TensorProto.FLOAT, [None, 3]),
            "w": (TensorProto.FLOAT, [3]),
        },
        (TensorProto.FLOAT, ["N", 3]),
        [numpy_helper.from_array(np.zeros(3, np.float32), "w")],
    )
    assert reference_case.input_shapes(model, {"N": 4, "b:0": 1}) == {"a": (4, 3), "b": (1, 3)}
    with pytest.raises(reference_case.CaseError, match="no extent for 'b:0' of 'b'"):
        reference_case.input_shapes(model, {"N": 4})
    with pytest.raises(reference_case.CaseError, match="no symbol M; it has N, b:0"):
        reference_case.input_shapes(model, {"N": 4, "b:0": 1, "M": 2})


def test_random_inputs_look_like_jets() -> None:
    model = onnx.load(_MODELS / "particle_net.onnx")
    shapes = reference_case.input_shapes(model, {"N": 64, "n_pf": 100, "n_sv": 8})
    inputs = reference_case.random_inputs(model, shapes, seed=3)
    assert {name: array.shape for name, array in inputs.items()} == shapes
    assert all(array.dtype == np.float32 for array in inputs.values())
    assert inputs["pf_points"].std() == pytest.approx(0.3, rel=0.05)
    # Features have the mean and the spread of real jets.
    for name, features in (
        ("pf_features", jet_inputs.PARTICLE_FEATURES),
        ("sv_features", jet_inputs.VERTEX_FEATURES),
    ):
        centres, scales = (
            np.array([getattr(feature, part) for feature in features])
            for part in ("centre", "scale")
        )
        standard = (inputs[name] - centres[:, None]) / scales[:, None]
        assert np.abs(standard.mean(axis=(0, 2))).max() < 0.2
        np.testing.assert_allclose(standard.std(axis=(0, 2)), 1, rtol=0.15)
    mask = inputs["pf_mask"][:, 0]
    assert set(np.unique(mask)) == {0, 1}
    assert (np.diff(mask, axis=1) <= 0).all()  # Padding is at the end.
    assert (mask[::2] == 1).all()
    assert mask.sum(axis=1).min() >= 75
    again = reference_case.random_inputs(model, shapes, seed=3)
    other = reference_case.random_inputs(model, shapes, seed=4)
    assert all((again[name] == inputs[name]).all() for name in inputs)
    assert (other["pf_points"] != inputs["pf_points"]).any()


def test_random_integers_and_booleans() -> None:
    model = _model(
        [helper.make_node("Where", ["b", "i", "i"], ["y"])],
        {"b": (TensorProto.BOOL, [100]), "i": (TensorProto.INT32, [100])},
        (TensorProto.INT32, [100]),
    )
    inputs = reference_case.random_inputs(model, {"b": (100,), "i": (100,)}, seed=0)
    assert inputs["b"].dtype == np.bool_
    assert set(np.unique(inputs["b"])) == {False, True}
    assert inputs["i"].dtype == np.int32
    assert set(np.unique(inputs["i"])) == {0, 1, 2, 3}


def test_random_counts_and_indices() -> None:
    model = _model(
        [helper.make_node("Gather", ["x", "row_index"], ["y"])],
        {
            "x": (TensorProto.FLOAT, [3, 5]),
            "count": (TensorProto.INT32, [100]),
            "row_index": (TensorProto.INT64, [100]),
        },
        (TensorProto.FLOAT, [100, 5]),
    )
    inputs = reference_case.random_inputs(
        model, {"x": (3, 5), "count": (100,), "row_index": (100,)}, seed=0
    )
    assert set(np.unique(inputs["count"])) == set(range(6))
    assert set(np.unique(inputs["row_index"])) == set(range(3))


def test_onnx_runtime_comes_first() -> None:
    model = _convolution()
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    outputs, oracle = reference_case.expected_outputs(model, {"x": x})
    assert oracle == "ONNX Runtime"
    np.testing.assert_array_equal(outputs[0], np.repeat(x.sum(axis=1, keepdims=True) / 2, 2, 1))


def test_the_reference_evaluator_serves_what_onnx_runtime_refuses() -> None:
    outputs, oracle = reference_case.expected_outputs(
        _convolution(), {"x": np.zeros((2, 3, 0), np.float32)}
    )
    assert oracle == "ONNX reference evaluator"
    assert outputs[0].shape == (2, 2, 0)


def test_file(tmp_path: pathlib.Path) -> None:
    model = onnx.load(_MODELS / "mlp.onnx")
    made = reference_case.make_reference(model, {"N": 6}, seed=5)
    path = tmp_path / "case.npz"
    reference_case.write(made, path)
    with zipfile.ZipFile(path) as archive:
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
    with np.load(path) as file:
        assert set(file) == {"input_0", "output_0", "loose_rows_0", "tolerances", "manifest"}
        assert file["input_0"].shape == (6, 16)
        assert file["input_0"].dtype == np.float32
        assert file["output_0"].shape == (6, 5)
        assert file["loose_rows_0"].dtype == np.int64
        assert file["loose_rows_0"].shape == (0,)
        np.testing.assert_array_equal(file["tolerances"], [[2e-5, 1e-2]])
        assert json.loads(file["manifest"].tobytes()) == {
            "case": {"N": 6},
            "inputs": ["features"],
            "outputs": ["probabilities"],
            "types": ["FLOAT", "FLOAT"],
            "oracle": "ONNX Runtime",
            "seed": 5,
        }


def test_same_case_same_bytes(tmp_path: pathlib.Path) -> None:
    model = onnx.load(_MODELS / "particle_net.onnx")
    case = {"N": 2, "n_pf": 20, "n_sv": 1}
    for name in ("first.npz", "second.npz"):
        reference_case.write(reference_case.make_reference(model, case), tmp_path / name)
    first, second = ((tmp_path / name).read_bytes() for name in ("first.npz", "second.npz"))
    assert first == second


def test_types_without_numpy_counterpart_are_stored_as_bits(tmp_path: pathlib.Path) -> None:
    model = _model(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)],
        {"x": (TensorProto.FLOAT, [3])},
        (TensorProto.BFLOAT16, [3]),
    )
    made = reference_case.make_reference(model, {})
    path = tmp_path / "case.npz"
    reference_case.write(made, path)
    with np.load(path) as file:
        bits = file["output_0"]
        assert bits.dtype == np.uint16
        # A bfloat16 is the upper half of a float.
        values = (bits.astype(np.uint32) << 16).view(np.float32)
        np.testing.assert_allclose(values, file["input_0"], rtol=2**-8)
        assert json.loads(file["manifest"].tobytes())["types"] == ["FLOAT", "BFLOAT16"]


def _all_ties() -> onnx.ModelProto:
    """Selects among values that are all 1 up to 1e-9: every row is a near tie, at any seed."""
    constants = {
        "k": np.array([2]),
        "tiny": np.array(1e-9, np.float32),
        "one": np.array([1], np.float32),
    }
    return _model(
        [
            helper.make_node("Mul", ["x", "tiny"], ["small"]),
            helper.make_node("Add", ["small", "one"], ["equal"]),
            helper.make_node("TopK", ["equal", "k"], ["values", "y"]),
        ],
        {"x": (TensorProto.FLOAT, ["N", 5])},
        (TensorProto.INT64, ["N", 2]),
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )


def test_near_ties_in_every_row_are_an_error() -> None:
    with pytest.raises(reference_case.CaseError, match=r"near ties in at most 5% of the rows"):
        reference_case.make_reference(_all_ties(), {"N": 3})


def test_particle_net_has_few_loose_rows() -> None:
    model = onnx.load(_MODELS / "particle_net.onnx")
    made = reference_case.make_reference(model, {"N": 20, "n_pf": 40, "n_sv": 3})
    assert len(made.loose_rows[0]) <= 1
    assert made.outputs["softmax"].shape == (20, 8)


def test_a_seed_with_too_many_near_ties_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    looseness = iter([[0], [], [0]])

    def loose_rows(*_: object) -> list[np.ndarray]:
        return [np.array(next(looseness), np.int64)]

    monkeypatch.setattr(near_ties, "loose_rows", loose_rows)
    model = onnx.load(_MODELS / "particle_net.onnx")
    made = reference_case.make_reference(model, {"N": 1, "n_pf": 17, "n_sv": 1}, seed=7)
    assert made.seed == 8


@pytest.mark.parametrize("constant", [True, False])
def test_integer_products_do_not_saturate(constant: bool) -> None:
    # 255 * 127 + 255 * 127 needs more than 16 bits.
    weight = np.full((64, 8), 127, np.int8)
    inputs: dict[str, tuple[int, list[int | str | None]]] = {"x": (TensorProto.UINT8, [3, 64])}
    if not constant:
        inputs["w"] = (TensorProto.INT8, [64, 8])
    model = _model(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        inputs,
        (TensorProto.INT32, [3, 8]),
        [numpy_helper.from_array(weight, "w")] if constant else [],
    )
    x = np.full((3, 64), 255, np.uint8)
    feeds = {"x": x} if constant else {"x": x, "w": weight}
    outputs, _ = reference_case.expected_outputs(model, feeds)
    np.testing.assert_array_equal(outputs[0], np.full((3, 8), 64 * 255 * 127, np.int32))
