"""DFT: https://onnx.ai/onnx/operators/onnx__DFT.html"""

from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import fourier
from sofie.ops.axes import from_front, require_axes
from sofie.ops.inference import known, shape_rule
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    shape = node.shape(0)
    if len(shape) < 2 or shape[-1] not in (1, 2):
        yield "an input whose last axis has neither real parts alone nor both parts"
    if node.has(1) and node.known(1) is None:
        yield "a dft_length that depends on data"
    if node.has(2) and node.known(2) is None:
        yield "an axis that depends on data"


def _axis(node: Node) -> dims.Expr:
    """The axis along which the transform is; any may be meant."""
    if node.version >= 20:
        return known(node, 2, "an axis")[0] if node.has(2) else sympy.Integer(-2)
    return sympy.Integer(node.attr_int("axis", 1))


def _hits(node: Node) -> list[dims.Expr]:
    """For every axis: 1 where the transform is along it, else 0."""
    rank = len(node.shape(0))
    front = from_front(_axis(node), rank)
    return [dims.Equals(front, sympy.Integer(a)) for a in range(rank)]


def _is_real(node: Node) -> bool:
    """True where one half of the frequencies becomes real numbers."""
    return node.attr_int("inverse", 0) != 0 and node.attr_int("onesided", 0) != 0


def _along(node: Node) -> dims.Expr:
    """The input's extent along the axis."""
    return sum((h * d for h, d in zip(_hits(node), node.shape(0), strict=True)), dims.ZERO)


def _length(node: Node) -> dims.Expr:
    """How long the transform is."""
    if node.has(1):
        return known(node, 1, "a dft_length")[0]
    return 2 * (_along(node) - 1) if _is_real(node) else _along(node)


@shape_rule("DFT", since=17)
def _shapes(node: Node) -> list[dims.Shape | None]:
    length = _length(node)
    half = node.attr_int("onesided", 0) != 0 and not _is_real(node)
    extent = dims.FloorDiv(length, sympy.Integer(2)) + 1 if half else length
    pairs = zip(_hits(node)[:-1], node.shape(0)[:-1], strict=True)
    parts = sympy.Integer(1 if _is_real(node) else 2)
    return [(*(dims.Where(hit, extent, other) for hit, other in pairs), parts)]


@operator("DFT", since=17, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """One sum for every number of the result, along an axis that the host may read."""
    x = inputs[0]
    assert x is not None
    require_axes(b, [_axis(node)], x.rank)
    hits, length, is_real = _hits(node), _length(node), _is_real(node)
    b.require(dims.ONE, length, f"{b.node}: a transform of length {{high}}")
    b.require(hits[-1], dims.ZERO, f"{b.node}: a transform along the axis of complex numbers")
    samples = dims.FloorDiv(length, sympy.Integer(2)) + 1 if is_real else length

    def frequency(index: Index) -> dims.Expr:
        return sum((h * i for h, i in zip(hits, index, strict=True)), dims.ZERO)

    def sample(index: Index, n: dims.Expr) -> tuple[Expr, Expr | None]:
        pairs = zip(hits[:-1], index[:-1], strict=True)
        return fourier.complex_sample(x, tuple(hit * n + (1 - hit) * i for hit, i in pairs))

    terms = dims.smallest(_along(node), samples)
    shape, inverse = node.out_shape(), node.attr_int("inverse", 0) != 0
    return [fourier.transform(b, shape, frequency, length, terms, sample, [x], inverse, is_real)]
