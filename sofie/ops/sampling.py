"""Elements between elements: what operators with coordinates from data have in common."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from sofie.ir import dims
from sofie.ir.dtype import BOOL, INT64, DType
from sofie.ir.expr import Call, Expr, Index, Indirect, Literal, Select
from sofie.ops.elementwise import rounded
from sofie.ops.indexing import both

# The factor of the cubic convolution.
_CUBIC = -0.75


def size(value: dims.Expr, dtype: DType) -> Expr:
    """An index or a size as a number."""
    return Call(dtype, f"static_cast<{dtype.cpp}>({{0}})", (Index(INT64, value),))


def clamped(place: Expr, extent: dims.Expr) -> Indirect:
    """A whole number as an index, the nearest one of an axis."""
    template = "sofie::kernels::ClampIndex({0}, {1})"
    return Indirect(Call(INT64, template, (place, Index(INT64, extent))))


class Axis:
    """One axis of a tensor that is sampled at a coordinate, in elements.

    Attributes:
      taps: indices of the elements that count, whether each exists (None: it does), and its weight.
    """

    def __init__(
        self,
        coordinate: Expr,
        extent: dims.Expr,
        mode: str = "linear",
        padding: str = "zeros",
        align_corners: bool = False,
    ) -> None:
        """Which elements count.

        Args:
          coordinate: a number.
          extent: of the axis.
          mode: nearest, linear or cubic.
          padding: zeros, border or reflection, as GridSample has them.
          align_corners: whether the outermost elements are the border, or half an element further.
        """
        self._extent, self._padding = extent, padding
        self._number = coordinate.dtype
        last = self._calculate("{0} - {1}", size(extent, self._number), self._literal(1))
        margin = 0.0 if align_corners else 0.5
        self._low = self._literal(-margin)
        self._high = self._calculate("{0} + {1}", last, self._literal(margin))
        if mode == "nearest":
            coordinate = self._calculate("sofie::kernels::Round({0})", coordinate)
        if padding == "border":
            # Inside of the outermost half elements nothing is moved.
            template = "sofie::kernels::Clip({0}, {1}, {2})"
            kept = self._calculate(template, coordinate, self._literal(0), last)
            beyond = Call(BOOL, "({0} < {1}) || ({0} > {2})", (coordinate, self._low, self._high))
            coordinate = Select(self._number, beyond, kept, coordinate)
        elif padding == "reflection":
            coordinate = self._reflected(coordinate)
        if mode == "nearest":
            self.taps = [self._tap(coordinate, self._literal(1))]
            return
        base = self._calculate("sofie::kernels::Floor({0})", coordinate)
        rest = self._calculate("{0} - {1}", coordinate, base)
        reach = 1 if mode == "linear" else 2
        self.taps = []
        for step in range(1 - reach, 1 + reach):
            place = self._calculate("{0} + {1}", base, self._literal(step)) if step else base
            distance = self._calculate("sofie::kernels::Abs({0} - {1})", rest, self._literal(step))
            self.taps.append(self._tap(place, self._weight(distance, step, mode)))

    def _literal(self, value: float) -> Expr:
        return Literal(self._number, value)

    def _calculate(self, template: str, *arguments: Expr) -> Expr:
        return Call(self._number, template, arguments)

    def _reflected(self, place: Expr) -> Expr:
        return self._calculate(
            "sofie::kernels::Reflect({0}, {1}, {2})", place, self._low, self._high
        )

    def _weight(self, distance: Expr, step: int, mode: str) -> Expr:
        """How much an element counts that lies so far away."""
        one = self._literal(1)
        if mode == "linear":
            return self._calculate("{0} - {1}", one, distance)
        a = self._literal(_CUBIC)
        if step in (0, 1):
            two, three = self._literal(2), self._literal(3)
            template = "(({1} + {2}) * {0} - ({1} + {3})) * {0} * {0} + {4}"
            return self._calculate(template, distance, a, two, three, one)
        template = "(({1} * {0} - {2}) * {0} + {3}) * {0} - {4}"
        parts = [self._literal(_CUBIC * factor) for factor in (5, 8, 4)]
        return self._calculate(template, distance, a, *parts)

    def _tap(self, place: Expr, weight: Expr) -> tuple[Indirect, Expr | None, Expr]:
        exists = None
        if self._padding == "zeros":
            zero, extent = self._literal(0), size(self._extent, self._number)
            exists = Call(BOOL, "({0} >= {1}) && ({0} < {2})", (place, zero, extent))
        elif self._padding == "reflection":
            place = self._reflected(place)
        return clamped(place, self._extent), exists, weight


def sampled(
    axes: Sequence[Axis], dtype: DType, number: DType, load: Callable[[tuple[dims.Expr, ...]], Expr]
) -> Expr:
    """The sum of the elements around a point, each with its weight.

    Args:
      axes: the point's axes.
      dtype: the elements' type.
      number: the type to add in.
      load: gives an element.
    """

    def below(depth: int, index: tuple[dims.Expr, ...], conditions: list[Expr]) -> Expr:
        if depth == len(axes):
            value = load(index)
            exists = both(conditions)
            if exists is not None:
                value = Select(dtype, exists, value, Literal(dtype, 0))
            return rounded(value, number)
        parts = []
        for place, exists, weight in axes[depth].taps:
            more = conditions if exists is None else [*conditions, exists]
            value = below(depth + 1, (*index, place), more)
            if len(axes[depth].taps) > 1:
                value = Call(number, "{0} * {1}", (value, rounded(weight, number)))
            parts.append(value)
        return functools.reduce(lambda a, b: Call(number, "{0} + {1}", (a, b)), parts)

    return below(0, (), [])
