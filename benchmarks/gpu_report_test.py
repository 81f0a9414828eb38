"""What the report says of measurements, of which some are made up to be slow or wrong."""

import json
import pathlib

from benchmarks import gpu_report


def _row(program: str, wall: float, sizes: str = "N=1", **other: object) -> gpu_report.Row:
    row = {"model": "mlp", "sizes": sizes, "precision": "fp32", "program": program}
    return {**row, "wall_us": wall, "error": 1e-7, **other}


_ROWS = [
    _row("sofie", 10),
    _row("PyTorch", 40),
    _row("torch.compile", 20),
    _row("sofie", 30, "N=64"),
    _row("PyTorch", 15, "N=64"),
    _row("sofie", 8, "N=64", precision="bf16", error=1e-2),
    _row("sofie without padding", 1, "N=64"),
]


def test_the_ratio_is_the_fastest_peers_at_equal_precision() -> None:
    _, _, *lines = gpu_report.table(_ROWS).splitlines()
    assert lines == [
        "| mlp | N=1 | fp32 | 10 (1.0e-07) | 40 (1.0e-07) | 20 (1.0e-07) |  | 2.00 |",
        "| mlp | N=64 | fp32 | 30 (1.0e-07) | 15 (1.0e-07) |  | 1 (1.0e-07) | 0.50 |",
        "| mlp | N=64 | bf16 | 8 (1.0e-02) |  |  |  |  |",
    ]


def test_every_lost_case_is_listed() -> None:
    assert gpu_report.slower(_ROWS) == ["mlp N=64 fp32: PyTorch 15 µs, sofie 30 µs (0.50)"]
    assert "sofie is slower than a peer here:\n- mlp N=64" in gpu_report.text(_ROWS)
    assert "No peer is faster than sofie." in gpu_report.text(_ROWS[:3])


def test_results_that_precision_does_not_explain_are_wrong() -> None:
    rows = [*_ROWS, _row("sofie", 1, "N=2", error=1e-2), _row("PyTorch", 1, error=float("nan"))]
    assert gpu_report.wrong(_ROWS) == []
    assert gpu_report.wrong(rows) == ["sofie, mlp N=2 fp32: 1.0e-02", "PyTorch, mlp N=1 fp32: nan"]


def test_what_to_plot_against() -> None:
    sizes = ["N=1,P=50", "N=1,P=100", "N=1,P=128", "N=8,P=100", "N=64,P=100"]
    rows = [_row("sofie", 1, text) for text in sizes]
    found = {symbol: [row["sizes"] for row in group] for symbol, group in gpu_report.axes(rows)}
    assert found == {"N": ["N=1,P=100", "N=8,P=100", "N=64,P=100"], "P": sizes[:3]}


def test_sizes_that_grow_together_share_an_axis() -> None:
    rows = [_row("sofie", 1, f"V={n},E={5 * n}") for n in (100, 1000, 10000)]
    assert list(gpu_report.axes(rows)) == [("V", rows)]


def test_plots_are_written(tmp_path: pathlib.Path) -> None:
    gpu_report.plot(_ROWS, tmp_path)
    trace = tmp_path / "mlp_1.trace.json"
    trace.write_text(json.dumps({"traceEvents": [{"name": "/layers.0/Gemm", "dur": 3.5}]}))
    gpu_report.plot_steps(trace, tmp_path / "steps.png")
    assert {path.name for path in tmp_path.glob("*.png")} == {"mlp_N.png", "steps.png"}
