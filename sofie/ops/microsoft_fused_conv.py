"""FusedConv of com.microsoft: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.FusedConv"""

from collections.abc import Iterator, Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.conv import convolve
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator
from sofie.ops.spatial import check_window, kernel_shape, window

# C++ of a function of {0}, and how many parameters {1}, ... it has.
_ACTIVATIONS = {
    "": ("{0}", 0),
    "Clip": ("sofie::kernels::Clip({0}, {1}, {2})", 2),
    "HardSigmoid": ("sofie::kernels::HardSigmoid({0}, {1}, {2})", 2),
    "LeakyRelu": ("sofie::kernels::LeakyRelu({0}, {1})", 1),
    "Relu": ("sofie::kernels::Relu({0})", 0),
    "Sigmoid": ("sofie::kernels::Sigmoid({0})", 0),
    "Tanh": ("sofie::kernels::Tanh({0})", 0),
}
_ADDED = 3


@shape_rule("FusedConv", domain="com.microsoft")
def _shapes(node: Node) -> list[dims.Shape | None]:
    taps = window(node, kernel_shape(node, 1))
    return [(node.shape(0)[0], node.shape(1)[0], *taps.counts)]


def _check(node: Node) -> Iterator[str]:
    yield from check_window(node)
    name = node.attr_string("activation", "")
    if name not in _ACTIVATIONS:
        yield f"the activation {name!r}"
    elif len(_parameters(node)) != _ACTIVATIONS[name][1]:
        yield f"{len(_parameters(node))} activation_params for {name!r}"


def _parameters(node: Node) -> tuple[float, ...]:
    return node.attr_floats("activation_params") or ()


@operator("FusedConv", since=1, domain="com.microsoft", dtypes=dtype.FLOATS, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A convolution, a tensor of its result's shape added where one is given, and a function."""
    name = node.attr_string("activation", "")
    added = inputs[_ADDED] if node.has(_ADDED) else None
    relu = name == "Relu" and added is None
    result = convolve(node, b, inputs[:_ADDED], relu)
    if added is not None:
        for axis, (have, want) in enumerate(zip(added.shape, result.shape, strict=True)):
            b.require_equal(have, want, f"axis {axis} of what is added and of the result")
        result = elementwise.added(b, result, added)
    if relu or not name:
        return [result]
    numbers = [elementwise.scalar(result.dtype, value) for value in _parameters(node)]
    return [elementwise.call(b, result.dtype, _ACTIVATIONS[name][0], result, *numbers)]
