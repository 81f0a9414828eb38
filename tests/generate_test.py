"""The generator as Bazel and a user call it: its exit status, its messages and its files."""

from __future__ import annotations

import os
import pathlib
import subprocess

import onnx
from onnx import TensorProto, helper

from rules.private.data_file import data_file

_FILES = {
    "m.h",
    "m_alpaka.h",
    "m_kernels.h",
    "m_manifest.json",
    "m_session.cc",
    "m_steps.h",
    "m_weights.safetensors",
    *(f"m_steps_{i}.h" for i in (0, 1)),
    *(f"m_steps_{i}_{end}" for i in (0, 1) for end in ("cpu.cc", "openmp.cc", "cuda.cu")),
}


def generate(
    model: pathlib.Path | str, output: pathlib.Path, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    program = data_file("sofie/generate")
    return subprocess.run(
        [program, f"--model={model}", "--name=m", f"--output_dir={output}", *options],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def save(path: pathlib.Path, nodes: list[onnx.NodeProto], symbol: str = "N") -> pathlib.Path:
    tensors = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [symbol, 4]) for name in ("x", "y")
    ]
    graph = helper.make_graph(nodes, "graph", tensors[:1], tensors[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("example.org", 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    onnx.save(model, str(path))
    return path


def test_unknown_operators_are_all_named_and_nothing_is_written(tmp_path: pathlib.Path) -> None:
    model = save(
        tmp_path / "model.onnx",
        [
            helper.make_node("Relu", ["x"], ["a"], name="fine"),
            helper.make_node("Warp", ["a"], ["b"], name="first", domain="example.org"),
            helper.make_node("Weft", ["b"], ["y"], name="second", domain="example.org"),
        ],
    )
    output = tmp_path / "out"
    result = generate(model, output)
    assert result.returncode == 1
    assert not output.exists()
    for text in (str(model), "first (example.org.Warp)", "second (example.org.Weft)"):
        assert text in result.stderr, result.stderr
    assert "fine (" not in result.stderr
    assert "Traceback" not in result.stderr


def test_a_missing_model(tmp_path: pathlib.Path) -> None:
    result = generate("/no/model.onnx", tmp_path / "out")
    assert result.returncode == 1
    assert "/no/model.onnx" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_option_that_says_nothing(tmp_path: pathlib.Path) -> None:
    model = data_file("models/particle_net.onnx")
    result = generate(model, tmp_path / "out", "--low_rank=rank=3")
    assert result.returncode == 1
    assert "low_rank = 'rank=3' is neither 'error=' nor 'ratio='" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_same_files_whatever_the_hash_seed(tmp_path: pathlib.Path) -> None:
    model = data_file("models/particle_net.onnx")
    results = []
    for seed in ("1", "2"):
        folder = tmp_path / f"a_folder_named_{seed * 40}"
        result = generate(model, folder, PYTHONHASHSEED=seed)
        assert result.returncode == 0, result.stderr
        results.append(contents(folder))
    assert set(results[0]) == _FILES
    assert results[0] == results[1]


def test_names_and_examples_of_sizes_do_not_reach_the_code(tmp_path: pathlib.Path) -> None:
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], name="soft"),
        helper.make_node("Mul", ["a", "x"], ["y"], name="scale"),
    ]
    one = save(tmp_path / "one.onnx", nodes, "N")
    other = save(tmp_path / "other.onnx", nodes, "number of jets")
    # The size of the example that the model was exported with, as some exporters leave it behind.
    model = onnx.load(str(other))
    model.graph.value_info.append(
        helper.make_tensor_value_info("a", TensorProto.FLOAT, ["number of jets", 4])
    )
    model.doc_string = "exported with N = 1024"
    onnx.save(model, str(other))
    results = []
    for path in (one, other):
        folder = tmp_path / path.stem
        result = generate(path, folder)
        assert result.returncode == 0, result.stderr
        results.append(contents(folder))
    same = {name for name in results[0] if results[0][name] == results[1][name]}
    assert {name for name in _FILES if "_steps" in name or "_kernels" in name} <= same
