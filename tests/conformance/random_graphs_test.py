"""Random graphs: the compiler, run in NumPy, against ONNX Runtime."""

from __future__ import annotations

import collections
import random

import onnx.checker
import onnx.printer
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from tests.conformance import interpret, random_graphs
from tests.conformance.suite import Case
from tests.conformance.verdicts import PASSED, Verdict


def hold(case: Case) -> None:
    text = onnx.printer.to_text(case.model)
    assert interpret.run(case) == Verdict("fuzz", PASSED), text


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.randoms(use_true_random=False))
def test_graphs_that_hypothesis_shrinks(rng: random.Random) -> None:
    try:
        case = random_graphs.build(rng)
    except random_graphs.UnusableError:
        reject()
    hold(case)


def test_numbered_graphs() -> None:
    operators: collections.Counter[str] = collections.Counter()
    runs = outputs = 0
    for seed in range(200):
        case = random_graphs.numbered(seed)
        onnx.checker.check_model(case.model, full_check=True)
        operators.update(node.op_type for node in case.model.graph.node)
        runs = max(runs, len(case.data_sets))
        outputs = max(outputs, len(case.outputs))
        hold(case)
    # What is not drawn is not tested.
    assert len(operators) > 45, operators
    assert runs == 4 and outputs >= 4


def test_a_number_names_a_graph() -> None:
    one, other = random_graphs.numbered(17), random_graphs.numbered(17)
    assert one.model == other.model
    for left, right in zip(one.data_sets, other.data_sets, strict=True):
        for a, b in zip(left[0] + left[1], right[0] + right[1], strict=True):
            assert a is not None and b is not None and a.tobytes() == b.tobytes()
