"""Random graphs of batches: where rows are proved not to meet, they do not in ONNX Runtime either.

Rows by themselves must come out as in the whole batch, and rows with sizes of their own, run
together by the compiler's program in NumPy, as each does alone.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
from onnx import helper

from sofie.importer.check import check
from sofie.importer.errors import ModelError
from sofie.passes import batch, pipeline
from sofie.plan.lower import lower
from sofie.testing import interpreter
from sofie.testing.operators import import_model
from tests.conformance import random_graphs
from tests.conformance.random_graphs import Array

_GRAPHS = 80
_ROWS = 5
_TOLERANCE = 2e-3


def _shapes(model: onnx.ModelProto) -> dict[str, list[str | int]]:
    return {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in model.graph.input
    }


def _feeds(
    model: onnx.ModelProto, sizes: Mapping[str, int], rng: np.random.Generator
) -> dict[str, Array]:
    feeds = {}
    shapes = _shapes(model)
    for value in model.graph.input:
        extents = [sizes[d] if isinstance(d, str) else d for d in shapes[value.name]]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        is_bool = dtype.kind == "b"
        whole = rng.integers(0, 2, extents) if is_bool else rng.integers(-9, 10, extents)
        drawn = rng.normal(size=extents) if dtype.kind == "f" else whole
        feeds[value.name] = np.asarray(drawn).astype(dtype)
    return feeds


def _expect_same(actual: Array, expected: Array, text: str) -> None:
    assert actual.shape == expected.shape, text
    if expected.dtype.kind == "f":
        same = np.isclose(actual, expected, _TOLERANCE, _TOLERANCE, equal_nan=True)
        assert same.all(), text
    elif expected.size:
        # Numbers that rounding has changed may be compared with each other.
        assert (actual == expected).mean() > 0.9, text


def _hold_slices(session: onnxruntime.InferenceSession, model: onnx.ModelProto, text: str) -> None:
    feeds = _feeds(model, {"N": _ROWS, "M": 4}, np.random.default_rng(1))
    whole = session.run(None, feeds)
    for first, last in ((0, 1), (1, _ROWS)):
        part = session.run(None, {name: x[first:last] for name, x in feeds.items()})
        for one, rows in zip(part, whole, strict=True):
            each = len(rows) // _ROWS
            _expect_same(one, rows[first * each : last * each], text)


def _hold_ragged(session: onnxruntime.InferenceSession, model: onnx.ModelProto, text: str) -> bool:
    """False where the program is refused, or takes no such sizes."""
    loaded = import_model(model)
    check(loaded)
    pipeline.run(loaded)
    try:
        program = lower(loaded, ragged_sizes=["M"])
    except ModelError:
        return False
    sizes, rng, shapes = (3, 1, 4, 2), np.random.default_rng(2), _shapes(model)
    rows: list[list[Array]] = []
    parts: dict[str, list[Array]] = {}
    for size in sizes:
        feeds = _feeds(model, {"N": 1, "M": size}, rng)
        for name, value in feeds.items():
            has_points = "M" in shapes[name]
            own = np.moveaxis(value, shapes[name].index("M"), 1)[0] if has_points else value
            parts.setdefault(name, []).append(own)
        rows.append(session.run(None, feeds))
    inputs = {name: np.concatenate(values) for name, values in parts.items()}
    try:
        results = interpreter.run(program, {**inputs, "M_offsets": np.cumsum([0, *sizes])})
    except interpreter.RequirementError:
        return False
    for position, actual in enumerate(results):
        alone = [row[position] for row in rows]
        expected = [x[0] if x.ndim > actual.ndim else x for x in alone]
        _expect_same(actual, np.concatenate(expected), text)
    return True


def test_rows() -> None:
    found: collections.Counter[str] = collections.Counter()
    for seed in range(_GRAPHS):
        model = random_graphs.numbered(seed, rows=True).model
        text = f"graph {seed}: {onnx.printer.to_text(model)}"
        loaded = import_model(model)
        proof = batch.find(loaded)
        if proof.refusal is not None:
            found["refused"] += 1
            continue
        assert proof.symbol is not None and loaded.symbols[proof.symbol] == "N", text
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        _hold_slices(session, model, text)
        found["proved"] += 1
        if "M" in loaded.symbols:
            found["ragged"] += _hold_ragged(session, model, text)
    # What is refused is not tested.
    assert found["proved"] > _GRAPHS / 3 and found["ragged"] > _GRAPHS / 10, found
