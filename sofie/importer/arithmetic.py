"""Arithmetic on sizes: what nodes compute from small integer tensors that the host knows.

Each rule is the operator on NumPy arrays of expressions. What they give need not be computed on a
device, nor read back from there where it decides about a shape.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import sympy

from sofie.ir import dims
from sofie.ir.node import MOST_READ, Node, element_count, known_values

# Elements are expressions.
Array = np.ndarray[Any, Any]
Rule = Callable[[Node, Sequence[Array]], "Array | None"]


def evaluate(raw: ir.Node) -> list[dims.Expr] | None:
    """The elements of a node's only output; None where they can't be told or are too many."""
    rule = RULES.get(raw.op_type)
    if rule is None or raw.domain or len(raw.outputs) != 1 or not raw.inputs:
        return None
    output = raw.outputs[0]
    count = element_count(output)
    if count is None or count > MOST_READ or output.shape is None or len(output.shape) > 1:
        return None
    if output.dtype is None or not (output.dtype.is_integer() or output.dtype is ir.DataType.BOOL):
        return None
    inputs = []
    for value in raw.inputs:
        known = None if value is None else array(value)
        if known is None:
            return None
        inputs.append(known)
    result = rule(Node(raw, 0), inputs)
    if result is None:
        return None
    elements = np.asarray(result, object)  # a rule may give a single element as it is
    if elements.size != count:
        return None
    return [sympy.sympify(element) for element in elements.reshape(-1).tolist()]


def array(value: ir.Value) -> Array | None:
    """The elements of a small integer tensor; None where the host does not know them."""
    count = element_count(value)
    if value.dtype is None or count is None or count > MOST_READ:
        return None
    if not (value.dtype.is_integer() or value.dtype is ir.DataType.BOOL):
        return None
    known = known_values(value)
    if known is None or value.shape is None:
        return None
    result = np.empty(len(known), object)
    result[:] = known
    return result.reshape([int(str(d)) for d in value.shape])


def _each(function: Callable[..., dims.Expr]) -> Rule:
    """An element-wise operator of any number of inputs, folded from the left where it takes two."""

    def rule(_: Node, inputs: Sequence[Array]) -> Array:
        arity = function.__code__.co_argcount
        ufunc = np.frompyfunc(function, arity, 1)
        if arity == 2:
            return np.asarray(functools.reduce(ufunc, inputs), object)
        return np.asarray(ufunc(*inputs), object)

    return rule


def _quotient(a: dims.Expr, b: dims.Expr) -> dims.Expr:
    """Rounded towards zero."""
    alike = dims.Equals(dims.IsNegative(a), dims.IsNegative(b))
    return dims.Where(alike, dims.FloorDiv(a, b), -dims.FloorDiv(-a, b))


def _less(a: dims.Expr, b: dims.Expr) -> dims.Expr:
    return dims.IsNegative(sympy.expand(a - b))


def _cast(node: Node, inputs: Sequence[Array]) -> Array | None:
    if node.raw.outputs[0].dtype is ir.DataType.BOOL:
        return _each(lambda a: 1 - dims.Equals(a, dims.ZERO))(node, inputs)
    return inputs[0]


def _mod(node: Node, inputs: Sequence[Array]) -> Array | None:
    if node.attr_int("fmod", 0):
        return None
    return _each(lambda a, b: dims.FloorMod(a, b))(node, inputs)


def _numbers(values: Array) -> list[int] | None:
    """Elements that are numbers; None where one is not."""
    flat = values.reshape(-1).tolist()
    return [int(v) for v in flat] if all(v.is_Integer for v in flat) else None


def _gather(node: Node, inputs: Sequence[Array]) -> Array | None:
    indices = _numbers(inputs[1])
    data, axis = inputs[0], node.attr_int("axis", 0)
    extent = data.shape[axis] if data.ndim else 0
    if indices is None or any(not -extent <= i < extent for i in indices):
        return None
    return np.take(data, np.reshape(indices, inputs[1].shape).astype(np.int64), axis=axis)


def _concat(node: Node, inputs: Sequence[Array]) -> Array | None:
    return np.concatenate(inputs, axis=node.attr_int("axis", 0))


def _reshaped(_: Node, inputs: Sequence[Array]) -> Array | None:
    return inputs[0]  # The output's shape is inferred.


def _slice(node: Node, inputs: Sequence[Array]) -> Array | None:
    given = [_numbers(values) for values in inputs[1:]]
    if any(numbers is None for numbers in given):
        return None
    starts, stops, *rest = [numbers or [] for numbers in given]
    axes = rest[0] if rest else list(range(len(starts)))
    steps = rest[1] if len(rest) > 1 else [1] * len(axes)
    cut = [slice(None)] * inputs[0].ndim
    for axis, start, stop, step in zip(axes, starts, stops, steps, strict=True):
        # NumPy takes None for an end before the first element.
        end = None if step < 0 and stop < -inputs[0].shape[axis] else stop
        cut[axis] = slice(start, end, step)
    return inputs[0][tuple(cut)]


def _expand(node: Node, inputs: Sequence[Array]) -> Array | None:
    shape = _numbers(inputs[1])
    return None if shape is None else np.multiply(inputs[0], np.full(shape, dims.ONE, object))


def _tile(_: Node, inputs: Sequence[Array]) -> Array | None:
    repeats = _numbers(inputs[1])
    return None if repeats is None else np.tile(inputs[0], repeats)


def _range(_: Node, inputs: Sequence[Array]) -> Array | None:
    start, limit, delta = (values.reshape(-1)[0] for values in inputs)
    count = dims.Steps(start, limit, delta)
    if not count.is_Integer or int(count) > MOST_READ:
        return None
    return np.array([start + i * delta for i in range(int(count))], object)


def _constant(node: Node, inputs: Sequence[Array]) -> Array | None:
    shape, value = _numbers(inputs[0]), node.attr_tensor("value")
    if shape is None or value is None or np.prod(shape) > MOST_READ:
        return None
    return np.full(shape, sympy.Integer(int(value.reshape(-1)[0])), object)


def _reduction(function: Callable[[dims.Expr, dims.Expr], dims.Expr], start: dims.Expr) -> Rule:
    def rule(node: Node, inputs: Sequence[Array]) -> Array | None:
        axes = node.attr_ints("axes")
        if len(inputs) > 1:
            numbers = _numbers(inputs[1])
            axes = None if numbers is None else tuple(numbers)
            if axes is None:
                return None
        # Small tensors are scalars or lists: all of it is reduced, or nothing.
        if inputs[0].ndim > 1 or (not axes and node.attr_int("noop_with_empty_axes", 0)):
            return None
        return np.asarray(functools.reduce(function, inputs[0].reshape(-1).tolist(), start), object)

    return rule


RULES: dict[str, Rule] = {
    "Abs": _each(lambda a: dims.Where(dims.IsNegative(a), -a, a)),
    "Add": _each(lambda a, b: a + b),
    "And": _each(lambda a, b: a * b),
    "Cast": _cast,
    "Concat": _concat,
    "ConstantOfShape": _constant,
    "Div": _each(_quotient),
    "Equal": _each(lambda a, b: dims.Equals(a, b)),
    "Expand": _expand,
    "Flatten": _reshaped,
    "Gather": _gather,
    "Greater": _each(lambda a, b: _less(b, a)),
    "GreaterOrEqual": _each(lambda a, b: 1 - _less(a, b)),
    "Identity": _reshaped,
    "Less": _each(_less),
    "LessOrEqual": _each(lambda a, b: 1 - _less(b, a)),
    "Max": _each(lambda a, b: dims.largest(a, b)),
    "Min": _each(lambda a, b: dims.smallest(a, b)),
    "Mod": _mod,
    "Mul": _each(lambda a, b: sympy.expand(a * b)),
    "Neg": _each(lambda a: -a),
    "Not": _each(lambda a: 1 - a),
    "Or": _each(lambda a, b: sympy.Max(a, b)),
    "Range": _range,
    "ReduceMax": _reduction(dims.largest, sympy.Integer(-(2**63))),
    "ReduceMin": _reduction(dims.smallest, sympy.Integer(2**63 - 1)),
    "ReduceProd": _reduction(lambda a, b: sympy.expand(a * b), dims.ONE),
    "ReduceSum": _reduction(lambda a, b: a + b, dims.ZERO),
    "Reshape": _reshaped,
    "Sign": _each(lambda a: 1 - dims.Equals(a, dims.ZERO) - 2 * dims.IsNegative(a)),
    "Slice": _slice,
    "Squeeze": _reshaped,
    "Sub": _each(lambda a, b: a - b),
    "Sum": _each(lambda a, b: a + b),
    "Tile": _tile,
    "Unsqueeze": _reshaped,
    "Where": _each(lambda c, a, b: dims.Where(c, a, b)),
}
