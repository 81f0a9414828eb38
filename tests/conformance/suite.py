"""ONNX's backend tests, as the onnx package ships them."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

Array = np.ndarray[Any, Any]

# What onnx's own runner calls the sets that need no download.
KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")


# Their outputs are random, and ONNX prescribes no generator: no backend has the same numbers.
_RANDOM = re.compile(r"test_bernoulli.*|test_training_dropout(_default)?(_mask)?")
# Where zeros are right, their outputs have what float32's rounding leaves: more than the tolerance.
_ROUNDED = re.compile(r"test_dft_inverse.*")
_ROUNDED_ATOL = 1e-6


@dataclasses.dataclass(frozen=True)
class Case:
    """One test: a model and what its outputs must be.

    Attributes:
      name: such as ``test_add_bcast``; unique over all kinds.
      kind: one of ``KINDS``.
      model: the model. Its inputs are inputs, none is a constant.
      data_sets: pairs of inputs and outputs, in the order of the graph. What is no tensor (a
        sequence, an optional that is absent) is None; no model with one is compiled.
      rtol, atol: the test's tolerances, as in ``numpy.allclose``; for types of 16 bits at least two
        units in the last place.
    """

    name: str
    kind: str
    model: onnx.ModelProto
    data_sets: tuple[tuple[list[Array | None], list[Array | None]], ...]
    rtol: float
    atol: float

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs that a run is given: old models list their constants as inputs."""
        constants = {tensor.name for tensor in self.model.graph.initializer}
        return [value.name for value in self.model.graph.input if value.name not in constants]

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs."""
        return [value.name for value in self.model.graph.output]


def load(kinds: Sequence[str] = KINDS) -> list[Case]:
    """All tests of these kinds, sorted by name."""
    cases = []
    with warnings.catch_warnings():
        # The package's tests overflow and divide by zero while they are made.
        warnings.simplefilter("ignore")
        for kind in kinds:
            cases += [_case(kind, test) for test in load_model_tests(kind=kind)]
    return sorted(cases, key=lambda case: case.name)


def _case(kind: str, test: TestCase) -> Case:
    if test.model_dir is None:
        model = test.model
        data = test.data_sets
        data_sets = [(_tensors(inputs), _tensors(outputs)) for inputs, outputs in data or ()]
    else:
        folder = pathlib.Path(test.model_dir)
        model = onnx.load(str(folder / "model.onnx"))
        data_sets = [_read(s, model) for s in sorted(folder.glob("test_data_set_*"))]
    assert model is not None and data_sets, test.name
    rtol = max([test.rtol, *(_rounding(value) for _, outputs in data_sets for value in outputs)])
    atol = math.inf if _RANDOM.fullmatch(test.name) else test.atol
    if _ROUNDED.fullmatch(test.name):
        atol = _ROUNDED_ATOL
    return Case(test.name, kind, model, tuple(data_sets), rtol, atol)


def _rounding(value: Array | None) -> float:
    """What two roundings may make of a result: more than the suite's tolerance in 16 bits."""
    narrow = value is not None and value.dtype.name in ("float16", "bfloat16")
    if not narrow or value is None:
        return 0.0
    return 2 * float(ml_dtypes.finfo(value.dtype).eps)  # type: ignore[no-untyped-call]


def _tensors(values: Iterable[object]) -> list[Array | None]:
    return [_tensor(value) for value in values]


def _tensor(value: object) -> Array | None:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    return None


def _read(folder: pathlib.Path, model: onnx.ModelProto) -> tuple[list[Any], list[Any]]:
    """The arrays of a data set: ``input_0.pb``, ``output_0.pb`` and so on."""

    def arrays(prefix: str, values: Sequence[onnx.ValueInfoProto]) -> Iterator[Array | None]:
        for number, value in enumerate(values):
            file = folder / f"{prefix}_{number}.pb"
            if not file.exists():
                return
            if not value.type.HasField("tensor_type"):
                yield None
                continue
            yield numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))

    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in constants]
    return list(arrays("input", inputs)), list(arrays("output", list(model.graph.output)))
