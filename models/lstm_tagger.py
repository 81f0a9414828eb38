"""Makes `lstm_tagger.onnx`: a bidirectional LSTM over tracks, as in DeepCSV's successors.

    python -m models.lstm_tagger --output=models/lstm_tagger.onnx

Inputs tracks[N, L, 10] (fp32, the hardest first) and track_count[N] (int32, at most L), output
probabilities[N, 3]: a bidirectional LSTM of 32 units, its two last states, a GRU of 16 units over
its outputs, one fully connected layer, a softmax.
"""

from __future__ import annotations

import numpy as np
import onnx

from models import graph_builder
from models.graph_builder import GraphBuilder

SEED = 97
FEATURES = 10
LSTM = 32
GRU = 16
CLASSES = 3


def _recurrent_parameters(
    random: np.random.Generator, module: str, directions: int, gates: int, inputs: int, units: int
) -> dict[str, graph_builder.Array32]:
    def uniform(*shape: int) -> graph_builder.Array32:
        return random.uniform(-1, 1, shape).astype(np.float32) * np.float32(2 / np.sqrt(units))

    return {
        f"{module}.weight": uniform(directions, gates * units, inputs),
        f"{module}.recurrence": uniform(directions, gates * units, units),
        f"{module}.bias": uniform(directions, 2 * gates * units),
    }


def make() -> onnx.ModelProto:
    """Returns the model of `lstm_tagger.onnx`."""
    random = np.random.default_rng(SEED)
    parameters = _recurrent_parameters(random, "lstm", 2, 4, FEATURES, LSTM)
    parameters |= _recurrent_parameters(random, "gru", 1, 3, 2 * LSTM, GRU)
    parameters |= graph_builder.linear_parameters(random, "fc", 2 * LSTM + GRU, CLASSES)
    builder = GraphBuilder("lstm_tagger", parameters)
    tracks = builder.input("tracks", ["N", "L", FEATURES])
    count = builder.input("track_count", ["N"], np.int32)

    def operands(module: str) -> list[str]:
        return [builder.parameter(f"{module}.{p}") for p in ("weight", "recurrence", "bias")]

    time_major = builder.op("Transpose", [tracks], "", perm=[1, 0, 2])
    inputs = [time_major, *operands("lstm"), count]
    states = builder.op(
        "LSTM", inputs, "/lstm", output_count=2, direction="bidirectional", hidden_size=LSTM
    )
    last = states.replace("output_0", "output_1")
    last = builder.op("Transpose", [last], "/lstm", perm=[1, 0, 2])
    last = builder.op("Reshape", [last, builder.constant("", [-1, 2 * LSTM])], "/lstm")
    sequence = builder.op("Transpose", [states], "/lstm", perm=[0, 2, 1, 3])
    shape = builder.constant("/lstm", [0, 0, -1])
    sequence = builder.op("Reshape", [sequence, shape], "/lstm")
    summary = builder.op(
        "GRU",
        [sequence, *operands("gru"), count],
        "/gru",
        output=1,
        output_count=2,
        hidden_size=GRU,
        linear_before_reset=1,
    )
    summary = builder.op("Squeeze", [summary, builder.constant("/gru", [0])], "/gru")
    joined = builder.op("Concat", [last, summary], "", axis=1)
    logits = graph_builder.linear(builder, joined, "fc")
    builder.output("probabilities", builder.op("Softmax", [logits], "", axis=-1), ["N", CLASSES])
    return builder.model("A recurrent tagger: bidirectional LSTM and GRU.")


if __name__ == "__main__":
    graph_builder.run(make)
