"""ONNX's backend tests in NumPy, and the runner itself."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import numpy as np
import pytest

from tests.conformance import generate, interpret, options, suite, verdicts
from tests.conformance.verdicts import FAILED_TO_BUILD, PASSED, REFUSED, WRONG, Verdict


@pytest.fixture(scope="module")
def cases() -> dict[str, suite.Case]:
    return {case.name: case for case in suite.load()}


def test_every_model_is_right_or_refused(cases: dict[str, suite.Case]) -> None:
    assert len(cases) == 2024
    found = {name: interpret.run(case) for name, case in cases.items()}
    wrong = {n: v for n, v in found.items() if v.result in (WRONG, FAILED_TO_BUILD)}
    assert verdicts.complaints(wrong, {}) == []


def test_inputs_stay_inputs(cases: dict[str, suite.Case]) -> None:
    for case in cases.values():
        for inputs, outputs in case.data_sets:
            assert len(inputs) == len(case.inputs), case.name
            assert len(outputs) == len(case.outputs), case.name


def test_a_wrong_result_is_seen(cases: dict[str, suite.Case]) -> None:
    case = cases["test_add"]
    ((inputs, (output,)),) = case.data_sets
    assert output is not None
    for other in (output * 1.01, output[:1], output.astype(np.float64)):
        wrong = dataclasses.replace(case, data_sets=((inputs, [other]),))
        assert interpret.run(wrong).result == WRONG


@pytest.mark.parametrize(
    ("have", "want", "equal"),
    [
        ([1, np.nan, np.inf], [1.0005, np.nan, np.inf], True),
        ([1.0], [1.01], False),
        ([np.nan], [1], False),
        ([np.inf], [-np.inf], False),
        ([1], [[1]], False),
        (np.array([1000]), np.array([1001]), False),
        (np.array([1]), np.array([1], np.int32), False),
        (np.zeros((0, 3), bool), np.zeros((0, 3), bool), True),
    ],
)
def test_outputs_are_compared(have: Any, want: Any, equal: bool) -> None:
    arrays = [np.asarray(x, np.float32) if isinstance(x, list) else x for x in (have, want)]
    assert (interpret.difference(arrays[0], arrays[1], 1e-3, 1e-7) == "") == equal


def test_symbols_take_the_place_of_sizes(cases: dict[str, suite.Case]) -> None:
    seen = []

    def look(model: object) -> str:
        seen.append(str(model))
        return "compiled"

    assert generate.compile_case(cases["test_add_bcast"], look, symbolic=True) == "compiled"
    assert 'dim_param: "d0_2"' in seen[0] and 'dim_param: "d1_0"' in seen[0]


def test_what_is_not_on_record_is_complained_about() -> None:
    found = {
        "passes": Verdict("node", PASSED),
        "passes now": Verdict("node", PASSED),
        "refused": Verdict("node", REFUSED, "because"),
        "refused otherwise": Verdict("node", REFUSED, "because"),
        "refused now": Verdict("node", REFUSED, "because"),
        "wrong": Verdict("node", WRONG, "1, not 2"),
        "broken": Verdict("node", FAILED_TO_BUILD, "error"),
    }
    record = {"refused": "because", "refused otherwise": "of that", "passes now": "because"}
    problems = verdicts.complaints(found, {**record, "not run": "because"})
    assert [problem.split(":")[0] for problem in problems] == [
        "broken",
        "passes now",
        "refused now",
        "refused otherwise",
        "wrong",
    ]


def test_the_table_counts_and_names(tmp_path: pathlib.Path) -> None:
    found = {
        "a": Verdict("node", PASSED),
        "b": Verdict("simple", REFUSED, "it is | so"),
        "c": Verdict("node", REFUSED, "it is | so"),
    }
    table = verdicts.table(found)
    assert "| node | 2 | 1 | 1 | 0 | 0 |" in table
    assert "| all | 3 | 1 | 2 | 0 | 0 |" in table
    assert "| it is \\| so | 2: b, c |" in table
    verdicts.write_json(found, tmp_path / "found.json")
    assert verdicts.read_json(tmp_path / "found.json") == found


def test_shards_share_the_tests() -> None:
    every = [f"test_{i}" for i in range(10)]
    parts = [options.select(every, "", f"{i}/4") for i in (1, 2, 3, 4)]
    assert sorted(name for part in parts for name in part) == sorted(every)
    assert options.select(every, "[357]", "2/2") == ["test_5"]
