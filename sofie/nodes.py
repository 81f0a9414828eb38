"""Makes nodes of the operators that this project adds to ONNX's; docs/packed_attention.md."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import helper

# What a model imports to use them, and in which version.
DOMAIN = "sofie"
VERSION = 1


def packed_attention(
    query: str,
    key: str,
    value: str,
    cumulative_rows: str,
    output: str,
    *,
    cumulative_keys: str = "",
    lse: str = "",
    lse_layout: str = "sh",
    lse_rows: str = "",
    scale: float | None = None,
    softcap: float = 0.0,
    is_causal: bool = False,
    alignment: str = "bottom_right",
    window: tuple[int, int] = (-1, -1),
    name: str = "",
) -> onnx.NodeProto:
    """Attention over sequences of any lengths that lie one after another.

    Args:
      query: name of [rows, heads, channels].
      key: name of [keys, key heads, channels].
      value: name of [keys, key heads, value channels].
      cumulative_rows: name of [batch + 1]: 0, then where each sequence's query rows end.
      output: name of the result [rows, heads, value channels].
      cumulative_keys: the same for keys; empty where they are those of the query rows.
      lse: name of the logarithms of the sums of exponentials; empty where they are not wanted.
      lse_layout: their axes: "sh", "hs", or with sequences, in any order of "bhs".
      lse_rows: name of the number of rows that each sequence has in a layout with sequences.
      scale: factor on scores; one over the root of the number of channels by default.
      softcap: what scores are capped at; 0 for nothing.
      is_causal: whether a query sees no keys behind its own position.
      alignment: "bottom_right": the last query is where the last key is; "top_left": the first
        query is where the first key is.
      window: how many keys before and behind its own position a query sees; -1 for all.
      name: of the node.
    """
    inputs = [query, key, value, cumulative_rows, cumulative_keys, lse_rows]
    while not inputs[-1]:
        inputs.pop()
    attributes: dict[str, Any] = {
        "is_causal": int(is_causal),
        "alignment": alignment,
        "left_window_size": window[0],
        "right_window_size": window[1],
        "softcap": softcap,
    }
    if scale is not None:
        attributes["scale"] = scale
    if lse:
        attributes["lse_layout"] = lse_layout
    outputs = [output, lse] if lse else [output]
    return helper.make_node(
        "PackedAttention", inputs, outputs, name=name, domain=DOMAIN, **attributes
    )
