"""Compiles the tests' models as a build does, and says which are refused and why."""

from __future__ import annotations

import pathlib
import re
import traceback
from collections.abc import Callable, Iterator
from typing import TypeVar

import onnx

from sofie.importer.errors import ModelError
from tests.conformance.suite import Case
from tests.conformance.verdicts import FAILED_TO_BUILD, REFUSED, Verdict

T = TypeVar("T")

# A node in the way: "  node label (Operator): reason".
_NODE = re.compile(r"^  .*?\((?P<operator>[\w.]+)\): (?P<reason>.*)$", re.MULTILINE)
_VALUE = re.compile(r"^  ('.*)$", re.MULTILINE)


def reason(error: ModelError) -> str:
    """Why a model is refused, without the names of its nodes and the advice to its owner."""
    text = str(error)
    found = [f"{match['operator']}: {match['reason']}" for match in _NODE.finditer(text)]
    found = found or [match[1] for match in _VALUE.finditer(text)]
    return "; ".join(dict.fromkeys(found)) or re.sub(r"\s+", " ", text).strip()


def compile_case(
    case: Case, compile_model: Callable[[onnx.ModelProto], T], symbolic: bool
) -> T | Verdict:
    """What `compile_model` makes of a test's model, or the verdict if it makes nothing of it.

    Args:
      case: the test.
      compile_model: raises ModelError to refuse.
      symbolic: turn the sizes of the inputs into symbols first.
    """
    refusal: ModelError | None = None
    for model in _symbolic(case) if symbolic else [case.model]:
        try:
            return compile_model(model)
        except ModelError as error:
            refusal = error
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{pathlib.Path(last.filename).name}:{last.lineno}"
            message = f"the generator fails: {type(error).__name__}: {error} ({place})"
            return Verdict(case.kind, FAILED_TO_BUILD, message)
    assert refusal is not None
    return Verdict(case.kind, REFUSED, reason(refusal))


def _symbolic(case: Case) -> Iterator[onnx.ModelProto]:
    """The model with symbols for the extents of its inputs, those that say least of them first.

    An operator may need that extents agree, that one is 1 (to broadcast) or that it is a number. So
    first every dimension has a symbol of its own, then equal extents share one, then 1 stays, then
    only the first dimensions of the inputs are symbols. Each is tried with the lengths of vectors
    as numbers too, of integers alone and of any: those of a shape, of axes or scales are ranks.
    """

    def with_names(
        name: Callable[[int, int, int], str | None], stays: Callable[[onnx.ValueInfoProto], bool]
    ) -> onnx.ModelProto:
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        inputs = [v for v in model.graph.input if v.name in case.inputs]
        for number, value in enumerate(inputs):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                symbol = name(number, axis, dim.dim_value) if dim.HasField("dim_value") else None
                if symbol is not None and not stays(value):
                    dim.dim_param = symbol
        return model

    names: list[Callable[[int, int, int], str | None]] = [
        lambda number, axis, extent: f"d{number}_{axis}",
        lambda number, axis, extent: f"n{extent}",
        lambda number, axis, extent: None if extent == 1 else f"n{extent}",
        lambda number, axis, extent: f"n{extent}" if axis == 0 else None,
    ]
    staying: list[Callable[[onnx.ValueInfoProto], bool]] = [lambda value: False]
    vectors = [value for value in case.model.graph.input if _is_vector(value)]
    if any(_is_integer(value) for value in vectors):
        staying.append(lambda value: _is_vector(value) and _is_integer(value))
    if 0 < len(vectors) < len(case.model.graph.input):
        staying.append(_is_vector)
    for name in names:
        for stays in staying:
            yield with_names(name, stays)


def _is_vector(value: onnx.ValueInfoProto) -> bool:
    return len(value.type.tensor_type.shape.dim) == 1


def _is_integer(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type in (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
