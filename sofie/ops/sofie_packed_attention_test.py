"""PackedAttention against its reference, and how many kernels its nodes need."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from sofie import nodes
from sofie.importer.errors import ModelError
from sofie.ir.program import Attention, Program
from sofie.testing.operators import Array, Dims, graph, hold
from sofie.testing.packed_attention import PackedAttention

_LENGTHS = [[3, 1, 5], [4], [0, 0, 2], [7, 0, 1, 2], []]


def _model(
    dtype: str = "float32",
    lse: str = "",
    heads: tuple[int, int] = (4, 2),
    depths: tuple[int, int] = (8, 6),
    ends: str = "int64",
    own_keys: bool = True,
    **options: Any,
) -> onnx.ModelProto:
    padded = "b" in lse
    node = nodes.packed_attention(
        "q",
        "k",
        "v",
        "rows",
        "y",
        cumulative_keys="keys" if own_keys else "",
        lse="lse" if lse else "",
        lse_layout=lse or "sh",
        lse_rows="most" if padded else "",
        **options,
    )
    inputs: dict[str, tuple[str, Dims]] = {
        "q": (dtype, ["T", heads[0], depths[0]]),
        "k": (dtype, ["U" if own_keys else "T", heads[1], depths[0]]),
        "v": (dtype, ["U" if own_keys else "T", heads[1], depths[1]]),
        "rows": (ends, ["E"]),
        **({"keys": (ends, ["E"])} if own_keys else {}),
        **({"most": ("int64", [])} if padded else {}),
    }
    extents: dict[str, int | str] = {"b": "B", "h": heads[0], "s": "M" if padded else "T"}
    outputs: dict[str, str | tuple[str, Dims]] = {"y": (dtype, ["T", heads[0], depths[1]])}
    if lse:
        outputs["lse"] = ("float32", [extents[axis] for axis in lse])
    return graph([node], inputs, outputs, domains={nodes.DOMAIN: nodes.VERSION})


def _ends(lengths: Sequence[int]) -> Array:
    return np.cumsum([0, *lengths])


def _cases(behind: int = 0, own_keys: bool = True) -> list[dict[str, int | Array]]:
    """Batches with queries and keys of different lengths, and rows that belong to nobody."""
    cases: list[dict[str, int | Array]] = []
    for lengths in _LENGTHS:
        others = lengths[::-1]
        case: dict[str, int | Array] = {
            "T": sum(lengths) + behind,
            "E": len(lengths) + 1,
            "rows": _ends(lengths),
            "most": np.array(max(lengths, default=0) + 1),
        }
        if own_keys:
            case |= {"U": sum(others) + behind, "keys": _ends(others)}
        cases.append(case)
    return cases


def _hold(model: onnx.ModelProto, cases: Sequence[dict[str, int | Array]], **options: Any) -> int:
    """Holds a model to the reference; gives the number of its kernels of attention."""
    evaluator = ReferenceEvaluator(model, new_ops=[PackedAttention])
    width = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
    kind = onnx.helper.tensor_dtype_to_np_dtype(width["rows"])
    typed = [
        {n: np.asarray(v, kind) if n in ("rows", "keys") else v for n, v in case.items()}
        for case in cases
    ]
    program: Program = hold(
        model, typed, reference=lambda inputs: list(evaluator.run(None, dict(inputs))), **options
    )
    return sum(isinstance(step, Attention) for step in program.steps)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("ends", ["int32", "int64"])
def test_types(dtype: str, ends: str) -> None:
    assert _hold(_model(dtype, ends=ends), _cases()) == 1


@pytest.mark.parametrize("alignment", ["bottom_right", "top_left"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("window", [(-1, -1), (2, -1), (0, 1), (-1, 0)])
def test_masks(alignment: str, is_causal: bool, window: tuple[int, int]) -> None:
    model = _model(lse="sh", alignment=alignment, is_causal=is_causal, window=window)
    assert _hold(model, _cases(behind=2)) == 1


def test_one_set_of_lengths_for_both() -> None:
    assert _hold(_model(own_keys=False), _cases(own_keys=False)) == 1


def test_scale_and_cap() -> None:
    assert _hold(_model(scale=0.6, softcap=0.4, lse="hs"), _cases()) == 1


_LAYOUTS = ["sh", "hs", *map("".join, itertools.permutations("bhs"))]


@pytest.mark.parametrize("layout", _LAYOUTS)
def test_every_layout_of_the_sums(layout: str) -> None:
    assert _hold(_model(lse=layout), _cases(behind=3)) == 1


def test_what_the_page_shows() -> None:
    node = nodes.packed_attention(
        "query", "key", "value", "cumulative_rows", "result", is_causal=True, lse="lse"
    )
    shape: Dims = ["T", 2, 8]
    kinds: dict[str, tuple[str, Dims]] = {
        name: ("float32", shape) for name in ("query", "key", "value")
    }
    inputs = kinds | {"cumulative_rows": ("int32", ["E"])}
    results: dict[str, str | tuple[str, Dims]] = {
        "result": ("float32", shape),
        "lse": ("float32", ["T", 2]),
    }
    model = graph([node], inputs, results, domains={nodes.DOMAIN: nodes.VERSION})
    ends = np.array([0, 4, 4, 9], np.int32)
    evaluator = ReferenceEvaluator(model, new_ops=[PackedAttention])
    case: dict[str, int | Array] = {"T": 9, "E": 4, "cumulative_rows": ends}
    hold(model, [case], reference=lambda inputs: list(evaluator.run(None, dict(inputs))))


def test_sums_alone() -> None:
    model = _model(lse="bhs")
    del model.graph.output[0]
    assert _hold(model, _cases()) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"alignment": "middle"},
        {"lse": "bs"},
        {"depths": ("D", 6)},
        {"heads": (4, 3)},
    ],
)
def test_what_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="alignment|lse_layout|channels|heads"):
        _hold(_model(**options), _cases())
