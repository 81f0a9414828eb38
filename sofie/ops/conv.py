"""Conv: https://onnx.ai/onnx/operators/onnx__Conv.html

The channels of inputs and outputs lie innermost in memory ([N, spatial..., C]): a 1x1 convolution
is then one GEMM over all points of all images, and a bias or ReLU is its epilogue. Larger windows
are gathered into rows first. The attribute ``activation`` is set by ``passes/fuse_activation.py``.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal, Select
from sofie.ir.node import Node
from sofie.ir.program import Epilogue
from sofie.ir.tensor import Dense, Index, Layer, Permute, Reshape, Strided, Tensor
from sofie.ops.factoring import factored
from sofie.ops.registry import operator
from sofie.ops.spatial import Window, require_windows, window


def _check(node: Node) -> Iterator[str]:
    shape = node.shape(1)
    if any(not d.is_Integer for d in shape):
        yield "weights with symbolic sizes"
    elif len(shape) < 3:
        yield f"weights of rank {len(shape)}"


@operator("Conv", since=1, dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """GEMMs, one for each group in a batch."""
    x, w = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    assert x is not None and w is not None
    groups = node.attr_int("group", 1)
    b.require_equal(x.shape[1], w.shape[1] * groups, "channels of the input and the weights")
    if bias is not None:
        b.require_equal(bias.shape[0], w.shape[0], "lengths of bias and weights")
    kernel = tuple(int(k) for k in w.shape[2:])
    taps = window(node, kernel)
    relu = node.attr_string("activation", "") == "Relu"
    if taps.is_pointwise and groups == 1:
        return [_pointwise(node, b, x, w, bias, relu)]
    shape = node.out_shape()
    require_windows(b, node)
    order = channels_last(x.rank)
    out = b.output(x.dtype, shape, order)
    points = dims.product((shape[0], *shape[2:]))
    inner, outer = int(w.shape[1]), int(w.shape[0]) // groups
    rows = _patches(b, x, taps, groups, inner, shape)
    width = int(np.prod(kernel)) * inner
    # [points, groups * width] as [groups, points, width]; likewise for the result.
    a = Permute(Reshape(rows, (points, sympy.Integer(groups), sympy.Integer(width))), (1, 0, 2))
    target = Permute(
        Reshape(Permute(out, order), (points, sympy.Integer(groups), sympy.Integer(outer))),
        (1, 0, 2),
    )
    fused = groups == 1
    memory = target.strided()
    assert memory is not None
    b.matmul(
        b.in_memory(a),
        b.in_memory(_weights(b, node, w, groups, outer, width)),
        memory,
        bias=b.packed(bias) if fused and bias is not None else None,
        epilogue=Epilogue.RELU if fused and relu else Epilogue.NONE,
        sources=[x],
    )
    if fused or (bias is None and not relu):
        return [out]
    return [_epilogue(b, out, bias, relu)]


def channels_last(rank: int) -> tuple[int, ...]:
    """The axes of [N, C, spatial...] with the channels innermost."""
    return (0, *range(2, rank), 1)


def _pointwise(
    node: Node, b: Builder, x: Tensor, w: Tensor, bias: Tensor | None, relu: bool
) -> Tensor:
    """A window of one element: a dense layer over the channels of every point."""
    weight = b.packed(Reshape(b.packed(w), w.shape[:2]))
    layer = Layer(weight, None if bias is None else b.packed(bias), relu, b.node)
    if isinstance(x, Dense) and x.is_pending:
        return x.then(layer)
    array = node.array(1)
    if array is not None:
        matrix = array.reshape(array.shape[:2])
        result = factored(b, node.input(1).name or "", x, matrix, bias, relu)
        if result is not None:
            return result
    return Dense(x, (layer,))


def _weights(b: Builder, node: Node, w: Tensor, groups: int, outer: int, width: int) -> Tensor:
    """The weights as [groups, width, outer], a row's elements in the order of a patch's."""
    shape = tuple(sympy.Integer(d) for d in (groups, outer, width))
    array = node.array(1)
    if array is not None and array.ndim > 2 and int(np.prod(array.shape[2:])) > 1:
        moved = np.ascontiguousarray(np.moveaxis(array, 1, -1))
        w = b.constant(f"{node.input(1).name}.channels_last", w.dtype, moved)
    elif array is None:
        w = b.packed(Permute(w, channels_last(w.rank)))
    return Permute(Reshape(w, shape), (0, 2, 1))


def _patches(
    b: Builder, x: Tensor, taps: Window, groups: int, inner: int, shape: dims.Shape
) -> Strided:
    """[N * points, groups * taps * channels]: every window's elements in a row, zeros outside."""
    spatial = len(taps.kernel)
    kernel = tuple(sympy.Integer(k) for k in taps.kernel)
    full = (shape[0], *shape[2:], sympy.Integer(groups), *kernel, sympy.Integer(inner))

    def element(index: Index) -> Expr:
        batch, out = index[0], index[1 : 1 + spatial]
        group, tap, channel = index[1 + spatial], index[2 + spatial : -1], index[-1]
        position = taps.position(out, tap)
        value = x.load((batch, group * inner + channel, *position))
        inside = taps.inside(position)
        return value if inside is None else Select(x.dtype, inside, value, Literal(x.dtype, 0))

    patches = b.lazy(x.dtype, full, [x], element)
    rows = dims.product(full[: 1 + spatial]), dims.product(full[1 + spatial :])
    memory = Reshape(b.packed(patches), rows).strided()
    assert memory is not None
    return memory


def _epilogue(b: Builder, out: Strided, bias: Tensor | None, relu: bool) -> Tensor:
    def element(index: Index) -> Expr:
        value = out.load(index)
        if bias is not None:
            value = Call(out.dtype, "{0} + {1}", (value, bias.load(index[1:2])))
        return Call(out.dtype, "sofie::kernels::Relu({0})", (value,)) if relu else value

    return b.lazy(out.dtype, out.shape, [out, *([bias] if bias is not None else [])], element)
