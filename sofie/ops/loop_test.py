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


def test_an_index_that_counts_trips() -> None:
    model = onnx.parser.parse_model(
        _HEADER
        + """
    main (float[N, 6] x) => (float[N, 2] sum)
    {
        trips = Constant<value_int = 3>()
        axis = Constant<value_ints = [1]>()
        two = Constant<value_ints = [2]>()
        zero = Constant<value_ints = [0]>()
        begin = Slice(x, zero, two, axis)
        sum = Loop <
            body = step (int64 i, bool go, float[L, 2] s) => (bool on, float[L, 2] t)
            {
                on = Identity(go)
                at = Unsqueeze(i, zero)
                from = Mul(at, two)
                until = Add(from, two)
                part = Slice(x, from, until, axis)
                pair = Constant<value_ints = [0, 2]>()
                same = Reshape(part, pair)
                t = Add(s, same)
            }
        > (trips, , begin)
    }
    """
    )
    hold(model, [{"N": 2}, {"N": 1}, {"N": 0}], against_runtime=True)


_DATA = """
main (int64 trips, bool go, float[N] start, float[6, N] x)
    => (float[N] last, float[K, N] all)
{
    last, all = Loop <
        body = step (int64 i, bool before, float[L] s) => (bool on, float[L] t, float[L] out)
        {
            on = Identity(before)
            row = Gather(x, i)
            t = Add(s, row)
            out = Neg(t)
        }
    > (trips, go, start)
}
"""


@pytest.mark.parametrize("trips", [4, 1, 6])
def test_trips_from_data(trips: int) -> None:
    feeds = {"trips": np.array(trips, np.int64), "go": np.array(True)}
    model = onnx.parser.parse_model(_HEADER + _DATA)
    hold(model, [{"N": 3}, {"N": 1}, {"N": 0}], feeds, against_runtime=True)


@pytest.mark.parametrize(("trips", "go"), [(0, True), (-3, True), (5, False)])
def test_no_trips_from_data(trips: int, go: bool) -> None:
    program = compile_graph(onnx.parser.parse_model(_HEADER + _DATA))
    start = np.array([1.5, -2], np.float32)
    feeds = {
        "trips": np.array(trips, np.int64),
        "go": np.array(go),
        "start": start,
        "x": np.zeros((6, 2), np.float32),
    }
    last, rows = interpreter.run(program, feeds)
    np.testing.assert_array_equal(last, start)
    assert rows.shape == (0, 2)


_SEARCH = """
main (int64 most, bool go, float[N] x) => (float[N] y, int64 count)
<int64 zero = {0}, int64 one = {1}, float ten = {10.0}, float two = {2.0}>
{
    y, count = Loop <
        body = step (int64 i, bool before, float[L] s, int64 c)
            => (bool on, float[L] t, int64 d)
        {
            t = Mul(s, two)
            d = Add(c, one)
            sum = ReduceSum<keepdims = 0>(t)
            on = Less(sum, ten)
        }
    > (%s, %s, x, zero)
}
"""


@pytest.mark.parametrize("start", [0.5, 4.0, 20.0, 0.001])
@pytest.mark.parametrize("condition", ["go", ""])
@pytest.mark.parametrize("go", [True, False])
def test_the_body_ends_the_loop(start: float, condition: str, go: bool) -> None:
    model = onnx.parser.parse_model(_HEADER + _SEARCH % ("most", condition))
    feeds = {
        "x": np.array([start, start / 2], np.float32),
        "go": np.array(go),
        "most": np.array(6, np.int64),
    }
    hold(model, [{"N": 2}], feeds, against_runtime=True)


def test_a_loop_that_only_its_body_ends_is_refused() -> None:
    for most in ("", "endless"):
        text = (_SEARCH % (most, "go")).replace(
            "<int64 zero", "<int64 endless = {9223372036854775807}, int64 zero"
        )
        with pytest.raises(ModelError, match="a loop (without an end|that its body ends, with)"):
            compile_graph(onnx.parser.parse_model(_HEADER + text))


def test_a_loop_without_an_end_is_refused() -> None:
    model = _model("Gather(shape, zero)")
    (loop,) = [n for n in model.graph.node if n.op_type == "Loop"]
    loop.input[0] = ""
    with pytest.raises(ModelError, match="a loop without an end"):
        compile_graph(model)
