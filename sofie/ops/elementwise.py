"""Element-wise operators with multidirectional broadcasting: what their files have in common.

Broadcasting: https://onnx.ai/onnx/repo-docs/Broadcasting.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import onnx_ir
import onnx_shape_inference as inference

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, FLOAT32, DType
from sofie.ir.expr import Call, Expr, Literal
from sofie.ir.expr import Index as IndexExpr
from sofie.ir.node import Node
from sofie.ir.tensor import Broadcast, Index, Tensor
from sofie.ops.registry import operator


def infer_broadcast(name: str, dtype_of: int | None = 0) -> None:
    """Replaces the library's shape rule of an operator by one that keeps both of two symbols.

    Where two sizes have different symbols, either may turn out to be 1: the result has the larger
    one. The library settles for the first.

    Args:
      name: the operator.
      dtype_of: the input that has the output's element type; None if the output is bool.
    """
    library = inference.registry
    theirs = {v: library.get("", name, v) for v in library.version_boundaries("", name)}

    def infer(ctx: inference.ShapeInferenceContext, node: onnx_ir.Node) -> None:
        inputs = [v for v in node.inputs if v is not None]
        if all(ctx.get_symbolic_value(v) is not None for v in inputs):
            theirs[max(theirs)](ctx, node)  # Arithmetic on sizes.
            return
        dtype = onnx_ir.DataType.BOOL if dtype_of is None else inputs[dtype_of].dtype
        if dtype is not None and all(v.shape is not None for v in inputs):
            shape = broadcast_shapes([tuple(v.shape or ()) for v in inputs])
            known = None if shape is None else onnx_ir.Shape([dims.as_dim(d) for d in shape])
            ctx.set_shape_and_dtype(node.outputs[0], known, dtype)

    for version in theirs:
        library.register("", name, since_version=version)(infer)


def broadcast_shapes(
    shapes: Sequence[Sequence[int | onnx_ir.SymbolicDim]],
) -> dims.Shape | None:
    """What the shapes broadcast to; None where a size is unknown."""
    rank = max(len(shape) for shape in shapes)
    result = [dims.ONE] * rank
    try:
        for shape in shapes:
            for axis, dim in enumerate(shape, rank - len(shape)):
                result[axis] = dims.broadcast(result[axis], dims.as_expr(dim))
    except ValueError:
        return None
    return tuple(result)


def apply(
    node: Node,
    b: Builder,
    inputs: Sequence[Tensor],
    dtype: DType,
    template: str,
    call: Callable[[DType, str, tuple[Expr, ...]], Expr] = Call,
) -> Tensor:
    """``template`` for every element of the broadcast inputs; ``call`` makes the expression."""
    shape = node.out_shape()
    for tensor in inputs:
        b.require_broadcast(tensor.shape, shape)
    aligned = [t if t.shape == shape else Broadcast(t, shape) for t in inputs]

    def element(index: Index) -> Expr:
        return call(dtype, template, tuple(t.load(index) for t in aligned))

    return b.lazy(dtype, shape, inputs, element)


def call(b: Builder, dtype: DType, template: str, x: Tensor, *others: Expr) -> Tensor:
    """``template`` for every element ``{0}`` of one tensor; the others are the same for all."""

    def element(index: Index) -> Expr:
        return Call(dtype, template, (x.load(index), *others))

    return b.lazy(dtype, x.shape, [x], element)


def added(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """The sum, of the first one's shape and type, which the other one is stretched to."""
    other = Broadcast(y, x.shape)

    def element(index: Index) -> Expr:
        return Call(x.dtype, "{0} + {1}", (x.load(index), other.load(index)))

    return b.lazy(x.dtype, x.shape, [x, y], element)


def given(inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The inputs that are present."""
    return [t for t in inputs if t is not None]


def unary(
    name: str,
    template: str,
    *,
    since: int,
    dtypes: Iterable[DType],
    until: int | None = None,
    domain: str = "",
    attributes: Sequence[tuple[str, float]] = (),
) -> None:
    """Registers an operator of one input.

    Args:
      name: ONNX's.
      template: C++ in which ``{0}`` is the element and ``{1}``, ... are the attributes.
      since: first opset.
      dtypes: element types.
      until: last opset.
      domain: of the operator.
      attributes: names of number attributes, with their defaults.
    """

    @operator(name, since=since, until=until, domain=domain, dtypes=dtypes)
    def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        (x,) = given(inputs)
        numbers = [scalar(x.dtype, node.attr_float(key, value)) for key, value in attributes]
        return [call(b, x.dtype, template, x, *numbers)]


def scalar(dtype: DType, value: float) -> Literal:
    """A number attribute that meets elements of a type: of that type, or float32 for integers."""
    return Literal(dtype if dtype.is_float else FLOAT32, value)


def rounded(value: Expr, dtype: DType) -> Expr:
    """The value in a type that may be narrower."""
    if value.dtype is dtype:
        return value
    return Call(dtype, f"static_cast<{dtype.cpp}>({{0}})", (value,))


def predicate(name: str, template: str, *, since: int, dtypes: Iterable[DType]) -> None:
    """Registers an operator of one input whose result is bool."""

    @operator(name, since=since, dtypes=dtypes)
    def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        return [apply(node, b, given(inputs), BOOL, template)]


def binary(
    name: str, template: str, *, since: int, dtypes: Iterable[DType], until: int | None = None
) -> None:
    """Registers an operator of two inputs of one type, ``{0}`` and ``{1}``."""
    infer_broadcast(name)

    @operator(name, since=since, until=until, dtypes=dtypes)
    def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        return [apply(node, b, given(inputs), node.out_dtype(), template)]


def comparison(name: str, relation: str, *, since: int, dtypes: Iterable[DType]) -> None:
    """Registers a comparison; the result is bool."""
    infer_broadcast(name, None)
    holds_for_equals = "=" in relation

    def compared(dtype: DType, template: str, args: tuple[Expr, ...]) -> Expr:
        # Compilers warn of a size that is compared with itself.
        sizes = [a.value for a in args if isinstance(a, IndexExpr)]
        if len(sizes) == 2 and dims.same(*sizes):
            return Literal(BOOL, holds_for_equals)
        return Call(dtype, template, args)

    @operator(name, since=since, dtypes=dtypes)
    def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        template = "{0} " + relation + " {1}"
        return [apply(node, b, given(inputs), BOOL, template, compared)]


def variadic(name: str, template: str, *, since: int, dtypes: Iterable[DType]) -> None:
    """Registers an operator that folds any number of inputs from the left."""
    infer_broadcast(name)

    @operator(name, since=since, dtypes=dtypes)
    def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        folded = "{0}"
        for position in range(1, len(inputs)):
            folded = template.format(folded, f"{{{position}}}")
        return [apply(node, b, given(inputs), node.out_dtype(), folded)]
