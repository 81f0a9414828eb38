"""Times ParticleNet on a GPU beside PyTorch and ONNX Runtime, on the same inputs, in one run.

Runs on the machine with the GPU, from the unpacked bundle, which needs nothing but Python with
PyTorch, ONNX, absl and matplotlib there:

    bazel build //benchmarks:gpu_bundle         # here
    tar xf gpu_bundle.tar.xz && ./run.sh        # there; --argument=--sizes=1,100,10 for one size

Every output is compared with the network in float64, ‖out − ref‖ / ‖ref‖. Writes `results.csv`, a
Markdown table, plots of latency against the batch and the number of particles, bars of the time of
each step, and traces for chrome://tracing and Perfetto.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import os
import pathlib
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import onnx
import torch
from absl import app, flags

from benchmarks import particle_net_torch, results
from models import padded_jets, particle_net, reference_case

_LATENCY = flags.DEFINE_string("latency", "benchmarks/latency", "The program that times sofie.")
_MODEL = flags.DEFINE_string("model", "models/particle_net.onnx", "The ONNX file.")
_OUTPUT = flags.DEFINE_string(
    "output", os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", "."), "Folder for the results."
)
_SIZES = flags.DEFINE_multi_string(
    "sizes",
    ["1,100,10", "1,50,5", "1,128,16", "8,100,10", "64,100,10", "256,100,10", "1024,100,10"],
    "N,n_pf,n_sv; repeat for more.",
)
_JETS = flags.DEFINE_string(
    "jets",
    "examples/data/jets.npz",
    "Jets of different sizes, timed as they are and padded to the longest; empty for none.",
)
_RUNS = flags.DEFINE_integer("runs", 50, "Timed calls.", lower_bound=3)
_PRECISIONS = flags.DEFINE_multi_enum(
    "precisions", ["fp32", "tf32", "bf16"], ["fp32", "tf32", "bf16", "fp16"], "Of the products."
)
_PEERS = flags.DEFINE_multi_enum(
    "peers",
    ["eager", "compile", "onnxruntime"],
    ["eager", "compile", "onnxruntime"],
    "Beside sofie.",
)
_COMPILED = flags.DEFINE_multi_string(
    "compiled", ["1,100,10", "64,100,10", "1024,100,10"], "Sizes that torch.compile is timed at."
)

_COLUMNS = (
    "program precision N n_pf n_sv wall_us wall_q1_us wall_q3_us device_us cold_us error launches "
    "memory_bytes"
).split()


@dataclasses.dataclass(frozen=True)
class Case:
    """Inputs at one size and what float64 arithmetic gives."""

    sizes: tuple[int, int, int]
    inputs: Mapping[str, np.ndarray]
    expected: np.ndarray

    @property
    def text(self) -> str:
        """The sizes, as a part of file names."""
        return "x".join(map(str, self.sizes))


def _error(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected))


def _case(model: onnx.ModelProto, network: torch.nn.Module, sizes: tuple[int, int, int]) -> Case:
    symbols = dict(zip(("N", "n_pf", "n_sv"), sizes, strict=True))
    shapes = reference_case.input_shapes(model, symbols)
    drawn = reference_case.random_inputs(model, shapes, seed=20_261_130)
    # Without padding.
    inputs = {k: np.ones_like(x) if k.endswith("mask") else x for k, x in drawn.items()}
    return Case(sizes, inputs, _exact(network, inputs))


def _exact(network: torch.nn.Module, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """What the network in float64 says."""
    parts = []
    with torch.inference_mode():
        for first in range(0, len(inputs["pf_mask"]), 64):  # float64 takes much memory
            slices = [
                torch.from_numpy(x[first : first + 64]).cuda().double() for x in inputs.values()
            ]
            parts.append(network(*slices).cpu().numpy())
    return np.concatenate(parts)


def _jets(network: torch.nn.Module, path: pathlib.Path) -> tuple[Case, dict[str, np.ndarray]]:
    """The jets of a file, padded to the longest; and the same one after the other."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file}
    counts = {kind: np.diff(arrays[f"{kind}_offsets"]) for kind in ("pf", "sv")}
    jets = np.flatnonzero(counts["pf"] + counts["sv"] > particle_net.NEIGHBOURS)
    joined: dict[str, np.ndarray] = {}
    offsets: dict[str, np.ndarray] = {}
    for kind in ("pf", "sv"):
        sizes, begins = counts[kind][jets], arrays[f"{kind}_offsets"][jets]
        spans = list(zip(begins, begins + sizes, strict=True))
        for part in ("points", "features"):
            name = f"{kind}_{part}"
            joined[name] = np.concatenate([arrays[name][begin:end] for begin, end in spans])
        joined[f"{kind}_mask"] = np.ones((sizes.sum(), 1), np.float32)
        offsets[f"n_{kind}_offsets"] = np.concatenate([[0], np.cumsum(sizes)])
    padded = padded_jets.padded(arrays, jets)
    longest = len(jets), int(counts["pf"][jets].max()), int(counts["sv"][jets].max())
    return Case(longest, padded, _exact(network, padded)), {**joined, **offsets}


# sofie.


def _write(case: Case, inputs: Mapping[str, np.ndarray], path: pathlib.Path) -> None:
    reference = reference_case.Reference(
        case=dict(zip(("N", "n_pf", "n_sv"), case.sizes, strict=True)),
        inputs=inputs,
        outputs={"softmax": case.expected.astype(np.float32)},
        types=["INT64" if x.dtype == np.int64 else "FLOAT" for x in inputs.values()] + ["FLOAT"],
        loose_rows=[np.zeros(0, np.int64)],
        tolerances=[(1.0, 1.0)],
        oracle="PyTorch in float64",
        seed=0,
    )
    reference_case.write(reference, path)


def _sofie(case: Case, precision: str, folder: pathlib.Path) -> Iterator[dict[str, object]]:
    name = "particle_net" if precision == "fp32" else f"particle_net_{precision}"
    return _latency(case, case.inputs, name, folder)


def _latency(
    case: Case, inputs: Mapping[str, np.ndarray], name: str, folder: pathlib.Path
) -> Iterator[dict[str, object]]:
    """What the program measures of a library, given the case in the form that this takes."""
    stem = folder / f"{name}_{case.text}"
    path = stem.with_suffix(".npz")
    _write(case, inputs, path)
    command = [_LATENCY.value, f"--model={name}", "--device=cuda", f"--runs={_RUNS.value}"]
    command += [f"--trace={stem}.trace.json", str(path)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for row in csv.DictReader(io.StringIO(text)):
        yield {
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


def _launches(call: Callable[[], object]) -> int:
    """Kernels and copies that one call runs on the GPU."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        call()
        torch.cuda.synchronize()
    device = torch.autograd.DeviceType.CUDA
    return sum(event.device_type == device for event in profile.events())


def _timed(call: Callable[[], torch.Tensor], expected: np.ndarray) -> dict[str, object]:
    """The measurements of a call that returns a tensor on the GPU."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    begin = time.perf_counter()
    result = call()
    torch.cuda.synchronize()
    cold = time.perf_counter() - begin
    error = _error(result.float().cpu().numpy(), expected)
    for _ in range(5):
        call()
    wall, device = [], []
    for _ in range(_RUNS.value):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        wall.append(time.perf_counter() - begin)
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
        "memory_bytes": torch.cuda.max_memory_allocated(),
    }


def _torch(network: torch.nn.Module, case: Case, precision: str) -> dict[str, object]:
    inputs = [torch.from_numpy(x).cuda() for x in case.inputs.values()]
    _set_precision(precision)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)

    def call() -> torch.Tensor:
        with torch.inference_mode(), torch.autocast("cuda", kind, enabled=kind is not None):
            return network(*inputs)

    return _timed(call, case.expected)


# ONNX Runtime.


def _onnx_runtime(case: Case, precision: str) -> dict[str, object] | None:
    """None where ONNX Runtime has no CUDA or no such precision."""
    import onnxruntime  # type: ignore[import-untyped]

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        return None
    if precision not in ("fp32", "tf32"):
        return None
    options = {"use_tf32": str(int(precision == "tf32"))}
    session = onnxruntime.InferenceSession(
        _MODEL.value, providers=[("CUDAExecutionProvider", options)]
    )
    binding = session.io_binding()
    for name, value in case.inputs.items():
        binding.bind_ortvalue_input(
            name, onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", 0)
        )
    result = torch.empty(case.expected.shape, device="cuda")
    binding.bind_output("softmax", "cuda", 0, np.float32, tuple(result.shape), result.data_ptr())

    def call() -> torch.Tensor:
        session.run_with_iobinding(binding)
        return result

    return _timed(call, case.expected)


# Reports.


def _markdown(rows: Sequence[Mapping[str, object]]) -> str:
    """Wall time and error of every program, a line for each size and precision."""
    programs = list(dict.fromkeys(str(row["program"]) for row in rows))
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        key = tuple(str(row[c]) for c in ("precision", "N", "n_pf", "n_sv"))
        text = f"{row['wall_us']:.0f} ({row['error']:.1e})"
        cells.setdefault(key, {})[str(row["program"])] = text
    lines = [
        "| precision | N, n_pf, n_sv | " + " | ".join(f"{p} µs (error)" for p in programs) + " |",
        "| --- | --- |" + " --- |" * len(programs),
    ]
    for (precision, *sizes), values in cells.items():
        line = " | ".join(values.get(p, "") for p in programs)
        lines.append(f"| {precision} | {', '.join(sizes)} | {line} |")
    return "\n".join(lines) + "\n"


def _plot(rows: Sequence[Mapping[str, object]], axis: str, path: pathlib.Path) -> None:
    """Wall time against the batch or the number of particles, all else as in most cases."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 5))
    kept = [r for r in rows if (r["n_pf"] == 100 if axis == "N" else r["N"] == 1)]
    for program in dict.fromkeys((r["program"], r["precision"]) for r in kept):
        mine = [r for r in kept if (r["program"], r["precision"]) == program]
        mine.sort(key=lambda r: int(str(r[axis])))
        x, y = ([float(str(r[what])) for r in mine] for what in (axis, "wall_us"))
        axes.plot(x, y, marker="o", label=" ".join(map(str, program)))
    axes.set(xscale="log", yscale="log", xlabel=axis, ylabel="µs per call", title="ParticleNet")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


def _plot_steps(trace: pathlib.Path, path: pathlib.Path) -> None:
    """Bars of the time of every step, from a trace."""
    import json

    from matplotlib import pyplot

    events = json.loads(trace.read_text())["traceEvents"]
    figure, axes = pyplot.subplots(figsize=(9, 0.25 * len(events) + 1))
    names = [f"{i} {event['name'].rsplit('/', 1)[-1][:40]}" for i, event in enumerate(events)]
    axes.barh(names, [event["dur"] for event in events])
    axes.invert_yaxis()
    axes.set(xlabel="µs", title=trace.name.removesuffix(".trace.json"))
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


def _measure(folder: pathlib.Path) -> Iterator[dict[str, object]]:
    model = onnx.load(_MODEL.value)
    network = particle_net_torch.load(model).cuda()
    exact = particle_net_torch.load(model).cuda().double()
    cases: Iterator[Case] = (_case(model, exact, _numbers(text)) for text in _SIZES.value)
    joined = None
    if _JETS.value:
        jets, joined = _jets(exact, pathlib.Path(_JETS.value))
        cases = itertools.chain(cases, [jets])
    for case in cases:
        text = ",".join(map(str, case.sizes))
        for precision in _PRECISIONS.value:
            about = dict(
                zip(("precision", "N", "n_pf", "n_sv"), (precision, *case.sizes), strict=True)
            )
            for result in _sofie(case, precision, folder):
                yield {"program": "sofie", **about, **result}
            if "eager" in _PEERS.value:
                yield {"program": "PyTorch", **about, **_torch(network, case, precision)}
            if "compile" in _PEERS.value and text in _COMPILED.value:
                torch._dynamo.reset()
                compiled = torch.compile(network, mode="reduce-overhead", dynamic=False)
                yield {"program": "torch.compile", **about, **_torch(compiled, case, precision)}
            if "onnxruntime" in _PEERS.value:
                measured = _onnx_runtime(case, precision)
                if measured is not None:
                    yield {"program": "ONNX Runtime", **about, **measured}
    if joined is not None:
        about = dict(zip(("N", "n_pf", "n_sv"), jets.sizes, strict=True))
        for result in _latency(jets, joined, "particle_net_ragged", folder):
            yield {"program": "sofie without padding", "precision": "fp32", **about, **result}


def _numbers(text: str) -> tuple[int, int, int]:
    n, n_pf, n_sv = map(int, text.split(","))
    return n, n_pf, n_sv


def main(argv: Sequence[str]) -> None:
    """Measures and writes the reports."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    folder, work = results.folders(_OUTPUT.value, "sofie_compare")
    rows = results.collect(_measure(work), _COLUMNS, folder / "results.csv")
    table = _markdown(rows)
    (folder / "results.md").write_text(table)
    _plot(rows, "N", folder / "batch.png")
    _plot(rows, "n_pf", folder / "particles.png")
    for text in ("1x100x10", "1024x100x10"):
        trace = work / f"particle_net_{text}.trace.json"
        if trace.exists():
            (folder / f"trace_{text}.json").write_bytes(trace.read_bytes())
            _plot_steps(trace, folder / f"steps_{text}.png")
    print(table)


if __name__ == "__main__":
    app.run(main)
