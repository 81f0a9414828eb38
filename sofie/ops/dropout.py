"""Dropout: https://onnx.ai/onnx/operators/onnx__Dropout.html"""

from collections.abc import Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Literal, Select
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.random_numbers import Generator
from sofie.ops.registry import operator


@operator("Dropout", since=7, until=11, dtypes=dtype.FLOATS)
def lower_inference(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Nothing is dropped."""
    x = inputs[0]
    assert x is not None
    # In opset 7 the mask has the input's type.
    kept = node.out_dtype(1) if node.is_used(1) else dtype.BOOL
    return [x, b.lazy(kept, x.shape, (), lambda _: Literal(kept, True))]


@operator("Dropout", since=12, dtypes=dtype.FLOATS)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """While ``training_mode`` holds, elements are dropped where a uniform number is below ratio."""
    x, ratio, training = (*inputs, None, None)[:3]
    assert x is not None
    mode = node.array(2)
    if training is None or (mode is not None and not mode.item()):
        return [x, b.lazy(dtype.BOOL, x.shape, (), lambda _: Literal(dtype.BOOL, True))]
    numbers = Generator(node, b)

    def drop_rate() -> Expr:
        if ratio is None:
            return Literal(x.dtype, 0.5)
        return Call(x.dtype, f"static_cast<{x.dtype.cpp}>({{0}})", (ratio.load(()),))

    def is_kept(index: Index) -> Expr:
        drawn = numbers.uniform(x.dtype, x.shape, index)
        parts = (training.load(()), drawn, drop_rate())
        return Call(dtype.BOOL, "!{0} || ({1} >= {2})", parts)

    def element(index: Index) -> Expr:
        value = x.load(index)
        scaled = Call(x.dtype, "{0} / ({2} - {1})", (value, drop_rate(), Literal(x.dtype, 1.0)))
        dropped = Select(x.dtype, is_kept(index), scaled, Literal(x.dtype, 0.0))
        return Select(x.dtype, training.load(()), dropped, value)

    return [
        b.lazy(x.dtype, x.shape, [x], element),
        b.lazy(dtype.BOOL, x.shape, (), is_kept),
    ]
