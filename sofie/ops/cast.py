"""Cast: https://onnx.ai/onnx/operators/onnx__Cast.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise
from sofie.ops.registry import operator


def _template(node: Node) -> str:
    """What converts one element."""
    to = node.out_dtype()
    if to.is_native:
        return f"static_cast<{to.cpp}>({{0}})"
    saturate = "true" if node.attr_int("saturate", 1) else "false"
    if to is dtype.FLOAT8E8M0:
        mode = node.attr_string("round_mode", "up").capitalize()
        return f"{to.storage}::From({{0}}, {saturate}, sofie::Rounding::k{mode})"
    if to in dtype.SMALL_FLOATS:
        return f"{to.storage}::From({{0}}, {saturate})"
    # Rounded once, from the type at hand.
    return "{0}"


def _check(node: Node) -> Iterator[str]:
    mode = node.attr_string("round_mode", "up")
    if mode not in ("up", "down", "nearest"):
        yield f"the round_mode {mode!r}"


@operator("Cast", since=6, dtypes=dtype.EVERY, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """C++'s conversions: truncation towards zero, and non-zero is true."""
    tensors = elementwise.given(inputs)
    return [elementwise.apply(node, b, tensors, node.out_dtype(), _template(node))]
