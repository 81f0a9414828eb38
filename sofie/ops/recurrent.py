"""RNN, GRU and LSTM: what their files have in common.

    Y[t] = cell(X[t] Wᵀ + H[t-1] Rᵀ)

The product with W is one matrix product for all times, before the loop over time. An iteration of
the loop is one product with R for all directions, and one kernel for the gates. The state lies in
memory that each iteration overwrites.

ONNX is silent on how a sequence shorter than the longest runs backwards; as in ONNX Runtime it
starts at its own end. Outputs past a sequence's end are 0, its state stays as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import BOOL, INT64, DType
from sofie.ir.expr import Call, Expr, Index, Indirect, Literal, Select, compare
from sofie.ir.node import Node
from sofie.ir.tensor import Index as At
from sofie.ir.tensor import Permute, Strided, Tensor

_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}

# A function's C++, {0} its argument, {1} and {2} alpha and beta; and their default values.
_ACTIVATIONS: dict[str, tuple[str, tuple[float, ...]]] = {
    "affine": ("{1} * {0} + {2}", (1.0, 0.0)),
    "elu": ("sofie::kernels::Elu({0}, {1})", (1.0,)),
    "hardsigmoid": ("sofie::kernels::HardSigmoid({0}, {1}, {2})", (0.2, 0.5)),
    "leakyrelu": ("sofie::kernels::LeakyRelu({0}, {1})", (0.01,)),
    "relu": ("sofie::kernels::Relu({0})", ()),
    "scaledtanh": ("{1} * sofie::kernels::Tanh({2} * {0})", (1.0, 1.0)),
    "sigmoid": ("sofie::kernels::Sigmoid({0})", ()),
    "softplus": ("sofie::kernels::Softplus({0})", ()),
    "softsign": ("sofie::kernels::Softsign({0})", ()),
    "tanh": ("sofie::kernels::Tanh({0})", ()),
    "thresholdedrelu": ("sofie::kernels::ThresholdedRelu({0}, {1})", (1.0,)),
}


def check(node: Node, functions: Sequence[str]) -> Iterator[str]:
    """What every recurrent operator demands; ``functions`` are the default activations."""
    for position, name in enumerate(("X", "W", "R")):
        if len(node.shape(position)) != 3:
            yield f"{name} of rank {len(node.shape(position))} instead of 3"
    direction = node.attr_string("direction", "forward")
    if direction not in _DIRECTIONS:
        yield f"the direction {direction!r}, which ONNX does not know"
        return
    names = node.attr_strings("activations")
    if names is not None:
        wanted = len(functions) * _DIRECTIONS[direction]
        if len(names) != wanted:
            yield f"{len(names)} activations instead of {wanted}"
        for name in names:
            if name.lower() not in _ACTIVATIONS:
                yield f"the activation {name!r}, which ONNX does not know"


@dataclasses.dataclass(frozen=True)
class _Activation:
    """One activation with its parameters."""

    template: str
    parameters: tuple[float, ...]

    def __call__(self, x: Expr) -> Expr:
        literals = tuple(Literal(x.dtype, value) for value in self.parameters)
        return Call(x.dtype, self.template, (x, *literals))


def _activations(node: Node, functions: Sequence[str], directions: int) -> list[_Activation]:
    """All activations, direction by direction, with parameters in order of use."""
    names = node.attr_strings("activations") or (*functions,) * directions
    values = [
        iter(node.attr_floats("activation_alpha") or ()),
        iter(node.attr_floats("activation_beta") or ()),
    ]
    result = []
    for name in names:
        template, defaults = _ACTIVATIONS[name.lower()]
        given = tuple(next(v, d) for v, d in zip(values, defaults, strict=False))
        result.append(_Activation(template, given))
    return result


class Recurrence:
    """One node while it is lowered.

    Attributes:
      steps, batch, hidden, directions: the sizes.
      shape: of a state, [directions, batch, hidden].
      functions: the activations of one direction: each a function of the direction's index and the
        argument.
    """

    def __init__(
        self,
        node: Node,
        b: Builder,
        inputs: Sequence[Tensor | None],
        gates: int,
        functions: Sequence[str],
    ) -> None:
        self.node, self.b, self.gates = node, b, gates
        self._inputs = [*inputs, *[None] * (8 - len(inputs))]
        x, w, r = self._inputs[:3]
        assert x is not None and w is not None and r is not None
        self.x, self.w, self.r = x, w, r
        self.dtype: DType = x.dtype
        self._batch_first = node.attr_int("layout", 0) == 1
        times, batch = (1, 0) if self._batch_first else (0, 1)
        self.steps, self.batch = x.shape[times], x.shape[batch]
        direction = node.attr_string("direction", "forward")
        self.directions = _DIRECTIONS[direction]
        self._reverse = direction == "reverse"
        self.hidden = r.shape[2]
        self.shape: dims.Shape = (sympy.Integer(self.directions), self.batch, self.hidden)
        self._demand_shapes()
        every = _activations(node, functions, self.directions)
        self.functions = [
            self._by_direction(every[i :: len(functions)]) for i in range(len(functions))
        ]
        self._clip = node.attr_float("clip", 0.0)

    def _demand_shapes(self) -> None:
        b, d, h = self.b, sympy.Integer(self.directions), self.hidden
        rows = self.gates * h
        expected: list[tuple[Tensor | None, dims.Shape, str]] = [
            (self.w, (d, rows, self.x.shape[2]), "W"),
            (self.r, (d, rows, h), "R"),
            (self._inputs[3], (d, 2 * rows), "B"),
            (self._inputs[4], (self.batch,), "sequence_lens"),
        ]
        for position, name in ((5, "initial_h"), (6, "initial_c")):
            shape = (self.batch, d, h) if self._batch_first else self.shape
            expected.append((self._inputs[position], shape, name))
        expected.append((self._inputs[7], (d, 3 * h), "P"))
        for tensor, shape, name in expected:
            if tensor is None:
                continue
            if tensor.rank != len(shape):
                raise ValueError(f"{name} has rank {tensor.rank} instead of {len(shape)}")
            for axis, (have, want) in enumerate(zip(tensor.shape, shape, strict=True)):
                b.require_equal(have, want, f"axis {axis} of {name} and what its use implies")

    def _by_direction(self, functions: Sequence[_Activation]) -> Callable[[dims.Expr, Expr], Expr]:
        def apply(direction: dims.Expr, x: Expr) -> Expr:
            first = functions[0](x)
            if len(set(functions)) == 1:
                return first
            forward = compare("==", direction, dims.ZERO)
            return Select(x.dtype, forward, first, functions[1](x))

        return apply

    def clipped(self, x: Expr) -> Expr:
        """An activation's argument within the bounds that the node sets."""
        if self._clip <= 0:
            return x
        low, high = Literal(x.dtype, -self._clip), Literal(x.dtype, self._clip)
        return Call(x.dtype, "sofie::kernels::Clip({0}, {1}, {2})", (x, low, high))

    # Before the loop.

    def bias(self, recurrent_apart: Sequence[int] = ()) -> Strided | None:
        """The bias of the input product, [directions * gates * hidden].

        Args:
          recurrent_apart: gates whose recurrent bias is not part of it.
        """
        tensor = self._inputs[3]
        if tensor is None:
            return None
        rows = self.gates * self.hidden
        array = self.node.array(3)
        if array is not None and rows.is_Integer:
            both = array.astype(np.float64).reshape(self.directions, 2, self.gates, -1)
            both[:, 1, list(recurrent_apart)] = 0
            total = both.sum(axis=1).reshape(-1).astype(array.dtype)
            return self.b.constant(f"{self.node.label}.bias", self.dtype, total)

        def element(index: At) -> Expr:
            direction, row = index
            whole = Call(
                self.dtype,
                "{0} + {1}",
                (tensor.load((direction, row)), tensor.load((direction, rows + row))),
            )
            result: Expr = whole
            for gate in recurrent_apart:
                below = compare("<", row, gate * self.hidden)
                above = compare(">=", row, (gate + 1) * self.hidden)
                outside = Call(BOOL, "{0} || {1}", (below, above))
                result = Select(self.dtype, outside, result, tensor.load((direction, row)))
            return result

        shape = (sympy.Integer(self.directions), rows)
        memory = self.b.packed(self.b.lazy(self.dtype, shape, [tensor], element))
        return Strided(self.b, memory.buffer, (dims.product(shape),), (dims.ONE,))

    def recurrent_bias(self, gate: int, direction: dims.Expr, unit: dims.Expr) -> Expr | None:
        """An element of the recurrent bias."""
        tensor = self._inputs[3]
        if tensor is None:
            return None
        return tensor.load((direction, (self.gates + gate) * self.hidden + unit))

    def project(self, bias: Strided | None) -> Strided:
        """``X Wᵀ + bias`` of all times: [steps, batch, directions, gates * hidden]."""
        b, d, rows = self.b, self.directions, self.gates * self.hidden
        points, features, columns = self.steps * self.batch, self.x.shape[2], d * rows
        x, w = b.packed(self.x), b.packed(self.w)
        out = b.output(self.dtype, (points, columns))
        b.matmul(
            Strided(b, x.buffer, (dims.ONE, points, features), (dims.ZERO, features, dims.ONE)),
            Strided(b, w.buffer, (dims.ONE, features, columns), (dims.ZERO, dims.ONE, features)),
            Strided(b, out.buffer, (dims.ONE, points, columns), (dims.ZERO, columns, dims.ONE)),
            bias=bias,
            sources=[self.x, self.w],
        )
        shape = (self.steps, self.batch, sympy.Integer(d), rows)
        outer = (
            (columns, self.steps * columns)
            if self._batch_first
            else (
                self.batch * columns,
                columns,
            )
        )
        return Strided(b, out.buffer, shape, (*outer, rows, dims.ONE))

    def state(self, position: int) -> Strided:
        """Memory for a state, [directions, batch, hidden], that holds what input number says."""
        initial = self._inputs[position]
        if initial is None:
            zero = self.b.lazy(self.dtype, self.shape, (), lambda _: Literal(self.dtype, 0.0))
            return zero.strided((0, 1, 2))
        if self._batch_first:
            initial = Permute(initial, (1, 0, 2))
        return self.b.copy(initial, (0, 1, 2))

    def peepholes(self) -> Strided | None:
        """P, [directions, 3 * hidden]."""
        tensor = self._inputs[7]
        return None if tensor is None else self.b.in_memory(tensor)

    def result(self) -> Strided | None:
        """Memory for Y, as [steps, directions, batch, hidden]; None where nobody reads it."""
        if not self.node.is_used(0):
            return None
        memory = self.b.output(self.dtype, self.node.out_shape(0))
        axes = (1, 2, 0, 3) if self._batch_first else (0, 1, 2, 3)
        permuted = Permute(memory, axes).strided()
        assert permuted is not None
        return permuted

    # Within the loop.

    def product(self, state: Strided, first: int, count: int) -> Strided:
        """``state Rᵀ`` for some of the gates: [directions, batch, count * hidden]."""
        b, h, d = self.b, self.hidden, sympy.Integer(self.directions)
        r = b.in_memory(self.r)
        weights = Strided(
            b,
            r.buffer,
            (d, h, count * h),
            (r.strides[0], r.strides[2], r.strides[1]),
            r.offset + first * h * r.strides[1],
        )
        out = b.output(self.dtype, (d, self.batch, count * h))
        b.matmul(state, weights, out)
        return out

    def time(self, step: dims.Expr, direction: dims.Expr, item: dims.Expr) -> dims.Expr:
        """Which time an iteration works on."""
        if self.directions == 1 and not self._reverse:
            return step
        lengths = self._inputs[4]
        backward: dims.Expr = dims.ONE if self.directions == 1 else direction
        if lengths is None:
            return step + backward * (self.steps - 1 - 2 * step)
        length = Indirect(self._length(lengths, item))
        from_end = Index(INT64, step + backward * (length - 1 - 2 * step))
        return Indirect(Select(INT64, self.is_live(step, item), from_end, Index(INT64, step)))

    def _length(self, lengths: Tensor, item: dims.Expr) -> Expr:
        parts = (lengths.load((item,)), Index(INT64, self.steps))
        return Call(INT64, "sofie::kernels::Minimum(static_cast<int64_t>({0}), {1})", parts)

    def is_live(self, step: dims.Expr, item: dims.Expr) -> Expr:
        """Whether the sequence is that long; to be asked only where lengths are given."""
        lengths = self._inputs[4]
        assert lengths is not None
        return compare("<", step, Indirect(self._length(lengths, item)))

    def store(
        self,
        step: dims.Expr,
        cell: Callable[[dims.Expr, dims.Expr, dims.Expr, dims.Expr], list[Expr]],
        states: Sequence[Strided],
        result: Strided | None,
    ) -> None:
        """Launches the kernel that computes the new states, and the first of them as the output.

        Args:
          step: the iteration.
          cell: new states from direction, batch item, hidden unit and time.
          states: where they go.
          result: Y.
        """

        def element(index: At) -> list[Expr]:
            direction, item, unit = index
            new = cell(direction, item, unit, self.time(step, direction, item))
            output = new[0]
            if self._inputs[4] is not None:
                live = self.is_live(step, item)
                new = [
                    Select(self.dtype, live, value, state.load(index))
                    for value, state in zip(new, states, strict=True)
                ]
                output = Select(self.dtype, live, output, Literal(self.dtype, 0.0))
            return new if result is None else [*new, output]

        def place(index: At) -> At:
            direction, item, unit = index
            return (self.time(step, direction, item), direction, item, unit)

        targets = [*states] if result is None else [*states, result]
        at: list[Callable[[At], At] | None] = [None] * len(states)
        self.b.store(self.shape, element, targets, at if result is None else [*at, place])

    def outputs(self, result: Strided | None, states: Sequence[Strided]) -> list[Tensor | None]:
        """The node's outputs."""
        found: list[Tensor | None] = [None]
        if result is not None:
            axes = (2, 0, 1, 3) if self._batch_first else (0, 1, 2, 3)
            found[0] = Permute(result, axes)
        for state in states:
            final = Strided.whole(self.b, state.buffer)
            found.append(Permute(final, (1, 0, 2)) if self._batch_first else final)
        return found


def total(dtype: DType, *terms: Expr | None) -> Expr:
    """The sum of what is there."""
    there = [term for term in terms if term is not None]
    template = " + ".join(f"{{{i}}}" for i in range(len(there)))
    return there[0] if len(there) == 1 else Call(dtype, template, tuple(there))
