"""Convolutions of 8-bit integers: what their files have in common."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.dtype import DType
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import quantization
from sofie.ops.convolution import Convolution
from sofie.ops.spatial import check_window

TYPES = {dtype.INT8, dtype.UINT8}


def check(node: Node, weights: int) -> Iterator[str]:
    """What is wrong with a node whose weights are the input number ``weights``."""
    yield from check_window(node)
    if node.dtype(weights) not in TYPES:
        yield f"weights of type {node.dtype(weights).name}"


def sums(
    node: Node,
    b: Builder,
    x: Tensor,
    w: Tensor,
    x_zero: Tensor | None,
    w_zero: Tensor | None,
    weights: tuple[int, int],
) -> Tensor:
    """The convolution of ``x - x_zero`` with ``w - w_zero``, exact.

    Args:
      node: a node with the attributes of Conv.
      b: the builder.
      x: its input.
      w: its weights.
      x_zero: one number.
      w_zero: one number, or one for each output channel.
      weights: positions of ``w`` and ``w_zero`` among the node's inputs.
    """
    number = quantization.exact(dims.product(w.shape[1:]))
    zero = None if x_zero is None else quantization.along(b, x_zero, 0, x.shape)
    inputs = quantization.centred(b, number, x, zero)
    conv = Convolution(
        node, b, inputs, _weights(node, b, number, w, w_zero, weights), None, weights[0]
    )
    return conv.product(conv.patches(conv.sample, [inputs]), False)


def _weights(
    node: Node, b: Builder, number: DType, w: Tensor, zero: Tensor | None, weights: tuple[int, int]
) -> Tensor:
    """The weights without their zero points, at build time where both are constant."""
    array, zeros = node.array(weights[0]), node.array(weights[1])
    if array is not None and (zero is None or zeros is not None):
        channels = (-1,) + (1,) * (array.ndim - 1)
        offsets = np.zeros(1, np.int64) if zeros is None else zeros.astype(np.int64)
        shifted = array.astype(np.int64) - offsets.reshape(channels)
        name = f"{node.input(weights[0]).name}.centred"
        return b.constant(name, number, shifted.astype(number.numpy))
    point = None if zero is None else quantization.along(b, zero, 0, w.shape)
    return quantization.centred(b, number, w, point)
