"""If with conditions from data: one compiled model takes either branch."""

import numpy as np
import onnx
import onnx.parser
import pytest

from sofie.importer.errors import ModelError
from sofie.testing import interpreter
from sofie.testing.interpreter import RequirementError
from sofie.testing.operators import compile_graph, hold

_HEADER = '<ir_version: 10, opset_import: ["": 21]>'
_CASES = [{"N": 3}, {"N": 1}, {"N": 0}]
_BOTH = (np.array(True), np.array(False))


@pytest.mark.parametrize("taken", _BOTH)
def test_branches_of_one_shape(taken: np.ndarray) -> None:
    model = onnx.parser.parse_model(
        _HEADER
        + """
    main (bool c, float[N, 4] x, float[4, 4] m) => (float[N, 4] y, float[N, 4] z)
    {
        doubled = Add(x, x)
        y, z = If (c) <
            then_branch = taken () => (float[N, 4] a, float[N, 4] b) {
                a = MatMul(doubled, m)
                b = Identity(x)
            },
            else_branch = other () => (float[N, 4] a, float[N, 4] b) {
                a = Softmax(doubled)
                b = Neg(a)
            }
        >
    }
    """
    )
    hold(model, _CASES, {"c": taken}, tolerance=1e-4)


@pytest.mark.parametrize("taken", _BOTH)
def test_branches_of_other_shapes(taken: np.ndarray) -> None:
    model = onnx.parser.parse_model(
        _HEADER
        + """
    main (bool c, float[N, 4] x) => (float[M, L] y)
    {
        part = If (c) <
            then_branch = taken () => (float[M, K] a) { a = Concat<axis = 0>(x, x) },
            else_branch = other () => (float[M, K] a) { a = Transpose(x) }
        >
        y = Exp(part)
    }
    """
    )
    hold(model, _CASES, {"c": taken})


@pytest.mark.parametrize("outer", _BOTH)
@pytest.mark.parametrize("inner", _BOTH)
def test_an_if_in_an_if(outer: np.ndarray, inner: np.ndarray) -> None:
    model = onnx.parser.parse_model(
        _HEADER
        + """
    main (bool c, bool d, float[N] x) => (float[N] y)
    {
        y = If (c) <
            then_branch = taken () => (float[N] a) {
                a = If (d) <
                    then_branch = deep () => (float[N] b) { b = Neg(x) },
                    else_branch = deeper () => (float[N] b) { b = Exp(x) }
                >
            },
            else_branch = other () => (float[N] a) { a = Identity(x) }
        >
    }
    """
    )
    hold(model, _CASES, {"c": outer, "d": inner})


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_condition_that_the_model_computes(sign: float) -> None:
    model = onnx.parser.parse_model(
        _HEADER
        + """
    main (float[3] x) => (float[3] y)
    {
        sum = ReduceSum<keepdims = 0>(x)
        zero = Constant<value_float = 0.0>()
        c = Greater(sum, zero)
        y = If (c) <
            then_branch = taken () => (float[3] a) { a = Neg(x) },
            else_branch = other () => (float[3] a) { a = Exp(x) }
        >
    }
    """
    )
    hold(model, [{}], {"x": sign * np.array([0.5, 1, 2], np.float32)})


def test_what_a_branch_demands_holds_only_where_it_is_taken() -> None:
    model = onnx.parser.parse_model(
        _HEADER
        + """
    main (bool c, float[N] x, float[M] w) => (float[N] y)
    {
        y = If (c) <
            then_branch = taken () => (float[N] a) { a = Max(x, w) },
            else_branch = other () => (float[N] a) { a = Exp(x) }
        >
    }
    """
    )
    program = hold(model, [{"N": 3, "M": 5}, {"N": 3, "M": 1}], {"c": np.array(False)})
    feeds = {"c": np.array(True), "x": np.zeros(3, np.float32), "w": np.zeros(5, np.float32)}
    with pytest.raises(RequirementError):
        interpreter.run(program, feeds)


def test_branches_that_differ_in_rank_are_refused() -> None:
    model = onnx.parser.parse_model(
        _HEADER
        + """
    main (bool c, float[N, 4] x) => (float[M] z)
    {
        flat = Constant<value_ints = [-1]>()
        y = If (c) <
            then_branch = taken () => (float[M, K] a) { a = Identity(x) },
            else_branch = other () => (float[M] b) { b = ReduceSum<keepdims = 0>(x) }
        >
        z = Reshape(y, flat)
    }
    """
    )
    with pytest.raises(ModelError, match="differ in rank"):
        compile_graph(model)
