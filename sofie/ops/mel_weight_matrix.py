"""MelWeightMatrix: https://onnx.ai/onnx/operators/onnx__MelWeightMatrix.html"""

import math
from collections.abc import Iterator, Sequence

import onnx_ir
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, FLOAT64, INT64
from sofie.ir.expr import Call, Expr, Literal, Select
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.elementwise import given
from sofie.ops.inference import known, shape_rule
from sofie.ops.registry import operator

_NUMBERS = dtype.NUMBERS | {dtype.BFLOAT16}


def _check(node: Node) -> Iterator[str]:
    for position, what in ((0, "a num_mel_bins"), (1, "a dft_length")):
        if node.known(position) is None:
            yield f"{what} that depends on data"
    if dtype.from_onnx(_result(node)) not in _NUMBERS:
        yield "an output_datatype that is no number"


def _result(node: Node) -> onnx_ir.DataType:
    return onnx_ir.DataType(node.attr_int("output_datatype", 1))


def _sizes(node: Node) -> tuple[dims.Expr, dims.Expr]:
    """The number of bands and the length of the transform."""
    return known(node, 0, "a num_mel_bins")[0], known(node, 1, "a dft_length")[0]


@shape_rule("MelWeightMatrix", since=17, types=(_result,))
def _shapes(node: Node) -> list[dims.Shape | None]:
    bands, length = _sizes(node)
    return [(dims.FloorDiv(length, sympy.Integer(2)) + 1, bands)]


@operator("MelWeightMatrix", since=17, dtypes={dtype.INT32, dtype.INT64}, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A table of the bands' edges, as spectral lines; then each weight from three of them."""
    _, _, rate, low, high = given(inputs)
    bands, length = _sizes(node)
    b.require(dims.ZERO, bands, f"{b.node}: {{high}} bands")
    b.require(dims.ZERO, length, f"{b.node}: a transform of length {{high}}")

    def number(tensor: Tensor) -> Expr:
        return Call(FLOAT64, "static_cast<double>({0})", (tensor.load((dims.ZERO,) * tensor.rank),))

    def mel(hertz: Expr) -> Expr:
        scale = f"{2595 / math.log(10)!r} * sofie::kernels::Log(1.0 + {{0}} / 700.0)"
        return Call(FLOAT64, scale, (hertz,))

    def edge(index: Index) -> Expr:
        ends = (mel(number(low)), mel(number(high)))
        step = (IndexExpr(INT64, index[0]), IndexExpr(INT64, bands + 2), *ends)
        spread = "static_cast<double>({0}) * (({3} - {2}) / static_cast<double>({1})) + {2}"
        back = f"700.0 * (sofie::kernels::Exp({{0}} * {math.log(10) / 2595!r}) - 1.0)"
        hertz = Call(FLOAT64, back, (Call(FLOAT64, spread, step),))
        place = (IndexExpr(INT64, length + 1), hertz, number(rate))
        line = "sofie::kernels::Floor(static_cast<double>({0}) * {1} / {2})"
        return Call(INT64, "static_cast<int64_t>({0})", (Call(FLOAT64, line, place),))

    edges = b.lazy(INT64, (bands + 2,), [rate, low, high], edge)
    edges.strided()
    result = node.out_dtype()

    def element(index: Index) -> Expr:
        line = IndexExpr(INT64, index[0])
        left, centre, right = (edges.load((index[1] + i,)) for i in range(3))
        parts = (line, left, centre, right)
        rises = Call(BOOL, "({0} >= {1}) && ({0} <= {2})", parts)
        falls = Call(BOOL, "({0} > {2}) && ({0} < {3})", parts)
        share = "static_cast<double>({0} - {1}) / static_cast<double>({2} - {1})"
        alone = Call(BOOL, "{1} == {2}", parts)
        one, zero = Literal(FLOAT64, 1.0), Literal(FLOAT64, 0.0)
        up = Select(FLOAT64, alone, one, Call(FLOAT64, share, (line, left, centre)))
        down = Select(FLOAT64, falls, Call(FLOAT64, share, (line, right, centre)), zero)
        weight = Select(FLOAT64, rises, up, down)
        return Call(result, f"static_cast<{result.cpp}>({{0}})", (weight,))

    return [b.lazy(result, node.out_shape(), [edges], element)]
