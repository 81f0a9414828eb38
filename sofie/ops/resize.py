"""Resize: https://onnx.ai/onnx/operators/onnx__Resize.html

Interpolation along an axis is a table of which elements each output takes and one of how much of
each; both are small, and computed in float64. An axis after the other. Coordinates are those of
ONNX's reference, which keeps what a scale leaves of a fraction of an element.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence

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
class _Ratio:
    """The smallest or the largest of several ratios of sizes, the scale of all axes.

    Attributes:
      smallest: which of both.
      pairs: wanted sizes and extents.
    """

    smallest: bool
    pairs: tuple[tuple[dims.Expr, dims.Expr], ...]

    def choose(self, of: Callable[[dims.Expr, dims.Expr], dims.Expr]) -> dims.Expr:
        """A size that grows with a pair's ratio, of the pair that the scale is from."""
        choice = dims.smallest if self.smallest else dims.largest
        return functools.reduce(choice, (of(*pair) for pair in self.pairs))


_Scale = float | dims.Expr | _Ratio | None


@dataclasses.dataclass(frozen=True)
class _Axis:
    """How one axis is resized.

    Attributes:
      axis: which one.
      extent: of the input.
      wanted: extent of the output.
      scale: the ratio of both, as a number, a symbol of one, or that of other sizes; None where it
        follows from these.
      position: of the axis in operands with numbers for axes.
      count: how many axes these have.
    """

    axis: int
    extent: dims.Expr
    wanted: dims.Expr
    scale: _Scale
    position: int
    count: int


@dataclasses.dataclass(frozen=True)
class _Operands:
    """Tensors with numbers for axes, as far as they are needed."""

    roi: Tensor | None
    scales: Tensor | None

    @property
    def tensors(self) -> list[Tensor]:
        """Those that there are."""
        return [t for t in (self.roi, self.scales) if t is not None]


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
    elif node.attr_floats("scales") is None and node.known_numbers(what.scales) is None:
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
    scales: list[_Scale]
    if node.has(what.sizes):
        sizes = list(known(node, what.sizes, "sizes"))
        scales = [None] * len(axes)
        if what.policy != "stretch":
            sizes, scales = _keep_aspect(what.policy, [shape[a] for a in axes], sizes)
    else:
        numbers = _scales(node, what)
        if len(numbers) != len(axes):
            raise ValueError(f"{len(numbers)} scales for {len(axes)} axes")
        sizes = [_scaled(shape[a], s) for a, s in zip(axes, numbers, strict=True)]
        scales = list(numbers)
    if len(sizes) != len(axes):
        raise ValueError(f"{len(sizes)} sizes for {len(axes)} axes")
    found = []
    for position, axis in enumerate(axes):
        wanted, scale = sizes[position], scales[position]
        is_same = dims.same(wanted, shape[axis]) and (
            scale is None or (isinstance(scale, float) and math.isclose(scale, 1.0))
        )
        if what.transformation == "tf_crop_and_resize" or not is_same:
            found.append(_Axis(axis, shape[axis], wanted, scale, position, len(axes)))
    return found


def _scales(node: Node, what: _Settings) -> list[float | dims.Expr]:
    """A number for each axis, or the symbol of one that the session reads."""
    attribute = node.attr_floats("scales")
    array = node.array(what.scales) if attribute is None else np.asarray(attribute, np.float32)
    if array is not None:
        return [float(s) for s in array.reshape(-1)]
    symbols = node.known_numbers(what.scales)
    if symbols is None:
        raise ValueError("scales that depend on data")
    return list(symbols)


def _scaled(extent: dims.Expr, scale: float | dims.Expr) -> dims.Expr:
    """``floor(extent * scale)``, in integers where the scale is a number."""
    if not isinstance(scale, float):
        return dims.Floor(extent * scale)
    if extent.is_Integer:
        return sympy.Integer(math.floor(int(extent) * scale))
    numerator, denominator = scale.as_integer_ratio()
    return dims.FloorDiv(extent * numerator, sympy.Integer(denominator))


def _keep_aspect(
    policy: str, extents: list[dims.Expr], sizes: list[dims.Expr]
) -> tuple[list[dims.Expr], list[_Scale]]:
    """Sizes and scales such that one scale holds for all axes."""
    pairs = tuple(zip(sizes, extents, strict=True))
    ratio = _Ratio(policy == "not_larger", pairs)

    def wanted(extent: dims.Expr) -> dims.Expr:
        # The nearest integer to the scale times the extent.
        return ratio.choose(lambda s, e: dims.FloorDiv(2 * s * extent + e, 2 * e))

    scale: _Scale = ratio
    if all(d.is_Integer and d > 0 for pair in pairs for d in pair):
        scale = (min if ratio.smallest else max)(int(s) / int(e) for s, e in pairs)
    return [wanted(e) for e in extents], [scale] * len(extents)


@operator("Upsample", since=7, until=9, dtypes=dtype.ALL, check=_check)
@operator("Resize", since=10, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The input at computed indices, or sums of its elements, axis by axis."""
    x, what = inputs[0], _settings(node)
    assert x is not None
    axes = _axes(node)
    crops = what.transformation == "tf_crop_and_resize"
    reads = any(_is_read(one) for one in axes)
    given = _Operands(inputs[what.roi] if crops else None, inputs[what.scales] if reads else None)
    for one in axes:
        if _is_read(one):
            scale: dims.Expr = one.scale
            at_least = -dims.Floor(-scale)
            b.require(dims.ONE, at_least, f"{b.node}: the scale of axis {one.axis} is not positive")
        b.require(dims.ZERO, one.wanted, f"{b.node}: an axis of {{high}} elements")
        message = f"{b.node}: axis {one.axis} has no element to resize"
        b.require(dims.smallest(dims.ONE, one.wanted), one.extent, message)
    number = dtype.wide(x.dtype) if x.dtype.is_float else FLOAT64
    result = _nearest(b, x, axes, what, given) if what.mode == "nearest" else x
    if what.mode != "nearest" and axes:
        unrolled = 1
        for one in axes:
            result, unrolled = _interpolated(b, result, one, what, given, number, unrolled)
        result = _rounded(b, result, x.dtype)
    if crops and axes:
        result = _extrapolated(b, result, axes, what, given)
    return [result]


def _is_read(one: _Axis) -> bool:
    """True where the scale is an element of an operand that the session reads."""
    return not isinstance(one.scale, float | _Ratio | None)


# Coordinates.


def _size(value: dims.Expr) -> Expr:
    return Call(FLOAT64, "static_cast<double>({0})", (IndexExpr(INT64, value),))


def _number(value: float) -> Expr:
    return Literal(FLOAT64, value)


def _calculate(template: str, *arguments: Expr) -> Expr:
    return Call(FLOAT64, template, arguments)


def _scale(one: _Axis, given: _Operands) -> Expr:
    """How many elements of the output there are for one of the input."""
    if one.scale is None:
        return _calculate("{0} / {1}", _size(one.wanted), _size(one.extent))
    if isinstance(one.scale, float):
        return _number(one.scale)
    if isinstance(one.scale, _Ratio):
        ratios = (_calculate("{0} / {1}", *map(_size, pair)) for pair in one.scale.pairs)
        name = "Minimum" if one.scale.smallest else "Maximum"
        choice = f"sofie::kernels::{name}({{0}}, {{1}})"
        return functools.reduce(lambda a, b: _calculate(choice, a, b), ratios)
    assert given.scales is not None
    scale = given.scales.load((dims.ONE * one.position,))
    return Call(FLOAT64, "static_cast<double>({0})", (scale,))


def _coordinate(one: _Axis, what: _Settings, given: _Operands, out: dims.Expr) -> Expr:
    """Where an output index lies in the input, in elements."""
    at, extent = _size(out), _size(one.extent)
    scale = _scale(one, given)
    length = _size(one.wanted)
    if one.scale is not None:
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
    roi = given.roi
    assert roi is not None
    start, end = (
        Call(FLOAT64, "static_cast<double>({0})", (roi.load((dims.ONE * i,)),))
        for i in (one.position, one.position + one.count)
    )
    template = "{0} * ({4} - {3}) * ({1} - 1.0) / ({2} - 1.0) + {3} * ({1} - 1.0)"
    spread = _calculate(template, at, extent, length, start, end)
    middle = _calculate("({1} + {2}) * ({0} - 1.0) / 2.0", extent, start, end)
    return Select(FLOAT64, single, middle, spread)


def _extrapolated(
    b: Builder, x: Tensor, axes: Sequence[_Axis], what: _Settings, given: _Operands
) -> Tensor:
    """A value in place of what lies outside of the input along any axis."""

    def outside(one: _Axis) -> Tensor:
        def flag(index: Index) -> Expr:
            place = _coordinate(one, what, given, index[0])
            last = _size(one.extent)
            return Call(BOOL, "({0} < 0.0) || ({0} > {1} - 1.0)", (place, last))

        return b.lazy(BOOL, (one.wanted,), given.tensors, flag)

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
    b: Builder, x: Tensor, axes: Sequence[_Axis], what: _Settings, given: _Operands
) -> Tensor:
    shape = list(x.shape)
    tables: dict[int, Tensor | int] = {}
    for one in axes:
        shape[one.axis] = one.wanted
        repeat = _repeats(one, what)
        tables[one.axis] = _nearest_table(b, one, what, given) if repeat is None else repeat

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
    scale = one.scale
    if not isinstance(scale, float) or scale < 1 or scale != int(scale):
        return None
    centred = what.transformation in ("half_pixel", "half_pixel_symmetric")
    plain = (what.transformation, what.nearest) == ("asymmetric", "floor") or (
        centred and what.nearest.startswith("round")
    )
    return int(scale) if plain else None


def _nearest_table(b: Builder, one: _Axis, what: _Settings, given: _Operands) -> Tensor:
    def element(index: Index) -> Expr:
        place = _coordinate(one, what, given, index[0])
        return _kept(Call(FLOAT64, _NEAREST[what.nearest], (place,)), one.extent)

    table = b.lazy(INT64, (one.wanted,), given.tensors, element)
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
    if isinstance(one.scale, float):
        wide = math.ceil(reach / min(one.scale, 1.0))
        return sympy.Integer(2 * wide), _number(1 - wide)
    if one.scale is None:
        ratio = dims.FloorDiv(reach * one.extent + one.wanted - 1, one.wanted)
    elif isinstance(one.scale, _Ratio):
        ratio = -one.scale.choose(lambda s, e: dims.FloorDiv(-reach * e, s))
    else:
        ratio = -dims.Floor(-reach / one.scale)
    half = dims.largest(ratio, sympy.Integer(reach))
    return 2 * half, _calculate("1.0 - {0}", _size(half))


def _weight(one: _Axis, what: _Settings, given: _Operands, distance: Expr) -> Expr:
    """How much an element counts that lies so far from the coordinate, up to a common factor."""
    if what.antialias:
        scale = _calculate("sofie::kernels::Minimum({0}, 1.0)", _scale(one, given))
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
    b: Builder, one: _Axis, what: _Settings, given: _Operands, number: DType
) -> tuple[Tensor, Tensor]:
    """[outputs, taps]: which elements, and how much of each."""
    count, first = _taps(one, what)
    sources = given.tensors

    def place(index: Index) -> tuple[Expr, Expr]:
        at = _coordinate(one, what, given, index[0])
        element = _calculate("sofie::kernels::Floor({0}) + {1} + {2}", at, first, _size(index[1]))
        return at, element

    def raw(index: Index) -> Expr:
        at, element = place(index)
        weight = _weight(one, what, given, _calculate("{0} - {1}", element, at))
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
    given: _Operands,
    number: DType,
    unrolled: int,
) -> tuple[Tensor, int]:
    """``x`` with one axis resized, and how many elements one of the result's is a sum of."""
    indices, weights = _tables(b, one, what, given, number)
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
