"""PackedAttention in NumPy and in float64, for ONNX's reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

Array = np.ndarray[Any, Any]


class PackedAttention(OpRun):
    """See docs/packed_attention.md; give it to ``ReferenceEvaluator`` as one of ``new_ops``."""

    op_domain = "sofie"

    def _run(  # type: ignore[no-untyped-def]
        self,
        query: Array,
        key: Array,
        value: Array,
        cumulative_rows: Array,
        cumulative_keys: Array | None = None,
        lse_rows: Array | None = None,
        **attributes,
    ) -> tuple[Array, ...]:
        ends = cumulative_rows if cumulative_keys is None else cumulative_keys
        heads, shared = query.shape[1], query.shape[1] // max(key.shape[1], 1)
        scale = attributes.get("scale")
        scale = query.shape[2] ** -0.5 if scale is None else scale
        result = np.zeros((*query.shape[:2], value.shape[2]))
        sequences = len(cumulative_rows) - 1
        length = query.shape[0] if lse_rows is None else int(lse_rows.reshape(()))
        sums = np.full((max(sequences, 0), heads, length), -np.inf)
        flat = np.full((query.shape[0], heads), -np.inf)
        for b in range(sequences):
            rows = slice(int(cumulative_rows[b]), int(cumulative_rows[b + 1]))
            keys = slice(int(ends[b]), int(ends[b + 1]))
            seen = _seen(rows.stop - rows.start, keys.stop - keys.start, attributes)
            for head in range(heads):
                k = key[keys, head // shared].astype(np.float64)
                v = value[keys, head // shared].astype(np.float64)
                scores = scale * (query[rows, head].astype(np.float64) @ k.T)
                if cap := attributes.get("softcap"):
                    scores = cap * np.tanh(scores / cap)
                scores[~seen] = -np.inf
                largest = np.max(scores, axis=1, initial=-np.inf, keepdims=True)
                weights = np.exp(scores - np.where(np.isinf(largest), 0, largest))
                total = weights.sum(axis=1, keepdims=True)
                result[rows, head] = (weights @ v) / np.where(total == 0, 1, total)
                with np.errstate(divide="ignore"):
                    logarithm = (largest + np.log(total))[:, 0]
                flat[rows, head] = logarithm
                if lse_rows is not None:
                    sums[b, head, : len(logarithm)] = logarithm
        layout = attributes.get("lse_layout") or "sh"
        if lse_rows is None:
            logarithms = flat if layout == "sh" else flat.T
        else:
            logarithms = sums.transpose(["bhs".index(axis) for axis in layout])
        return result.astype(query.dtype), logarithms.astype(np.float32)


def _seen(rows: int, keys: int, attributes: dict[str, Any]) -> Array:
    """Which keys each row of a sequence sees."""
    shift = 0 if attributes.get("alignment") == "top_left" else keys - rows
    distance = np.arange(keys)[None, :] - np.arange(rows)[:, None] - shift
    left = attributes.get("left_window_size", -1)
    right = 0 if attributes.get("is_causal") else attributes.get("right_window_size", -1)
    seen = np.ones((rows, keys), bool)
    if left is not None and left >= 0:
        seen &= distance >= -left
    if right is not None and right >= 0:
        seen &= distance <= right
    return seen
