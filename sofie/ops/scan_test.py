"""Scan against the reference: states, axes, directions, graphs inside of graphs."""

import numpy as np
import onnx
import onnx.parser
import pytest

from sofie.importer.errors import ModelError
from sofie.ir.program import Repeat
from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, hold

_HEADER = '<ir_version: 10, opset_import: ["": 21]>'
_CASES = [{"T": 4, "N": 3}, {"T": 1, "N": 1}, {"T": 9, "N": 2}, {"T": 3, "N": 0}]

_SUMS = """
main (float[N] a, float[N] b, float[T, N] x, float[N, T] w)
    => (float[N] last_a, float[N] last_b, float[T, N] sums, float[N, T] both)
{
    last_a, last_b, sums, both = Scan <
        num_scan_inputs = 2, scan_input_axes = [0, 1], scan_output_axes = [0, -1],
        scan_input_directions = [%d, %d], scan_output_directions = [%d, %d],
        body = step (float[K] p, float[K] q, float[K] row, float[K] column)
            => (float[K] next_p, float[K] next_q, float[K] sum, float[K] product)
        {
            next_p = Add(p, row)
            next_q = Mul(p, q)
            sum = Identity(next_p)
            product = Mul(row, column)
        }
    > (a, b, x, w)
}
"""


@pytest.mark.parametrize("directions", [(0, 0, 0, 0), (1, 0, 0, 1), (0, 1, 1, 0), (1, 1, 1, 1)])
def test_axes_and_directions(directions: tuple[int, ...]) -> None:
    # The reference has neither axes nor directions.
    model = onnx.parser.parse_model(_HEADER + _SUMS % directions)
    hold(model, _CASES[:3], against_runtime=True)


def test_nothing_to_scan_leaves_the_states() -> None:
    model = onnx.parser.parse_model(_HEADER + _SUMS % (0, 0, 0, 0))
    program = compile_graph(model)
    rng = np.random.default_rng(7)
    shapes = {"a": (2,), "b": (2,), "x": (0, 2), "w": (2, 0)}
    feeds = {name: rng.standard_normal(shape).astype("f") for name, shape in shapes.items()}
    last_a, last_b, sums, both = interpreter.run(program, feeds)
    np.testing.assert_array_equal(last_a, feeds["a"])
    np.testing.assert_array_equal(last_b, feeds["b"])
    assert sums.shape == (0, 2) and both.shape == (2, 0)


def test_values_from_outside_are_computed_once() -> None:
    model = onnx.parser.parse_model(
        _HEADER
        + """
    main (float[N] a, float[T, N] x, float[N, N] m) => (float[N] y, float[T, N] z)
    {
        square = MatMul(m, m)
        scale = Softmax(a)
        y, z = Scan <num_scan_inputs = 1,
            body = step (float[K] s, float[K] row) => (float[K] t, float[K] out)
            {
                p = MatMul(square, s)
                q = Mul(p, scale)
                t = Add(q, row)
                out = Tanh(t)
            }
        > (a, x)
    }
    """
    )
    program = hold(model, [{"T": 4, "N": 3}, {"T": 1, "N": 1}], tolerance=1e-4)
    (repeat,) = [s for s in program.steps if isinstance(s, Repeat)]
    inside = {name for step in repeat.steps for name in step.nodes}
    assert not inside & {"MatMul(square)", "Softmax(scale)"}


def test_a_scan_in_a_scan() -> None:
    model = onnx.parser.parse_model(
        _HEADER
        + """
    main (float[N] a, float[T, M, N] x) => (float[N] y, float[T, M, N] z)
    {
        y, z = Scan <num_scan_inputs = 1,
            body = outer (float[K] s, float[L, K] rows) => (float[K] t, float[L, K] out)
            {
                half = Constant<value_float = 0.5>()
                start = Mul(s, half)
                t, out = Scan <num_scan_inputs = 1,
                    body = inner (float[K] u, float[K] row) => (float[K] v, float[K] result)
                    {
                        w = Add(u, row)
                        v = Mul(w, half)
                        result = Sub(v, s)
                    }
                > (start, rows)
            }
        > (a, x)
    }
    """
    )
    cases = [{"T": 3, "M": 2, "N": 4}, {"T": 1, "M": 5, "N": 1}, {"T": 2, "M": 1, "N": 0}]
    hold(model, cases)


def test_a_state_whose_shape_changes_is_refused() -> None:
    model = onnx.parser.parse_model(
        _HEADER
        + """
    main (float[N] a, float[T, N] x) => (float[M] y)
    {
        y = Scan <num_scan_inputs = 1,
            body = step (float[K] s, float[L] row) => (float[O] t) { t = Concat<axis = 0>(s, row) }
        > (a, x)
    }
    """
    )
    with pytest.raises(ModelError, match="'t': a value whose shape changes in every iteration"):
        compile_graph(model)
