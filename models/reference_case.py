"""Makes test inputs for an ONNX model and the outputs to expect, for tests in any language.

A case gives every symbol of the model's inputs an extent; an unnamed dimension is called
`input:axis` (`x:0=3`). Inputs are drawn from a seeded generator (see `random_inputs`). Expected
outputs come from ONNX Runtime on the CPU, or, where that refuses the model or the sizes, from
ONNX's reference evaluator; never from anything else.

For a model that selects (TopK), some rows may hang on a near tie: `models.near_ties` finds them in
float64. Seeds are tried in turn, from a given one on, until at most 5 % of the rows are of that
kind.

One case is one file in NumPy's `.npz` format: a ZIP archive whose members are stored without
compression, each an array in C order named as here with `.npy` after it. Inputs and outputs are
numbered in the order of the graph, since tensor names may hold any character:

    input_0, input_1, …        the inputs
    output_0, output_1, …      the expected outputs
    loose_rows_0, …            int64[any]: rows (axis 0) of that output with a near tie, ascending
    tolerances                 float64[number of outputs, 2]: largest relative error ‖out−ref‖/‖ref‖
                               of a row of that output, of an ordinary row and of a loose one
    manifest                   uint8[length]: a JSON object in UTF-8 with the keys `case` (symbol to
                               extent), `inputs` and `outputs` (names in order), `types` (ONNX
                               element types of both, in the same order), `oracle` and `seed`

Element types that NumPy lacks (bfloat16, the 8-bit floats) are stored as unsigned integers of the
same width; `types` names them.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
from absl import logging
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi import (  # type: ignore[import-untyped]
    onnxruntime_pybind11_state as ort_errors,
)

from models import near_ties
from models.near_ties import AnyArray
from sofie.testing.packed_attention import PackedAttention

LARGEST_LOOSE_FRACTION = 0.05
LOOSE_TOLERANCE = 1e-2
_SEEDS_TO_TRY = 20
# Operators whose products are of integers.
_INTEGER_PRODUCTS = ("ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul")
# Largest relative error of an ordinary row, by element type; integers and booleans are exact.
_TOLERANCES = {
    onnx.TensorProto.DOUBLE: 1e-9,
    onnx.TensorProto.FLOAT: 2e-5,
    onnx.TensorProto.FLOAT16: 2e-3,
    onnx.TensorProto.BFLOAT16: 1.6e-2,
}
_ORT_REFUSALS = (
    ort_errors.Fail,
    ort_errors.InvalidArgument,
    ort_errors.InvalidGraph,
    ort_errors.NotImplemented,
    ort_errors.RuntimeException,
    # What its Python interface cannot turn into a NumPy array, such as bfloat16.
    RuntimeError,
)
_NUMPY_KINDS = "biufc"


class CaseError(ValueError):
    """A case that does not fit its model."""


@dataclasses.dataclass(frozen=True)
class Reference:
    """One case: what goes in and what must come out. Arrays are in the order of the graph."""

    case: Mapping[str, int]
    inputs: Mapping[str, AnyArray]
    outputs: Mapping[str, AnyArray]
    types: Sequence[str]
    loose_rows: Sequence[AnyArray]
    tolerances: Sequence[tuple[float, float]]
    oracle: str
    seed: int


def parse_case(text: str) -> dict[str, int]:
    """Reads `N=1,n_pf=100`.

    Raises:
      CaseError: an entry is not a name, an equals sign and a number that is not negative.
    """
    case: dict[str, int] = {}
    for entry in filter(None, text.split(",")):
        name, equals, value = entry.rpartition("=")
        if not equals or not name or not value.isdecimal():
            raise CaseError(f"Case '{text}': '{entry}' is not of the form symbol=extent.")
        case[name] = int(value)
    return case


def input_shapes(model: onnx.ModelProto, case: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Returns the shape of each graph input at the sizes of `case`.

    Raises:
      CaseError: the case leaves a symbol open or names one that the model does not have.
    """
    shapes = {}
    known: set[str] = set()
    for value in graph_inputs(model):
        shape = []
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            if dimension.HasField("dim_value"):
                shape.append(dimension.dim_value)
                continue
            symbol = dimension.dim_param or f"{value.name}:{axis}"
            known.add(symbol)
            if symbol not in case:
                raise CaseError(f"The case gives no extent for '{symbol}' of '{value.name}'.")
            shape.append(case[symbol])
        shapes[value.name] = tuple(shape)
    if unknown := sorted(set(case) - known):
        raise CaseError(
            f"The model has no symbol {', '.join(unknown)}; it has {', '.join(sorted(known))}."
        )
    return shapes


def graph_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that a caller has to give: those without an initializer."""
    initialized = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initialized]


def random_inputs(
    model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]], seed: int
) -> dict[str, AnyArray]:
    """Draws inputs that look like data.

    Floats are standard normal, integers from 0 to 3, booleans even. Four kinds of inputs are known
    by the end of their names: `points` are coordinates with a spread of 0.3; a `mask` is 1 along
    its last axis, in every second row with up to a quarter of zeros at the end; an `index` is one
    of the rows of the first input, a `count` at most the second extent of the first input. Inputs
    that the model standardises have the mean and the spread that it takes out.
    """
    standards = standardisations(model)
    random = np.random.default_rng(seed)
    inputs: dict[str, AnyArray] = {}
    for value in graph_inputs(model):
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = shapes[value.name]
        array: AnyArray
        if value.name.endswith("index"):
            rows = next(iter(shapes.values()))[0]
            array = random.integers(0, rows, shape) if rows else np.zeros(shape)
        elif value.name.endswith("count"):
            array = random.integers(0, next(iter(shapes.values()))[1], shape, endpoint=True)
        elif dtype == np.bool_:
            array = random.integers(0, 2, shape)
        elif np.issubdtype(dtype, np.integer):
            array = random.integers(0, 4, shape)
        elif value.name.endswith("mask"):
            array = _mask(random, shape)
        else:
            spread = 0.3 if value.name.endswith("points") else 1.0
            array = spread * random.standard_normal(shape)
            if value.name in standards:
                centre, scale = standards[value.name]
                array = centre + scale * array
        inputs[value.name] = array.astype(dtype)
    return inputs


def standardisations(model: onnx.ModelProto) -> dict[str, tuple[AnyArray, AnyArray]]:
    """Centre and scale of each input of which the graph only uses (input - centre) / scale."""
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        for name in node.input:
            readers.setdefault(name, []).append(node)
    found = {}
    for value in graph_inputs(model):
        operands = []
        name = value.name
        for kind in ("Sub", "Div"):
            nodes = readers.get(name, [])
            if [node.op_type for node in nodes] != [kind] or nodes[0].input[0] != name:
                break
            if nodes[0].input[1] not in constants:
                break
            operands.append(constants[nodes[0].input[1]])
            name = nodes[0].output[0]
        if len(operands) == 2:
            found[value.name] = (operands[0], operands[1])
    return found


def _mask(random: np.random.Generator, shape: tuple[int, ...]) -> AnyArray:
    mask = np.ones(shape)
    for row in range(1, shape[0], 2):
        padding = int(random.integers(0, shape[-1] // 4 + 1))
        mask[row, ..., shape[-1] - padding :] = 0
    return mask


def _with_constants(model: onnx.ModelProto, constants: Mapping[str, AnyArray]) -> onnx.ModelProto:
    """The model with constants in place of the inputs of these names."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    inputs = [value for value in model.graph.input if value.name not in constants]
    del changed.graph.input[:]
    changed.graph.input.extend(inputs)
    changed.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in constants.items()
    )
    return changed


def expected_outputs(
    model: onnx.ModelProto, inputs: Mapping[str, AnyArray]
) -> tuple[list[AnyArray], str]:
    """Returns the outputs for these inputs and the name of the program that computed them."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    feeds = dict(inputs)
    if any(node.op_type in _INTEGER_PRODUCTS for node in model.graph.node):
        # Processors without VNNI saturate sums of two products of uint8 and int8 to 16 bits, but
        # for a pass of this level, which makes constants of int8 unsigned.
        options.add_session_config_entry("session.x64quantprecision", "1")
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        signed = [name for name, array in inputs.items() if array.dtype == np.int8]
        model = _with_constants(model, {name: feeds.pop(name) for name in signed})
    # One thread, so that the order of every sum is the same wherever this runs.
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        outputs = session.run(None, feeds)
        return [np.asarray(output) for output in outputs], "ONNX Runtime"
    except _ORT_REFUSALS as error:
        logging.info("ONNX Runtime refuses, ONNX's reference evaluator is used: %s", error)
    evaluator = ReferenceEvaluator(model, new_ops=[PackedAttention])
    outputs = evaluator.run(None, feeds)
    return [np.asarray(output) for output in outputs], "ONNX reference evaluator"


def make_reference(
    model: onnx.ModelProto,
    case: Mapping[str, int],
    seed: int = 1,
    tolerance: float | None = None,
) -> Reference:
    """Draws inputs and computes what to expect.

    Args:
      model: any ONNX model.
      case: the extents of its symbols.
      seed: the first to try.
      tolerance: of float32 outputs; by default that of float32 arithmetic.

    Raises:
      CaseError: the case does not fit the model, or no seed within reach has few enough loose rows.
    """
    shapes = input_shapes(model, case)
    for attempt in range(seed, seed + _SEEDS_TO_TRY):
        inputs = random_inputs(model, shapes, attempt)
        outputs, oracle = expected_outputs(model, inputs)
        loose = [np.zeros(0, np.int64) for _ in outputs]
        if near_ties.has_choices(model):
            loose = near_ties.loose_rows(model, inputs, outputs)
        if all(
            len(rows) <= LARGEST_LOOSE_FRACTION * len(output)
            for rows, output in zip(loose, outputs, strict=True)
            if output.ndim
        ):
            break
        logging.info("Seed %d has too many rows with near ties.", attempt)
    else:
        raise CaseError(
            f"No seed from {seed} to {attempt} has near ties in at most "
            f"{LARGEST_LOOSE_FRACTION:.0%} of the rows; give another seed or case."
        )
    types = [
        value.type.tensor_type.elem_type for value in (*graph_inputs(model), *model.graph.output)
    ]
    allowed = dict(_TOLERANCES)
    if tolerance is not None:
        allowed[onnx.TensorProto.FLOAT] = tolerance
    tolerances = [allowed.get(kind, 0.0) for kind in types[len(inputs) :]]
    return Reference(
        case=dict(case),
        inputs=inputs,
        outputs={
            value.name: output for value, output in zip(model.graph.output, outputs, strict=True)
        },
        types=[onnx.TensorProto.DataType.Name(kind) for kind in types],
        loose_rows=loose,
        tolerances=[(value, max(value, LOOSE_TOLERANCE)) for value in tolerances],
        oracle=oracle,
        seed=attempt,
    )


def write(reference: Reference, path: pathlib.Path) -> None:
    """Writes one case as described at the top of this file."""
    manifest = {
        "case": dict(reference.case),
        "inputs": list(reference.inputs),
        "outputs": list(reference.outputs),
        "types": list(reference.types),
        "oracle": reference.oracle,
        "seed": reference.seed,
    }
    arrays: dict[str, AnyArray] = {}
    for kind, values in (("input", reference.inputs), ("output", reference.outputs)):
        arrays |= {f"{kind}_{i}": _storable(array) for i, array in enumerate(values.values())}
    arrays |= {f"loose_rows_{i}": rows for i, rows in enumerate(reference.loose_rows)}
    arrays["tolerances"] = np.asarray(reference.tolerances, np.float64).reshape(-1, 2)
    arrays["manifest"] = np.frombuffer(json.dumps(manifest, ensure_ascii=False).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def _storable(array: AnyArray) -> AnyArray:
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.kind in _NUMPY_KINDS and array.dtype.isbuiltin == 1:
        return array
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))
