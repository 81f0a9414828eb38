"""Runs the tests' models in NumPy."""

from __future__ import annotations

import traceback

import numpy as np

from sofie.testing import interpreter, operators
from tests.conformance.generate import compile_case
from tests.conformance.suite import Array, Case
from tests.conformance.verdicts import PASSED, WRONG, Verdict


def run(case: Case, symbolic: bool = False) -> Verdict:
    """The verdict on one test."""
    program = compile_case(case, operators.compile_graph, symbolic)
    if isinstance(program, Verdict):
        return program
    for inputs, outputs in case.data_sets:
        feeds: dict[str, Array] = {}
        for name, array in zip(case.inputs, inputs, strict=True):
            assert array is not None, f"{case.name}: {name} is no tensor, but it is compiled"
            feeds[name] = array
        try:
            with np.errstate(all="ignore"):
                actual = interpreter.run(program, feeds)
        except Exception as error:
            last = "".join(traceback.format_exception_only(error)).strip()
            return Verdict(case.kind, WRONG, f"the interpreter fails: {last}")
        for name, have, want in zip(case.outputs, actual, outputs, strict=True):
            assert want is not None, f"{case.name}: {name} is no tensor, but it is compiled"
            if why := difference(have, want, case.rtol, case.atol):
                return Verdict(case.kind, WRONG, f"{name}: {why}")
    return Verdict(case.kind, PASSED)


def difference(have: Array, want: Array, rtol: float, atol: float) -> str:
    """What is wrong with an output, "" if nothing is; see Case for the tolerances.

    Elements of types that are no floats must be equal.
    """
    if have.dtype != want.dtype:
        return f"dtype {have.dtype}, not {want.dtype}"
    if have.shape != want.shape:
        return f"shape {have.shape}, not {want.shape}"
    if np.isinf(atol):
        return ""
    if have.dtype.kind in "biu":
        bad = have != want
    else:
        have, want = have.astype(np.float64), want.astype(np.float64)
        bad = ~np.isclose(have, want, rtol, atol, equal_nan=True)
    if not bad.any():
        return ""
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{bad.sum()} of {bad.size} elements, first {index}: {have[index]}, not {want[index]}"
