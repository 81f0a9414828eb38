"""Tests what the measurement of incremental builds changes and what it objects to."""

import collections
import shutil
from pathlib import Path

import incremental
import onnx
from incremental import Result

_GOOD = [
    Result("everything", 90.0, collections.Counter(CppCompile=50, OnnxGenerate=3)),
    Result("nothing", 0.5, collections.Counter()),
    Result("one model's weights", 3.0, collections.Counter(OnnxGenerate=1, EmbedData=1)),
    Result("one model's graph", 9.0, collections.Counter(OnnxGenerate=1, CppCompile=5)),
    Result("one kernel header", 60.0, collections.Counter(CppCompile=30)),
    Result("a generator file, without effect", 5.0, collections.Counter(OnnxGenerate=3)),
]


def _with(index: int, seconds: float, **actions: int) -> list[Result]:
    changed = Result(_GOOD[index].change, seconds, collections.Counter(actions))
    return [*_GOOD[:index], changed, *_GOOD[index + 1 :]]


def test_objects_to_what_should_not_happen() -> None:
    assert incremental.problems(_GOOD) == []
    assert "took 2.5 s" in incremental.problems(_with(1, 2.5))[0]
    assert "nothing changed" in incremental.problems(_with(1, 0.5, CppLink=1))[0]
    assert incremental.problems(_with(2, 3.0, CudaCompile=1)) == [
        "one model's weights changed, and CudaCompile ran"
    ]
    assert incremental.problems(_with(5, 3.0, CppCompile=1)) == [
        "a generator file, without effect changed, and CppCompile ran"
    ]
    assert "had no effect" in incremental.problems(_with(3, 3.0, OnnxGenerate=1))[0]


def test_row() -> None:
    assert _GOOD[1].row() == "| nothing | nothing | 0.5 s |"
    assert _GOOD[2].row() == ("| one model's weights | 1 EmbedData, 1 OnnxGenerate | 3.0 s |")


def test_changes_change_the_model(tmp_path: Path) -> None:
    model = tmp_path / "mlp.onnx"
    shutil.copyfile("models/mlp.onnx", model)
    before = onnx.load(model)
    incremental.change_weights(model)
    weights = onnx.load(model)
    assert weights.graph.node == before.graph.node
    assert weights.graph.initializer != before.graph.initializer
    incremental.change_graph(model)
    graph = onnx.load(model)
    onnx.checker.check_model(graph, full_check=True)
    assert graph.graph.output == before.graph.output
    assert graph.graph.node[-1].op_type == "Neg"
