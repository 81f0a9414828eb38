"""Times models on the CPU beside ONNX Runtime, on the same inputs, in one run.

    bazel run -c opt //benchmarks:compare_cpu -- --case=particle_net:N=1,n_pf=100,n_sv=10

Prints a Markdown table: median wall time per call at every number of threads, and how far our
results are from ONNX Runtime's.
"""

from __future__ import annotations

import csv
import io
import pathlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
from absl import app, flags
from runfiles import Runfiles

from models import reference_case

_CASE = flags.DEFINE_multi_string(
    "case", ["particle_net:N=1,n_pf=100,n_sv=10"], "MODEL:SYMBOL=EXTENT,...; repeat for more."
)
_RUNS = flags.DEFINE_integer("runs", 50, "Timed calls.", lower_bound=1)
_THREADS = flags.DEFINE_multi_integer("threads", [1, 2], "Numbers of threads.")


def _onnx_runtime(path: str, feeds: Mapping[str, np.ndarray[Any, Any]], threads: int) -> float:
    """Median microseconds of a call."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    times = []
    for run in range(_RUNS.value + 5):
        begin = time.perf_counter()
        session.run(None, feeds)
        if run >= 5:
            times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


def _ours(binary: str, model: str, case: pathlib.Path, threads: int) -> dict[str, str]:
    """The line that the latency program prints."""
    device = "cpu" if threads == 1 else "openmp"
    command = [binary, f"--model={model}", f"--device={device}", f"--threads={threads}"]
    command += [f"--runs={_RUNS.value}", str(case)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return next(csv.DictReader(io.StringIO(text)))


def main(argv: Sequence[str]) -> None:
    """Prints the table."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    runfiles = Runfiles.Create()
    assert runfiles is not None
    binary = runfiles.Rlocation("sofie/benchmarks/latency")
    assert binary is not None
    print("| model | sizes | threads | sofie µs | ONNX Runtime µs | ratio | error |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for text in _CASE.value:
            model, _, sizes = text.partition(":")
            path = runfiles.Rlocation(f"sofie/models/{model}.onnx")
            assert path is not None
            reference = reference_case.make_reference(
                onnx.load(path), reference_case.parse_case(sizes), 1
            )
            case = pathlib.Path(folder) / f"{model}.npz"
            reference_case.write(reference, case)
            for threads in _THREADS.value:
                theirs = _onnx_runtime(path, reference.inputs, threads)
                ours = _ours(binary, model, case, threads)
                median = float(ours["median_us"])
                print(
                    f"| {model} | {sizes} | {threads} | {median:.0f} | {theirs:.0f} "
                    f"| {theirs / median:.2f} | {float(ours['error']):.1e} |",
                    flush=True,
                )


if __name__ == "__main__":
    app.run(main)
