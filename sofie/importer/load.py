"""Reads an ONNX file into a graph with inferred shapes.

The names of symbolic dimensions are replaced by ``s0``, ``s1``, ... first: a model may call them
anything ("batch size-1", "a/b", nothing at all), and nothing later may depend on it.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Iterable, Iterator

import onnx
import onnx_ir as ir
import onnx_shape_inference
from google.protobuf.message import DecodeError
from onnx_ir.passes import common

from sofie.importer import functions, mapped, operands, sequences, subgraphs
from sofie.importer.errors import ModelError
from sofie.ir.node import READS, forget
from sofie.ops import control_flow, random_numbers, registry

# How deep calls of a model's functions may nest, and to how many nodes they may come. Exporters
# stay far below; a small file that does not could keep a build busy for ever.
_DEEPEST_CALLS = 100
_MOST_NODES = 50_000
# Bytes; less than a pipe holds.
_LONGEST_MESSAGE = 4000


@dataclasses.dataclass(frozen=True)
class Model:
    """A graph ready for passes.

    Attributes:
      ir_model: the model; every value has an element type and, where it can be known, a shape.
      symbols: what ``s0``, ``s1``, ... are called in the file, in order of first use by the inputs.
        Dimensions without a name are called after their input, as ``<input>_dim<axis>``.
    """

    ir_model: ir.Model
    symbols: tuple[str, ...]

    @property
    def graph(self) -> ir.Graph:
        """The main graph."""
        return self.ir_model.graph


def load(path: pathlib.Path) -> Model:
    """Reads and checks a model.

    Raises:
      ModelError: the file is missing, broken, or not a model of a known ONNX version.
    """
    proto, folder = _read(path)
    symbols = _rename_symbols(proto.graph)
    try:
        model = ir.from_proto(proto)
        _drop_defaults(model.graph)
        _set_base(model, folder)
        _check_tensors(model)
        common.InlinePass()(model)
        _infer(model)
        while subgraphs.inline(model) or sequences.resolve(model) or functions.expand(model):
            _infer(model)
        random_numbers.number_streams(model.graph)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"not a usable ONNX graph: {error}") from error
    return Model(model, symbols)


def _infer(model: ir.Model) -> None:
    """Infers shapes, with every constant known."""
    common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    infer_shapes(model)


def infer_shapes(model: ir.Model) -> None:
    """Fills in element types and shapes, and the values of small integer tensors."""
    registry.every()  # Operators bring shape rules that the library lacks.
    operands.prepare_rules()
    _forget(model)
    operands.find_inputs(model.graph)
    control_flow.prepare(model.graph)
    onnx_shape_inference.infer_symbolic_shapes(model, policy="override")


def _read(path: pathlib.Path) -> tuple[onnx.ModelProto, pathlib.Path]:
    """The model, checked, and the folder of its external tensors."""
    try:
        proto, folder = mapped.read(path)
    except OSError as error:
        raise ModelError(str(error.strerror or error)) from error
    except (DecodeError, ValueError) as error:
        raise ModelError(
            f"not an ONNX file, or a truncated one: {error}; export the model again"
        ) from error
    _check_functions(proto)
    if not proto.graph.output:
        raise ModelError("the graph has no outputs: an empty or truncated ONNX file")
    _run_checker(proto, folder)
    _check_names(proto.graph)
    return proto, folder


def _run_checker(proto: onnx.ModelProto, folder: pathlib.Path) -> None:
    """Runs ONNX's checker, in a process of its own: some damaged files make it abort."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os.chdir(folder)  # Where it looks for external tensors.
            onnx.checker.check_model(proto, full_check=True)
        except Exception as error:  # ValidationError, InferenceError, text that is no UTF-8, ...
            os.write(writing, str(error).encode(errors="replace")[:_LONGEST_MESSAGE])
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        message = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if status:
        message = f"it ends with signal {os.WTERMSIG(status)}"
    if message:
        raise ModelError(f"ONNX's checker refuses the model: {message}")


def _check_names(graph: onnx.GraphProto) -> None:
    """Refuses names that are no UTF-8 (protobuf hands those out as bytes)."""
    for node in graph.node:
        for name in (node.name, node.op_type, node.domain, *node.input, *node.output):
            if not isinstance(name, str):
                raise ModelError(f"the name {name!r} is not UTF-8: a damaged file")


def _rename_symbols(graph: onnx.GraphProto) -> tuple[str, ...]:
    """Names the inputs' symbolic dimensions ``s<i>``; returns what they were called."""
    initializers = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in initializers]
    taken = {d.dim_param for v in inputs for d in v.type.tensor_type.shape.dim if d.dim_param}
    symbols: dict[str, int] = {}
    for value in inputs:
        if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
            raise ModelError(f"input {value.name!r} is not a tensor of known rank")
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                if dim.dim_value < 0:
                    raise ModelError(
                        f"input {value.name!r} has the extent {dim.dim_value} along axis {axis}; "
                        "give the dimension a name instead"
                    )
                continue
            name = dim.dim_param
            if not name:
                name = f"{value.name}_dim{axis}"
                while name in taken:
                    name += "_"
                taken.add(name)
            position = symbols.setdefault(name, len(symbols))
            dim.dim_param = f"s{position}"
    # Inferred again from the inputs: an exporter's own notes on shapes are not to be relied on.
    del graph.value_info[:]
    given = {value.name: value for value in inputs}
    for output in graph.output:
        if output.name in given:
            output.CopyFrom(given[output.name])
        elif output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    return tuple(symbols)


def _drop_defaults(graph: ir.Graph) -> None:
    """Takes inputs with a value in the file for constants: old exporters mean that by it."""
    for value in [v for v in graph.inputs if v.name in graph.initializers]:
        graph.inputs.remove(value)


def _tensors(model: ir.Model) -> Iterator[tuple[str, ir.TensorProtocol]]:
    """Every tensor in the file, also in subgraphs and functions, with a name for messages."""

    def initializers(graph: ir.Graph) -> Iterator[tuple[str, ir.TensorProtocol]]:
        for value in graph.initializers.values():
            if value.const_value is not None:
                yield f"initializer {value.name!r}", value.const_value

    yield from initializers(model.graph)
    bodies: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for body in bodies:
        for node in ir.traversal.RecursiveGraphIterator(body):
            for attribute in node.attributes.values():
                name = f"attribute {attribute.name!r} of {node.op_type} {node.name!r}"
                if attribute.is_ref():
                    continue
                if attribute.type == ir.AttributeType.TENSOR:
                    yield name, attribute.as_tensor()
                elif attribute.type == ir.AttributeType.TENSORS:
                    yield from ((name, tensor) for tensor in attribute.as_tensors())
                elif attribute.type == ir.AttributeType.GRAPH:
                    yield from initializers(attribute.as_graph())
                elif attribute.type == ir.AttributeType.GRAPHS:
                    for graph in attribute.as_graphs():
                        yield from initializers(graph)


def _check_tensors(model: ir.Model) -> None:
    """Reads every tensor once, so that a truncated one is found before anything relies on it."""
    for name, tensor in _tensors(model):
        try:
            if tensor.dtype != ir.DataType.STRING:
                tensor.numpy()
        except Exception as error:
            raise ModelError(f"{name} can't be read: {error}") from error


def _forget(model: ir.Model) -> None:
    """Drops what is known of values beside their types.

    In a file it is just somebody's claim. After passes it is old, and the library can't read back
    every size that it has written, such as ceilings.
    """
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        for output in node.outputs:
            output.shape = None
            forget(output)
    for value in (*model.graph.inputs, *model.graph.initializers.values()):
        forget(value)
    model.graph.meta[READS] = 0


def _set_base(model: ir.Model, folder: pathlib.Path) -> None:
    """Lets external weights be read from the model's folder and from nowhere else."""
    root = folder.resolve()
    for name, tensor in _tensors(model):
        if isinstance(tensor, ir.ExternalTensor):
            if not (root / tensor.location).resolve().is_relative_to(root):
                raise ModelError(
                    f"{name} lies in {tensor.location!r}, outside of the model's folder"
                )
            tensor.base_dir = root


def _check_functions(proto: onnx.ModelProto) -> None:
    """Refuses functions that call themselves, or each other until there is no end of it."""
    bodies = {(f.domain, f.name, f.overload): f.node for f in proto.functions}
    sizes: dict[tuple[str, str, str], int] = {}

    def size(nodes: Iterable[onnx.NodeProto], depth: int) -> int:
        """Number of nodes when every call is written out."""
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type, node.overload)
            if key in bodies and key not in sizes:
                if depth == _DEEPEST_CALLS:
                    raise ModelError(
                        f"function {node.op_type!r} calls itself, or is called at a depth above "
                        f"{_DEEPEST_CALLS}"
                    )
                sizes[key] = size(bodies[key], depth + 1)
            total += sizes.get(key, 1)
            for attribute in node.attribute:
                for graph in (attribute.g, *attribute.graphs):
                    total += size(graph.node, depth)
            if total > _MOST_NODES:
                raise ModelError(
                    f"with its functions written out the model has more than {_MOST_NODES} nodes"
                )
        return total

    if bodies:
        size(proto.graph.node, 0)
