"""Times models on the CPU beside ONNX Runtime, on the same inputs, in one run.

    bazel run -c opt //benchmarks:compare_cpu -- --case=particle_net:N=1,n_pf=100,n_sv=10

Without `--case` it times every model at several sizes. Prints a Markdown table: median wall time
per call at every number of threads, and how far our results are from ONNX Runtime's. With
`--output` it writes `results.csv`, `results.md` and `times.png` to that folder.
"""

from __future__ import annotations

import csv
import io
import pathlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
from absl import app, flags
from runfiles import Runfiles

from benchmarks import results
from models import reference_case

_CASE = flags.DEFINE_multi_string(
    "case",
    [
        "mlp:N=1",
        "mlp:N=64",
        "cnn:N=1",
        "cnn:N=16",
        "particle_net:N=1,n_pf=50,n_sv=5",
        "particle_net:N=1,n_pf=100,n_sv=10",
        "particle_net:N=1,n_pf=128,n_sv=16",
        "particle_net:N=8,n_pf=100,n_sv=10",
        "particle_transformer:N=1,P=100",
        "particle_transformer:N=8,P=100",
        "transformer:N=1,L=10",
        "transformer:N=1,L=128",
        "transformer:N=1,L=2048",
        "interaction_network:V=100,E=500",
        "interaction_network:V=10000,E=50000",
        "interaction_network:V=100000,E=500000",
        "mlpf:N=1,E=128",
        "mlpf:N=1,E=1024",
        "mlpf:N=1,E=4096",
    ],
    "MODEL:SYMBOL=EXTENT,...; repeat for more.",
)
_OUTPUT = flags.DEFINE_string("output", "", "Folder for the results; none are kept if empty.")
_RUNS = flags.DEFINE_integer("runs", 50, "Timed calls.", lower_bound=1)
_THREADS = flags.DEFINE_multi_integer("threads", [1, 2], "Numbers of threads.")

# What was measured, by column.
_Row = Mapping[str, Any]


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


def _measure() -> Iterator[_Row]:
    """A row for each case and number of threads."""
    runfiles = Runfiles.Create()
    assert runfiles is not None
    binary = runfiles.Rlocation("sofie/benchmarks/latency")
    assert binary is not None
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
                yield {
                    "model": model,
                    "sizes": sizes,
                    "threads": threads,
                    "sofie_us": median,
                    "onnxruntime_us": theirs,
                    "ratio": theirs / median,
                    "error": float(ours["error"]),
                }


def _line(row: _Row) -> str:
    return (
        f"| {row['model']} | {row['sizes']} | {row['threads']} | {row['sofie_us']:.0f} "
        f"| {row['onnxruntime_us']:.0f} | {row['ratio']:.2f} | {row['error']:.1e} |"
    )


def _plot(rows: Sequence[_Row], path: pathlib.Path) -> None:
    """Bars of both programs' times, a pair for each case."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 0.4 * len(rows) + 1))
    names = [f"{r['model']} {r['sizes']}, {r['threads']} threads" for r in rows]
    places = np.arange(len(rows))
    for shift, column, label in (
        (-0.2, "sofie_us", "sofie"),
        (0.2, "onnxruntime_us", "ONNX Runtime"),
    ):
        times = [float(str(row[column])) for row in rows]
        axes.barh(places + shift, times, height=0.4, label=label)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="µs per call")
    axes.legend()
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


def main(argv: Sequence[str]) -> None:
    """Prints the table, and writes it where that is asked for."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    head = [
        "| model | sizes | threads | sofie µs | ONNX Runtime µs | ratio | error |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(head), flush=True)
    rows = []
    for row in _measure():
        rows.append(row)
        print(_line(row), flush=True)
    if not _OUTPUT.value:
        return
    folder = results.user_path(_OUTPUT.value)
    folder.mkdir(parents=True, exist_ok=True)
    results.write(rows, folder / "results.csv")
    (folder / "results.md").write_text("\n".join([*head, *map(_line, rows)]) + "\n")
    _plot(rows, folder / "times.png")


if __name__ == "__main__":
    app.run(main)
