"""Lowers a graph to a program by asking each node's operator."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sofie.importer.errors import ModelError
from sofie.importer.load import Model
from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import INT64
from sofie.ir.node import (
    Node,
    constant_array,
    known_values,
    value_dtype,
    value_shape,
    version_of,
)
from sofie.ir.program import Buffer, BufferKind, Output, Program
from sofie.ir.tensor import Strided, Tensor
from sofie.ops import control_flow, registry
from sofie.plan.merge_products import merge_products


def lower(model: Model) -> Program:
    """The program that computes the graph's outputs.

    Raises:
      ModelError: a node can't be lowered although it was accepted, for instance because constant
        sizes contradict each other.
    """
    return merge_products(_Lowering(model).run())


class _Lowering:
    def __init__(self, model: Model) -> None:
        self.model = model
        loops = sum(1 for _ in control_flow.loops(model.graph))
        self.builder = Builder(self._subgraph, loops)
        self.tensors: dict[ir.Value, Tensor] = {}

    def run(self) -> Program:
        """Lowers every node, then makes every output a buffer of its own."""
        inputs = [self._input(value) for value in self.model.graph.inputs]
        for raw in self.model.graph:
            self._lower(Node(raw, version_of(self.model.ir_model, raw.domain)))
        outputs = [self._output(value) for value in self.model.graph.outputs]
        return Program(
            symbols=self.model.symbols,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            steps=tuple(self.builder.steps),
            requirements=tuple(self.builder.requirements),
        )

    def _input(self, value: ir.Value) -> Buffer:
        shape = value_shape(value)
        order = tuple(range(len(shape)))
        buffer = Buffer(value.name or "", value_dtype(value), shape, order, BufferKind.INPUT)
        self._set(value, Strided.whole(self.builder, buffer))
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

    def _lower(self, node: Node) -> None:
        self.builder.enter(node.label)
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
                result = results[position]
                assert result is not None
                self._set(value, result)

    def _is_known(self, node: Node) -> bool:
        """True for shape arithmetic: all elements of the only output are known as sizes."""
        value = node.raw.outputs[0]
        if value.dtype is None or node.out_dtype() is not INT64 or len(node.out_shape()) > 1:
            return False
        return bool(known_values(value))

    def _get(self, value: ir.Value) -> Tensor:
        if value not in self.tensors:
            array = constant_array(value)
            if array is None:
                raise ModelError(f"{value.name!r} is read before anything computes it")
            dtype = value_dtype(value)
            self.tensors[value] = self.builder.constant(value.name or "", dtype, array)
        return self.tensors[value]

    def _output(self, value: ir.Value) -> Output:
        """The output in a row-major buffer that nothing else owns."""
        tensor = self._get(value)
        self.builder.enter(f"output {value.name}")
        row_major = tuple(range(tensor.rank))
        memory = tensor.strided(row_major)
        if memory is None or not _is_own(memory):
            memory = self.builder.copy(tensor if memory is None else memory, row_major)
        memory.buffer.kind = BufferKind.OUTPUT
        memory.buffer.name = value.name or ""
        return Output(memory.buffer, tensor.shape)


def _is_own(memory: Strided) -> bool:
    """True where a tensor is exactly one buffer that only this program writes, row-major."""
    return (
        memory.buffer.kind is BufferKind.TEMPORARY
        and memory.is_packed(range(memory.rank))
        and dims.same(memory.buffer.elements, dims.product(memory.shape))
    )
