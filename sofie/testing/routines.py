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


def _topk(inputs: Arrays, sizes: Sizes, options: Options) -> dict[str, Array]:
    rows = _rows(inputs, sizes)
    # The complement of an integer has the opposite order; its negative may overflow.
    keys = np.invert(rows) if rows.dtype.kind in "iu" else -rows
    order = np.argsort(keys if options["largest"] else rows, axis=1, kind="stable")
    order = order[:, : sizes["k"]]
    return {"values": np.take_along_axis(rows, order, axis=1), "indices": order}


ROUTINES: Mapping[str, Callable[[Arrays, Sizes, Options], dict[str, Array]]] = {
    "TopK": _topk,
}
