"""Times operators on the CPU beside ONNX Runtime, one thread each, on the same inputs.

    tools/bazel run -c opt //benchmarks:compare_operators -- [--filter=REGEX] [--output=FILE.csv]

Each operator is a model of its own with a symbolic size, compiled with the flags that libraries are
compiled with, and runs at sizes of about 10,000, a million and ten million elements; products and
convolutions have the shapes of the models of this repository. Prints a Markdown table, worst first,
of the time per call. Both sides take turns, with inputs and outputs in memory that stays; a side's
time is the least of its lower quartiles, which other programs on the machine disturb least.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
from absl import app, flags
from onnx import helper, numpy_helper

from benchmarks import results
from tests.conformance import build, suite, verdicts

_FILTER = flags.DEFINE_string("filter", "", "Only operators whose names contain this expression.")
_OUTPUT = flags.DEFINE_string("output", "", "CSV file for the rows; none is written if empty.")
_RUNS = flags.DEFINE_integer("runs", 10, "Timed calls of each in a turn.", lower_bound=1)
_ELEMENTS = flags.DEFINE_multi_integer(
    "elements", [10_000, 1_000_000, 10_000_000], "About so many elements; repeat it for several."
)
_TURNS = flags.DEFINE_integer("turns", 3, "Turns of each.", lower_bound=1)

Array = np.ndarray[Any, Any]
_Shape = Sequence[int | str]
_Row = Mapping[str, Any]

_OPSET = 20
# Rows of so many elements, where an operator needs no particular shape.
_WIDTH = 100


@dataclasses.dataclass(frozen=True)
class _Operator:
    """A model of one node.

    Attributes:
      name: of the row in the table.
      op: ONNX's name.
      inputs: shapes; "N" is the size that varies.
      constants: further inputs, whose values are part of the model.
      outputs: element type of each.
      attributes: of the node.
      integers: for an input of indices, their bound, by its position.
      low: the smallest input, all are less than 2 more.
    """

    name: str
    op: str
    inputs: Sequence[_Shape]
    constants: Sequence[Array | None] = ()
    outputs: Sequence[int] = (onnx.TensorProto.FLOAT,)
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    integers: Mapping[int, int] = dataclasses.field(default_factory=dict)
    low: float = -1.0

    @property
    def model_name(self) -> str:
        """An identifier that is no function of the C library."""
        return f"operator_{self.name}"

    def model(self) -> onnx.ModelProto:
        """The model."""
        inputs = [f"x{i}" for i in range(len(self.inputs))]
        constants = ["" if c is None else f"c{i}" for i, c in enumerate(self.constants)]
        outputs = [f"y{i}" for i in range(len(self.outputs))]
        node = helper.make_node(self.op, inputs + constants, outputs, **self.attributes)
        float_, int64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
        graph = helper.make_graph(
            [node],
            self.name,
            [
                helper.make_tensor_value_info(name, int64 if i in self.integers else float_, shape)
                for i, (name, shape) in enumerate(zip(inputs, self.inputs, strict=True))
            ],
            [
                helper.make_tensor_value_info(n, t, None)
                for n, t in zip(outputs, self.outputs, strict=True)
            ],
            [
                numpy_helper.from_array(c, name)
                for c, name in zip(self.constants, constants, strict=True)
                if c is not None
            ],
        )
        opsets = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return onnx.shape_inference.infer_shapes(model)

    def sizes(self, wanted: Sequence[int]) -> list[int]:
        """Values of N at which the first input has about as many elements as are wanted."""
        inner = int(np.prod([d for d in self.inputs[0] if isinstance(d, int)]))
        return sorted({max(1, elements // inner) for elements in wanted})

    def feeds(self, size: int) -> dict[str, Array]:
        """Inputs at one size."""
        random = np.random.default_rng(1)
        found: dict[str, Array] = {}
        for i, shape in enumerate(self.inputs):
            extents = [size if isinstance(d, str) else d for d in shape]
            if i in self.integers:
                found[f"x{i}"] = random.integers(0, self.integers[i], extents)
            else:
                found[f"x{i}"] = random.random(extents, np.float32) * np.float32(2) + np.float32(
                    self.low
                )
        return found


def _weight(*shape: int) -> Array:
    random = np.random.default_rng(2)
    scaled: Array = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    return scaled.astype(np.float32)


def operators() -> Iterator[_Operator]:
    """What is timed."""
    rows: _Shape = ("N", _WIDTH)
    images: _Shape = ("N", 16, 32, 32)
    long, boolean = onnx.TensorProto.INT64, onnx.TensorProto.BOOL
    for op in ("Relu", "Exp", "Sigmoid", "Tanh", "Erf", "Gelu", "Softplus", "Neg", "Floor", "Sin"):
        yield _Operator(op.lower(), op, [rows])
    for op in ("Log", "Sqrt", "Reciprocal"):
        yield _Operator(op.lower(), op, [rows], low=0.5)
    yield _Operator("leaky_relu", "LeakyRelu", [rows])
    yield _Operator("cast_int64", "Cast", [rows], outputs=[long], attributes={"to": long})
    for op in ("Add", "Mul", "Div", "Max"):
        yield _Operator(op.lower(), op, [rows, rows], low=0.5)
    yield _Operator("pow", "Pow", [rows, rows], low=0.5)
    yield _Operator("square", "Pow", [rows], [np.array(2, np.float32)])
    yield _Operator("less", "Less", [rows, rows], outputs=[boolean])
    yield _Operator("add_row", "Add", [rows, (_WIDTH,)])
    yield _Operator("add_column", "Add", [rows, ("N", 1)])
    for op in ("ReduceSum", "ReduceMax", "ReduceMean", "ReduceL2"):
        for name, axis in (("rows", 1), ("columns", 0)):
            kept = {"keepdims": 0}
            yield _Operator(f"{op.lower()}_{name}", op, [rows], [np.array([axis])], attributes=kept)
    yield _Operator("reducesum_all", "ReduceSum", [rows])
    yield _Operator("argmax", "ArgMax", [rows], outputs=[long], attributes={"axis": 1})
    yield _Operator("softmax", "Softmax", [rows])
    yield _Operator("log_softmax", "LogSoftmax", [rows])
    ones, zeros = np.ones(_WIDTH, np.float32), np.zeros(_WIDTH, np.float32)
    yield _Operator("layer_normalization", "LayerNormalization", [rows], [ones, zeros])
    yield _Operator("cumsum", "CumSum", [rows], [np.array(1)])
    yield _Operator("topk", "TopK", [rows], [np.array([10])], [onnx.TensorProto.FLOAT, long])
    yield _Operator("transpose", "Transpose", [rows])
    channels_last = {"perm": [0, 2, 3, 1]}
    yield _Operator("channels_last", "Transpose", [images], attributes=channels_last)
    yield _Operator("concat", "Concat", [rows, rows], attributes={"axis": 1})
    yield _Operator(
        "slice", "Slice", [rows], [np.array([1]), np.array([_WIDTH - 1]), np.array([1])]
    )
    yield _Operator("pad", "Pad", [rows], [np.array([0, 1, 0, 1])])
    yield _Operator("tile", "Tile", [rows], [np.array([1, 2])])
    yield _Operator("gather_rows", "Gather", [(1000, _WIDTH), ("N",)], integers={1: 1000})
    yield _Operator(
        "gather_elements",
        "GatherElements",
        [rows, ("N", _WIDTH)],
        attributes={"axis": 1},
        integers={1: _WIDTH},
    )
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    for op in ("MaxPool", "AveragePool"):
        yield _Operator(op.lower(), op, [images], attributes=window)
    yield _Operator("globalaveragepool", "GlobalAveragePool", [images])
    vectors = [np.ones(16, np.float32) for _ in range(4)]
    yield _Operator("batch_normalization", "BatchNormalization", [images], vectors)
    scales = np.array([1, 1, 2, 2], np.float32)
    yield _Operator("resize_nearest", "Resize", [images], [None, scales])
    linear = {"mode": "linear"}
    yield _Operator("resize_linear", "Resize", [images], [None, scales], attributes=linear)
    for name, outputs, inputs, *kernel in (
        ("conv_3x3", 32, 16, 3, 3),
        ("conv_1x1", 32, 16, 1, 1),
    ):
        pads = {"pads": [k // 2 for k in kernel] * 2}
        yield _Operator(
            name, "Conv", [images], [_weight(outputs, inputs, *kernel)], attributes=pads
        )
    depthwise = {"pads": [1] * 4, "group": 16}
    yield _Operator(
        "conv_depthwise", "Conv", [images], [_weight(16, 1, 3, 3)], attributes=depthwise
    )
    yield _Operator(
        "conv_1d", "Conv", [("N", 16, 128)], [_weight(32, 16, 3)], attributes={"pads": [1, 1]}
    )
    twice = {"strides": [2, 2]}
    yield _Operator(
        "conv_transpose", "ConvTranspose", [images], [_weight(16, 16, 2, 2)], attributes=twice
    )
    for inner, outer in ((7, 64), (64, 64), (128, 256), (384, 256)):
        matrix, bias = _weight(inner, outer), np.zeros(outer, np.float32)
        yield _Operator(f"gemm_{inner}_{outer}", "Gemm", [("N", inner)], [matrix, bias])
    yield _Operator("matmul_scores", "MatMul", [("N", 4, 100, 16), ("N", 4, 16, 100)])
    yield _Operator("matmul_values", "MatMul", [("N", 4, 100, 100), ("N", 4, 100, 16)])


class _OnnxRuntime:
    """A model at one size in ONNX Runtime, on one thread."""

    def __init__(self, model: onnx.ModelProto, feeds: Mapping[str, Array]) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self.results: list[Array] = self._session.run(None, feeds)
        self._binding = self._session.io_binding()
        self._memory = []
        for name, array in feeds.items():
            self._memory.append(onnxruntime.OrtValue.ortvalue_from_numpy(array))
            self._binding.bind_ortvalue_input(name, self._memory[-1])
        for output, array in zip(self._session.get_outputs(), self.results, strict=True):
            self._memory.append(onnxruntime.OrtValue.ortvalue_from_numpy(array))
            self._binding.bind_ortvalue_output(output.name, self._memory[-1])

    def microseconds(self) -> float:
        """The lower quartile of some calls."""
        times = []
        for run in range(_RUNS.value + 5):
            begin = time.perf_counter()
            self._session.run_with_iobinding(self._binding)
            if run >= 5:
                times.append(time.perf_counter() - begin)
        return 1e6 * float(np.quantile(times, 0.25))


def _write_case(feeds: Mapping[str, Array], results: Sequence[Array], case: pathlib.Path) -> None:
    """What the latency program reads, without tolerances; see models/reference_case.py."""
    arrays: dict[str, Any] = {f"input_{i}": a for i, a in enumerate(feeds.values())}
    for i, array in enumerate(results):
        arrays |= {f"output_{i}": array, f"loose_rows_{i}": np.zeros(0, np.int64)}
    tolerances = np.zeros((len(results), 2))
    np.savez(case, **arrays, tolerances=tolerances, manifest=np.zeros(0, np.uint8))


def _ours(command: Sequence[str], environment: Mapping[str, str]) -> Mapping[str, str]:
    """The line that the latency program prints."""
    done = subprocess.run(
        command, env={**os.environ, **environment}, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return next(csv.DictReader(io.StringIO(done.stdout)))


def _measure(operators: Sequence[_Operator], folder: pathlib.Path) -> Iterator[_Row]:
    """A row for each operator and size."""
    toolchain = build.Toolchain.read(pathlib.Path(__file__).with_name("operator_commands.json"))
    builder = build.Builder(toolchain, "cpu", folder, os.cpu_count() or 1)
    cases = [suite.Case(o.model_name, "operator", o.model(), (), 0, 0) for o in operators]
    failed = {n: v for n, v in builder.build(cases).items() if v.result != verdicts.PASSED}
    if failed:
        raise RuntimeError(f"these do not compile: {failed}")
    case = folder / "case.npz"
    for operator, made in zip(operators, cases, strict=True):
        for size in operator.sizes(_ELEMENTS.value):
            feeds = operator.feeds(size)
            peer = _OnnxRuntime(made.model, feeds)
            _write_case(feeds, peer.results, case)
            command = [str(builder.program), f"--model={made.name}", "--device=cpu"]
            command += ["--threads=1", f"--runs={_RUNS.value}", str(case)]
            command.append(f"--weights={folder}/data/{made.name}_weights.safetensors")
            theirs, ours = math.inf, math.inf
            for _ in range(_TURNS.value):
                theirs = min(theirs, peer.microseconds())
                line = _ours(command, toolchain.environment)
                ours = min(ours, float(line["lower_quartile_us"]))
            yield {
                "operator": operator.name,
                "elements": next(iter(feeds.values())).size,
                "sofie_us": ours,
                "onnxruntime_us": theirs,
                "ratio": ours / theirs,
                "error": float(line["error"]),
            }


def main(argv: Sequence[str]) -> None:
    """Prints the table, and writes the rows where that is asked for."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    chosen = [o for o in operators() if re.search(_FILTER.value, o.name)]
    if not chosen:
        raise app.UsageError(f"--filter={_FILTER.value}: no operator has such a name")
    with tempfile.TemporaryDirectory() as folder:
        rows = sorted(_measure(chosen, pathlib.Path(folder)), key=lambda row: -row["ratio"])
    if _OUTPUT.value:
        results.write(rows, results.user_path(_OUTPUT.value))
    print("| operator | elements | sofie, µs | ONNX Runtime, µs | times its time | error |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(
            f"| {row['operator']} | {row['elements']:,} | {row['sofie_us']:.1f} "
            f"| {row['onnxruntime_us']:.1f} | {row['ratio']:.2f} | {row['error']:.1e} |"
        )
    worse = sum(row["ratio"] > 2 for row in rows)
    print(f"{worse} of {len(rows)} take more than twice ONNX Runtime's time", file=sys.stderr)


if __name__ == "__main__":
    app.run(main)
