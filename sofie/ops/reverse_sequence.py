"""ReverseSequence: https://onnx.ai/onnx/operators/onnx__ReverseSequence.html"""

from collections.abc import Iterator, Sequence

from sofie.ir import dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Indirect, Select
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops.indexing import wrapped
from sofie.ops.registry import operator


def _check(node: Node) -> Iterator[str]:
    if {node.attr_int("time_axis", 0), node.attr_int("batch_axis", 1)} != {0, 1}:
        yield "a time_axis and a batch_axis that are not 0 and 1"


@operator("ReverseSequence", since=10, dtypes=dtype.ALL, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The first elements of each sequence backwards, as many as a tensor says."""
    x, lengths = inputs[0], inputs[1]
    assert x is not None and lengths is not None
    time, batch = node.attr_int("time_axis", 0), node.attr_int("batch_axis", 1)
    b.require_equal(lengths.shape[0], x.shape[batch], "the numbers of lengths and of sequences")

    def element(index: Index) -> Expr:
        at, length = IndexExpr(dtype.INT64, index[time]), lengths.load((index[batch],))
        back = Call(dtype.INT64, "{0} - 1 - {1}", (length, at))
        source = Select(dtype.INT64, Call(dtype.BOOL, "{0} < {1}", (at, length)), back, at)
        inner = list(index)
        inner[time] = Indirect(wrapped(source, x.shape[time]))
        return x.load(tuple(inner))

    return [b.lazy(x.dtype, x.shape, [x, lengths], element)]
