"""STFT: https://onnx.ai/onnx/operators/onnx__STFT.html"""

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import fourier
from sofie.ops.inference import known, shape_rule
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    shape = node.shape(0)
    if len(shape) != 3 or shape[-1] not in (1, 2):
        yield "an input that is not [batch, length, real parts alone or both parts]"
    if node.known(1) is None:
        yield "a frame_step that depends on data"
    if node.has(3) and node.known(3) is None:
        yield "a frame_length that depends on data"
    if not node.has(2) and not node.has(3):
        yield "neither a window nor a frame_length"


def _frame(node: Node) -> dims.Expr:
    """How long a frame is."""
    return known(node, 3, "a frame_length")[0] if node.has(3) else node.shape(2)[0]


@shape_rule("STFT", since=17)
def _shapes(node: Node) -> list[dims.Shape | None]:
    batch, length, _ = node.shape(0)
    step, frame = known(node, 1, "a frame_step")[0], _frame(node)
    frames = dims.FloorDiv(length - frame, step) + 1
    half = node.attr_int("onesided", 1) != 0
    frequencies = dims.FloorDiv(frame, sympy.Integer(2)) + 1 if half else frame
    return [(batch, frames, frequencies, sympy.Integer(2))]


@operator("STFT", since=17, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The transforms of overlapping frames, each times the window."""
    x, window = inputs[0], inputs[2] if len(inputs) > 2 else None
    assert x is not None
    step, frame = known(node, 1, "a frame_step")[0], _frame(node)
    b.require(dims.ONE, step, f"{b.node}: frames that are {{high}} apart")
    b.require(dims.ONE, frame, f"{b.node}: frames of length {{high}}")
    b.require(
        frame, x.shape[1], f"{b.node}: a frame of {{low}} is longer than the signal's {{high}}"
    )
    if window is not None:
        b.require_equal(window.shape[0], frame, "lengths of window and frame")

    number = dtype.wide(x.dtype)
    template = f"static_cast<{number.cpp}>({{0}}) * static_cast<{number.cpp}>({{1}})"

    def sample(index: Index, n: dims.Expr) -> tuple[Expr, Expr | None]:
        real, imaginary = fourier.complex_sample(x, (index[0], index[1] * step + n))
        if window is None:
            return real, imaginary
        factor = window.load((n,))

        def weighted(part: Expr) -> Expr:
            return Call(number, template, (part, factor))

        return weighted(real), None if imaginary is None else weighted(imaginary)

    tensors = [t for t in (x, window) if t is not None]
    shape = node.out_shape()
    return [fourier.transform(b, shape, lambda index: index[2], frame, frame, sample, tensors)]
