"""TfIdfVectorizer against ONNX Runtime."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import Array, Dims, compile_graph, graph, hold

# Three single elements, three pairs, and one of three.
_POOL: dict[str, Any] = {
    "pool_int64s": [2, 3, 5, 5, 4, 5, 3, 7, 8, 1, 1, 1],
    "ngram_counts": [0, 3, 9],
    "ngram_indexes": [1, 0, 2, 4, 3, 8, 6],
}


def _model(shape: Dims, dtype: str = "int64", **attributes: Any) -> onnx.ModelProto:
    options = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 3, "max_skip_count": 0}
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **{**options, **_POOL, **attributes})
    return graph([node], {"x": (dtype, shape)}, {"y": ("float32", [*shape[:-1], 9])})


def _few(x: Array) -> Array:
    """Numbers of which some are next to each other as in the pool."""
    return np.asarray(np.abs(x) % 6)


_CASES = [{"N": 4, "C": 12}, {"N": 1, "C": 1}, {"N": 3, "C": 40}]


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("skips", [0, 3])
def test_modes(mode: str, dtype: str, skips: int) -> None:
    weights = [0.5, 2.0, 1.0, 4.0, 0.25, 3.0, 1.5]
    model = _model(["N", "C"], dtype, mode=mode, max_skip_count=skips, weights=weights)
    hold(model, _CASES, values=_few, against_runtime=True)


@pytest.mark.parametrize(("least", "most"), [(1, 1), (2, 2), (2, 3), (1, 2), (3, 3)])
def test_lengths(least: int, most: int) -> None:
    model = _model(["C"], min_gram_length=least, max_gram_length=most, max_skip_count=2)
    hold(model, _CASES, values=_few, against_runtime=True)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"mode": "BM25"}, "the mode 'BM25'"),
        ({"ngram_counts": [0, 4, 2]}, "ngram_counts"),
        ({"ngram_indexes": [0, 8]}, "2 ngram_indexes"),
        ({"ngram_indexes": [0, 1, 2, 3, 8, 5, 5]}, "negative or the same"),
        ({"weights": [1.0]}, "weights that are not one for each n-gram"),
    ],
)
def test_damaged_attributes_are_refused(attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        compile_graph(_model(["C"], **attributes))
