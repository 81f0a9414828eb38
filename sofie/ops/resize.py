"""Resize: https://onnx.ai/onnx/operators/onnx__Resize.html

Interpolation along an axis is a table of which elements each output takes and one of how much of
each; both are small, and computed in float64. An axis after the other. Coordinates are those of
ONNX's reference, which keeps what a scale leaves of a fraction of an element.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

import numpy as np
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, FLOAT64, INT64, DType
from sofie.ir.expr import Call, Expr, Indirect, Literal, Select
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index, Reduction, Tensor
from sofie.ops.inference import known, known_axes, shape_rule
from sofie.ops.registry import operator

_MODES = ("nearest", "linear", "cubic")
_TRANSFORMATIONS = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
)
_NEAREST = {
    "round_prefer_floor": "sofie::kernels::Ceil({0} - 0.5)",
    "round_prefer_ceil": "sofie::kernels::Floor({0} + 0.5)",
    "floor": "sofie::kernels::Floor({0})",
    "ceil": "sofie::kernels::Ceil({0})",
}
_POLICIES = ("stretch", "not_larger", "not_smaller")
# More elements than this are added up in a loop of their own for every axis.
_UNROLLED = 16


@dataclasses.dataclass(frozen=True)
class _Axis:
    """How one axis is resized.

    Attributes:
      axis: which one.
      extent: of the input.
      wanted: extent of the output.
      scale: the ratio of both, as a number; None where it follows from sizes.
      roi: position of the axis in the operand of regions, and how many axes that has.
    """

    axis: int
    extent: dims.Expr
    wanted: dims.Expr
    scale: float | None
    roi: tuple[int, int]


@dataclasses.dataclass(frozen=True)
class _Settings:
    """The node's attributes, and where its operands are (they differ between opsets)."""

    mode: str
    transformation: str
    nearest: str
    antialias: bool
    exclude: bool
    cubic: float
    extrapolation: float
    policy: str
    roi: int
    scales: int
    sizes: int


def _settings(node: Node) -> _Settings:
    mode = node.attr_string("mode", "nearest")
    old = node.op_type == "Upsample" or node.version < 11
    default = "asymmetric" if old else "half_pixel"
    return _Settings(
        mode="linear" if mode == "bilinear" else mode,
        transformation=node.attr_string("coordinate_transformation_mode", default),
        nearest="floor" if old else node.attr_string("nearest_mode", "round_prefer_floor"),
        antialias=node.attr_int("antialias", 0) != 0,
        exclude=node.attr_int("exclude_outside", 0) != 0,
        cubic=node.attr_float("cubic_coeff_a", -0.75),
        extrapolation=node.attr_float("extrapolation_value", 0.0),
        policy=node.attr_string("keep_aspect_ratio_policy", "stretch"),
        roi=1,
        scales=1 if old else 2,
        sizes=3,
    )


def _check(node: Node) -> Iterator[str]:
    what = _settings(node)
    if what.mode not in _MODES:
        yield f"the mode {what.mode!r}"
    if what.transformation not in _TRANSFORMATIONS:
        yield f"the coordinate_transformation_mode {what.transformation!r}"
    if what.nearest not in _NEAREST:
        yield f"the nearest_mode {what.nearest!r}"
    if what.policy not in _POLICIES:
        yield f"the keep_aspect_ratio_policy {what.policy!r}"
    if what.antialias and what.mode == "nearest":
        yield "antialias of the mode 'nearest'"
    if what.mode != "nearest" and node.dtype(0) is BOOL:
        yield "interpolation of bool"
    if node.has(what.sizes):
        if node.known(what.sizes) is None:
            yield "sizes that depend on data"
    elif node.attr_floats("scales") is None and node.array(what.scales) is None:
        yield "scales that depend on data"


@shape_rule("Upsample")
@shape_rule("Resize", since=10)
def _shapes(node: Node) -> list[dims.Shape | None]:
    shape = list(node.shape(0))
    for one in _axes(node):
        shape[one.axis] = one.wanted
    return [tuple(shape)]


def _axes(node: Node) -> list[_Axis]:
    """The axes that are resized."""
    what, shape = _settings(node), node.shape(0)
    axes = known_axes(node, len(node.raw.inputs), len(shape)) or tuple(range(len(shape)))
    scales: list[float | None]
    if node.has(what.sizes):
        sizes = list(known(node, what.sizes, "sizes"))
        scales = [None] * len(axes)
        if what.policy != "stretch":
            sizes, scales = _keep_aspect(what.policy, [shape[a] for a in axes], sizes)
    else:
        attribute = node.attr_floats("scales")
        array = node.array(what.scales) if attribute is None else np.asarray(attribute, np.float32)
        if array is None:
            raise ValueError("scales that depend on data")
        numbers = [float(s) for s in array.reshape(-1)]
        sizes = [_scaled(shape[a], s) for a, s in zip(axes, numbers, strict=True)]
        scales = list(numbers)
    if len(sizes) != len(axes):
        raise ValueError(f"{len(sizes)} sizes for {len(axes)} axes")
    found = []
    for position, axis in enumerate(axes):
        wanted, scale = sizes[position], scales[position]
        if what.transformation == "tf_crop_and_resize" or not dims.same(wanted, shape[axis]):
            roi = (position, len(axes))
            found.append(_Axis(axis, shape[axis], wanted, scale, roi))
        elif scale is not None and not math.isclose(scale, 1.0):
            found.append(_Axis(axis, shape[axis], wanted, scale, (position, len(axes))))
    return found


def _scaled(extent: dims.Expr, scale: float) -> dims.Expr:
    """``floor(extent * scale)``, in integers."""
    if extent.is_Integer:
        return sympy.Integer(math.floor(int(extent) * scale))
    numerator, denominator = scale.as_integer_ratio()
    return dims.FloorDiv(extent * numerator, sympy.Integer(denominator))


def _keep_aspect(
    policy: str, extents: list[dims.Expr], sizes: list[dims.Expr]
) -> tuple[list[dims.Expr], list[float | None]]:
    """Sizes and scales such that one scale holds for all axes."""
    if any(not d.is_Integer for d in (*extents, *sizes)):
        raise ValueError(f"{policy} with symbolic sizes")
    ratios = [int(s) / int(e) for s, e in zip(sizes, extents, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [sympy.Integer(int(scale * int(e) + 0.5)) for e in extents], [scale] * len(extents)


@operator("Upsample", since=7, until=9, dtypes=dtype.ALL, check=_check)
@operator("Resize", since=10, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The input at computed indices, or sums of its elements, axis by axis."""
    x, what = inputs[0], _settings(node)
    assert x is not None
    roi = None
    if what.transformation == "tf_crop_and_resize":
        roi = inputs[what.roi]
    axes = _axes(node)
    for one in axes:
        b.require(dims.ZERO, one.wanted, f"{b.node}: an axis of {{high}} elements")
        message = f"{b.node}: axis {one.axis} has no element to resize"
        b.require(dims.smallest(dims.ONE, one.wanted), one.extent, message)
    number = dtype.wide(x.dtype) if x.dtype.is_float else FLOAT64
    result = _nearest(b, x, axes, what, roi) if what.mode == "nearest" else x
    if what.mode != "nearest" and axes:
        unrolled = 1
        for one in axes:
            result, unrolled = _interpolated(b, result, one, what, roi, number, unrolled)
        result = _rounded(b, result, x.dtype)
    if roi is not None and axes:
        result = _extrapolated(b, result, axes, what, roi)
    return [result]


# Coordinates.


def _size(value: dims.Expr) -> Expr:
    return Call(FLOAT64, "static_cast<double>({0})", (IndexExpr(INT64, value),))


def _number(value: float) -> Expr:
    return Literal(FLOAT64, value)


def _calculate(template: str, *arguments: Expr) -> Expr:
    return Call(FLOAT64, template, arguments)


def _coordinate(one: _Axis, what: _Settings, roi: Tensor | None, out: dims.Expr) -> Expr:
    """Where an output index lies in the input, in elements."""
    at, extent = _size(out), _size(one.extent)
    if one.scale is None:
        scale = _calculate("{0} / {1}", _size(one.wanted), extent)
        length: Expr = _size(one.wanted)
    else:
        scale = _number(one.scale)
        length = _calculate("{0} * {1}", scale, extent)
    kind = what.transformation
    if kind == "asymmetric":
        return _calculate("{0} / {1}", at, scale)
    centre = _calculate("({0} + 0.5) / {1} - 0.5", at, scale)
    if kind == "half_pixel":
        return centre
    single = Call(BOOL, "{0} == 1.0", (length,))
    if kind == "pytorch_half_pixel":
        return Select(FLOAT64, single, _number(-0.5), centre)
    if kind == "half_pixel_symmetric":
        template = "{0} / 2.0 * (1.0 - {1} / {2}) + {3}"
        return _calculate(template, extent, _size(one.wanted), length, centre)
    if kind == "align_corners":
        spread = _calculate("{0} * ({1} - 1.0) / ({2} - 1.0)", at, extent, length)
        return Select(FLOAT64, single, _number(0.0), spread)
    assert roi is not None
    position, count = one.roi
    start, end = (
        Call(FLOAT64, "static_cast<double>({0})", (roi.load((dims.ONE * i,)),))
        for i in (position, position + count)
    )
    template = "{0} * ({4} - {3}) * ({1} - 1.0) / ({2} - 1.0) + {3} * ({1} - 1.0)"
    spread = _calculate(template, at, extent, length, start, end)
    middle = _calculate("({1} + {2}) * ({0} - 1.0) / 2.0", extent, start, end)
    return Select(FLOAT64, single, middle, spread)


def _extrapolated(
    b: Builder, x: Tensor, axes: Sequence[_Axis], what: _Settings, roi: Tensor
) -> Tensor:
    """A value in place of what lies outside of the input along any axis."""

    def outside(one: _Axis) -> Tensor:
        def flag(index: Index) -> Expr:
            place = _coordinate(one, what, roi, index[0])
            last = _size(one.extent)
            return Call(BOOL, "({0} < 0.0) || ({0} > {1} - 1.0)", (place, last))

        return b.lazy(BOOL, (one.wanted,), [roi], flag)

    flags = [outside(one) for one in axes]
    for flag in flags:
        flag.strided()

    def element(index: Index) -> Expr:
        value = x.load(index)
        for one, flag in zip(axes, flags, strict=True):
            here = flag.load((index[one.axis],))
            value = Select(x.dtype, here, Literal(x.dtype, what.extrapolation), value)
        return value

    return b.lazy(x.dtype, x.shape, [x, *flags], element)


# Nearest.


def _nearest(
    b: Builder, x: Tensor, axes: Sequence[_Axis], what: _Settings, roi: Tensor | None
) -> Tensor:
    shape = list(x.shape)
    tables: dict[int, Tensor | int] = {}
    for one in axes:
        shape[one.axis] = one.wanted
        repeat = _repeats(one, what)
        tables[one.axis] = _nearest_table(b, one, what, roi) if repeat is None else repeat

    def element(index: Index) -> Expr:
        inner = list(index)
        for axis, table in tables.items():
            if isinstance(table, int):
                inner[axis] = dims.FloorDiv(index[axis], sympy.Integer(table))
            else:
                inner[axis] = Indirect(table.load((index[axis],)))
        return x.load(tuple(inner))

    sources = [t for t in tables.values() if not isinstance(t, int)]
    return b.lazy(x.dtype, shape, [x, *sources], element)


def _repeats(one: _Axis, what: _Settings) -> int | None:
    """How often every element is repeated, where that is all there is to it."""
    if one.scale is None or one.scale < 1 or one.scale != int(one.scale):
        return None
    centred = what.transformation in ("half_pixel", "half_pixel_symmetric")
    plain = (what.transformation, what.nearest) == ("asymmetric", "floor") or (
        centred and what.nearest.startswith("round")
    )
    return int(one.scale) if plain else None


def _nearest_table(b: Builder, one: _Axis, what: _Settings, roi: Tensor | None) -> Tensor:
    def element(index: Index) -> Expr:
        place = _coordinate(one, what, roi, index[0])
        return _kept(Call(FLOAT64, _NEAREST[what.nearest], (place,)), one.extent)

    table = b.lazy(INT64, (one.wanted,), [roi] if roi is not None else [], element)
    table.strided()
    return table


def _kept(place: Expr, extent: dims.Expr) -> Expr:
    """A whole number as an index, kept inside of an axis."""
    template = "static_cast<int64_t>(sofie::kernels::Clip({0}, 0.0, {1} - 1.0))"
    return Call(INT64, template, (place, _size(extent)))


# Linear and cubic.


def _taps(one: _Axis, what: _Settings) -> tuple[dims.Expr, Expr]:
    """How many elements an output is a sum of, and the first one relative to its coordinate."""
    reach = 1 if what.mode == "linear" else 2
    if not what.antialias:
        return sympy.Integer(2 * reach), _number(1 - reach)
    # Wider where the output is smaller: the reach is divided by the scale.
    if one.scale is not None:
        wide = math.ceil(reach / min(one.scale, 1.0))
        return sympy.Integer(2 * wide), _number(1 - wide)
    ratio = dims.FloorDiv(reach * one.extent + one.wanted - 1, one.wanted)
    half = dims.largest(ratio, sympy.Integer(reach))
    return 2 * half, _calculate("1.0 - {0}", _size(half))


def _weight(one: _Axis, what: _Settings, distance: Expr) -> Expr:
    """How much an element counts that lies so far from the coordinate, up to a common factor."""
    if what.antialias:
        scale = (
            _number(min(one.scale, 1.0))
            if one.scale is not None
            else _calculate(
                "sofie::kernels::Minimum({0} / {1}, 1.0)", _size(one.wanted), _size(one.extent)
            )
        )
        distance = _calculate("{0} * {1}", distance, scale)
    far = _calculate("sofie::kernels::Abs({0})", distance)
    if what.mode == "linear":
        return _calculate("sofie::kernels::Maximum(1.0 - {0}, 0.0)", far)
    a = _number(what.cubic)
    near = _calculate("(({1} + 2.0) * {0} - ({1} + 3.0)) * {0} * {0} + 1.0", far, a)
    tail = _calculate("(({1} * {0} - 5.0 * {1}) * {0} + 8.0 * {1}) * {0} - 4.0 * {1}", far, a)
    beyond = Select(FLOAT64, Call(BOOL, "{0} < 2.0", (far,)), tail, _number(0.0))
    return Select(FLOAT64, Call(BOOL, "{0} <= 1.0", (far,)), near, beyond)


def _tables(
    b: Builder, one: _Axis, what: _Settings, roi: Tensor | None, number: DType
) -> tuple[Tensor, Tensor]:
    """[outputs, taps]: which elements, and how much of each."""
    count, first = _taps(one, what)
    sources = [roi] if roi is not None else []

    def place(index: Index) -> tuple[Expr, Expr]:
        at = _coordinate(one, what, roi, index[0])
        element = _calculate("sofie::kernels::Floor({0}) + {1} + {2}", at, first, _size(index[1]))
        return at, element

    def raw(index: Index) -> Expr:
        at, element = place(index)
        weight = _weight(one, what, _calculate("{0} - {1}", element, at))
        if what.exclude:
            template = "({0} >= 0.0) && ({0} < {1})"
            exists = Call(BOOL, template, (element, _size(one.extent)))
            weight = Select(FLOAT64, exists, weight, _number(0.0))
        return weight

    shape = (one.wanted, count)
    indices = b.lazy(INT64, shape, sources, lambda i: _kept(place(i)[1], one.extent))
    weights = b.lazy(FLOAT64, shape, sources, raw)
    indices.strided()
    cast = f"static_cast<{number.cpp}>({{0}})"
    if not (what.antialias or what.exclude):
        plain = b.lazy(number, shape, [weights], lambda i: Call(number, cast, (weights.load(i),)))
        plain.strided()
        return indices, plain
    weights.share(1)
    total = Reduction(
        b,
        (one.wanted,),
        (count,),
        Combine("Sum", FLOAT64),
        lambda outer, inner: weights.load((*outer, *inner)),
        lambda value: value,
        FLOAT64,
        [weights],
    )
    total.strided()

    def share(index: Index) -> Expr:
        part = _calculate("{0} / {1}", weights.load(index), total.load(index[:1]))
        return Call(number, cast, (part,))

    shares = b.lazy(number, shape, [weights, total], share)
    shares.strided()
    return indices, shares


def _interpolated(
    b: Builder,
    x: Tensor,
    one: _Axis,
    what: _Settings,
    roi: Tensor | None,
    number: DType,
    unrolled: int,
) -> tuple[Tensor, int]:
    """``x`` with one axis resized, and how many elements one of the result's is a sum of."""
    indices, weights = _tables(b, one, what, roi, number)
    count = indices.shape[1]
    shape = tuple(one.wanted if a == one.axis else d for a, d in enumerate(x.shape))

    def part(index: Index, tap: dims.Expr) -> Expr:
        at = (index[one.axis], tap)
        inner = list(index)
        inner[one.axis] = Indirect(indices.load(at))
        value = x.load(tuple(inner))
        if x.dtype is not number:
            value = Call(number, f"static_cast<{number.cpp}>({{0}})", (value,))
        return Call(number, "{0} * {1}", (value, weights.load(at)))

    sources = [x, indices, weights]
    if not count.is_Integer or int(count) > _UNROLLED:
        total = Reduction(
            b,
            shape,
            (count,),
            Combine("Sum", number),
            lambda outer, inner: part(outer, inner[0]),
            lambda value: value,
            number,
            sources,
        )
        return total, _UNROLLED
    if unrolled * int(count) > _UNROLLED:
        x.strided()
        unrolled = 1

    def element(index: Index) -> Expr:
        value = part(index, dims.ZERO)
        for tap in range(1, int(count)):
            value = Call(number, "{0} + {1}", (value, part(index, dims.ONE * tap)))
        return value

    return b.lazy(number, shape, sources, element), unrolled * int(count)


def _rounded(b: Builder, x: Tensor, wanted: DType) -> Tensor:
    """Numbers as another type: integers to the nearest one, kept inside of their range."""
    if x.dtype is wanted:
        return x
    template, limits = f"static_cast<{wanted.cpp}>({{0}})", list[Expr]()
    if not wanted.is_float:
        rounded = "sofie::kernels::Clip(sofie::kernels::Round({0}), {1}, {2})"
        template = f"static_cast<{wanted.cpp}>({rounded})"
        info = np.iinfo(wanted.name)
        # The largest number of 64 bits is none of float64's.
        beyond = 2.0 ** (info.bits - (info.min < 0))
        highest = min(float(info.max), float(np.nextafter(beyond, 0)))
        limits = [_number(float(info.min)), _number(highest)]
    return b.lazy(wanted, x.shape, [x], lambda i: Call(wanted, template, (x.load(i), *limits)))
