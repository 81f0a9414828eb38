"""How many kernels attention needs: one for each layout class, whatever the sizes are.

Kernels are counted as functors in the generated source; in machine code by //tests/attention.
"""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from sofie.emit import sources
from sofie.testing.attention_suites import PADDED, Part, model, packed, serving, strided
from sofie.testing.operators import compile_graph


def _kernels(parts: Sequence[Part]) -> int:
    """The number of attention's functors in one model of all the parts."""
    program = compile_graph(model(parts))
    count = sum(type(step).__name__ == "Attention" for step in program.steps)
    assert count == len(parts)
    files = sources.render(program, sources.Options("m", "m", "", 1))
    return len(
        re.findall(r"static constexpr bool kPacked", b"".join(files["m_kernels.h"]).decode())
    )


def test_a_serving_suite_needs_four_kernels() -> None:
    parts = serving(128)
    assert len(parts) == 128
    assert _kernels(parts) == 4


# Nodes that differ in what is no part of a class; each names a rule that makes them equal.
@pytest.mark.parametrize(
    "other",
    [
        {"batch": 7},
        {"batch": 1},
        {"batch": "B"},
        {"heads": (16, 2)},
        {"heads": (8, 8)},
        {"heads": (2, 1)},
        {"heads": (1, 1)},
        {"rows": 1},
        {"rows": "T"},
        {"keys": 1},
        {"keys": "U"},
        {"longest": 1},
        {"scale": 0.3},
        {"softcap": 7.0},
        {"window": (9, 3)},
        {"window": (0, 0)},
        *({"lse": layout} for layout in ["sh", "hs", *PADDED]),
    ],
    ids=str,
)
def test_what_is_no_part_of_a_class(other: dict[str, Any]) -> None:
    options: dict[str, Any] = {"lse": "bhs", "softcap": 3.0, "window": (4, 4)}
    assert _kernels([packed(0, **options), packed(1, **{**options, **other})]) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"depth": 128, "value_depth": 64},
        {"value_depth": 32},
        {"dtype": "float16"},
        {"dtype": "float32"},
        {"ends": "int64"},
        {"lse": ""},
        {"is_causal": True},
        {"window": (4, -1)},
        {"is_causal": True, "alignment": "top_left"},
        {"softcap": 3.0},
    ],
    ids=str,
)
def test_what_is_part_of_a_class(other: dict[str, Any]) -> None:
    assert _kernels([packed(0, lse="sh"), packed(1, **{"lse": "sh", **other})]) == 2


def test_dense_operands_of_any_strides_are_one_class() -> None:
    assert _kernels(strided("float32")) == 1
