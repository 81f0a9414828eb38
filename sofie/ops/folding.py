"""Windows that add up to an image: what ConvTranspose and Col2Im have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, DType, wide
from sofie.ir.expr import Expr, Literal, Select, compare
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Tensor
from sofie.ops.elementwise import rounded
from sofie.ops.indexing import both


@dataclasses.dataclass(frozen=True)
class Fold:
    """The geometry, one entry for each spatial axis.

    Attributes:
      kernel: extents of the windows.
      strides: steps between windows.
      dilations: steps inside a window.
      before: how far the first window begins before the image.
      counts: how many windows there are.
      extents: of the image.
    """

    kernel: tuple[dims.Expr, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[dims.Expr, ...]
    counts: tuple[dims.Expr, ...]
    extents: tuple[dims.Expr, ...]


def fold(
    b: Builder,
    dtype: DType,
    lead: Sequence[dims.Expr],
    geometry: Fold,
    part: Callable[[Index, Index, Index], Expr],
    inputs: Sequence[Tensor],
    extra: Sequence[dims.Expr] = (),
) -> Reduction:
    """An image [lead..., spatial...]: at every point the sum of all windows that cover it.

    Args:
      b: the builder.
      dtype: the image's element type.
      lead: extents before the spatial ones.
      geometry: where the windows lie.
      part: what a window adds, from the leading index, the window's index and the position in it
        (followed by an index into ``extra``).
      inputs: tensors that ``part`` reads.
      extra: axes to sum over besides.
    """
    spatial, number = len(geometry.kernel), wide(dtype)

    def element(outer: Index, inner: Index) -> Expr:
        at, tap = outer[len(lead) :], inner[:spatial]
        conditions: list[Expr] = []
        windows: list[dims.Expr] = []
        for axis in range(spatial):
            stride = sympy.Integer(geometry.strides[axis])
            start = at[axis] + geometry.before[axis] - tap[axis] * geometry.dilations[axis]
            conditions.append(compare(">=", start, dims.ZERO))
            conditions.append(compare("<", start, geometry.counts[axis] * stride))
            if stride != 1:
                conditions.append(compare("==", dims.FloorMod(start, stride), dims.ZERO))
            windows.append(dims.FloorDiv(start, stride))
        covered = both(conditions)
        assert covered is not None and covered.dtype is BOOL
        value = rounded(part(outer[: len(lead)], tuple(windows), inner), number)
        return Select(number, covered, value, Literal(number, 0))

    return Reduction(
        b,
        (*lead, *geometry.extents),
        (*geometry.kernel, *extra),
        Combine("Sum", number),
        element,
        lambda value: rounded(value, dtype),
        dtype,
        inputs,
    )
