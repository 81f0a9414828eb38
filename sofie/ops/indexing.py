"""Indices that come from tensors."""

from sofie.ir import dims
from sofie.ir.dtype import INT64
from sofie.ir.expr import Call, Expr, Index


def wrapped(index: Expr, extent: dims.Expr) -> Expr:
    """A tensor's index into an axis: counted from the end where negative, kept inside the axis.

    ONNX leaves indices outside of [-extent, extent - 1] undefined; no memory outside of the tensor
    is read for them.
    """
    return Call(INT64, "sofie::kernels::WrapIndex({0}, {1})", (index, Index(INT64, extent)))
