"""Loop against the reference: trips known as numbers and as sizes."""

import numpy as np
import onnx
import onnx.parser
import pytest

from sofie.importer.errors import ModelError
from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, hold

_HEADER = '<ir_version: 10, opset_import: ["": 21]>'
_CASES = [{"T": 4, "N": 3}, {"T": 1, "N": 1}, {"T": 9, "N": 2}]

_POWERS = """
main (float[T, N] x, float[N] start)
    => (float[N] last, float[N] same, float[K, N] all, int64[K] counts)
%s
{
    shape = Shape(x)
    zero = Constant<value_int = 0>()
    trips = %s
    last, same, all, counts = Loop <
        body = step (int64 i, bool go, float[L] s, float[L] constant)
            => (bool on, float[L] t, float[L] constant_out, float[L] out, int64 count)
        {
            on = %s
            row = Gather(x, i)
            scaled = Mul(s, constant)
            t = Add(scaled, row)
            constant_out = Identity(constant)
            out = Neg(t)
            two = Constant<value_int = 2>()
            count = Mul(i, two)
        }
    > (trips, %s, start, start)
}
"""


def _model(trips: str, on: str = "Identity(go)", condition: str = "") -> onnx.ModelProto:
    constants = "<bool true = {1}, bool false = {0}>"
    text = _POWERS % (constants, trips, on, condition)
    return onnx.parser.parse_model(_HEADER + text)


@pytest.mark.parametrize("on", ["Identity(go)", "Identity(true)"])
@pytest.mark.parametrize("condition", ["", "true"])
def test_as_many_trips_as_rows(on: str, condition: str) -> None:
    hold(_model("Gather(shape, zero)", on, condition), _CASES, against_runtime=True)


def test_no_trips() -> None:
    program = compile_graph(_model("Gather(shape, zero)", condition="true"))
    start = np.array([1.5, -2], np.float32)
    last, same, rows, counts = interpreter.run(
        program, {"x": np.zeros((0, 2), np.float32), "start": start}
    )
    np.testing.assert_array_equal(last, start)
    np.testing.assert_array_equal(same, start)
    assert rows.shape == (0, 2) and counts.shape == (0,)


def test_a_constant_number_of_trips() -> None:
    model = _model("Constant<value_int = 3>()")
    cases = [{"T": 3, "N": 2}, {"T": 5, "N": 1}, {"T": 4, "N": 0}]
    hold(model, cases, against_runtime=True)


def test_a_loop_without_an_end_is_refused() -> None:
    model = _model("Gather(shape, zero)")
    (loop,) = [n for n in model.graph.node if n.op_type == "Loop"]
    loop.input[0] = ""
    with pytest.raises(ModelError, match="a loop without an end"):
        compile_graph(model)
