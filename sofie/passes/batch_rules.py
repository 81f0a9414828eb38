"""What operators do with the rows of a batch; see ``batch``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import sympy

from sofie.ir import dims
from sofie.ir.dtype import INT32, INT64
from sofie.ir.node import Node, known_values
from sofie.ops import axes as operand


class MeetingError(Exception):
    """Rows meet, or it can't be shown that they do not. The message follows the node."""


@dataclasses.dataclass(frozen=True)
class Rows:
    """What is known of a value.

    Attributes:
      axis: that of the rows; None for what is the same for all of them.
      each: how many neighbouring elements of the axis a row has.
      rounds: how often all rows follow each other along the axis: element ``i`` is of row
        ``i // each % rows``.
      step: of integers, how much larger they are in a row than in the row before.
      below: what integers are smaller than in the first row, where they are not negative; else
        None.
    """

    axis: int | None = None
    each: dims.Expr = dims.ONE
    rounds: dims.Expr = dims.ONE
    step: dims.Expr = dims.ZERO
    below: dims.Expr | None = None

    @property
    def moved(self) -> bool:
        """True where it depends on a row's number."""
        return bool(self.step != 0)

    def at(self, axis: int) -> Rows:
        """The same with the rows along another axis."""
        return dataclasses.replace(self, axis=axis)

    def plain(self) -> Rows:
        """Other elements in the same places."""
        return Rows(self.axis, self.each, self.rounds)

    def lies_like(self, other: Rows) -> bool:
        """True where the rows of both lie in the same order along their axes."""
        return dims.same(self.each, other.each) and dims.same(self.rounds, other.rounds)


SAME = Rows()


class Extents:
    """Extents in terms of how many rows there are."""

    def __init__(self, rows: sympy.Symbol) -> None:
        self.rows = rows

    def has_rows(self, size: dims.Expr) -> bool:
        """True where a size depends on the number of rows."""
        return self.rows in size.free_symbols

    def each(self, extent: dims.Expr) -> dims.Expr | None:
        """How many elements a row has of an axis; None where they are not equally many."""
        each = sympy.expand(extent).coeff(self.rows, 1)
        if self.has_rows(each) or not dims.same(each * self.rows, extent):
            return None
        return each


# Makes the outputs' values of the inputs' (None for an absent one).
Rule = Callable[[Node, Extents, Sequence[Rows | None]], Sequence[Rows]]
RULES: dict[tuple[str, str], Rule] = {}


def _rule(names: str, domain: str = "") -> Callable[[Rule], Rule]:
    """Registers what operators of these names do with rows."""

    def register(rule: Rule) -> Rule:
        for name in names.split():
            RULES[domain, name] = rule
        return rule

    return register


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise MeetingError(message)


def _first(node: Node, values: Sequence[Rows | None]) -> tuple[Rows, int]:
    """The first operand, which must have rows that are no places, and their axis."""
    value = values[0]
    assert value is not None
    _require(value.axis is not None, "has rows in other operands than the first")
    _require(not value.moved, "depends on the numbers of rows")
    assert value.axis is not None
    return value, value.axis


def _others_are_same(values: Sequence[Rows | None], start: int = 1) -> None:
    for value in values[start:]:
        _require(value is None or value.axis is None, "has rows in several operands")


def _aligned(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Rows:
    """The rows of operands that are broadcast to the first output."""
    rank = len(node.out_shape())
    found: Rows | None = None
    for position, value in enumerate(values):
        if value is None or value.axis is None:
            continue
        here = value.plain().at(value.axis + rank - len(node.shape(position)))
        _require(
            found is None or (found.axis == here.axis and found.lies_like(here)),
            "aligns rows with another axis",
        )
        found = here
    if found is None or found.axis is None:
        raise MeetingError("makes rows of what has none")
    for position, value in enumerate(values):
        if value is None or value.axis is not None:
            continue
        axis = found.axis - rank + len(node.shape(position))
        if axis >= 0:
            _require(node.shape(position)[axis] == 1, "aligns rows with another axis")
    return found


@_rule(
    "Abs Acos Acosh And Asin Asinh Atan Atanh BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BitShift "
    "Ceil Celu Clip Cos Cosh Div Dropout Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual "
    "HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Neg "
    "Not Or PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign "
    "Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor"
)
@_rule("BiasGelu FastGelu Gelu QuickGelu", "com.microsoft")
def _element_wise(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    for value in values:
        _require(value is None or not value.moved, "depends on the numbers of rows")
    return [_aligned(node, extents, values)] * len(node.raw.outputs)


@_rule("Add")
def _add(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    a, b = values
    assert a is not None and b is not None
    below = None if a.below is None or b.below is None else a.below + b.below - 1
    aligned = _aligned(node, extents, values)
    return [dataclasses.replace(aligned, step=sympy.expand(a.step + b.step), below=below)]


@_rule("Mul")
def _mul(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    aligned = _aligned(node, extents, values)
    for value, position in ((values[0], 1), (values[1], 0)):
        assert value is not None
        if not value.moved:
            continue
        factor = known_values(node.input(position))
        _require(
            factor is not None and len(factor) == 1 and factor[0].is_nonnegative is True,
            "depends on the numbers of rows",
        )
        assert factor is not None
        below = None if value.below is None else (value.below - 1) * factor[0] + 1
        step = sympy.expand(value.step * factor[0])
        return [dataclasses.replace(aligned, step=step, below=below)]
    return [aligned]


@_rule("Cast Identity")
def _kept(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value = values[0]
    assert value is not None
    wide = {INT32, INT64}
    if {node.dtype(0), node.out_dtype()} <= wide:
        return [value]
    _require(not value.moved, "depends on the numbers of rows")
    return [value.plain()]


@_rule("CastLike")
def _cast_like(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    return _kept(node, extents, values[:1])


@_rule("Range")
def _range(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    start, limit, delta = (node.known(position) for position in range(3))
    _require(start == (0,) and delta == (1,) and limit is not None, "depends on how many there are")
    each = extents.each((limit or (dims.ZERO,))[0])
    _require(each is not None, "depends on how many there are")
    return [Rows(0, each, step=each, below=each)]


@_rule("ConstantOfShape")
def _constant(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    return [_block(node, extents)]


def _block(node: Node, extents: Extents) -> Rows:
    """The axis of the output that has rows."""
    shape = node.out_shape()
    for axis, extent in enumerate(shape):
        if not extents.has_rows(extent):
            continue
        each = extents.each(extent)
        _require(each is not None, "does not keep the rows apart")
        return Rows(axis, each)
    raise MeetingError("does not keep the rows apart")


@_rule("Reshape Flatten Squeeze Unsqueeze")
def _reshape(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value = values[0]
    assert value is not None
    _require(value.axis is not None, "makes rows of what has none")
    result = _block(node, extents)
    assert value.axis is not None and result.axis is not None
    rounds = _quotient(
        dims.product(node.shape(0)[: value.axis]) * value.rounds,
        dims.product(node.out_shape()[: result.axis]),
    )
    each = _quotient(result.each, rounds)
    return [dataclasses.replace(value, axis=result.axis, each=each, rounds=rounds)]


def _quotient(a: dims.Expr, b: dims.Expr) -> dims.Expr:
    """``a / b``, which must be whole for all sizes."""
    quotient = sympy.cancel(a / b)
    _require(
        bool(quotient.is_integer) and dims.same(quotient * b, a), "does not keep the rows apart"
    )
    return quotient


@_rule("Transpose")
def _transpose(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value = values[0]
    assert value is not None and value.axis is not None
    rank = len(node.shape(0))
    order = node.attr_ints("perm") or tuple(reversed(range(rank)))
    return [value.at([axis % rank for axis in order].index(value.axis))]


@_rule("Expand")
def _expand(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value = values[0]
    assert value is not None
    rank = len(node.out_shape())
    if value.axis is not None:
        return [value.at(value.axis + rank - len(node.shape(0)))]
    result = _block(node, extents)
    assert result.axis is not None
    axis = result.axis - rank + len(node.shape(0))
    _require(axis < 0 or node.shape(0)[axis] == 1, "may spread an axis over rows")
    return [dataclasses.replace(result, below=value.below)]


@_rule("Tile")
def _tile(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value, repeats = values[0], node.known(1)
    assert value is not None
    if value.axis is None:
        # So many copies of the axis, one behind the other: one for each row.
        result = _block(node, extents)
        assert result.axis is not None
        _require(dims.same(node.shape(0)[result.axis], result.each), "may spread an axis over rows")
        return [dataclasses.replace(result, below=value.below)]
    _require(repeats is not None and repeats[value.axis] == 1, "repeats rows")
    return [value]


@_rule(
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
    "ReduceSum ReduceSumSquare"
)
def _reduce(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value, axis = _first(node, values)
    rank = len(node.shape(0))
    found = operand.operand_axes(node)
    _require(found is not None and all(a.is_Integer for a in found), "may reduce over rows")
    reduced = {int(a) % rank for a in found or ()}
    if not reduced:
        if node.attr_int("noop_with_empty_axes", 0):
            return [value]
        raise MeetingError("reduces over rows")
    return [_reduced(node, value, axis, reduced)]


def _reduced(node: Node, value: Rows, axis: int, reduced: set[int]) -> Rows:
    _require(axis not in reduced, "reduces over rows")
    if not node.attr_int("keepdims", 1):
        axis -= sum(a < axis for a in reduced)
    return value.plain().at(axis)


@_rule("ArgMax ArgMin")
def _arg(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value, axis = _first(node, values)
    along = node.axis(0)
    found = _reduced(node, value, axis, {along})
    return [dataclasses.replace(found, below=node.shape(0)[along])]


@_rule("Softmax LogSoftmax Hardmax")
def _softmax(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value, axis = _first(node, values)
    if node.version >= 13:
        _require(node.axis(-1) != axis, "normalises over rows")
    else:
        _require(axis < node.axis(1), "normalises over rows")
    return [value.plain()]


@_rule("LpNormalization CumSum CumProd TopK")
def _along(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value, axis = _first(node, values)
    _others_are_same(values)
    if node.op_type in ("CumSum", "CumProd"):
        known = node.known(1)
        _require(
            known is not None and known[0].is_Integer, "runs along an axis that data decides about"
        )
        along = int((known or (dims.ZERO,))[0]) % len(node.shape(0))
    else:
        along = node.axis(-1)
    _require(along != axis, "works along the rows")
    return [value.plain(), dataclasses.replace(value.plain(), below=node.shape(0)[along])]


@_rule("LayerNormalization RMSNormalization")
def _layer_normalization(
    node: Node, extents: Extents, values: Sequence[Rows | None]
) -> Sequence[Rows]:
    value, axis = _first(node, values)
    _others_are_same(values)
    _require(axis < node.axis(-1), "normalises over rows")
    return [value.plain()] * len(node.raw.outputs)


@_rule(
    "SimplifiedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization",
    "com.microsoft",
)
@_rule("SimplifiedLayerNormalization")
def _skip_normalization(
    node: Node, extents: Extents, values: Sequence[Rows | None]
) -> Sequence[Rows]:
    value, axis = _first(node, values)
    for other in values[1:]:
        fits = other is None or other.axis is None
        if other is not None and other.axis is not None:
            fits = other.axis == axis and other.lies_like(value) and not other.moved
        _require(fits, "aligns rows with another axis")
    _require(axis < len(node.shape(0)) - 1, "normalises over rows")
    return [value.plain()] * len(node.raw.outputs)


@_rule("Concat")
def _concat(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    aligned = _aligned(node, extents, values)
    everywhere = all(value is not None and value.axis is not None for value in values)
    _require(everywhere and node.axis() != aligned.axis, "joins along the rows")
    steps = {value.step for value in values if value is not None}
    _require(len(steps) == 1, "depends on the numbers of rows")
    bounds = [value.below for value in values if value is not None]
    below = None
    if all(bound is not None for bound in bounds):
        below = bounds[0]
        for bound in bounds[1:]:
            below = dims.largest(below, bound)
    return [dataclasses.replace(aligned, step=steps.pop(), below=below)]


@_rule("Split")
def _split(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value = values[0]
    assert value is not None
    _require(node.axis(0) != value.axis, "splits the rows")
    return [value] * len(node.raw.outputs)


@_rule("Slice")
def _slice(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value = values[0]
    assert value is not None
    if node.version < 10:
        raise MeetingError("may slice the rows")
    rank = len(node.shape(0))
    starts, ends, steps = node.known(1), node.known(2), node.known(4)
    _require(starts is not None and ends is not None, "may slice the rows")
    assert starts is not None and ends is not None
    chosen = node.known(3) if node.has(3) else tuple(map(sympy.Integer, range(len(starts))))
    _require(chosen is not None and all(a.is_Integer for a in chosen), "may slice the rows")
    for position, axis in enumerate(chosen or ()):
        if int(axis) % rank != value.axis:
            continue
        whole = starts[position] == 0 and ends[position].is_Integer
        whole = whole and ends[position] >= 2**31 - 1
        whole = whole and (steps is None or steps[position] == 1)
        _require(whole, "slices the rows")
    return [value]


@_rule("Pad")
def _pad(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value, axis = _first(node, values)
    attribute = node.attr_ints("pads")
    pads = tuple(map(sympy.Integer, attribute)) if attribute is not None else node.known(1)
    rank = len(node.shape(0))
    chosen = node.known(3) if node.has(3) else tuple(map(sympy.Integer, range(rank)))
    _require(pads is not None and chosen is not None, "may pad the rows")
    assert pads is not None and chosen is not None
    _require(all(a.is_Integer for a in chosen), "may pad the rows")
    for position, padded in enumerate(chosen):
        if int(padded) % rank == axis:
            ends = pads[position], pads[position + len(chosen)]
            _require(ends == (0, 0), "pads the rows")
    return [value.plain()]


@_rule("Gather")
def _gather(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    data, indices = values
    assert data is not None and indices is not None
    along = node.axis(0)
    if data.axis != along:
        _require(not indices.moved, "depends on the numbers of rows")
    if data.axis is None:
        assert indices.axis is not None
        return [indices.plain().at(along + indices.axis)]
    if data.axis != along:
        _require(indices.axis is None, "takes elements of every row by those of another")
        shift = len(node.shape(1)) - 1 if along < data.axis else 0
        return [data.at(data.axis + shift)]
    _require(not data.moved, "depends on the numbers of rows")
    _require(
        indices.axis is not None and dims.same(indices.step, data.each), "gathers rows by indices"
    )
    inside = indices.below is not None and (
        dims.smallest(indices.below, data.each) == indices.below
    )
    _require(inside, "may gather from other rows: its indices are not seen to stay in theirs")
    assert indices.axis is not None
    _require(data.rounds == 1, "gathers from rows that do not lie together")
    return [indices.plain().at(along + indices.axis)]


@_rule("GatherElements ScatterElements")
def _elements(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value, axis = _first(node, values)
    for other in values[1:]:
        assert other is not None
        fits = other.axis == axis and other.lies_like(value) and not other.moved
        _require(fits, "aligns rows with another axis")
    _require(node.axis(0) != axis, "takes elements from other rows")
    return [value.plain()]


@_rule("MatMul MatMulInteger QLinearMatMul")
@_rule("FusedMatMul", "com.microsoft")
def _matmul(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    right = 3 if node.raw.op_type == "QLinearMatMul" else 1
    flags = "transA transB transBatchA transBatchB".split()
    _require(not any(node.attr_int(flag, 0) for flag in flags), "may transpose its rows")
    a, b = values[0], values[right]
    assert a is not None and b is not None
    for position, value in enumerate(values):
        if value is not None and position not in (0, right):
            _require(value.axis is None, "has rows in several operands")
    return [_product(a, b, len(node.shape(0)), len(node.shape(right)))]


def _product(a: Rows, b: Rows, a_rank: int, b_rank: int) -> Rows:
    """Of operands of a matrix product."""
    _require(not a.moved and not b.moved, "depends on the numbers of rows")
    rank = max(a_rank, b_rank, 2)
    # Both as matrices: of a vector, the first one is a row, the second one a column.
    one = None if a.axis is None else (rank - 1 if a_rank == 1 else a.axis + rank - a_rank)
    two = None if b.axis is None else (rank - 2 if b_rank == 1 else b.axis + rank - b_rank)
    _require(one != rank - 1 and two != rank - 2, "sums over rows")
    found = a if one is not None else b
    if one is not None and two is not None:
        _require(one == two and one < rank - 2, "multiplies rows with each other")
        _require(a.lies_like(b), "aligns rows with another axis")
    axis = one if one is not None else two
    assert axis is not None
    if a_rank == 1 and axis > rank - 2:
        axis -= 1
    return found.plain().at(axis)


@_rule("Gemm")
def _gemm(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    a, b = values[:2]
    assert a is not None and b is not None
    turned = [
        value if value.axis is None or not node.attr_int(key, 0) else value.at(1 - value.axis)
        for value, key in ((a, "transA"), (b, "transB"))
    ]
    result = _product(turned[0], turned[1], 2, 2)
    bias = values[2] if len(values) > 2 else None
    if bias is not None and bias.axis is not None:
        axis = bias.axis + 2 - len(node.shape(2))
        fits = axis == result.axis and bias.lies_like(result) and not bias.moved
        _require(fits, "aligns rows with another axis")
    return [result]


@_rule(
    "AveragePool BatchNormalization Conv ConvInteger ConvTranspose DeformConv DepthToSpace "
    "GlobalAveragePool GlobalLpPool GlobalMaxPool GroupNormalization InstanceNormalization LRN "
    "LpPool MaxPool QLinearConv SpaceToDepth"
)
@_rule(
    "Binarizer Imputer LinearClassifier LinearRegressor Normalizer Scaler "
    "SVMClassifier SVMRegressor TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor",
    "ai.onnx.ml",
)
def _images(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    """Operators that compute every element of the first axis by itself."""
    value, axis = _first(node, values)
    _others_are_same(values)
    _require(axis == 0 and len(node.shape(0)) > 1, "has rows along another axis than the first")
    _require(not node.attr_int("training_mode", 0), "normalises over rows")
    places = node.raw.op_type == "MaxPool" and node.is_used(1)
    _require(not places, "gives places in all rows")
    return [value.plain()] * len(node.raw.outputs)


@_rule("LabelEncoder", "ai.onnx.ml")
@_rule("DequantizeLinear QuantizeLinear")
@_rule("DequantizeLinear QuantizeLinear", "com.microsoft")
def _quantize(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value, axis = _first(node, values)
    _others_are_same(values)
    if node.has(1) and len(node.shape(1)) > 0:
        _require(node.axis(1) != axis, "has a scale of its own for each row")
    return [value.plain()]


@_rule("Resize Upsample")
def _resize(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value, axis = _first(node, values)
    _others_are_same(values)
    crops = node.attr_string("coordinate_transformation_mode", "") == "tf_crop_and_resize"
    _require(not crops and axis == 0, "may resize over rows")
    return [value.plain()]


@_rule("OneHot")
def _one_hot(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value, axis = _first(node, values)
    _others_are_same(values)
    inserted = node.axis(-1, len(node.out_shape()))
    return [value.plain().at(axis if axis < inserted else axis + 1)]


@_rule("Trilu")
def _trilu(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value, axis = _first(node, values)
    _others_are_same(values)
    _require(axis < len(node.shape(0)) - 2, "tells rows apart by their numbers")
    return [value.plain()]


@_rule("LSTM GRU RNN")
def _recurrent(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    value, axis = _first(node, values)
    inside = node.attr_int("layout", 0) == 0
    _require(axis == (1 if inside else 0), "has rows along another axis than that of the batch")
    states = (5, 6)
    for position, other in enumerate(values[1:], 1):
        if other is None or other.axis is None:
            continue
        expected = {4: 0, **dict.fromkeys(states, 1 if inside else 0)}.get(position)
        fits = other.axis == expected and other.lies_like(value) and not other.moved
        _require(fits, "has rows in several operands")
    rows = value.plain()
    return [rows.at(2 if inside else 0), *[rows.at(1 if inside else 0)] * 2]


@_rule("Attention")
def _attention(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    """Every operand has the batch first; a mask is broadcast, and may lack the axis."""
    value, axis = _first(node, values)
    _require(axis == 0, "has rows along another axis than that of the batch")
    for position, other in enumerate(values[1:], 1):
        if other is None or position == 3:
            continue
        fits = other.axis == 0 and other.lies_like(value) and not other.moved
        _require(fits, "has operands without rows")
    mask = values[3] if len(values) > 3 else None
    if mask is not None and len(node.shape(3)) == 4:
        fits = (mask.axis == 0 and mask.lies_like(value)) or (
            mask.axis is None and node.shape(3)[0] == 1
        )
        _require(fits, "aligns rows with another axis")
    elif mask is not None:
        _require(mask.axis is None, "aligns rows with another axis")
    return [value.plain()] * len(node.raw.outputs)


@_rule("Einsum")
def _einsum(node: Node, extents: Extents, values: Sequence[Rows | None]) -> Sequence[Rows]:
    terms, _, result = node.attr_string("equation", "").replace(" ", "").partition("->")
    _require(bool(result) and "." not in terms, "may sum over rows")
    labels = set()
    found = SAME
    for term, value in zip(terms.split(","), values, strict=True):
        if value is not None and value.axis is not None:
            _require(not value.moved, "depends on the numbers of rows")
            labels.add(term[value.axis])
            _require(found.axis is None or found.lies_like(value), "aligns rows with another axis")
            found = value.plain()
    (label, *others) = labels
    _require(not others and label in result, "sums over rows")
    for term, value in zip(terms.split(","), values, strict=True):
        _require(
            value is None or value.axis is not None or label not in term,
            "aligns rows with another axis",
        )
        _require(term.count(label) <= 1, "takes the diagonal of rows")
    return [found.at(result.index(label))]


# Which operands of these rules are sizes that shapes are made of.
SIZES: dict[Rule, tuple[int, ...]] = {
    _constant: (0,),
    _expand: (1,),
    _range: (0, 1, 2),
    _reshape: (1,),
    _resize: (1, 2, 3),
    _tile: (1,),
}
