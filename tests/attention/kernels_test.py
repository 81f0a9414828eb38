"""How many kernels attention has in machine code: one for each layout class, whatever sizes are."""

import re
import subprocess

import onnx

from rules.private.data_file import data_file


def _kernels(suite: str) -> list[str]:
    """Attention's kernels: symbols of functions which the driver can launch (STO_CUDA_ENTRY).

    Beside them there are those that fill the padded sums with -inf.
    """
    printed = subprocess.run(
        ["readelf", "--symbols", "--wide", str(data_file(f"tests/attention/{suite}_sm_90a.cubin"))],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    kernels = re.findall(r" FUNC +\w+ +\w+ +\[<other>: 10\] +\w+ (\S+)", printed)
    return [name for name in kernels if re.search(r"\dAttention\w*?Entry", name)]


def _steps(suite: str) -> int:
    nodes = onnx.load(data_file(f"tests/attention/{suite}.onnx")).graph.node
    return sum(node.op_type in ("Attention", "PackedAttention") for node in nodes)


# Each class is compiled for indices of 32 and of 64 bits: sizes beyond 2^31 need the latter.
_WIDTHS = 2


def test_a_serving_suite_needs_four_kernels() -> None:
    """Packed prefill with sums and without, of two depths; heads, lengths and layouts differ."""
    assert _steps("serving") == 128
    kernels = _kernels("serving")
    assert len(kernels) == 4 * _WIDTHS, kernels


def test_dense_operands_of_any_strides_need_one_kernel() -> None:
    assert _steps("dense") == 37
    kernels = _kernels("dense")
    assert len(kernels) == 1 * _WIDTHS, kernels
