"""An ONNX node as operators see it: typed attributes, shapes, and what is known of its operands."""

from __future__ import annotations

import json
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
        """A string attribute."""
        attribute = self.raw.attributes.get(name)
        return default if attribute is None else attribute.as_string()

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
        """The elements of a small integer input in terms of sizes; None if not known."""
        return known_values(self.input(position)) if self.has(position) else None

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
    if array is not None and array.dtype.kind in "iu":
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
    # The library has symbols of its own for what depends on data; those are no sizes.
    symbols = {s.name for value in parsed for s in value.free_symbols}
    ours = all(name[0] in "st" and name[1:].isdigit() for name in symbols)
    return tuple(parsed) if ours else None


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
