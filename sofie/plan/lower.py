"""Lowers a graph to a program by asking each node's operator."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import onnx_ir as ir
import sympy

from sofie.importer.errors import ModelError
from sofie.importer.load import Model
from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import INT64
from sofie.ir.node import (
    READS,
    Node,
    constant_array,
    known_values,
    value_dtype,
    value_shape,
    version_of,
)
from sofie.ir.program import Buffer, BufferKind, Output, Precision, Program, Read
from sofie.ir.tensor import Strided, Tensor
from sofie.ops import control_flow, registry
from sofie.passes import batch
from sofie.plan.dense_products import dense_products
from sofie.plan.fuse_epilogues import fuse_epilogues
from sofie.plan.inline_products import inline_products
from sofie.plan.merge_products import merge_products
from sofie.plan.precision import with_precision
from sofie.plan.ragged import ragged
from sofie.plan.split_weights import split_weights


def lower(
    model: Model,
    precision: Precision = Precision.FP32,
    strided_inputs: Collection[str] = (),
    ragged_sizes: Sequence[str] = (),
) -> Program:
    """The program that computes the graph's outputs.

    Args:
      model: checked, and rewritten by the passes.
      precision: of products of float32 matrices on a GPU.
      strided_inputs: names of inputs that are views with strides of their own.
      ragged_sizes: names of symbols that are another size in each row of a batch.

    Raises:
      ModelError: a node can't be lowered although it was accepted, for instance because constant
        sizes contradict each other; or an input can't have strides.
    """
    _check_strided(model, strided_inputs)
    rows = _rows_of_ragged(model, ragged_sizes, strided_inputs)
    lowering = _Lowering(model, strided_inputs, ragged_sizes)
    program = inline_products(merge_products(lowering.run()))
    program = split_weights(fuse_epilogues(dense_products(with_precision(program, precision))))
    if rows is None:
        return program
    return ragged(program, rows, ragged_sizes, model.graph.meta[READS])


def _rows_of_ragged(
    model: Model, sizes: Sequence[str], strided_inputs: Collection[str]
) -> sympy.Symbol | None:
    """What counts the rows that have sizes of their own; None where they have none."""
    if not sizes:
        return None
    if strided_inputs:
        raise ModelError("ragged and strided_inputs do not go together")
    for name in sizes:
        if name not in model.symbols:
            known = ", ".join(model.symbols)
            raise ModelError(
                f"ragged names {name!r}, which is no size of the inputs; it has {known}"
            )
    found = batch.find(model)
    if found.symbol is None or found.refusal is not None:
        raise ModelError(f"ragged: rows may meet: {found.refusal}")
    if model.symbols[found.symbol] in sizes:
        raise ModelError(f"ragged names {model.symbols[found.symbol]!r}, which counts the rows")
    return dims.symbol(found.symbol)


def _check_strided(model: Model, names: Collection[str]) -> None:
    inputs = {value.name: value for value in model.graph.inputs}
    for name in names:
        if name not in inputs:
            known = ", ".join(repr(other) for other in inputs)
            raise ModelError(
                f"strided_inputs names {name!r}, which is no input of the model; it has {known}"
            )
        if value_dtype(inputs[name]).per_byte > 1:
            raise ModelError(f"strided_inputs: elements of the input {name!r} share bytes")
        if READS in inputs[name].meta:
            raise ModelError(
                f"strided_inputs: sizes depend on elements of the input {name!r}, which the host "
                "reads; it has to be packed"
            )


class _Lowering:
    def __init__(
        self, model: Model, strided_inputs: Collection[str], ragged_sizes: Sequence[str]
    ) -> None:
        self.model = model
        self.strided_inputs = strided_inputs
        self.ragged_sizes = {dims.symbol(model.symbols.index(name)) for name in ragged_sizes}
        loops = sum(1 for _ in control_flow.loops(model.graph))
        self.builder = Builder(self._subgraph, loops)
        self.tensors: dict[ir.Value, Tensor] = {}
        # Tensors that the host is to read, but not before something depends on their elements.
        self.pending: dict[ir.Value, tuple[sympy.Symbol, ...]] = {}

    def run(self) -> Program:
        """Lowers every node, then makes every output a buffer of its own."""
        inputs = [self._input(i, value) for i, value in enumerate(self.model.graph.inputs)]
        for raw in self.model.graph:
            self._lower(Node(raw, version_of(self.model.ir_model, raw.domain)))
        outputs = [self._output(value) for value in self.model.graph.outputs]
        self.builder.finish()
        return Program(
            symbols=self.model.symbols,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            steps=tuple(self.builder.steps),
            requirements=tuple(self.builder.requirements),
            reads=tuple(self._input_reads(inputs)),
        )

    def _input_reads(self, inputs: list[Buffer]) -> Iterator[Read]:
        for value, buffer in zip(self.model.graph.inputs, inputs, strict=True):
            if READS in value.meta:
                yield Read((), buffer, value.meta[READS], buffer.name)

    def _input(self, number: int, value: ir.Value) -> Buffer:
        shape = value_shape(value)
        # Where rows have sizes of their own, their points are outermost but for the rows.
        places = [axis for axis, extent in enumerate(shape) if extent in self.ragged_sizes]
        order = tuple(sorted(range(len(shape)), key=lambda axis: axis > 0 and axis not in places))
        self.builder.enter(f"input {value.name}")
        dtype = value_dtype(value)
        buffer = Buffer(value.name or "", dtype, shape, order, BufferKind.INPUT)
        buffer.packed = dtype.per_byte > 1
        if value.name in self.strided_inputs:
            buffer.given_strides = tuple(dims.stride(number, axis) for axis in reversed(order))
        whole = Strided.whole(self.builder, buffer)
        self._set(value, self.builder.unpacked(buffer) if buffer.packed else whole)
        return buffer

    def _subgraph(self, graph: ir.Graph, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Lowers the nodes of a graph inside of a node."""
        for value, tensor in zip(graph.inputs, inputs, strict=True):
            self._set(value, tensor)
        for raw in graph:
            self._lower(Node(raw, version_of(self.model.ir_model, raw.domain)))
        return [self._get(value) for value in graph.outputs]

    def _set(self, value: ir.Value, tensor: Tensor) -> None:
        self.tensors[value] = tensor
        readers = len(value.uses()) + value.is_graph_output()
        # A graph inside of a node may read it many times.
        readers += sum(use.node.graph is not value.graph for use in value.uses())
        if readers > 1:
            tensor.share(readers - 1)

    def _read(self, node: Node) -> None:
        """Reads what is pending if the node depends on any of it: one wait for all."""
        if not self.pending:
            return
        values = [*node.raw.inputs, *node.raw.outputs]
        for inner in control_flow.nodes_inside(node.raw):
            values += [*inner.inputs, *inner.outputs]
        used = {s for v in values if v is not None for e in _sizes(v) for s in e.free_symbols}
        if used.isdisjoint(s for symbols in self.pending.values() for s in symbols):
            return
        self.builder.read(
            (value.name or "", self._get(value), symbols) for value, symbols in self.pending.items()
        )
        self.pending = {}

    def _lower(self, node: Node) -> None:
        self._read(node)
        self.builder.enter(node.label)
        self._compute(node)
        for value in node.raw.outputs:
            if READS in value.meta:
                self.pending[value] = value.meta[READS]

    def _compute(self, node: Node) -> None:
        outputs = [v for i, v in enumerate(node.raw.outputs) if node.is_used(i)]
        if len(node.raw.outputs) == 1 and self._is_known(node):
            value = node.raw.outputs[0]
            self._set(value, self.builder.known(node.out_shape(), known_values(value) or ()))
            return
        entry = registry.find(node)
        if entry is None:
            raise ModelError(f"{node.label} ({node.op_type}): the operator is not supported")
        inputs = [None if v is None else self._get(v) for v in node.raw.inputs]
        try:
            results = entry.lower(node, self.builder, inputs)
        except ValueError as error:
            raise ModelError(f"{node.label} ({node.op_type}): {error}") from error
        for position, value in enumerate(node.raw.outputs):
            if value in outputs:
                self._require_extents(node, position)
                result = results[position]
                assert result is not None
                self._set(value, result)

    def _require_extents(self, node: Node, position: int) -> None:
        """Demands of extents that depend on data what all others are: not negative."""
        for extent in node.out_shape(position):
            if any(map(dims.is_element, extent.free_symbols)):
                text = f"{node.label}: an extent of {node.raw.outputs[position].name!r} is {{high}}"
                self.builder.require(dims.ZERO, extent, text)

    def _is_known(self, node: Node) -> bool:
        """True for shape arithmetic: all elements of the only output are known as sizes."""
        value = node.raw.outputs[0]
        if value.dtype is None or node.out_dtype() is not INT64 or len(node.out_shape()) > 1:
            return False
        return READS not in value.meta and bool(known_values(value))

    def _get(self, value: ir.Value) -> Tensor:
        if value not in self.tensors:
            array = constant_array(value)
            if array is None:
                raise ModelError(f"{value.name!r} is read before anything computes it")
            dtype = value_dtype(value)
            self.tensors[value] = self.builder.weight(value.name or "", dtype, array)
        return self.tensors[value]

    def _output(self, value: ir.Value) -> Output:
        """The output in a row-major buffer that nothing else owns."""
        tensor = self._get(value)
        self.builder.enter(f"output {value.name}")
        if tensor.dtype.per_byte > 1:
            buffer = self.builder.pack(tensor, value.name or "", BufferKind.OUTPUT)
            return Output(buffer, tensor.shape)
        row_major = tuple(range(tensor.rank))
        memory = tensor.strided(row_major)
        if memory is None or not _is_own(memory):
            memory = self.builder.copy(tensor if memory is None else memory, row_major)
        memory.buffer.kind = BufferKind.OUTPUT
        memory.buffer.name = value.name or ""
        return Output(memory.buffer, tensor.shape)


def _sizes(value: ir.Value) -> list[dims.Expr]:
    """All that is known of a value in terms of symbols: its extents and its elements."""
    return [*(value_shape(value) if value.shape is not None else ()), *(known_values(value) or ())]


def _is_own(memory: Strided) -> bool:
    """True where a tensor is exactly one buffer that only this program writes, row-major.

    Its shape is known when the buffer is written, so that a caller's memory can be held to it.
    """
    known = {s for extent in memory.buffer.shape for s in extent.free_symbols}
    return (
        memory.buffer.kind is BufferKind.TEMPORARY
        and memory.is_packed(range(memory.rank))
        and dims.same(memory.buffer.elements, dims.product(memory.shape))
        and all(s in known for d in memory.shape for s in d.free_symbols if dims.is_element(s))
    )
