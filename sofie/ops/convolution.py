"""Convolutions as matrix products: what their files have in common.

The channels of inputs and outputs lie innermost in memory ([N, spatial..., C]). Windows are
gathered into rows, [taps..., channels] of one group after the other, and the weights' columns have
the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import wide
from sofie.ir.expr import Call, Expr, Literal, Select
from sofie.ir.node import Node
from sofie.ir.program import Combine, Epilogue
from sofie.ir.tensor import Index, Permute, Reduction, Reshape, Strided, Tensor
from sofie.ops.elementwise import rounded
from sofie.ops.spatial import Window, channels_last, kernel_shape, require_windows, window

# The input's element under a batch, a channel, an output position and a position in the window.
Sample = Callable[[dims.Expr, dims.Expr, Index, Index], Expr]


class Convolution:
    """A convolution's operands and geometry, checked.

    Attributes:
      x: the input, [N, C, spatial...].
      w: the weights, [M, C / groups, kernel...].
      bias: [M], or None.
      groups: how many parts the channels are divided into.
      inner: input channels of a group.
      outer: output channels of a group.
      taps: the windows.
    """

    def __init__(
        self, node: Node, b: Builder, x: Tensor, w: Tensor, bias: Tensor | None, weights: int = 1
    ) -> None:
        """Demands of the sizes what the operator demands.

        Args:
          node: a node with the attributes of Conv.
          b: the builder.
          x: its input.
          w: its weights.
          bias: its bias.
          weights: position of the weights among the node's inputs.
        """
        self.node, self.b, self.x, self.w, self.bias = node, b, x, w, bias
        self.groups = sympy.Integer(node.attr_int("group", 1))
        self.inner, self.outer = w.shape[1], dims.FloorDiv(w.shape[0], self.groups)
        self.taps: Window = window(node, kernel_shape(node, weights))
        channels = self.inner * self.groups
        b.require_equal(x.shape[1], channels, "channels of the input and the weights")
        outputs = self.outer * self.groups
        b.require_equal(w.shape[0], outputs, "output channels and the groups' share of them")
        if bias is not None:
            b.require_equal(bias.shape[0], w.shape[0], "lengths of bias and weights")
        for axis, (have, want) in enumerate(zip(w.shape[2:], self.taps.kernel, strict=True), 2):
            b.require_equal(have, want, f"axis {axis} of the weights and kernel_shape")
        require_windows(b, self.taps)

    @property
    def shape(self) -> dims.Shape:
        """The output's extents."""
        return (self.x.shape[0], self.w.shape[0], *self.taps.counts)

    def sample(self, batch: dims.Expr, channel: dims.Expr, out: Index, tap: Index) -> Expr:
        """The element under a window's position, 0 outside of the input."""
        position = self.taps.position(out, tap)
        value = self.x.load((batch, channel, *position))
        inside = self.taps.inside(position)
        zero = Literal(value.dtype, 0)
        return value if inside is None else Select(value.dtype, inside, value, zero)

    def patches(self, sample: Sample, inputs: Sequence[Tensor]) -> Strided:
        """[N * windows, groups * taps * channels]: the elements of every window in a row."""
        spatial, taps = len(self.taps.kernel), self.taps
        full = (self.x.shape[0], *taps.counts, self.groups, *taps.kernel, self.inner)

        def element(index: Index) -> Expr:
            batch, out = index[0], index[1 : 1 + spatial]
            group, tap, channel = index[1 + spatial], index[2 + spatial : -1], index[-1]
            return sample(batch, group * self.inner + channel, out, tap)

        lazy = self.b.lazy(self.x.dtype, full, inputs, element)
        rows = dims.product(full[: 1 + spatial]), dims.product(full[1 + spatial :])
        memory = Reshape(self.b.packed(lazy), rows).strided()
        assert memory is not None
        return memory

    def product(self, rows: Strided, relu: bool) -> Tensor:
        """The rows of ``patches`` times the weights, a product for each group, and the rest."""
        b, dtype = self.b, self.x.dtype
        order = channels_last(self.x.rank)
        out = b.output(dtype, self.shape, order)
        points = dims.product((self.shape[0], *self.taps.counts))
        width = dims.product(self.taps.kernel) * self.inner
        # [points, groups * width] as [groups, points, width]; likewise for the result.
        a = Permute(Reshape(rows, (points, self.groups, width)), (1, 0, 2))
        target = Permute(
            Reshape(Permute(out, order), (points, self.groups, self.outer)), (1, 0, 2)
        ).strided()
        assert target is not None
        fused = self.groups == 1
        weights = Reshape(self.weights(), (self.groups, self.outer, width))
        b.matmul(
            b.in_memory(a),
            b.in_memory(Permute(weights, (0, 2, 1))),
            target,
            bias=b.packed(self.bias) if fused and self.bias is not None else None,
            epilogue=Epilogue.RELU if fused and relu else Epilogue.NONE,
            sources=[self.x],
        )
        return out if fused else self.finish(out, relu)

    def weights(self) -> Tensor:
        """The weights as [M, kernel..., C / groups]."""
        data = self.w.buffer.data if isinstance(self.w, Strided) else None
        if data is None:
            axes = (0, *range(2, self.w.rank), 1)
            return self.b.packed(Permute(self.w, axes))
        assert isinstance(self.w, Strided)
        moved = np.ascontiguousarray(np.moveaxis(data, 1, -1))
        return self.b.constant(f"{self.w.buffer.name}.channels_last", self.w.dtype, moved)

    def direct(self, relu: bool) -> Tensor:
        """Every output as a sum of its own: for groups of one input channel (depthwise)."""
        outer, number = self.outer, wide(self.x.dtype)

        def element(index: Index, tap: Index) -> Expr:
            channel = index[1] if outer == 1 else dims.FloorDiv(index[1], outer)
            value = self.sample(index[0], channel, index[2:], tap)
            weight = self.w.load((index[1], dims.ZERO, *tap))
            return Call(number, "{0} * {1}", (value, weight))

        total = Reduction(
            self.b,
            self.shape,
            self.taps.kernel,
            Combine("Sum", number),
            element,
            lambda value: rounded(value, self.x.dtype),
            self.x.dtype,
            [self.x, self.w],
        )
        return self.finish(total, relu)

    def finish(self, out: Tensor, relu: bool) -> Tensor:
        """The bias and the activation, where there are any."""
        bias = self.bias
        if bias is None and not relu:
            return out

        def element(index: Index) -> Expr:
            value = out.load(index)
            if bias is not None:
                value = Call(out.dtype, "{0} + {1}", (value, bias.load(index[1:2])))
            return Call(out.dtype, "sofie::kernels::Relu({0})", (value,)) if relu else value

        inputs = [out, *([bias] if bias is not None else [])]
        return self.b.lazy(out.dtype, out.shape, inputs, element)
