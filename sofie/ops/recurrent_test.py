"""RNN, GRU and LSTM with everything that they can be told, at several lengths and batches."""

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.ir.program import DenseReduce, Gemm, Pointwise, Repeat, launches
from sofie.testing import interpreter
from sofie.testing.operators import compile_graph, graph, hold

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
_INPUTS, _HIDDEN = 3, 4
_CASES = [{"T": 5, "N": 2}, {"T": 1, "N": 3}, {"T": 7, "N": 1}]


def _model(
    op_type: str,
    direction: str = "forward",
    dtype: str = "float32",
    optional: tuple[str, ...] = ("B", "initial_h", "initial_c", "P"),
    computed: bool = False,
    outputs: tuple[bool, ...] = (True, True, True),
    **attributes: Any,
) -> onnx.ModelProto:
    """A node whose weights are constants, or inputs if they are to be computed."""
    rng = np.random.default_rng(3)
    d, rows = 2 if direction == "bidirectional" else 1, _GATES[op_type] * _HIDDEN
    batch_first = attributes.get("layout", 0) == 1
    state = ["N", d, _HIDDEN] if batch_first else [d, "N", _HIDDEN]
    weights: dict[str, tuple[int, ...]] = {"W": (d, rows, _INPUTS), "R": (d, rows, _HIDDEN)}
    if "B" in optional:
        weights["B"] = (d, 2 * rows)
    if op_type == "LSTM" and "P" in optional:
        weights["P"] = (d, 3 * _HIDDEN)
    inputs: dict[str, Any] = {
        "X": (dtype, ["N", "T", _INPUTS] if batch_first else ["T", "N", _INPUTS])
    }
    if "lens" in optional:
        inputs["lens"] = ("int32", ["N"])
    states = ["initial_h", "initial_c"] if op_type == "LSTM" else ["initial_h"]
    inputs.update({name: (dtype, state) for name in states if name in optional})
    constants = {n: rng.uniform(-1, 1, shape).astype(dtype) for n, shape in weights.items()}
    if computed:
        inputs.update({n: (dtype, shape) for n, shape in weights.items()})
        constants = {}
    order = ["X", "W", "R", "B", "lens", "initial_h", "initial_c", "P"]
    names = [n if n in inputs or n in constants else "" for n in order]
    results = ["Y", "Y_h", "Y_c"] if op_type == "LSTM" else ["Y", "Y_h"]
    wanted = [n if keep else "" for n, keep in zip(results, outputs, strict=False)]
    while not names[-1]:
        names.pop()
    node = helper.make_node(
        op_type, names, wanted, hidden_size=_HIDDEN, direction=direction, **attributes
    )
    return graph([node], inputs, {n: dtype for n in wanted if n}, constants)


@pytest.mark.parametrize("op_type", _GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("computed", [False, True])
def test_directions(op_type: str, direction: str, computed: bool) -> None:
    model = _model(op_type, direction, computed=computed)
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize("op_type", _GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_without_a_time_the_state_stays(op_type: str, direction: str) -> None:
    program = compile_graph(_model(op_type, direction))
    rng = np.random.default_rng(5)
    for steps, batch in ((0, 2), (3, 0), (0, 0)):
        shapes = {b.name: b.shape for b in program.inputs}
        state = (int(shapes["initial_h"][0]), batch, _HIDDEN)
        feeds = {n: rng.standard_normal(state).astype("float32") for n in shapes if n != "X"}
        feeds["X"] = rng.standard_normal((steps, batch, _INPUTS)).astype("float32")
        y, *final = interpreter.run(program, feeds)
        assert y.shape == (steps, state[0], batch, _HIDDEN)
        for name, value in zip(("initial_h", "initial_c"), final, strict=False):
            np.testing.assert_array_equal(value, feeds[name])


@pytest.mark.parametrize("op_type", _GATES)
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layouts_and_types_against_the_reference(op_type: str, layout: int, dtype: str) -> None:
    hold(_model(op_type, "forward", dtype, layout=layout), _CASES)


@pytest.mark.parametrize("op_type", _GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_sequence_lengths(op_type: str, direction: str) -> None:
    model = _model(op_type, direction, optional=("B", "lens", "initial_h", "initial_c"))
    for lengths, steps in (([3, 5, 1], 5), ([2], 2), ([4, 4], 6)):
        feeds = {"lens": np.array(lengths, np.int32)}
        hold(model, [{"T": steps, "N": len(lengths)}], feeds, against_runtime=True)


@pytest.mark.parametrize("op_type", _GATES)
def test_nothing_but_what_is_needed(op_type: str) -> None:
    for outputs in itertools.product([False, True], repeat=3):
        if any(outputs[: 3 if op_type == "LSTM" else 2]):
            hold(_model(op_type, optional=(), outputs=outputs), _CASES, against_runtime=True)


# Alpha and beta by activation.
_PARAMETERS: dict[str, tuple[float | None, float | None]] = {
    "HardSigmoid": (0.3, 0.4),
    "LeakyRelu": (0.05, None),
    "Elu": (0.7, None),
    "Affine": (0.7, 0.1),
    "ScaledTanh": (0.5, 0.9),
    "ThresholdedRelu": (0.2, None),
}


@pytest.mark.parametrize(
    "names",
    [
        ["HardSigmoid", "LeakyRelu", "Elu"],
        ["Sigmoid", "Relu", "Softplus"],
        ["Sigmoid", "Affine", "ScaledTanh"],
        ["sigmoid", "TANH", "Softsign"],
        ["Sigmoid", "ThresholdedRelu", "Tanh"],
    ],
)
@pytest.mark.parametrize("op_type", _GATES)
def test_activations(op_type: str, names: list[str]) -> None:
    count = _FUNCTIONS[op_type]
    chosen = names[-count:] if op_type == "RNN" else names[:count]
    attributes: dict[str, Any] = {"activations": chosen}
    for position, name in enumerate(("activation_alpha", "activation_beta")):
        values = [_PARAMETERS.get(n, (None, None))[position] for n in chosen]
        if any(value is not None for value in values):
            attributes[name] = [value for value in values if value is not None]
    hold(_model(op_type, **attributes), _CASES, against_runtime=True)


def test_parameters_of_activations_have_defaults() -> None:
    names = ["HardSigmoid", "Elu", "LeakyRelu"]
    hold(_model("LSTM", activations=names), _CASES, against_runtime=True)


def test_activations_of_each_direction() -> None:
    names = ["Sigmoid", "Tanh", "Tanh", "HardSigmoid", "Relu", "Tanh"]
    model = _model("LSTM", "bidirectional", activations=names)
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize("op_type", _GATES)
def test_clip(op_type: str) -> None:
    hold(_model(op_type, "bidirectional", clip=0.4), _CASES, against_runtime=True)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_coupled_gates(direction: str) -> None:
    # Peepholes aside: ONNX Runtime ignores those of coupled gates.
    model = _model("LSTM", direction, optional=("B", "initial_c"), input_forget=1)
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("computed", [False, True])
def test_reset_after_the_product(direction: str, computed: bool) -> None:
    model = _model("GRU", direction, computed=computed, linear_before_reset=1)
    hold(model, _CASES, against_runtime=True)


def test_a_time_takes_one_product_and_one_kernel() -> None:
    program = compile_graph(_model("LSTM", "bidirectional"))
    (repeat,) = [s for s in program.steps if isinstance(s, Repeat)]
    assert [type(s) for s in repeat.steps] == [Gemm, Pointwise]
    # The product of all inputs is not repeated.
    assert sum(isinstance(s, Gemm | DenseReduce) for s in launches(program.steps)) == 2


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"activations": ["Sigmoid", "Tanh"]}, "2 activations instead of 3"),
        ({"activations": ["Sigmoid", "Swish", "Tanh"]}, "'Swish'"),
    ],
)
def test_what_onnx_does_not_know_is_refused(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        compile_graph(_model("LSTM", **attributes))


def test_weights_of_other_sizes_are_refused() -> None:
    model = _model("RNN", computed=True)
    for value in model.graph.input:
        if value.name == "R":
            value.type.tensor_type.shape.dim[1].dim_value = 5
    with pytest.raises(ModelError, match="axis 1 of R"):
        compile_graph(model)


def test_weights_of_another_rank_are_refused() -> None:
    """ONNX's checker looks at the first input alone."""
    model = graph(
        [helper.make_node("GRU", ["x", "w", "b"], ["y"], hidden_size=4)],
        {"x": ("float32", ["T", "N", 3])},
        {"y": ("float32", ["T", 1, "N", 4])},
        {"w": np.zeros((1, 12, 3), np.float32), "b": np.zeros((1, 24), np.float32)},
    )
    with pytest.raises(ModelError, match="R of rank 2 instead of 3"):
        compile_graph(model)
