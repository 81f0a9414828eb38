"""Whole models: the same bytes every time, and nothing in them that depends on names or sizes."""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.compile import Request, compile_model
from sofie.importer.errors import ModelError
from sofie.ir import expr, program
from sofie.passes.reduce_rank import LowRank
from sofie.testing.operators import graph


def _model(symbol: str, hidden: float = 1.0) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["g"], name="dense"),
        helper.make_node("Relu", ["g"], ["r"]),
        helper.make_node("Softmax", ["r"], ["y"]),
    ]
    weights = np.full((4, 3), hidden, np.float32)
    return graph(nodes, {"x": ("float32", [symbol, 4])}, {"y": "float32"}, {"w": weights})


def _compile(tmp_path: pathlib.Path, proto: onnx.ModelProto, **options: object) -> dict[str, bytes]:
    path = tmp_path / "m.onnx"
    onnx.save(proto, str(path))
    files = compile_model(Request(path, "m", "m", **options))  # type: ignore[arg-type]
    return {name: b"".join(content) for name, content in files.items()}


def test_names_of_sizes_do_not_reach_kernels(tmp_path: pathlib.Path) -> None:
    one = _compile(tmp_path, _model("N"))
    other = _compile(tmp_path, _model("batch size"))
    for file in one:
        if "_steps" in file or "_kernels" in file or file.endswith("weights.safetensors"):
            assert one[file] == other[file], file


def test_sizes_that_an_exporter_happened_to_see_do_not_matter(tmp_path: pathlib.Path) -> None:
    one = _compile(tmp_path, _model("N"))
    model = _model("N")
    for rows in (7, 64):
        for name in ("g", "r"):
            note = helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [rows, 3])
            model.graph.value_info.append(note)
        model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = f"batch_{rows}"
        assert _compile(tmp_path, model) == one
        del model.graph.value_info[:]


def test_new_weights_change_their_file_alone(tmp_path: pathlib.Path) -> None:
    one = _compile(tmp_path, _model("N", 1.0))
    other = _compile(tmp_path, _model("N", 2.0))
    assert {f for f in one if one[f] != other[f]} == {"m_weights.safetensors"}


def test_the_manifest_says_which_matrices_have_a_lower_rank(tmp_path: pathlib.Path) -> None:
    plain = json.loads(_compile(tmp_path, _model("N"))["m_manifest.json"])
    assert plain["low_rank"] == []
    option = LowRank.parse("error=1e-6")
    files = _compile(tmp_path, _model("N"), low_rank=option)
    [reduced] = json.loads(files["m_manifest.json"])["low_rank"]
    assert 0 <= reduced.pop("error") <= 1e-6
    assert reduced == {"weight": "w", "nodes": ["dense"], "shape": [4, 3], "rank": 1}
    assert files == _compile(tmp_path, _model("N"), low_rank=option)


def test_shards_hold_every_step_once(tmp_path: pathlib.Path) -> None:
    for shards in (1, 2, 7):
        files = _compile(tmp_path, _model("N"), shards=shards)
        text = "".join(files[f"m_steps_{i}.h"].decode() for i in range(shards))
        assert [text.count(f"launch.Step({i});") for i in range(3)] == [1, 1, 0]


def test_kernels_carry_no_sizes(tmp_path: pathlib.Path) -> None:
    text = _compile(tmp_path, _model("N"))["m_steps_0.h"].decode()
    assert "d.s0" in text


def test_a_size_that_no_number_of_the_machine_can_be_is_refused(tmp_path: pathlib.Path) -> None:
    """Its product with what the host reads at run time is beyond 64 bits."""
    model = graph(
        [
            helper.make_node("Mul", ["n", "huge"], ["product"]),
            helper.make_node("Mul", ["product", "huge"], ["extents"]),
            helper.make_node("Expand", ["x", "extents"], ["y"]),
        ],
        {"x": ("float32", [1]), "n": ("int64", [1])},
        {"y": ("float32", ["M"])},
        {"huge": np.array([2**40])},
    )
    with pytest.raises(ModelError, match="1208925819614629174706176 in a size has more than 64"):
        _compile(tmp_path, model)


def test_a_namespace_must_be_an_identifier(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(_model("N"), str(path))
    with pytest.raises(ModelError, match="not a C\\+\\+ identifier"):
        compile_model(Request(path, "m", "my-model"))


def test_an_output_that_is_an_input_or_a_constant_or_twice_the_same(tmp_path: pathlib.Path) -> None:
    from sofie.testing.operators import hold

    nodes = [
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Identity", ["w"], ["fixed"]),
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Identity", ["r"], ["again"]),
    ]
    outputs = dict.fromkeys(["same", "fixed", "r", "again"], "float32")
    model = graph(nodes, {"x": ("float32", ["N"])}, outputs, {"w": np.ones(3, np.float32)})
    hold(model, [{"N": 3}, {"N": 0}, {"N": 1}])


# Prints by how many bytes a process, with what it starts, has grown above what importing takes.
_PEAK = """
import pathlib, resource, sys
import sofie.compile, sofie.emit.files

def peak(who):
    return resource.getrusage(who).ru_maxrss * 1024

path = pathlib.Path(sys.argv[1])
before = peak(resource.RUSAGE_SELF)
made = sofie.compile.compile_model(sofie.compile.Request(path, "m", "m"))
for name, content in made.items():
    sofie.emit.files.write(content, path.with_name(name))
print(max(peak(resource.RUSAGE_SELF), peak(resource.RUSAGE_CHILDREN)) - before)
"""


@pytest.mark.parametrize("external", [False, True])
def test_weights_are_in_memory_once(tmp_path: pathlib.Path, external: bool) -> None:
    """A model of a gigabyte must not take three."""
    count, rows = 8, 2048
    size = count * rows * rows * 4
    layers = [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(count)]
    matrices = {f"w{i}": np.full((rows, rows), i + 1, np.float32) for i in range(count)}
    model = graph(layers, {"v0": ("float32", ["N", rows])}, {f"v{count}": "float32"}, matrices)
    path = tmp_path / "m.onnx"
    onnx.save(model, str(path), save_as_external_data=external, location="weights")
    del model
    run = [sys.executable, "-c", _PEAK, str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(run, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    grown = int(ended.stdout)
    assert size < (tmp_path / "m_weights.safetensors").stat().st_size < size + 8192
    assert grown < 1.5 * size, f"{grown >> 20} MiB for {size >> 20} MiB of weights"


def test_the_work_grows_with_the_number_of_nodes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with its square: passes ask many steps for what they read."""
    asked = 0
    loads = program._loads

    def counted(*values: expr.Expr) -> Iterator[program.Buffer]:
        nonlocal asked
        asked += 1
        return loads(*values)

    monkeypatch.setattr(program, "_loads", counted)

    def work(layers: int) -> int:
        nonlocal asked
        asked = 0
        nodes = [
            helper.make_node("Conv", [f"v{i}", "w"], [f"v{i + 1}"], pads=[1, 1, 1, 1])
            for i in range(layers)
        ]
        weight = {"w": np.ones((8, 8, 3, 3), np.float32)}
        shape: list[int | str] = [1, 8, "H", "W"]
        model = graph(nodes, {"v0": ("float32", shape)}, {f"v{layers}": "float32"}, weight)
        _compile(tmp_path, model)
        return asked

    assert work(40) < 2.5 * work(20)
