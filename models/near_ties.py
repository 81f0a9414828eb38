"""Finds the rows of a model's outputs that hang on a choice between two nearly equal values.

TopK is a discrete choice: where two of its values differ by less than fp32 can tell, correct
implementations choose differently, and what follows differs by far more than rounding. A row
(index on axis 0) of an output is *loose* if

* taking the other side of every near tie (closer than `NEAR_TIE` relative) in a float64 evaluation
  of the model changes it. Ties among padded points, or between values whose order does not matter,
  change nothing and make no row loose; or
* the fp32 result at hand is further from the float64 result than rounding explains.

Where all inputs and outputs have the same extent on axis 0, that axis is taken to be the batch, and
its rows to be independent of each other. A choice inside a subgraph (If, Loop) is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from models.float64 import to_float64

# Two values closer than this, relative to the larger, are a near tie.
NEAR_TIE = 1e-6
# Change of a row, relative to its norm, that the other side of a tie must make.
_CHANGE = 1e-6
# Distance of an fp32 row from float64, relative to its norm, that rounding can explain.
_ROUNDING = 1e-5
# Rows evaluated at once: the evaluator keeps every intermediate value.
_CHUNK = 8

# An array of whatever element type the model has there.
AnyArray = npt.NDArray[Any]


def has_choices(model: onnx.ModelProto) -> bool:
    """Whether `loose_rows` has anything to look for in this model."""
    return any(node.op_type == "TopK" for node in model.graph.node)


def loose_rows(
    model: onnx.ModelProto, inputs: Mapping[str, AnyArray], outputs: Sequence[AnyArray]
) -> list[npt.NDArray[np.int64]]:
    """Returns for each output the indices of its loose rows, ascending.

    Args:
      model: a model for which `has_choices` holds.
      inputs: one array for each graph input.
      outputs: the fp32 result for these inputs, one array for each graph output. One without axes
        is a single row.
    """
    analysis = _Analysis(to_float64(model))
    loose: list[list[int]] = [[] for _ in outputs]
    for chunk in _chunks([*inputs.values(), *outputs]):
        ours = [output[chunk] for output in outputs]
        exact, tied = analysis.evaluate(_rows(inputs, chunk), swap=False)
        for found, got, want in zip(loose, ours, exact, strict=True):
            found.extend(_indices(chunk, _differs(got, want, _ROUNDING)))
        if tied:
            swapped, _ = analysis.evaluate(_rows(inputs, chunk), swap=True)
            for found, got, want in zip(loose, exact, swapped, strict=True):
                found.extend(_indices(chunk, _differs(got, want, _CHANGE)))
    return [np.unique(np.asarray(found, np.int64)) for found in loose]


def _chunks(arrays: Sequence[AnyArray]) -> list[slice | EllipsisType]:
    """Parts of the batch to evaluate one by one; a single one if axis 0 is not common to all."""
    extents = {array.shape[:1] for array in arrays}
    if len(extents) > 1 or extents == {()}:
        return [...]
    rows = extents.pop()[0]
    return [slice(begin, min(begin + _CHUNK, rows)) for begin in range(0, rows, _CHUNK)]


def _indices(chunk: slice | EllipsisType, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Places in the whole batch of the rows that are chosen in a chunk."""
    return np.flatnonzero(chosen) + (chunk.start if isinstance(chunk, slice) else 0)


def _rows(inputs: Mapping[str, AnyArray], chunk: slice | EllipsisType) -> dict[str, AnyArray]:
    return {
        name: array[chunk].astype(np.float64) if array.dtype == np.float32 else array[chunk]
        for name, array in inputs.items()
    }


def _differs(first: AnyArray, second: AnyArray, limit: float) -> npt.NDArray[np.bool_]:
    """Says for each row whether the two differ by more than `limit`, relative to the second."""
    rows = np.shape(first)[0] if np.ndim(first) else 1
    if not np.size(first):
        return np.zeros(rows, np.bool_)
    a = np.asarray(first, np.float64).reshape(rows, -1)
    b = np.asarray(second, np.float64).reshape(rows, -1)
    near = np.linalg.norm(a - b, axis=1) <= limit * np.linalg.norm(b, axis=1)
    return np.asarray(~near, np.bool_)  # NaN is not near anything


class _Analysis:
    """A float64 model whose TopK nodes report near ties and can take their other side."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._swap = False
        self._tied = False
        self._evaluator = ReferenceEvaluator(model, new_ops=[self._operator()])

    def evaluate(self, inputs: Mapping[str, AnyArray], swap: bool) -> tuple[list[AnyArray], bool]:
        """Returns the outputs, and whether there was a near tie."""
        self._swap = swap
        self._tied = False
        outputs = self._evaluator.run(None, dict(inputs))
        assert isinstance(outputs, list)
        return outputs, self._tied

    def _operator(self) -> type[OpRun]:
        analysis = self

        class TopK(OpRun):
            op_domain = ""

            def _run(
                self,
                x: AnyArray,
                k: AnyArray,
                axis: int | None = None,
                largest: int | None = None,
                sorted: int | None = None,
            ) -> tuple[AnyArray, AnyArray]:
                axis = -1 if axis is None else axis
                slices = np.moveaxis(x, axis, -1)
                indices = analysis.choose(slices, int(k.ravel()[0]), largest != 0)
                values = np.take_along_axis(slices, indices, -1)
                return np.moveaxis(values, -1, axis), np.moveaxis(indices, -1, axis)

        return TopK

    def choose(self, slices: AnyArray, k: int, largest: bool) -> npt.NDArray[np.int64]:
        """TopK along the last axis; equal values in the order of their indices."""
        order = np.argsort(-slices if largest else slices, axis=-1, kind="stable")
        values = np.take_along_axis(slices, order, -1)
        if np.issubdtype(slices.dtype, np.floating) and k > 0:
            # Places i and i + 1 are tied; the last pair is the one at the border, k - 1 and k.
            pairs = values[..., : k + 1]
            gap = np.abs(np.diff(pairs, axis=-1))
            size = np.maximum(np.abs(pairs[..., :-1]), np.abs(pairs[..., 1:]))
            tied = gap <= NEAR_TIE * size
            self._tied |= bool(tied.any())
            if self._swap:
                _swap_pairs(order, tied)
        return order[..., :k]


def _swap_pairs(order: npt.NDArray[np.int64], tied: npt.NDArray[np.bool_]) -> None:
    """Exchanges tied neighbours in place, from the border down, no place more than once."""
    free = np.ones(tied.shape[:-1], np.bool_)
    for place in reversed(range(tied.shape[-1])):
        swap = tied[..., place] & free
        pair = order[..., place : place + 2]
        pair[swap] = pair[swap][:, ::-1]
        free = ~swap
