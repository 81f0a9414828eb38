"""BatchNormalization: https://onnx.ai/onnx/operators/onnx__BatchNormalization.html

Statistics are constants at inference, so the operator is one scale and one shift per channel. Most
are gone before this lowering: ``passes/fold_batch_normalization.py`` puts them into the convolution
before them.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if node.attr_int("training_mode", 0):
        yield "training_mode = 1; export the model for inference"
    if any(node.array(i) is None for i in range(1, 5)):
        yield "a scale, bias, mean or variance that is not a constant"
    elif any(node.shape(i) != node.shape(0)[1:2] for i in range(1, 5)):
        yield "a scale, bias, mean or variance that is not of the input's channels"


def scale_and_shift(node: Node) -> tuple[np.ndarray, np.ndarray]:
    """float64 [C] scale and shift: the operator's result is ``x * scale + shift``."""
    gamma, beta, mean, variance = (_float64(node, i) for i in range(1, 5))
    with np.errstate(
        invalid="ignore"
    ):  # A negative variance gives NaN, as it does in ONNX Runtime.
        scale = gamma / np.sqrt(variance + node.attr_float("epsilon", 1e-5))
    return scale, beta - mean * scale


def _float64(node: Node, position: int) -> np.ndarray:
    array = node.array(position)
    assert array is not None
    return array.astype(np.float64)


@operator("BatchNormalization", since=9, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """``x * scale[c] + shift[c]``."""
    x = inputs[0]
    assert x is not None
    scale, shift = (
        b.constant(f"{node.label}.{what}", x.dtype, value.astype(x.dtype.name))
        for what, value in zip(("scale", "shift"), scale_and_shift(node), strict=True)
    )

    def element(index: Index) -> Expr:
        channel = index[1:2]
        parts = (x.load(index), scale.load(channel), shift.load(channel))
        return Call(x.dtype, "{0} * {1} + {2}", parts)

    return [b.lazy(x.dtype, x.shape, [x], element)]
