"""Models with large tensors in their file, as the ONNX library would read them."""

import pathlib
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper

from sofie.importer import mapped
from sofie.importer.errors import ModelError
from sofie.importer.load import load
from sofie.testing.operators import graph

_ROWS = 3 + mapped.LARGE // 16


def _model() -> onnx.ModelProto:
    """Two large weights around a small one."""
    large = np.arange(4 * _ROWS, dtype=np.float32).reshape(4, _ROWS)
    return graph(
        [
            helper.make_node("MatMul", ["x", "first"], ["a"]),
            helper.make_node("Add", ["a", "small"], ["b"]),
            helper.make_node("MatMul", ["b", "second"], ["y"]),
        ],
        {"x": ("float32", ["N", 4])},
        {"y": "float32"},
        {"first": large, "small": np.ones(1, np.float32), "second": -large.T},
    )


def _initializers(path: pathlib.Path) -> dict[str, Any]:
    return {
        name: value.const_value
        for name, value in load(path).graph.initializers.items()
        if value.const_value is not None
    }


def _held(path: pathlib.Path, model: onnx.ModelProto) -> None:
    found = _initializers(path)
    for tensor in model.graph.initializer:
        np.testing.assert_array_equal(found[tensor.name].numpy(), numpy_helper.to_array(tensor))


def test_large_tensors_stay_in_the_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model(), str(path))
    _held(path, _model())
    found = _initializers(path)
    external = {name for name, tensor in found.items() if isinstance(tensor, ir.ExternalTensor)}
    assert external == {"first", "second"}
    assert mapped.read(path)[0].ByteSize() < mapped.LARGE


def test_the_rest_of_the_model_is_what_protobuf_reads(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    model = _model()
    model.metadata_props.add(key="a", value="b")
    model.graph.doc_string = "doc"
    onnx.save(model, str(path))
    read, _ = mapped.read(path)
    for message in (model, read):
        for tensor in message.graph.initializer:
            for field in ("raw_data", "external_data", "data_location"):
                tensor.ClearField(field)
    assert read == model


def test_a_link_to_a_file(tmp_path: pathlib.Path) -> None:
    """Its neighbours are those of the file: builds hand out links."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    onnx.save(_model(), str(tmp_path / "there" / "real.onnx"))
    link = tmp_path / "here" / "model.onnx"
    link.symlink_to(tmp_path / "there" / "real.onnx")
    _held(link, _model())


def test_beside_external_tensors(tmp_path: pathlib.Path) -> None:
    """Those are looked for beside the link, if the model is one."""
    model = _model()
    onnx.save(
        model,
        str(tmp_path / "model.onnx"),
        save_as_external_data=True,
        size_threshold=0,
        location="weights",
        convert_attribute=False,
    )
    mixed = onnx.load(str(tmp_path / "model.onnx"), load_external_data=False)
    mixed.graph.initializer[0].CopyFrom(_model().graph.initializer[0])
    (tmp_path / "model.onnx").write_bytes(mixed.SerializeToString())
    _held(tmp_path / "model.onnx", _model())


@pytest.mark.parametrize("change", [-4, -1, 1, 4])
def test_a_tensor_of_another_size_than_it_claims(tmp_path: pathlib.Path, change: int) -> None:
    """Not read from what lies behind it."""
    model = _model()
    tensor = model.graph.initializer[0]
    tensor.raw_data = (tensor.raw_data + bytes(4))[: len(tensor.raw_data) + change]
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="first"):
        load(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_file(tmp_path: pathlib.Path, share: float) -> None:
    content = _model().SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelError, match="truncated"):
        load(path)


def test_something_else(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\xff" * (mapped.LARGE + 1))
    with pytest.raises(ModelError, match="not an ONNX file"):
        load(path)
