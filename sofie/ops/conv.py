"""Conv: https://onnx.ai/onnx/operators/onnx__Conv.html

A 1x1 convolution is one product over all points of all images, with a bias or ReLU as its epilogue.
The attribute ``activation`` is set by ``passes/fuse_activation.py``.
"""

from collections.abc import Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Dense, Layer, Reshape, Tensor
from sofie.ops.convolution import Convolution
from sofie.ops.factoring import factored
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator
from sofie.ops.spatial import check_window, kernel_shape, window


@shape_rule("Conv")
def _shapes(node: Node) -> list[dims.Shape | None]:
    taps = window(node, kernel_shape(node, 1))
    return [(node.shape(0)[0], node.shape(1)[0], *taps.counts)]


@operator("Conv", since=1, dtypes=dtype.FLOATS, check=check_window)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The activation is the epilogue."""
    return [convolve(node, b, inputs, node.attr_string("activation", "") == "Relu")]


def convolve(node: Node, b: Builder, inputs: Sequence[Tensor | None], relu: bool) -> Tensor:
    """A dense layer, a sum for every output, or products over gathered windows."""
    x, w, bias = (*inputs, None)[:3]
    assert x is not None and w is not None
    conv = Convolution(node, b, x, w, bias)
    if conv.taps.is_pointwise and conv.groups == 1:
        return _pointwise(node, b, x, w, bias, relu)
    if conv.inner == 1 and conv.groups != 1:
        return conv.direct(relu)
    return conv.product(conv.patches(conv.sample, [x]), relu)


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
