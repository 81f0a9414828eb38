"""BatchNormalization: https://onnx.ai/onnx/operators/onnx__BatchNormalization.html

With constant statistics the operator is one scale and one shift per channel. Most are gone before
this lowering: ``passes/fold_batch_normalization.py`` puts them into the convolution before them.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import elementwise, normalization
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.attr_int("spatial", 1) == 0:
        yield "spatial = 0, statistics of every element of a channel; export with a newer opset"
    if len(node.shape(0)) < 2:
        yield "an input without channels"


def scale_and_shift(node: Node) -> tuple[np.ndarray, np.ndarray] | None:
    """float64 [C] scale and shift: the operator's result is ``x * scale + shift``.

    None where they are not constants, or not one for each channel.
    """
    arrays = [node.array(i) for i in range(1, 5)]
    shapes = {node.shape(i) for i in range(1, 5)}
    given = [a.astype(np.float64) for a in arrays if a is not None]
    if len(given) < 4 or shapes != {node.shape(0)[1:2]} or _is_training(node):
        return None
    gamma, beta, mean, variance = given
    with np.errstate(
        invalid="ignore"
    ):  # A negative variance gives NaN, as it does in ONNX Runtime.
        scale = gamma / np.sqrt(variance + node.attr_float("epsilon", 1e-5))
    return scale, beta - mean * scale


def _is_training(node: Node) -> bool:
    return node.attr_int("training_mode", 0) == 1


@operator("BatchNormalization", since=7, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """``x * scale[c] + shift[c]``, or from statistics that are computed or given at run time."""
    x, gamma, beta, mean, variance = elementwise.given(inputs)
    for parameter in (gamma, beta, mean, variance):
        b.require_equal(parameter.shape[0], x.shape[1], "parameters and channels")
    if _is_training(node):
        return _training(node, b, x, [gamma, beta, mean, variance])
    constants = scale_and_shift(node)
    if constants is None:
        return [_given_statistics(node, b, x, [gamma, beta, mean, variance])]
    scale, shift = (
        b.constant(f"{node.label}.{what}", x.dtype, value.astype(x.dtype.numpy))
        for what, value in zip(("scale", "shift"), constants, strict=True)
    )

    def element(index: Index) -> Expr:
        channel = index[1:2]
        parts = (x.load(index), scale.load(channel), shift.load(channel))
        return Call(x.dtype, "{0} * {1} + {2}", parts)

    return [b.lazy(x.dtype, x.shape, [x], element)]


def _given_statistics(node: Node, b: Builder, x: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """One pass over ``x``; what depends on the channel alone is left to the compiler to share."""
    epsilon = Literal(dtype.wide(x.dtype), node.attr_float("epsilon", 1e-5))

    def element(index: Index) -> Expr:
        numbers = (p.load(index[1:2]) for p in parameters)
        template = "({0} - {3}) * (sofie::kernels::InverseSqrt({4} + {5}) * {1}) + {2}"
        return Call(x.dtype, template, (x.load(index), *numbers, epsilon))

    return b.lazy(x.dtype, x.shape, [x, *parameters], element)


def _training(
    node: Node, b: Builder, x: Tensor, parameters: Sequence[Tensor]
) -> list[Tensor | None]:
    """Statistics of this batch, and running statistics as moving averages."""
    gamma, beta, *running = parameters
    axes = [a for a in range(x.rank) if a != 1]
    affine = normalization.per_channel(gamma, beta, lambda index: index[1])
    epsilon = node.attr_float("epsilon", 1e-5)
    y = normalization.standardize(b, x, axes, epsilon, affine, x.dtype)
    return [
        y,
        *(
            _moving_average(node, b, x, axes, before, position) if node.is_used(position) else None
            for position, before in enumerate(running, 1)
        ),
    ]


def _moving_average(
    node: Node, b: Builder, x: Tensor, axes: Sequence[int], before: Tensor, position: int
) -> Tensor:
    """The mean (output 1) or variance (output 2), a share of it from before this batch."""
    number = dtype.wide(x.dtype)
    share = Literal(number, node.attr_float("momentum", 0.9))

    def current(mean: Expr, variance: Expr) -> Expr:
        return (mean, variance)[position - 1]

    now = normalization.statistic(b, x, axes, current, before.shape, number)

    def element(index: Index) -> Expr:
        parts = (before.load(index), now.load(index), share)
        return Call(before.dtype, "{0} * {2} + {1} * (1 - {2})", parts)

    return b.lazy(before.dtype, before.shape, [before, now], element)
