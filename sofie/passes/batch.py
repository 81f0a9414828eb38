"""Finds out whether the first axis of a model's inputs is a batch whose rows never meet.

Then rows may be computed together or one slice after the other: a session runs large batches in
slices where memory is limited. Every value that the outputs need is one of two things:

* the same for all rows, and of a shape that the number of rows does not change; or
* a value with rows: one axis has so many elements for each row, those of a row lie together, and
  they depend on nothing but that row of the inputs. An integer may also be a place among the
  rows, ``row * step + place``, as models compute to gather from a table of all rows.

Each operator has a rule for what it makes of these. What has no rule is not proved, and neither is
what a rule says nothing about: the first such node is named.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import onnx_ir as ir
import sympy

from sofie.importer.load import Model
from sofie.ir import dims
from sofie.ir.node import (
    READS,
    Node,
    constant_array,
    known_values,
    value_shape,
    version_of,
)
from sofie.ops import control_flow, random_numbers
from sofie.passes.batch_rules import RULES, SAME, SIZES, Extents, MeetingError, Rows


@dataclasses.dataclass(frozen=True)
class Batch:
    """What was found out.

    Attributes:
      symbol: number of the symbol that counts rows; None where the inputs have none.
      refusal: where rows meet, or may; None where it is proved that they do not.
    """

    symbol: int | None
    refusal: str | None


def find(model: Model) -> Batch:
    """Examines a model, which has been checked."""
    symbol = _rows_symbol(model)
    if symbol is None:
        return Batch(None, "no first axis of an input has a symbolic extent")
    position = int(symbol.name[1:])
    try:
        _Proof(model, symbol).run()
    except MeetingError as meeting:
        return Batch(position, str(meeting))
    return Batch(position, None)


def _rows_symbol(model: Model) -> sympy.Symbol | None:
    for value in model.graph.inputs:
        shape = value_shape(value)
        if shape and shape[0].is_Symbol:
            return shape[0]
    return None


class _Proof:
    def __init__(self, model: Model, rows: sympy.Symbol) -> None:
        self.model = model
        self.rows = rows
        self.extents = Extents(rows)
        self.values: dict[ir.Value, Rows] = {}

    def run(self) -> None:
        for value in self.model.graph.inputs:
            self.values[value] = self._input(value)
        needed = _needed(self.model.graph)
        for raw in self.model.graph:
            if raw in needed:
                self._node(Node(raw, version_of(self.model.ir_model, raw.domain)))
        for value in self.model.graph.outputs:
            found = self.value(value)
            if found.axis != 0 or found.rounds != 1:
                raise MeetingError(f"output {value.name!r} has no rows along its first axis")
            if value.dtype is not None and value.dtype.bitwidth < 8:
                raise MeetingError(f"elements of output {value.name!r} share bytes")
            if found.moved:
                raise MeetingError(f"output {value.name!r} depends on the numbers of rows")

    def _input(self, value: ir.Value) -> Rows:
        shape = value_shape(value)
        with_rows = [axis for axis, extent in enumerate(shape) if self.extents.has_rows(extent)]
        if not with_rows:
            return SAME
        name = self.model.symbols[int(self.rows.name[1:])]
        if with_rows != [0]:
            raise MeetingError(f"input {value.name!r} has {name} along another axis than the first")
        if READS in value.meta:
            raise MeetingError(f"sizes depend on the elements of input {value.name!r}")
        if value.dtype is not None and value.dtype.bitwidth < 8:
            raise MeetingError(f"elements of input {value.name!r} share bytes")
        return Rows(0)

    def value(self, value: ir.Value) -> Rows:
        """What is known of an operand."""
        if value in self.values:
            return self.values[value]
        array = constant_array(value)
        integers = array is not None and array.dtype.kind in "iu" and array.size > 0
        if array is None or not integers or array.min() < 0:
            return SAME
        return Rows(below=sympy.Integer(int(array.max()) + 1))

    def _node(self, node: Node) -> None:
        try:
            outputs = self._outputs(node)
            for value, found in zip(node.raw.outputs, outputs, strict=False):
                self._check(value, found)
                self.values[value] = found
        except MeetingError as meeting:
            raise MeetingError(f"node {node.label!r} ({node.op_type}) {meeting}") from None

    def _outputs(self, node: Node) -> Sequence[Rows]:
        every = (node.raw, *control_flow.nodes_inside(node.raw))
        if any(map(random_numbers.draws, every)):
            raise MeetingError("draws random numbers")
        if any(READS in v.meta for v in node.raw.outputs):
            raise MeetingError("computes what sizes depend on")
        sizes = [known_values(v) for v in node.raw.outputs]
        if len(sizes) == 1 and sizes[0] is not None:
            return [self._known(sizes[0])]
        operands = [v for n in every for v in n.inputs if v is not None]
        if all(self._is_same(v) for v in operands) and not any(
            self.extents.has_rows(d) for v in node.raw.outputs for d in _dims(v)
        ):
            return [SAME] * len(node.raw.outputs)
        rule = RULES.get((node.raw.domain, node.raw.op_type))
        if rule is None:
            raise MeetingError("may mix them: nothing is known of what it does with rows")
        shaping = SIZES.get(rule, ())
        data = [v for i, v in enumerate(node.raw.inputs) if v is not None and i not in shaping]
        data += [v for n in every[1:] for v in n.inputs if v is not None]
        if any(self.extents.has_rows(size) for v in data for size in known_values(v) or ()):
            raise MeetingError("depends on how many there are")
        return rule(
            node, self.extents, [None if v is None else self.value(v) for v in node.raw.inputs]
        )

    def _known(self, elements: tuple[dims.Expr, ...]) -> Rows:
        """Sizes, which are the same in all rows."""
        if len(elements) == 1 and elements[0].is_nonnegative:
            return Rows(below=elements[0] + 1)
        return SAME

    def _is_same(self, value: ir.Value) -> bool:
        if any(map(self.extents.has_rows, known_values(value) or ())):
            return False
        return self.value(value).axis is None

    def _check(self, value: ir.Value, found: Rows) -> None:
        """The extents must be as the rule has it, and no other may depend on the rows."""
        for axis, extent in enumerate(_dims(value)):
            if axis == found.axis:
                if not dims.same(extent, self.rows * found.each * found.rounds):
                    raise MeetingError(f"does not keep the rows of {value.name!r} apart")
            elif self.extents.has_rows(extent):
                raise MeetingError(
                    f"gives {value.name!r} an extent that depends on how many there are"
                )


def _needed(graph: ir.Graph) -> set[ir.Node]:
    """The nodes that the outputs depend on."""
    found: set[ir.Node] = set()
    open_values = list(graph.outputs)
    while open_values:
        producer = open_values.pop().producer()
        if producer is None or producer in found:
            continue
        found.add(producer)
        for node in (producer, *control_flow.nodes_inside(producer)):
            open_values += [v for v in node.inputs if v is not None]
    return found


def _dims(value: ir.Value) -> dims.Shape:
    return () if value.shape is None else value_shape(value)
