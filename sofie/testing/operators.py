"""Holds an operator's lowering against ONNX's reference evaluator, or ONNX Runtime."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
from onnx import helper
from onnx.reference import ReferenceEvaluator

from sofie.importer.check import check
from sofie.importer.load import Model, load
from sofie.ir.program import Program
from sofie.passes import pipeline
from sofie.plan.lower import lower
from sofie.testing import interpreter

Array = np.ndarray[Any, Any]
# Extents of an input; names are symbolic dimensions.
Dims = Sequence[int | str]

OPSET = 21

# The reference rounds after every step of an operator, this project after every operator.
_TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2}


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[str, Dims]],
    outputs: Mapping[str, str | tuple[str, Dims]],
    initializers: Mapping[str, Array] | None = None,
    opset: int = OPSET,
    domains: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A model.

    Args:
      nodes: in order.
      inputs: NumPy type and extents by name.
      outputs: NumPy type by name, with extents where ONNX can't infer them.
      initializers: constants by name.
      opset: version of ONNX's own operators.
      domains: versions of other domains.
    """

    def type_of(name: str) -> int:
        return helper.np_dtype_to_tensor_dtype(np.dtype(name))

    proto = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(n, type_of(t), list(d)) for n, (t, d) in inputs.items()],
        [
            helper.make_tensor_value_info(n, type_of(t), None)
            if isinstance(t, str)
            else helper.make_tensor_value_info(n, type_of(t[0]), list(t[1]))
            for n, t in outputs.items()
        ],
        [onnx.numpy_helper.from_array(a, n) for n, a in (initializers or {}).items()],
    )
    versions = {"": opset, **(domains or {})}
    imports = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
    model = helper.make_model(proto, opset_imports=imports, ir_version=10)
    # The checker wants a shape on every output.
    return onnx.shape_inference.infer_shapes(model)


def import_model(proto: onnx.ModelProto) -> Model:
    """The model as the importer reads it from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        onnx.save(proto, str(path))
        return load(path)


def compile_graph(proto: onnx.ModelProto) -> Program:
    """Importer, check, passes and lowering, as for a build."""
    model = import_model(proto)
    check(model)
    pipeline.run(model)
    return lower(model)


def is_float(dtype: np.dtype[Any]) -> bool:
    """True for floating-point types, those that NumPy itself lacks included."""
    return dtype.kind == "f" or "float" in dtype.name


def random(rng: np.random.Generator, dtype: str, shape: Sequence[int]) -> Array:
    """Fresh values that suit most operators."""
    kind = np.dtype(dtype)
    if is_float(kind):
        return rng.standard_normal(shape).astype(kind)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    low = -9 if kind.kind == "i" else 0
    return rng.integers(low, 10, shape).astype(kind)


def hold(
    proto: onnx.ModelProto,
    cases: Sequence[Mapping[str, int | Array]],
    feeds: Mapping[str, Array] | None = None,
    tolerance: float = 1e-5,
    against_runtime: bool = False,
    values: Callable[[Array], Array] | None = None,
    reference: Callable[[Mapping[str, Array]], Sequence[Array]] | None = None,
) -> Program:
    """Compiles once and compares at several sizes; returns the program.

    Args:
      proto: the model.
      cases: values of the symbolic dimensions, and of inputs that must not be random; one run each.
      feeds: inputs that must not be random, by name, the same in all runs.
      tolerance: relative and absolute, for floating-point outputs, unless their type is narrower
        than that; others must be equal.
      against_runtime: compare with ONNX Runtime, where the reference is wrong or refuses.
      values: what random numbers become before they are an input.
      reference: the outputs for some inputs, where neither of them is to be asked.
    """
    program = compile_graph(proto)
    evaluator: Any = None
    if against_runtime:
        evaluator = onnxruntime.InferenceSession(
            proto.SerializeToString(), providers=["CPUExecutionProvider"]
        )
    elif reference is None:
        evaluator = ReferenceEvaluator(proto)
    rng = np.random.default_rng(20240229)
    assert cases, "a test without a case holds nothing"
    for case in cases:
        inputs: dict[str, Array] = {}
        for value in proto.graph.input:
            if value.name in case:
                inputs[value.name] = np.asarray(case[value.name])
                continue
            tensor = value.type.tensor_type
            shape = [
                int(case[d.dim_param]) if d.dim_param else d.dim_value for d in tensor.shape.dim
            ]
            dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            drawn = random(rng, dtype.name, shape)
            inputs[value.name] = drawn if values is None else values(drawn).astype(drawn.dtype)
        inputs.update(feeds or {})
        with np.errstate(all="ignore"):
            if reference is not None:
                expected = list(reference(inputs))
            else:
                assert evaluator is not None
                expected = cast(list[Array], evaluator.run(None, inputs))
        actual = interpreter.run(program, inputs)
        for want, have in zip(expected, actual, strict=True):
            want = np.asarray(want)
            assert have.dtype == want.dtype, f"{have.dtype} instead of {want.dtype}"
            assert have.shape == want.shape, f"{have.shape} instead of {want.shape} at {case}"
            if is_float(want.dtype):
                largest = max(tolerance, _TOLERANCES.get(want.dtype.name, 0))
                actual64, expected64 = have.astype(np.float64), want.astype(np.float64)
                np.testing.assert_allclose(actual64, expected64, rtol=largest, atol=largest)
            else:
                np.testing.assert_array_equal(have, want)
    return program


_SIZES = ({"N": 5, "M": 3}, {"N": 1, "M": 7}, {"N": 0, "M": 2}, {"N": 9, "M": 1})


def hold_elementwise(
    op_type: str,
    dtypes: Sequence[str],
    result: str | None = None,
    arity: int = 1,
    attributes: Mapping[str, Any] | None = None,
    opset: int = OPSET,
    values: Callable[[Array], Array] | None = None,
) -> None:
    """An element-wise operator on every type, alone, broadcast both ways, and at several sizes.

    Args:
      op_type: ONNX's name.
      dtypes: NumPy types of the inputs.
      result: type of the output if it is another one.
      arity: number of inputs.
      attributes: of the node.
      opset: version of ONNX's own operators.
      values: what random numbers become before they are an input.
    """
    shapes: list[Dims] = [["N", "M"], ["M"], ["N", 1], []]
    layouts = [[shape] * arity for shape in shapes]
    if arity > 1:
        layouts += [
            [shapes[i % 3] for i in range(arity)],
            [shapes[(i + 1) % 3] for i in range(arity)],
        ]
    for dtype in dtypes:
        for layout in layouts:
            names = [f"x{i}" for i in range(arity)]
            model = graph(
                [helper.make_node(op_type, names, ["y"], **(attributes or {}))],
                {n: (dtype, shape) for n, shape in zip(names, layout, strict=True)},
                {"y": result or dtype},
                opset=opset,
            )
            hold(model, _SIZES, values=values)
