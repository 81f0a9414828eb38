"""Graphs of recurrent operators and control flow, to be compiled and run on every backend.

python -m tests.control_flow.models --output=FOLDER
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
import onnx.parser
from absl import app, flags
from onnx import numpy_helper

_OUTPUT = flags.DEFINE_string("output", None, "Folder for the models.", required=True)
_HEADER = '<ir_version: 10, opset_import: ["": 21]>'


def _parse(text: str, constants: Mapping[str, np.ndarray] | None = None) -> onnx.ModelProto:
    """A checked model from a graph in ONNX's text format and its constants."""
    model: onnx.ModelProto = onnx.parser.parse_model(_HEADER + text)
    for name, value in (constants or {}).items():
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    onnx.checker.check_model(model, full_check=True)
    return model


def _weights(gates: int, directions: int, features: int, hidden: int) -> dict[str, np.ndarray]:
    """W, R, B and P of a recurrent operator."""
    rng = np.random.default_rng(gates)
    rows = gates * hidden
    shapes = {"w": (rows, features), "r": (rows, hidden), "b": (2 * rows,), "p": (3 * hidden,)}
    return {
        f"{name}{gates}": rng.uniform(-0.5, 0.5, (directions, *shape)).astype(np.float32)
        for name, shape in shapes.items()
    }


def _recurrent() -> onnx.ModelProto:
    """All three, in all directions; what is optional is given by one at least."""
    constants = {
        **_weights(4, 2, 6, 8),
        **_weights(3, 2, 6, 8),
        **_weights(1, 1, 6, 8),
    }
    del constants["p3"], constants["p1"]
    text = """
    recurrent (float[T, N, 6] x, float[2, N, 8] h0, float[2, N, 8] c0)
        => (float[T, 2, N, 8] lstm, float[2, N, 8] lstm_h, float[2, N, 8] lstm_c,
            float[2, N, 8] coupled_c, float[T, 2, N, 8] gru, float[2, N, 8] gru_h,
            float[T, 2, N, 8] gru_after, float[T, 1, N, 8] rnn, float[1, N, 8] rnn_h)
    {
        lstm, lstm_h, lstm_c = LSTM <direction = "bidirectional", hidden_size = 8>
            (x, w4, r4, b4, , h0, c0, p4)
        , , coupled_c = LSTM <direction = "bidirectional", hidden_size = 8, input_forget = 1,
            clip = 0.9, activations = ["HardSigmoid", "Softsign", "Elu", "Sigmoid", "Tanh", "Relu"]>
            (x, w4, r4, b4, , h0)
        gru, gru_h = GRU <direction = "bidirectional", hidden_size = 8> (x, w3, r3, b3, , h0)
        gru_after = GRU <direction = "bidirectional", hidden_size = 8, linear_before_reset = 1>
            (x, w3, r3, b3)
        rnn, rnn_h = RNN <direction = "reverse", hidden_size = 8> (x, w1, r1, b1)
    }
    """
    return _parse(text, constants)


def _sequence_lengths() -> onnx.ModelProto:
    """Sequences of 1 to 4 steps in a batch."""
    constants = {**_weights(4, 2, 6, 8), **_weights(3, 1, 6, 8), "one": np.array(1, np.int32)}
    del constants["p3"], constants["p4"]
    text = """
    lengths (float[T, N, 6] x, int32[N] shorter) => (float[T, 2, N, 8] lstm, float[2, N, 8] lstm_h,
        float[2, N, 8] lstm_c, float[T, 1, N, 8] gru, float[1, N, 8] gru_h)
    {
        lengths = Add (shorter, one)
        lstm, lstm_h, lstm_c = LSTM <direction = "bidirectional", hidden_size = 8>
            (x, w4, r4, b4, lengths)
        gru, gru_h = GRU <direction = "reverse", hidden_size = 8> (x, w3, r3, b3, lengths)
    }
    """
    return _parse(text, constants)


def _scan() -> onnx.ModelProto:
    """A scan in a scan, over axes other than the first one, in both directions."""
    text = """
    scan (float[N, 4] state, float[N, T, 4] x, float[4, 4] m)
        => (float[N, 4] last, float[N, T, 4] rows, float[N, 4, T] sums)
    {
        square = MatMul (m, m)
        last, rows, sums = Scan <num_scan_inputs = 1, scan_input_axes = [1],
            scan_output_axes = [1, 2], scan_output_directions = [0, 1],
            body = outer (float[B, 4] s, float[B, 4] row)
                => (float[B, 4] next, float[B, 4] out, float[B, 4] sum)
            {
                product = MatMul (s, square)
                half = Constant <value_float = 0.5> ()
                moved = Mul (product, half)
                next = Tanh (moved)
                total, out = Scan <num_scan_inputs = 1,
                    body = inner (float[4] u, float[4] line) => (float[4] v, float[4] result)
                    {
                        v = Add (u, line)
                        result = Sub (v, line)
                    }
                > (four, row)
                sum = Add (out, next)
            }
        > (state, x)
    }
    """
    return _parse(text, {"four": np.zeros(4, np.float32)})


def _loop() -> onnx.ModelProto:
    """As many trips as there are rows; a constant number of them; one that grows its value."""
    text = """
    loop (float[T, N] x, float[N] start)
        => (float[N] last, float[T, N] all, int64[T] counts, float[M, N] grown)
    {
        shape = Shape (x)
        trips = Gather (shape, zero)
        last, all, counts = Loop <
            body = step (int64 i, bool go, float[L] s)
                => (bool on, float[L] t, float[L] out, int64 count)
            {
                on = Identity (go)
                row = Gather (x, i)
                t = Add (s, row)
                out = Neg (t)
                count = Mul (i, two)
            }
        > (trips, true, start)
        grown = Loop <
            body = more (int64 i, bool go, float[K, L] s) => (bool on, float[M, L] t)
            {
                on = Identity (go)
                t = Concat <axis = 0> (s, x)
            }
        > (two, true, x)
    }
    """
    constants = {
        "zero": np.array(0, np.int64),
        "two": np.array(2, np.int64),
        "true": np.array(True),
    }
    return _parse(text, constants)


def _random() -> onnx.ModelProto:
    """Numbers with a seed and without one."""
    return _parse(
        """
    random (float[N, 3] like) => (float[N, 3] unseeded, float[N, 3] seeded)
    {
        uniform = RandomUniformLike <low = -1.0> (like)
        normal = RandomNormalLike (like)
        unseeded = Add (uniform, normal)
        seeded = RandomNormalLike <seed = 4.0> (like)
    }
    """
    )


MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "recurrent": _recurrent,
    "sequence_lengths": _sequence_lengths,
    "scan": _scan,
    "loop": _loop,
    "random": _random,
}


def main(argv: Sequence[str]) -> None:
    """Writes every model."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    for name, make in MODELS.items():
        onnx.save(make(), str(pathlib.Path(_OUTPUT.value) / f"{name}.onnx"))


if __name__ == "__main__":
    app.run(main)
