"""Times attention on a GPU beside cuDNN and FlashAttention in PyTorch, on the same inputs.

Runs on the machine with the GPU, from the unpacked bundle, which needs nothing but Python with
PyTorch, ONNX, absl and NumPy there:

    bazel build //benchmarks:attention_bundle         # here
    tar xf attention_bundle.tar.xz && ./run.sh        # there

Every output is compared with attention in float64, ‖out − ref‖ / ‖ref‖, on sequences of up to 2048
elements. Operands are bfloat16. Writes `results.csv` and a Markdown table with TFLOP/s, for which
a score counts 2 * (channels + value channels) operations where it is not masked.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import os
import pathlib
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from absl import app, flags
from torch.nn import attention

from benchmarks import results
from models import reference_case

_LATENCY = flags.DEFINE_string(
    "latency", "benchmarks/attention_latency", "The program that times sofie."
)
_OUTPUT = flags.DEFINE_string(
    "output", os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", "."), "Folder for the results."
)
_RUNS = flags.DEFINE_integer("runs", 20, "Timed calls.", lower_bound=3)

_LONGEST_CHECKED = 2048
_COLUMNS = "case causal program tflops device_us host_us error".split()


@dataclasses.dataclass(frozen=True)
class Case:
    """Sequences of some lengths; packed ones lie one after another, others are equally long."""

    name: str
    lengths: tuple[int, ...]
    heads: int
    key_heads: int
    depth: int
    packed: bool


_CASES = (
    Case("4x2048, 32 heads over 8, d=128", (2048,) * 4, 32, 8, 128, False),
    Case("2x8192, 32 heads over 8, d=128", (8192,) * 2, 32, 8, 128, False),
    Case("4x2048, 32 heads, d=64", (2048,) * 4, 32, 32, 64, False),
    Case("1x2048, 8 heads, d=64", (2048,), 8, 8, 64, False),
    Case("packed 4x2048, 16 heads, d=128", (2048,) * 4, 16, 16, 128, True),
    Case(
        "packed 64 to 8192, 16 heads, d=128",
        (8192, 4096, 1024, 512, 128, 64, 333, 777),
        16,
        16,
        128,
        True,
    ),
    Case("packed 512x100, 16 heads, d=128", (100,) * 512, 16, 16, 128, True),
)

Operands = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _operations(case: Case, causal: bool) -> float:
    pairs = sum(n * (n + 1) / 2 if causal else n * n for n in case.lengths)
    return 4.0 * case.depth * case.heads * pairs


def _operands(case: Case) -> Operands:
    """Queries, keys and values: [batch, rows, heads, channels], or [rows, heads, channels]."""
    rows = (sum(case.lengths),) if case.packed else (len(case.lengths), case.lengths[0])
    generator = torch.Generator("cuda").manual_seed(1)

    def draw(heads: int) -> torch.Tensor:
        shape = (*rows, heads, case.depth)
        return torch.randn(shape, generator=generator, device="cuda").bfloat16()

    return draw(case.heads), draw(case.key_heads), draw(case.key_heads)


def _sequences(case: Case, x: torch.Tensor) -> Iterator[torch.Tensor]:
    """[rows, heads, channels] of every sequence."""
    yield from x.split(case.lengths) if case.packed else x


def _exact(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """Attention of one sequence in float64."""
    query, key, value = (x.double().transpose(0, 1) for x in (q, k, v))
    group = query.shape[0] // key.shape[0]
    scores = query @ key.repeat_interleave(group, 0).transpose(1, 2) / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(scores.shape[1:], device="cuda", dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    return (scores.softmax(-1) @ value.repeat_interleave(group, 0)).transpose(0, 1)


def _error(case: Case, operands: Operands, causal: bool, result: torch.Tensor) -> float:
    """Of the sequences that are short enough, at most eight."""
    difference = norm = 0.0
    every = zip(*(_sequences(case, x) for x in (*operands, result)), strict=True)
    for number, (q, k, v, got) in enumerate(every):
        if number >= 8 or len(q) > _LONGEST_CHECKED:
            continue
        expected = _exact(q, k, v, causal)
        difference += float((got.double() - expected).square().sum())
        norm += float(expected.square().sum())
    return math.sqrt(difference / norm) if norm else math.nan


def _bits(x: torch.Tensor) -> np.ndarray:
    """bfloat16 as a case's file has it."""
    bits: np.ndarray = x.cpu().view(torch.uint16).numpy()
    return bits


def _sofie(case: Case, operands: Operands, causal: bool, folder: pathlib.Path) -> dict[str, float]:
    model = f"attention_{'packed' if case.packed else 'dense'}{'_causal' * causal}_{case.depth}"
    inputs = {name: _bits(x) for name, x in zip("qkv", operands, strict=True)}
    types = ["BFLOAT16"] * 3
    if case.packed:
        inputs["ends"] = np.cumsum([0, *case.lengths]).astype(np.int32)
        types.append("INT32")
    path, output = folder / "case.npz", folder / "output.bin"
    reference = reference_case.Reference(
        case={},
        inputs=inputs,
        outputs={"y": inputs["q"]},
        types=[*types, "BFLOAT16"],
        loose_rows=[np.zeros(0, np.int64)],
        tolerances=[(1.0, 1.0)],
        oracle="none",
        seed=1,
    )
    reference_case.write(reference, path)
    command = [_LATENCY.value, f"--model={model}", "--device=cuda", f"--runs={_RUNS.value}"]
    command += [f"--output={output}", str(path)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (row,) = csv.DictReader(io.StringIO(text))
    bits = np.fromfile(output, np.uint16).reshape(operands[0].shape)
    result = torch.from_numpy(bits).view(torch.bfloat16).cuda()
    return {
        "device_us": float(row["device_us"]),
        "host_us": float(row["host_us"]),
        "error": _error(case, operands, causal, result),
    }


def _peers(
    case: Case, operands: Operands, causal: bool
) -> Iterator[tuple[str, Callable[[], torch.Tensor]]]:
    """Calls whose result is like the query."""
    q, k, v = operands
    if case.packed:
        from torch.nn.attention import varlen

        ends = torch.tensor([0, *case.lengths], device="cuda").cumsum(0).int()
        longest = max(case.lengths)
        window = {"window_size": (-1, 0)} if causal else {}
        yield (
            "FlashAttention",
            lambda: varlen.varlen_attn(q, k, v, ends, ends, longest, longest, **window),
        )
        return
    heads_first = [x.transpose(1, 2) for x in operands]

    def call() -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(
            *heads_first, is_causal=causal, enable_gqa=case.heads != case.key_heads
        ).transpose(1, 2)

    for name, backend in (
        ("cuDNN", attention.SDPBackend.CUDNN_ATTENTION),
        ("FlashAttention", attention.SDPBackend.FLASH_ATTENTION),
    ):

        def chosen(backend: attention.SDPBackend = backend) -> torch.Tensor:
            with attention.sdpa_kernel(backend):
                return call()

        yield name, chosen


def _timed(call: Callable[[], torch.Tensor]) -> float:
    """Median time of a call on the device, in µs."""
    for _ in range(5):
        call()
    times = []
    for _ in range(_RUNS.value):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        times.append(1e3 * float(first.elapsed_time(last)))
    return statistics.median(times)


def _measure(folder: pathlib.Path) -> Iterator[dict[str, object]]:
    for case in _CASES:
        operands = _operands(case)
        for causal in (False, True):
            about = {"case": case.name, "causal": causal}
            scale = 1e-6 * _operations(case, causal)
            ours = _sofie(case, operands, causal, folder)
            yield {**about, "program": "sofie", "tflops": scale / ours["device_us"], **ours}
            for name, call in _peers(case, operands, causal):
                error = _error(case, operands, causal, call())
                time = _timed(call)
                measured = {"tflops": scale / time, "device_us": time, "error": error}
                yield {**about, "program": name, **measured}


def _markdown(rows: Sequence[Mapping[str, object]]) -> str:
    """TFLOP/s and error of every program, a line for each case."""
    programs = list(dict.fromkeys(str(row["program"]) for row in rows))
    lines = [
        "| case | mask | " + " | ".join(f"{p} TFLOP/s (error)" for p in programs) + " |",
        "| --- | --- |" + " --- |" * len(programs),
    ]
    cells: dict[tuple[object, object], dict[str, str]] = {}
    for row in rows:
        error = "unchecked" if math.isnan(float(str(row["error"]))) else f"{row['error']:.2e}"
        text = f"{row['tflops']:.0f} ({error})"
        cells.setdefault((row["case"], row["causal"]), {})[str(row["program"])] = text
    for (name, causal), values in cells.items():
        line = " | ".join(values.get(p, "") for p in programs)
        lines.append(f"| {name} | {'causal' if causal else 'none'} | {line} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str]) -> None:
    """Measures and writes the reports."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    folder, work = results.folders(_OUTPUT.value, "sofie_compare_attention")
    rows = results.collect(_measure(work), _COLUMNS, folder / "results.csv")
    table = _markdown(rows)
    (folder / "results.md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    app.run(main)
