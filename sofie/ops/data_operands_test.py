"""Operands that decide about shapes and are known at run time: inputs, or computed."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.ir.program import Program, Read
from sofie.testing import interpreter
from sofie.testing.interpreter import RequirementError
from sofie.testing.operators import Array, Dims, compile_graph, graph, hold

_X = np.arange(24, dtype=np.float32)


def _model(
    op_type: str,
    x: Dims,
    operands: dict[str, tuple[str, Dims]],
    computed: bool,
    outputs: int = 1,
    rank: int | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    """One operator whose operands are inputs, or casts of inputs."""
    nodes, inputs = [], {"x": ("float32", x)}
    for name, (dtype, shape) in operands.items():
        if not computed:
            inputs[name] = (dtype, shape)
            continue
        inputs[f"{name}_float"] = ("float64", shape)
        to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        nodes.append(helper.make_node("Cast", [f"{name}_float"], [name], to=to))
    results: dict[str, str | tuple[str, Dims]]
    results = {f"y{i}": "int64" if i else "float32" for i in range(outputs)}
    if rank is not None:
        results["y0"] = ("float32", [f"a{axis}" for axis in range(rank)])
    nodes.append(helper.make_node(op_type, ["x", *operands], list(results), "op", **attributes))
    return graph(nodes, inputs, results)


def _feed(computed: bool, **values: object) -> dict[str, int | Array]:
    feeds: dict[str, int | Array] = {}
    for name, value in values.items():
        if isinstance(value, int):
            feeds[name] = value
        elif computed:
            feeds[f"{name}_float"] = np.asarray(value, np.float64)
        else:
            feeds[name] = np.asarray(value, np.int64)
    return feeds


def _reads(program: Program) -> tuple[int, int]:
    """Of inputs, and of tensors that steps compute."""
    return len(program.reads), sum(isinstance(step, Read) for step in program.steps)


both = pytest.mark.parametrize("computed", [False, True])


@both
def test_reshape(computed: bool) -> None:
    model = _model("Reshape", ["N", 6], {"shape": ("int64", [3])}, computed)
    targets = [(4, [2, 3, 4]), (4, [0, -1, 2]), (4, [-1, 1, 1]), (1, [1, 6, 1]), (0, [0, 6, 1])]
    cases = [_feed(computed, N=n, shape=target) for n, target in targets]
    program = hold(model, cases)
    assert _reads(program) == ((0, 1) if computed else (1, 0))


@both
def test_reshape_reordered(computed: bool) -> None:
    """Behind a transpose there is no view under every shape."""
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0])]
    model = _model("Reshape", ["N", 6], {"shape": ("int64", [3])}, computed)
    model.graph.node.insert(0, nodes[0])
    model.graph.node[-1].input[0] = "t"
    hold(model, [_feed(computed, N=4, shape=s) for s in ([2, 3, 4], [6, 0, -1], [24, 1, 1])])


def test_reshape_refuses_what_does_not_fit() -> None:
    program = compile_graph(_model("Reshape", ["N", 6], {"shape": ("int64", [2])}, False))
    for target in ([5, 5], [-2, -12], [-1, -1], [25, -1]):
        with pytest.raises(RequirementError, match="op: "):
            interpreter.run(program, {"x": _X.reshape(4, 6), "shape": np.array(target)})


@both
def test_expand(computed: bool) -> None:
    model = _model("Expand", ["N", 1], {"shape": ("int64", [3])}, computed)
    targets = [(4, [2, 4, 3]), (4, [1, 1, 1]), (1, [3, 5, 2]), (4, [0, 4, 1]), (0, [2, 1, 3])]
    hold(model, [_feed(computed, N=n, shape=target) for n, target in targets])


def test_expand_refuses_what_does_not_fit() -> None:
    program = compile_graph(_model("Expand", ["N"], {"shape": ("int64", [1])}, False))
    for target in (3, -1):
        with pytest.raises(RequirementError, match="op: "):
            interpreter.run(program, {"x": _X[:4], "shape": np.array([target])})


@both
def test_tile(computed: bool) -> None:
    model = _model("Tile", ["N", 2], {"repeats": ("int64", [2])}, computed)
    repeats = [(3, [2, 3]), (3, [1, 1]), (1, [0, 4]), (2, [4, 0]), (0, [3, 1])]
    hold(model, [_feed(computed, N=n, repeats=r) for n, r in repeats])


@both
def test_constant_of_shape(computed: bool) -> None:
    nodes, inputs = [], {"shape": ("int64", [2])}
    if computed:
        nodes.append(
            helper.make_node("Cast", ["shape_float"], ["shape"], to=onnx.TensorProto.INT64)
        )
        inputs = {"shape_float": ("float64", [2])}
    nodes.append(helper.make_node("ConstantOfShape", ["shape"], ["y"]))
    model = graph(nodes, inputs, {"y": "float32"})
    hold(model, [_feed(computed, shape=s) for s in ([2, 3], [0, 4], [7, 1])])


@both
@pytest.mark.parametrize("axis", [0, -1])
def test_topk(computed: bool, axis: int) -> None:
    model = _model("TopK", ["N", 5], {"k": ("int64", [1])}, computed, outputs=2, axis=axis)
    hold(model, [_feed(computed, N=n, k=[k]) for n, k in ((5, 3), (5, 1), (7, 5), (5, 0))])


def test_topk_refuses_what_does_not_fit() -> None:
    model = _model("TopK", ["N"], {"k": ("int64", [1])}, False, outputs=2)
    program = compile_graph(model)
    for k in (6, -1, 2**40):
        with pytest.raises(RequirementError, match="op: "):
            interpreter.run(program, {"x": _X[:5], "k": np.array([k])})


def _named(values: list[list[int]]) -> dict[str, object]:
    return dict(zip(("starts", "ends", "axes", "steps"), values, strict=True))


@both
def test_slice(computed: bool) -> None:
    operands: dict[str, tuple[str, Dims]] = {
        name: ("int64", [2]) for name in ("starts", "ends", "axes", "steps")
    }
    model = _model("Slice", ["N", 5, 3], operands, computed)
    far = 2**40
    cases = [
        (6, [1, 0], [5, 2], [0, 2], [1, 1]),
        (6, [-1, 4], [-far, 0], [0, 1], [-2, -1]),
        (6, [0, -3], [far, far], [-1, -2], [2, 3]),
        (1, [3, 2], [1, 2], [2, 0], [1, 1]),
        (0, [0, 0], [far, far], [0, 1], [3, 1]),
    ]
    hold(model, [_feed(computed, N=n, **_named(rest)) for n, *rest in cases])


def test_slice_refuses_nonsense() -> None:
    operands: dict[str, tuple[str, Dims]] = {
        name: ("int64", [1]) for name in ("starts", "ends", "axes", "steps")
    }
    program = compile_graph(_model("Slice", ["N", 4], operands, False))
    for axis, step in ((2, 1), (-3, 1), (0, 0)):
        values = {"starts": 0, "ends": 2, "axes": axis, "steps": step}
        feeds = {name: np.array([value]) for name, value in values.items()}
        with pytest.raises(RequirementError, match="op: "):
            interpreter.run(program, {"x": _X.reshape(6, 4), **feeds})


@both
def test_squeeze(computed: bool) -> None:
    model = _model("Squeeze", ["N", 1, "M", 1], {"axes": ("int64", [2])}, computed, rank=2)
    cases = [(3, 4, [1, 3]), (1, 4, [0, -1]), (3, 1, [2, -3]), (1, 1, [0, 2]), (0, 1, [-1, -2])]
    hold(model, [_feed(computed, N=n, M=m, axes=a) for n, m, a in cases])


@both
def test_unsqueeze(computed: bool) -> None:
    model = _model("Unsqueeze", ["N", 3], {"axes": ("int64", [2])}, computed, rank=4)
    axes = [(2, [0, 1]), (2, [-1, 0]), (1, [1, 3]), (0, [2, -3])]
    hold(model, [_feed(computed, N=n, axes=a) for n, a in axes])


def test_axes_that_are_no_axes() -> None:
    model = _model("Squeeze", ["N", 1, 1], {"axes": ("int64", [2])}, False, rank=1)
    program = compile_graph(model)
    for axes in ([0, 1], [1, 1], [1, -2], [1, 3], [-4, 1]):
        with pytest.raises(RequirementError, match="op: "):
            interpreter.run(program, {"x": _X.reshape(24, 1, 1), "axes": np.array(axes)})


@both
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceMean", "ReduceMax"])
def test_reduce(op_type: str, keepdims: int, computed: bool) -> None:
    axes: dict[str, tuple[str, Dims]] = {"axes": ("int64", [2])}
    rank = 3 if keepdims else 1
    model = _model(op_type, ["N", 3, "M"], axes, computed, rank=rank, keepdims=keepdims)
    cases = [(4, 5, [0, 1]), (4, 5, [-1, 0]), (1, 7, [2, -2]), (6, 1, [1, 0])]
    hold(model, [_feed(computed, N=n, M=m, axes=a) for n, m, a in cases])


def test_reduce_of_what_is_computed() -> None:
    """The elements, and what is done with the results, are part of the kernel."""
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("ReduceSum", ["e", "axes"], ["s"]),
        helper.make_node("Div", ["e", "s"], ["y"]),
    ]
    model = graph(
        nodes,
        {"x": ("float32", ["N", "M"]), "axes": ("int64", [1])},
        {"y": ("float32", ["a", "b"])},
    )
    cases = [_feed(False, N=n, M=m, axes=[a]) for n, m, a in ((4, 5, 1), (3, 7, 0), (1, 1, -1))]
    hold(model, cases)


@pytest.mark.parametrize("noop", [0, 1])
def test_reduce_without_axes(noop: int) -> None:
    axes: dict[str, tuple[str, Dims]] = {"axes": ("int64", [0])}
    model = _model("ReduceSum", ["N", 3], axes, False, rank=2, noop_with_empty_axes=noop)
    assert _reads(hold(model, [_feed(False, N=n, axes=[]) for n in (4, 1, 0)])) == (0, 0)


def test_arithmetic_on_an_input_waits_for_nothing_else() -> None:
    nodes = [
        helper.make_node("Add", ["rows", "one"], ["more"]),
        helper.make_node("Concat", ["more", "two"], ["shape"], axis=0),
        helper.make_node("Expand", ["x", "shape"], ["y"]),
    ]
    constants = {"one": np.array([1]), "two": np.array([2])}
    inputs: dict[str, tuple[str, Dims]] = {"x": ("float32", ["N", 1]), "rows": ("int64", [1])}
    model = graph(nodes, inputs, {"y": "float32"}, constants)
    program = hold(model, [_feed(False, N=1, rows=[3]), _feed(False, N=1, rows=[0])])
    assert _reads(program) == (1, 0)


def test_one_wait_for_what_is_known_together() -> None:
    nodes = [
        helper.make_node("Cast", ["a"], ["i"], to=onnx.TensorProto.INT64),
        helper.make_node("Cast", ["b"], ["j"], to=onnx.TensorProto.INT64),
        helper.make_node("Expand", ["x", "i"], ["u"]),
        helper.make_node("Tile", ["x", "j"], ["v"]),
        helper.make_node("Add", ["u", "v"], ["y"]),
    ]
    inputs: dict[str, tuple[str, Dims]] = {
        "x": ("float32", [1]),
        "a": ("float32", [1]),
        "b": ("float32", [1]),
    }
    model = graph(nodes, inputs, {"y": "float32"})
    values = [np.array([n], np.float32) for n in (3, 1, 6)]
    program = hold(model, [{"a": v, "b": v} for v in values])
    assert [len(segment.reads) for segment in program.segments()] == [0, 2]


def test_what_depends_on_what_was_read() -> None:
    """Reads in a row: each tells the extent of the tensor from which the next one is computed."""
    nodes = [
        helper.make_node("Cast", ["n"], ["i"], to=onnx.TensorProto.INT64),
        helper.make_node("Expand", ["x", "i"], ["u"]),
        helper.make_node("ReduceSum", ["u"], ["s"]),
        helper.make_node("Cast", ["s"], ["j"], to=onnx.TensorProto.INT64),
        helper.make_node("Expand", ["x", "j"], ["y"]),
    ]
    inputs: dict[str, tuple[str, Dims]] = {"x": ("float32", [1]), "n": ("float32", [1])}
    model = graph(nodes, inputs, {"y": "float32"})
    two = np.array([2], np.float32)
    cases = [{"x": two, "n": np.array([n], np.float32)} for n in (3, 1, 0, 5)]
    program = hold(model, cases)
    assert len(program.segments()) == 3
