"""Measurements of sofie, PyTorch and ONNX Runtime on a GPU, each of one case at one precision."""

from __future__ import annotations

import csv
import functools
import io
import pathlib
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import onnx
import torch

from benchmarks import gpu_cases
from benchmarks.gpu_cases import Arrays, Case
from models import reference_case

Measurements = dict[str, object]
_Result: TypeAlias = torch.Tensor | Sequence[torch.Tensor]
_Call = Callable[[], _Result]
# A module or what torch.compile makes of it.
Network = Callable[..., _Result]

_TYPES = {"float32": "FLOAT", "int64": "INT64"}
_NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}


# sofie.


def sofie(
    program: str, library: str, case: Case, inputs: Arrays, folder: pathlib.Path, runs: int
) -> Measurements:
    """What the program measures of a library, given the case in the form that this takes.

    Writes a trace to `folder`, with the suffix `.trace.json`.
    """
    outputs = {name: value.astype(np.float32) for name, value in case.expected.items()}
    reference = reference_case.Reference(
        case=case.sizes,
        inputs=inputs,
        outputs=outputs,
        types=[_TYPES[str(x.dtype)] for x in (*inputs.values(), *outputs.values())],
        loose_rows=[np.zeros(0, np.int64) for _ in outputs],
        tolerances=[(1.0, 1.0) for _ in outputs],
        oracle="PyTorch in float64",
        seed=0,
    )
    stem = folder / gpu_cases.stem(library, case.sizes)
    path = stem.with_suffix(".npz")
    reference_case.write(reference, path)
    command = [program, f"--model={library}", "--device=cuda", f"--runs={runs}"]
    command += [f"--trace={stem}.trace.json", str(path)]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    (row,) = csv.DictReader(io.StringIO(text))
    return {
        "wall_us": float(row["median_us"]),
        "wall_q1_us": float(row["lower_quartile_us"]),
        "wall_q3_us": float(row["upper_quartile_us"]),
        "device_us": float(row["device_us"]),
        "cold_us": float(row["cold_us"]),
        "error": float(row["error"]),
        "launches": int(row["graph_nodes"]),
        "memory_bytes": int(row["arena_bytes"]) + int(row["weights_bytes"]),
    }


# PyTorch.


def _set_precision(precision: str) -> None:
    """TF32 in convolutions: what finds neighbours are matrix products, which stay float32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


def _launches(call: _Call) -> int:
    """Kernels and copies that one call runs on the GPU."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        call()
        torch.cuda.synchronize()
    device = torch.autograd.DeviceType.CUDA
    return sum(event.device_type == device for event in profile.events())


def _timed(
    prepare: Callable[[], _Call], model: onnx.ModelProto, expected: Arrays, runs: int
) -> Measurements:
    """The measurements of a call that returns tensors on the GPU; cold with its preparation."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    call = prepare()
    result = call()
    torch.cuda.synchronize()
    cold = time.perf_counter() - begin
    error = gpu_cases.error(gpu_cases.outputs(model, result), expected)
    for _ in range(5):
        call()
    wall, device = [], []
    for _ in range(runs):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        wall.append(time.perf_counter() - begin)
    for _ in range(runs):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        device.append(1e3 * first.elapsed_time(last))
    quartiles = statistics.quantiles(wall, n=4)
    return {
        "wall_us": 1e6 * quartiles[1],
        "wall_q1_us": 1e6 * quartiles[0],
        "wall_q3_us": 1e6 * quartiles[2],
        "device_us": statistics.median(device),
        "cold_us": 1e6 * cold,
        "error": error,
        "launches": _launches(call),
    }


def _torch(
    prepare: Callable[[_Call], _Call],
    network: Network,
    model: onnx.ModelProto,
    case: Case,
    precision: str,
    runs: int,
) -> Measurements:
    """Of calls with inputs on the GPU; memory besides the inputs and the weights."""
    inputs = [torch.from_numpy(x).cuda() for x in case.inputs.values()]
    _set_precision(precision)
    kind = _NARROW.get(precision)

    def call() -> _Result:
        with torch.inference_mode(), torch.autocast("cuda", kind, enabled=kind is not None):
            return network(*inputs)

    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    measured = _timed(lambda: prepare(call), model, case.expected, runs)
    return {**measured, "memory_bytes": torch.cuda.max_memory_allocated() - held}


def eager(
    network: Network, model: onnx.ModelProto, case: Case, precision: str, runs: int
) -> Measurements:
    """PyTorch as it is."""
    return _torch(lambda call: call, network, model, case, precision, runs)


@functools.cache
def _capture_stream() -> torch.cuda.Stream:
    """One for all graphs: cuBLAS keeps a workspace for every stream that it has seen."""
    return torch.cuda.Stream()


def _captured(call: _Call) -> _Call:
    stream = _capture_stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        result = call()

    def replay() -> _Result:
        graph.replay()
        return result

    return replay


def captured(
    network: Network, model: onnx.ModelProto, case: Case, precision: str, runs: int
) -> Measurements:
    """The same, captured in a CUDA graph that has the inputs' addresses in it."""
    return _torch(_captured, network, model, case, precision, runs)


def compiled(
    network: Network, model: onnx.ModelProto, case: Case, precision: str, runs: int
) -> Measurements:
    """torch.compile with CUDA graphs, for these sizes alone."""
    torch._dynamo.reset()
    quick = torch.compile(network, mode="reduce-overhead", dynamic=False)
    return _torch(lambda call: call, quick, model, case, precision, runs)


# ONNX Runtime.


def onnx_runtime(
    _: Network, model: onnx.ModelProto, case: Case, precision: str, runs: int
) -> Measurements | None:
    """ONNX Runtime with the ONNX file; None where it has no CUDA or no such precision."""
    import onnxruntime  # type: ignore[import-untyped]

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        return None
    if precision not in ("fp32", "tf32"):
        return None
    options = {"use_tf32": str(int(precision == "tf32"))}
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=[("CUDAExecutionProvider", options)]
    )
    binding = session.io_binding()
    for name, value in case.inputs.items():
        binding.bind_ortvalue_input(
            name, onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", 0)
        )
    results = [torch.empty(value.shape, device="cuda") for value in case.expected.values()]
    for name, result in zip(case.expected, results, strict=True):
        binding.bind_output(name, "cuda", 0, np.float32, tuple(result.shape), result.data_ptr())

    def call() -> _Result:
        session.run_with_iobinding(binding)
        return results

    return _timed(lambda: call, model, case.expected, runs)


# By the names of the flag: what the results call them, and the measurement.
PEERS: dict[str, tuple[str, Callable[..., Measurements | None]]] = {
    "eager": ("PyTorch", eager),
    "graph": ("PyTorch in a CUDA graph", captured),
    "compile": ("torch.compile", compiled),
    "onnxruntime": ("ONNX Runtime", onnx_runtime),
}
