"""Models that can't be read, and names that models give to sizes."""

import os
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


def test_a_file_that_ends_the_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx.checker, "check_model", lambda *_, **__: os.kill(os.getpid(), 9))
    with pytest.raises(ModelError, match="ends with signal 9"):
        import_model(_relu(["N"]))


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


def _external_constant(location: str) -> onnx.ModelProto:
    weight = onnx.TensorProto(dims=[4], data_type=onnx.TensorProto.FLOAT)
    weight.data_location = onnx.TensorProto.EXTERNAL
    entry = weight.external_data.add()
    entry.key, entry.value = "location", location
    return graph(
        [
            helper.make_node("Constant", [], ["w"], value=weight),
            helper.make_node("Add", ["x", "w"], ["y"]),
        ],
        {"x": ("float32", ["N", 4])},
        {"y": "float32"},
    )


def test_external_data_of_a_constant_lies_in_the_folder(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where the process runs, which may have a file of that name, too."""
    folder, elsewhere = tmp_path / "model", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (elsewhere / "w.bin").write_bytes(np.zeros(4, np.float32).tobytes())
    (folder / "w.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    monkeypatch.chdir(elsewhere)
    path = folder / "model.onnx"
    path.write_bytes(_external_constant("w.bin").SerializeToString())
    (weight,) = load(path).graph.initializers.values()
    assert weight.const_value is not None
    np.testing.assert_array_equal(weight.const_value.numpy(), [0, 1, 2, 3])
    (folder / "link.bin").symlink_to(elsewhere / "w.bin")
    path.write_bytes(_external_constant("link.bin").SerializeToString())
    with pytest.raises(ModelError, match=r"outside of the model's folder|ONNX's checker"):
        load(path)


def test_a_truncated_constant() -> None:
    weight = onnx.TensorProto(dims=[4], data_type=onnx.TensorProto.FLOAT, raw_data=b"")
    model = _external_constant("w.bin")
    model.graph.node[0].attribute[0].t.CopyFrom(weight)
    with pytest.raises(ModelError):
        import_model(model)


def test_a_string_that_is_not_utf8() -> None:
    model = graph(
        [helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2, mode=b"\xf6CR")],
        {"x": ("float32", [1, 4, 2, 3])},
        {"y": "float32"},
    )
    with pytest.raises(ModelError, match="UTF-8|mode"):
        compile_graph(model)


def test_an_input_that_is_an_output() -> None:
    model = _relu(["N", 3])
    model.graph.output.add().CopyFrom(model.graph.input[0])
    x = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
    y, same = interpreter.run(compile_graph(model), {"x": x})
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    np.testing.assert_array_equal(same, x)


def _with_functions(bodies: dict[str, list[str]], called: str) -> onnx.ModelProto:
    """Functions that call others (Relu is ONNX's own) one after another, and a call of one."""
    model = _relu(["N"])
    model.opset_import.append(helper.make_opsetid("local", 1))
    imports = list(model.opset_import)
    for name, calls in bodies.items():
        nodes = []
        for i, call in enumerate(calls):
            domain = "" if call == "Relu" else "local"
            result = "y" if i == len(calls) - 1 else f"t{i}"
            nodes.append(
                helper.make_node(call, [f"t{i - 1}" if i else "x"], [result], domain=domain)
            )
        model.functions.append(helper.make_function("local", name, ["x"], ["y"], nodes, imports))
    model.graph.node[0].op_type, model.graph.node[0].domain = called, "local"
    return model


def test_functions_are_written_out() -> None:
    model = _with_functions({"f": ["Relu", "Relu"], "g": ["f", "f"]}, "g")
    assert [node.op_type for node in import_model(model).graph] == ["Relu"] * 4


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        ({"f": ["f"]}, "'f' calls itself"),
        ({"f": ["g"], "g": ["Relu", "f"]}, "calls itself"),
        (
            {"f": ["Relu"] * 2} | {f"f{'g' * i}": [f"f{'g' * (i - 1)}"] * 2 for i in range(1, 40)},
            "more than 50000 nodes",
        ),
    ],
)
def test_functions_without_end(bodies: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        import_model(_with_functions(bodies, list(bodies)[-1]))


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
