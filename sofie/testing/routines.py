"""The runtime's routines in NumPy, by name: outputs from inputs, sizes and options, by member.

Inputs are flat; outputs may have any shape of the right number of elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sofie.ir.program import Option

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array | None]
Sizes = Mapping[str, int]
Options = Mapping[str, Option]


def _rows(inputs: Arrays, sizes: Sizes) -> Array:
    """``x`` as [outer, axis, inner]."""
    x = inputs["x"]
    assert x is not None
    return x.reshape(sizes["outer"], sizes["axis"], sizes["inner"])


def _scan(inputs: Arrays, sizes: Sizes, options: Options) -> dict[str, Array]:
    rows = _rows(inputs, sizes)
    if options["reverse"]:
        rows = rows[:, ::-1]
    function = np.multiply if options["product"] else np.add
    out = function.accumulate(rows, axis=1, dtype=rows.dtype)
    if options["exclusive"]:
        first = np.full_like(rows[:, :1], options["product"])
        out = np.concatenate([first, out[:, :-1]], axis=1)
    return {"out": out[:, ::-1] if options["reverse"] else out}


def _tree_ensemble(inputs: Arrays, sizes: Sizes, options: Options) -> dict[str, Array]:
    given = {key: array for key, array in inputs.items() if array is not None}
    rows = given["x"].reshape(sizes["rows"], sizes["features"])
    thresholds, nodes = given["thresholds"], given["nodes"].reshape(-1, 3)
    begin, targets, weights = (given[f"vote_{n}"] for n in ("begin", "target", "weight"))
    holds = [np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal]
    aggregate = str(options["aggregate"]).rpartition("::")[2]
    join: Any = {"kMin": np.minimum, "kMax": np.maximum}.get(aggregate, np.add)
    start = {"kMin": np.inf, "kMax": -np.inf}.get(aggregate, 0)
    scores = np.full((len(rows), sizes["targets"]), start, thresholds.dtype)
    for row, score in zip(rows, scores, strict=True):
        for root in given["roots"]:
            at = root
            while at >= 0:
                packed, yes, no = nodes[at]
                value = thresholds.dtype.type(row[packed >> 4])
                # NaN differs from every threshold.
                inside = holds[packed & 7](value, thresholds[at])
                inside = inside or (np.isnan(value) and packed & 8)
                at = yes if inside else no
            for vote in range(begin[~at], begin[~at + 1]):
                score[targets[vote]] = join(score[targets[vote]], weights[vote])
    if aggregate == "kAverage":
        scores /= sizes["trees"]
    return {"scores": np.where(np.isinf(scores) & (scores == start), 0, scores)}


ROUTINES: Mapping[str, Callable[[Arrays, Sizes, Options], dict[str, Array]]] = {
    "Scan": _scan,
    "TreeEnsemble": _tree_ensemble,
}
