"""Models that can't be read, and names that models give to sizes."""

import pathlib

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.importer.load import load
from sofie.ir.node import value_shape
from sofie.testing import interpreter
from sofie.testing.operators import Dims, compile_graph, graph, import_model


def _relu(shape: Dims) -> onnx.ModelProto:
    return graph(
        [helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", shape)}, {"y": "float32"}
    )


def test_symbols_are_numbered_in_order_of_first_use() -> None:
    model = graph(
        [helper.make_node("Add", ["x", "y"], ["z"])],
        {"x": ("float32", ["batch size-1", "a/b"]), "y": ("float32", ["a/b"])},
        {"z": "float32"},
    )
    loaded = import_model(model)
    assert loaded.symbols == ("batch size-1", "a/b")
    assert [str(d) for d in loaded.graph.inputs[1].shape or ()] == ["s1"]


def test_unnamed_dimensions_get_names_of_their_own() -> None:
    model = _relu(["N", "M"])
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.ClearField("dim_param")
    assert import_model(model).symbols == ("x_dim0", "x_dim1")


def test_an_input_with_a_value_is_a_constant() -> None:
    """Files of IR version 3 list every initializer among the inputs."""
    weight = np.arange(6, dtype=np.float32).reshape(3, 2)
    model = graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"w": ("float32", [3, 2]), "x": ("float32", ["N", 3])},
        {"y": "float32"},
        {"w": weight},
    )
    loaded = import_model(model)
    assert [value.name for value in loaded.graph.inputs] == ["x"]
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    (y,) = interpreter.run(compile_graph(model), {"x": x})
    np.testing.assert_array_equal(y, x @ weight)


def test_a_missing_file(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ModelError, match="No such file"):
        load(tmp_path / "none.onnx")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x08\x0a" * 40, bytes(range(256))])
def test_files_that_are_no_models(tmp_path: pathlib.Path, content: bytes) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError):
        load(path)


def test_every_truncation_is_an_error_or_a_smaller_model(tmp_path: pathlib.Path) -> None:
    whole = _relu(["N", 3]).SerializeToString()
    path = tmp_path / "cut.onnx"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        try:
            load(path)
        except ModelError:
            continue


def test_a_dangling_name() -> None:
    model = _relu(["N"])
    model.graph.node[0].input[0] = "nobody"
    with pytest.raises(ModelError, match="nobody"):
        import_model(model)


def test_a_cycle() -> None:
    model = graph(
        [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["x"], ["b"])],
        {"x": ("float32", ["N"])},
        {"a": "float32"},
    )
    model.graph.node[1].input[0] = "a"
    with pytest.raises(ModelError):
        import_model(model)


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "a/../../secret.bin"])
def test_external_data_outside_of_the_folder_is_not_read(
    tmp_path: pathlib.Path, location: str
) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    folder = tmp_path / "model"
    folder.mkdir()
    model = graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        {"x": ("float32", ["N", 4])},
        {"y": "float32"},
        {"w": np.zeros(4, np.float32)},
    )
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", "16")):
        entry = weight.external_data.add()
        entry.key, entry.value = key, value
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError):
        load(path)


def test_annotations_in_the_file_are_not_believed() -> None:
    model = graph(
        [helper.make_node("Range", ["zero", "n", "one"], ["y"])],
        {"n": ("int64", [])},
        {"y": "int64"},
        {"zero": np.array(0), "one": np.array(1)},
    )
    note = model.graph.input[0].metadata_props.add()
    note.key, note.value = "pkg.onnx_shape_inference.sym_data", "[5]"
    loaded = import_model(model)
    assert "5" not in loaded.graph.inputs[0].metadata_props.values()
    assert not value_shape(loaded.graph.outputs[0])[0].is_Integer
