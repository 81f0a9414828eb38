"""An ONNX node as operators see it: typed attributes, shapes, and what is known of its operands."""

from __future__ import annotations

import json
import math
from typing import cast

import numpy as np
import onnx_ir
import sympy
from onnx_shape_inference import SYM_DATA_KEY

from sofie.ir import dims
from sofie.ir.dtype import DType, from_onnx


class Node:
    """Read access to one node of a graph whose shapes have been inferred."""

    def __init__(self, node: onnx_ir.Node, version: int) -> None:
        self.raw = node
        self.version = version

    @property
    def op_type(self) -> str:
        """The operator, with its domain unless that is ONNX's own."""
        domain = self.raw.domain
        return f"{domain}.{self.raw.op_type}" if domain else self.raw.op_type

    @property
    def label(self) -> str:
        """What messages and the profile call the node."""
        name = next((value.name for value in self.raw.outputs if value.name), "")
        return self.raw.name or f"{self.raw.op_type}({name})"

    # Attributes.

    def attr_int(self, name: str, default: int | None = None) -> int:
        """An integer attribute."""
        attribute = self.raw.attributes.get(name)
        if attribute is None:
            return cast(int, default)
        return attribute.as_int()

    def attr_float(self, name: str, default: float) -> float:
        """A number attribute."""
        attribute = self.raw.attributes.get(name)
        return default if attribute is None else attribute.as_float()

    def attr_ints(self, name: str) -> tuple[int, ...] | None:
        """A list of integers; None where it is absent."""
        attribute = self.raw.attributes.get(name)
        return None if attribute is None else tuple(attribute.as_ints())

    def attr_string(self, name: str, default: str) -> str:
        """A string attribute.

        Raises:
          ValueError: it is not UTF-8.
        """
        attribute = self.raw.attributes.get(name)
        try:
            return default if attribute is None else attribute.as_string()
        except TypeError as error:
            raise ValueError(f"attribute {name!r} is not UTF-8: a damaged file") from error

    def attr_floats(self, name: str) -> tuple[float, ...] | None:
        """A list of numbers; None where it is absent."""
        attribute = self.raw.attributes.get(name)
        return None if attribute is None else tuple(attribute.as_floats())

    def attr_strings(self, name: str) -> tuple[str, ...] | None:
        """A list of strings; None where it is absent."""
        attribute = self.raw.attributes.get(name)
        return None if attribute is None else tuple(attribute.as_strings())

    def attr_tensor(self, name: str) -> np.ndarray | None:
        """A tensor attribute; None where it is absent."""
        attribute = self.raw.attributes.get(name)
        return None if attribute is None else attribute.as_tensor().numpy()

    # Operands.

    @property
    def arity(self) -> int:
        """Number of inputs, trailing absent ones not counted."""
        count = len(self.raw.inputs)
        while count and self.raw.inputs[count - 1] is None:
            count -= 1
        return count

    def has(self, position: int) -> bool:
        """True where the input is given."""
        return position < len(self.raw.inputs) and self.raw.inputs[position] is not None

    def input(self, position: int) -> onnx_ir.Value:
        """An input that must be given."""
        value = self.raw.inputs[position]
        if value is None:
            raise ValueError(f"input {position} is missing")
        return value

    def dtype(self, position: int) -> DType:
        """An input's element type."""
        return value_dtype(self.input(position))

    def shape(self, position: int) -> dims.Shape:
        """An input's extents."""
        return value_shape(self.input(position))

    def out_dtype(self, position: int = 0) -> DType:
        """An output's element type."""
        return value_dtype(self.raw.outputs[position])

    def out_shape(self, position: int = 0) -> dims.Shape:
        """An output's extents."""
        return value_shape(self.raw.outputs[position])

    def is_used(self, position: int) -> bool:
        """True where something reads the output."""
        if position >= len(self.raw.outputs):
            return False
        value = self.raw.outputs[position]
        return bool(value.uses()) or value.is_graph_output()

    def array(self, position: int) -> np.ndarray | None:
        """A constant input's elements; None where the input is absent or not constant."""
        if not self.has(position):
            return None
        return constant_array(self.input(position))

    def known(self, position: int) -> tuple[dims.Expr, ...] | None:
        """The elements of a small integer input, for the host: numbers, sizes, or data symbols.

        Constants are numbers; what the model computes from sizes are expressions. The elements of
        any other tensor of integers or bools become data symbols (``dims.element``) if there are
        at most ``MOST_READ`` of them: the session reads the tensor before it launches what depends
        on it, which on a GPU waits for the device. So ask only for what decides about shapes,
        loops or strides. A data symbol may have any value: ``Builder.require`` what must hold.

        Returns:
          The elements, row-major; None where the input is absent, is not an integer tensor, or has
          too many elements or an unknown number of them.
        """
        return self._read(position, is_integer=True)

    def known_numbers(self, position: int) -> tuple[dims.Expr, ...] | None:
        """The same for a small floating-point input, such as Resize's scales.

        Its data symbols are real numbers; ``dims.Floor`` and ``dims.Steps`` make sizes of them.
        """
        return self._read(position, is_integer=False)

    def _read(self, position: int, is_integer: bool) -> tuple[dims.Expr, ...] | None:
        if not self.has(position):
            return None
        value = self.input(position)
        if value.dtype not in (_INTEGERS if is_integer else _NUMBERS):
            return None
        array = constant_array(value)
        if array is not None and not is_integer:
            return tuple(sympy.Float(float(x)) for x in array.reshape(-1))
        known = known_values(value)
        return data_symbols(value) if known is None else known

    def counted(self) -> dims.Expr:
        """A data symbol for the extent of its outputs that only the node itself can tell.

        The lowering computes the number and has the host read it (``Builder.read``).

        Raises:
          ValueError: the node is in the body of a loop, where the host can't read.
        """
        output, graph = self.raw.outputs[0], self.raw.graph
        if _COUNT not in output.meta:
            if graph is None or READS not in graph.meta:
                raise ValueError("the shape of its output depends on data, inside of a loop")
            output.meta[_COUNT] = _new_symbol(graph)
        return output.meta[_COUNT]

    def count(self, position: int) -> int | None:
        """How many elements an input has; None where it is absent or that depends on sizes."""
        if not self.has(position):
            return None
        return element_count(self.input(position))

    def axis(self, default: int | None = None, rank: int | None = None) -> int:
        """The attribute ``axis``, counted from the front."""
        rank = len(self.shape(0)) if rank is None else rank
        axis = self.attr_int("axis", default)
        if not -rank <= axis < max(rank, 1):
            raise ValueError(f"axis {axis} is out of range for rank {rank}")
        return axis % rank if rank else 0


def version_of(model: onnx_ir.Model, domain: str) -> int:
    """The opset version that the model imports for a domain; 0 if none."""
    imports = model.opset_imports
    return imports.get(domain, imports.get("ai.onnx", 0) if not domain else 0)


def constant_array(value: onnx_ir.Value) -> np.ndarray | None:
    """The elements of an initializer or a folded constant."""
    if value.is_graph_input():
        return None
    return None if value.const_value is None else value.const_value.numpy()


def known_values(value: onnx_ir.Value) -> tuple[dims.Expr, ...] | None:
    """The elements of an integer value as sizes; None where they depend on data."""
    array = constant_array(value)
    if array is not None and array.dtype.kind in "iub":
        return tuple(sympy.Integer(int(x)) for x in array.reshape(-1))
    text = value.metadata_props.get(SYM_DATA_KEY)
    if text is None:
        return None
    parsed = []
    for item in json.loads(text):
        parsed.append(
            sympy.Integer(item)
            if isinstance(item, int)
            else dims.as_expr(onnx_ir.SymbolicDim(item))
        )
    # The library has symbols of its own for what it can't tell; those are no sizes.
    known = all(dims.is_known_on_host(s) for value in parsed for s in value.free_symbols)
    return tuple(parsed) if known else None


# The most elements of a tensor that a session reads: as many as the pads of a tensor of rank 32.
MOST_READ = 64

# Element types that a session reads.
_INTEGERS = {
    onnx_ir.DataType[name]
    for name in "BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64".split()
}
_NUMBERS = {onnx_ir.DataType[name] for name in "FLOAT DOUBLE FLOAT16 BFLOAT16".split()}

# Of the main graph: how many data symbols there are. Of a value that the host reads: its symbols.
READS = "sofie.reads"
# Of a value: the symbol that stands for an extent which only its node can tell.
_COUNT = "sofie.count"


def element_count(value: onnx_ir.Value) -> int | None:
    """The number of a value's elements; None where it depends on sizes."""
    if value.shape is None:
        return None
    extents = [d for d in value.shape if isinstance(d, int)]
    return math.prod(extents) if len(extents) == len(value.shape) else None


def data_symbols(value: onnx_ir.Value) -> tuple[dims.Expr, ...] | None:
    """New symbols for the elements of a tensor that the session reads; see ``Node.known``."""
    if READS in value.meta:
        return cast(tuple[dims.Expr, ...], value.meta[READS])
    count = element_count(value)
    # What bodies of loops compute is read by nobody: a run is cut between steps of the main graph.
    if count is None or count > MOST_READ or value.graph is None or value.dtype is None:
        return None
    if READS not in value.graph.meta or value.dtype not in _INTEGERS | _NUMBERS:
        return None
    if count == 0:
        return ()
    is_integer = value.dtype in _INTEGERS
    symbols = tuple(_new_symbol(value.graph, is_integer) for _ in range(count))
    value.meta[READS] = symbols
    value.metadata_props[SYM_DATA_KEY] = json.dumps([_spelled(s) for s in symbols])
    return symbols


def forget(value: onnx_ir.Value) -> None:
    """Drops what is known of a value's elements, and its symbols."""
    value.metadata_props.pop(SYM_DATA_KEY, None)
    for key in (READS, _COUNT):
        value.meta.pop(key, None)


def _new_symbol(graph: onnx_ir.Graph, is_integer: bool = True) -> dims.Expr:
    number = graph.meta[READS]
    graph.meta[READS] = number + 1
    return dims.element(number, is_integer)


def _spelled(element: dims.Expr) -> int | str:
    dim = dims.as_dim(element)
    return dim if isinstance(dim, int) else str(dim)


def value_dtype(value: onnx_ir.Value) -> DType:
    """A value's element type.

    Raises:
      ValueError: it has none that this project knows.
    """
    dtype = from_onnx(value.dtype)
    if dtype is None:
        raise ValueError(
            f"{value.name!r} has the element type {value.dtype}, which is not supported"
        )
    return dtype


def value_shape(value: onnx_ir.Value) -> dims.Shape:
    """A value's extents.

    Raises:
      ValueError: its rank or an extent is not known.
    """
    if value.shape is None:
        raise ValueError(f"the rank of {value.name!r} is not known at build time")
    return tuple(dims.as_expr(d) for d in value.shape)
