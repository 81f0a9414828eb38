"""Times models on a GPU beside PyTorch and ONNX Runtime, on the same inputs, in one run.

Runs on the machine with the GPU, from the unpacked bundle, which needs nothing but Python with
PyTorch, ONNX, absl and matplotlib there:

    bazel build //benchmarks:gpu_bundle         # here
    tar xf gpu_bundle.tar.xz && ./run.sh        # there

`./run.sh --argument=--models=mlpf` times one model, `--argument=--case=mlpf:N=1,E=1024` one size.
The peers are PyTorch as it is, the same captured in a CUDA graph, torch.compile (which takes its
time: only at the sizes of `--compiled`) and ONNX Runtime where it has CUDA.

Every output is compared with the network in float64, ‖out − ref‖ / ‖ref‖, and that with ONNX
Runtime on the CPU; the program fails where they differ by more than the precision explains. Writes
`results.csv`, a Markdown table with the cases in which sofie is slower, plots of latency against
sizes, bars of the time of each step, and traces for chrome://tracing and Perfetto.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator, Sequence

import onnx
from absl import app, flags

from benchmarks import gpu_cases, gpu_programs, gpu_report, results, torch_weights
from benchmarks.gpu_cases import MODELS
from models import reference_case

_LATENCY = flags.DEFINE_string("latency", "benchmarks/latency", "The program that times sofie.")
_FOLDER = flags.DEFINE_string("folder", "models", "Folder of the ONNX files.")
_OUTPUT = flags.DEFINE_string(
    "output", os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", "."), "Folder for the results."
)
_MODELS = flags.DEFINE_multi_enum("models", list(MODELS), list(MODELS), "Those to time.")
_CASES = flags.DEFINE_multi_string(
    "case", [], "MODEL:SYMBOL=EXTENT,...; repeat for more. By default several of every model."
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
    "peers", list(gpu_programs.PEERS), list(gpu_programs.PEERS), "Beside sofie."
)
_COMPILED = flags.DEFINE_multi_string(
    "compiled",
    [f"particle_net:N={n},n_pf=100,n_sv=10" for n in (1, 64, 1024)],
    "MODEL:SYMBOL=EXTENT,... that torch.compile is timed at; repeat for more.",
)

_COLUMNS = (
    "model sizes precision program wall_us wall_q1_us wall_q3_us device_us cold_us error launches "
    "memory_bytes"
).split()


def _cases_of(name: str) -> list[str]:
    """The sizes of a model that the flags choose."""
    if not _CASES.value:
        return list(MODELS[name].cases)
    pairs = (text.partition(":") for text in _CASES.value)
    return [sizes for model, _, sizes in pairs if model == name]


def _measure(name: str, folder: pathlib.Path) -> Iterator[results.Row]:
    """A row for each case, precision and program of a model."""
    cases = _cases_of(name)
    with_jets = name == "particle_net" and bool(_JETS.value)
    if not cases and not with_jets:
        return
    model = onnx.load(os.path.join(_FOLDER.value, f"{name}.onnx"))
    network, exact = (MODELS[name].network() for _ in range(2))
    for module in (network, exact):
        torch_weights.load(module, model)
    network.cuda()
    exact.cuda().double()
    gpu_cases.check(model, exact, reference_case.parse_case(MODELS[name].cases[0]))

    for text in cases:
        case = gpu_cases.make(name, model, exact, reference_case.parse_case(text))
        yield from _programs(model, network, case, folder)
    if with_jets:
        case, joined = gpu_cases.jets(model, exact, pathlib.Path(_JETS.value))
        yield from _programs(model, network, case, folder)
        yield {
            "model": name,
            "sizes": case.text,
            "precision": "fp32",
            "program": f"{gpu_report.OURS} without padding",
        } | gpu_programs.sofie(
            _LATENCY.value, "particle_net_ragged", case, joined, folder, _RUNS.value
        )


def _programs(
    model: onnx.ModelProto,
    network: gpu_programs.Network,
    case: gpu_cases.Case,
    folder: pathlib.Path,
) -> Iterator[results.Row]:
    """A row for each precision and program."""
    compiled = f"{case.model}:{case.text}" in _COMPILED.value
    for precision in _PRECISIONS.value:
        if precision not in MODELS[case.model].precisions:
            continue
        about = {"model": case.model, "sizes": case.text, "precision": precision}
        library = case.model if precision == "fp32" else f"{case.model}_{precision}"
        measured = gpu_programs.sofie(
            _LATENCY.value, library, case, case.inputs, folder, _RUNS.value
        )
        yield {**about, "program": gpu_report.OURS, **measured}
        for peer in _PEERS.value:
            if peer == "compile" and not compiled:
                continue
            program, measure = gpu_programs.PEERS[peer]
            found = measure(network, model, case, precision, _RUNS.value)
            if found is not None:
                yield {**about, "program": program, **found}


def _keep_traces(name: str, work: pathlib.Path, folder: pathlib.Path) -> None:
    """Keeps the traces of a model's first and last case in float32, and bars of their steps."""
    cases = _cases_of(name)
    for text in dict.fromkeys(cases[:1] + cases[-1:]):
        stem = gpu_cases.stem(name, reference_case.parse_case(text))
        trace = work / f"{stem}.trace.json"
        if trace.exists():
            (folder / f"trace_{stem}.json").write_bytes(trace.read_bytes())
            gpu_report.plot_steps(trace, folder / f"steps_{stem}.png")


def main(argv: Sequence[str]) -> None:
    """Measures and writes the reports."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    for text in (*_CASES.value, *_COMPILED.value):
        if text.partition(":")[0] not in MODELS:
            raise app.UsageError(f"{text!r} names no model; there are {', '.join(MODELS)}")
    folder, work = results.folders(_OUTPUT.value, "sofie_compare")
    measured = (row for name in _MODELS.value for row in _measure(name, work))
    rows = results.collect(measured, _COLUMNS, folder / "results.csv")
    text = gpu_report.text(rows)
    (folder / "results.md").write_text(text)
    gpu_report.plot(rows, folder)
    for name in _MODELS.value:
        _keep_traces(name, work, folder)
    print(text)
    if gpu_report.wrong(rows):
        raise SystemExit(1)


if __name__ == "__main__":
    app.run(main)
