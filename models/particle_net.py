"""Makes `particle_net.onnx`: the ParticleNet jet tagger with particles and secondary vertices.

    python -m models.particle_net --output=models/particle_net.onnx

The network is that of H. Qu and L. Gouskos, "ParticleNet: Jet Tagging via Particle Clouds",
Phys. Rev. D 101, 056019 (2020), arXiv:1902.08570, in the form in which CMS runs it on AK8 jets:

* particles (`pf_…`) and secondary vertices (`sv_…`) each pass a normalised 1×1 convolution to 32
  features and then form one set of points;
* three EdgeConv blocks with the 16 nearest neighbours, in (Δη, Δφ) for the first block and in the
  features of the block before for the others; 64, 128 and 256 channels;
* the outputs of the blocks are concatenated and fused into 384 features, averaged over the points
  that the mask keeps, and classified by two fully connected layers.

Inputs, all fp32; a mask is 1 for a real particle or vertex and 0 for padding:

    pf_points[N, 2, n_pf]  pf_features[N, 20, n_pf]  pf_mask[N, 1, n_pf]
    sv_points[N, 2, n_sv]  sv_features[N, 11, n_sv]  sv_mask[N, 1, n_sv]

Output: softmax[N, 8], the class probabilities. n_pf + n_sv must be at least 17: 16 neighbours and
the point itself.

The weights are not trained: they are drawn from a seeded generator, and the statistics of the
normalisations and the offsets of the classifier are those of a seeded sample, so that every layer
works in its range and the probabilities differ from jet to jet.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from models import graph_builder
from models.float64 import to_float64

SEED = 20_190_226
PF_FEATURES = 20
SV_FEATURES = 11
COLLECTION_CHANNELS = 32
EDGE_CHANNELS = (64, 128, 256)
LAYERS_PER_BLOCK = 3
NEIGHBOURS = 16
FUSION_CHANNELS = 384
FC_CHANNELS = 256
CLASSES = 8

# Moves masked points out of reach of every real one.
COORDINATE_SHIFT = 1e9
# Of what is measured in the sample only these leading bits are kept, so that the last bits of a
# machine's float64 arithmetic do not reach the file.
_KEPT_BITS = 12
# Spread of the class scores over the sample.
_SCORE_SPREAD = 1.0

Array64 = npt.NDArray[np.float64]
Parameters = dict[str, graph_builder.Array32]


def build(parameters: Parameters) -> onnx.ModelProto:
    """Returns the network with these parameters."""
    builder = graph_builder.GraphBuilder("particle_net", parameters)
    points, features, masks = [], [], []
    for prefix, channels in (("pf", PF_FEATURES), ("sv", SV_FEATURES)):
        symbol = f"n_{prefix}"
        points.append(builder.input(f"{prefix}_points", ["N", 2, symbol]))
        raw = builder.input(f"{prefix}_features", ["N", channels, symbol])
        mask = builder.input(f"{prefix}_mask", ["N", 1, symbol])
        masks.append(mask)
        features.append(_collection_features(builder, prefix, raw, mask))
    scores = _tagger(
        builder,
        builder.op("Concat", points, "", axis=2),
        builder.op("Concat", features, "", axis=2),
        builder.op("Concat", masks, "", axis=2),
    )
    builder.output("softmax", builder.op("Softmax", [scores], "", axis=1), ["N", CLASSES])
    return builder.model("ParticleNet, arXiv:1902.08570, with particles and secondary vertices.")


def _collection_features(
    builder: graph_builder.GraphBuilder, prefix: str, features: str, mask: str
) -> str:
    """Brings one collection's features to the common channels; zero where the mask is."""
    module = f"{prefix}_conv.fc"
    value = builder.op("Mul", [features, mask], "")
    value = graph_builder.batch_normalization(builder, value, f"{module}.0")
    value = _convolution(builder, value, f"{module}.1", rank=1)
    value = graph_builder.batch_normalization(builder, value, f"{module}.2")
    value = builder.op("Relu", [value], f"/{graph_builder.module_path(module)}.3")
    return builder.op("Mul", [value, mask], "")


def _tagger(builder: graph_builder.GraphBuilder, points: str, features: str, mask: str) -> str:
    """The network behind the joined set of points; returns the class scores [N, 8]."""
    points = builder.op("Mul", [points, mask], "/pn")
    features = builder.op("Mul", [features, mask], "/pn")
    masked = builder.op("Equal", [mask, builder.constant("/pn", 0.0, np.float32)], "/pn")
    masked = builder.op("Cast", [masked], "/pn", to=int(onnx.TensorProto.FLOAT))
    shift = builder.op(
        "Mul", [masked, builder.constant("/pn", COORDINATE_SHIFT, np.float32)], "/pn"
    )
    last_axis = builder.constant("/pn", [-1])
    counts = builder.op("ReduceSum", [mask, last_axis], "/pn", keepdims=0)
    one = helper.make_tensor("value", onnx.TensorProto.FLOAT, [1], [1.0])
    ones = builder.op("Shape", [counts], "/pn")
    ones = builder.op("ConstantOfShape", [ones], "/pn", value=one)
    counts = builder.op("Max", [counts, ones], "/pn")

    blocks = []
    block_inputs = COLLECTION_CHANNELS
    for index, channels in enumerate(EDGE_CHANNELS):
        coordinates = builder.op("Add", [features if index else points, shift], "/pn")
        features = _edge_convolution(
            builder, f"pn.edge_convs.{index}", coordinates, features, block_inputs
        )
        features = builder.op("Mul", [features, mask], "/pn")
        blocks.append(features)
        block_inputs = channels

    value = builder.op("Concat", blocks, "/pn", axis=1)
    value = _convolution(builder, value, "pn.fusion_block.0", rank=1)
    value = graph_builder.batch_normalization(builder, value, "pn.fusion_block.1")
    value = builder.op("Relu", [value], "/pn/fusion_block.2")
    value = builder.op("Mul", [value, mask], "/pn")
    value = builder.op("ReduceSum", [value, last_axis], "/pn", keepdims=0)
    value = builder.op("Div", [value, counts], "/pn")
    value = graph_builder.fully_connected(builder, value, "pn.fc.0.0")
    value = builder.op("Relu", [value], "/pn/fc.0.1")
    return graph_builder.fully_connected(builder, value, "pn.fc.1")


def _edge_convolution(
    builder: graph_builder.GraphBuilder,
    module: str,
    coordinates: str,
    features: str,
    channels: int,
) -> str:
    """One EdgeConv block: from features[N, channels, P] to [N, channels of the block, P]."""
    path = "/" + graph_builder.module_path(module)
    neighbours = _nearest_neighbours(builder, path, coordinates)
    value = _edge_features(builder, path, features, neighbours, channels)
    for layer in range(LAYERS_PER_BLOCK):
        value = _convolution(builder, value, f"{module}.convs.{layer}", rank=2)
        value = graph_builder.batch_normalization(builder, value, f"{module}.bns.{layer}")
        value = builder.op("Relu", [value], f"{path}/acts.{layer}")
    value = builder.op("ReduceMean", [value, builder.constant(path, [-1])], path, keepdims=0)
    shortcut = _convolution(builder, features, f"{module}.sc", rank=1)
    shortcut = graph_builder.batch_normalization(builder, shortcut, f"{module}.sc_bn")
    value = builder.op("Add", [shortcut, value], path)
    return builder.op("Relu", [value], f"{path}/sc_act")


def _nearest_neighbours(builder: graph_builder.GraphBuilder, path: str, points: str) -> str:
    """Indices [N, P, k] of each point's nearest others, from -|x|² + 2 x·y - |y|²."""
    transposed = builder.op("Transpose", [points], path, perm=[0, 2, 1])
    inner = builder.op("MatMul", [transposed, points], path)
    inner = builder.op("Mul", [inner, builder.constant(path, -2.0, np.float32)], path)
    squares = builder.op("Pow", [points, builder.constant(path, 2.0, np.float32)], path)
    norms = builder.op("ReduceSum", [squares, builder.constant(path, [1])], path, keepdims=1)
    negative = builder.op("Neg", [norms], path)
    value = builder.op("Sub", [negative, inner], path)
    norms = builder.op("Transpose", [norms], path, perm=[0, 2, 1])
    value = builder.op("Sub", [value, norms], path)
    # The nearest of all is the point itself: it is found with the others and sliced off.
    nearest = builder.op(
        "TopK",
        [value, builder.constant(path, [NEIGHBOURS + 1])],
        path,
        output=1,
        output_count=2,
        axis=-1,
        largest=1,
        sorted=1,
    )
    slicing = [builder.constant(path, [bound]) for bound in (1, np.iinfo(np.int64).max, 2, 1)]
    return builder.op("Slice", [nearest, *slicing], path)


def _edge_features(
    builder: graph_builder.GraphBuilder,
    path: str,
    features: str,
    neighbours: str,
    channels: int,
) -> str:
    """For each point x and neighbour y the features (x, y - x): [N, 2·channels, P, k]."""

    def extent(axis: int) -> str:
        shape = builder.op("Shape", [features], path)
        return builder.op("Gather", [shape, builder.constant(path, axis)], path, axis=0)

    def shape_of(*extents: str) -> str:
        return builder.op("Concat", extents, path, axis=0)

    batch, point_count = extent(0), extent(2)
    # One row of a table for each point of each jet: jet i's rows begin at i·P.
    offsets = builder.op(
        "Range", [builder.constant(path, 0), batch, builder.constant(path, 1)], path
    )
    offsets = builder.op("Reshape", [offsets, builder.constant(path, [-1, 1, 1])], path)
    offsets = builder.op("Mul", [offsets, point_count], path)
    rows = builder.op("Add", [neighbours, offsets], path)
    rows = builder.op("Reshape", [rows, builder.constant(path, [-1])], path)
    table = builder.op("Transpose", [features], path, perm=[0, 2, 1])
    table = builder.op("Reshape", [table, builder.constant(path, [-1, channels])], path)
    gathered = builder.op("Gather", [table, rows], path, axis=0)

    axis = builder.constant(path, [0])
    batch_1 = builder.op("Unsqueeze", [batch, axis], path)
    points_1 = builder.op("Unsqueeze", [point_count, axis], path)
    channels_1 = builder.constant(path, [channels])
    neighbours_1 = builder.constant(path, [NEIGHBOURS])
    one = builder.constant(path, [1])
    gathered = builder.op(
        "Reshape", [gathered, shape_of(batch_1, points_1, neighbours_1, channels_1)], path
    )
    gathered = builder.op("Transpose", [gathered], path, perm=[0, 3, 1, 2])
    centre = builder.op("Reshape", [features, shape_of(batch_1, channels_1, points_1, one)], path)
    centre = builder.op("Tile", [centre, builder.constant(path, [1, 1, 1, NEIGHBOURS])], path)
    difference = builder.op("Sub", [gathered, centre], path)
    return builder.op("Concat", [centre, difference], path, axis=1)


def _convolution(builder: graph_builder.GraphBuilder, value: str, module: str, rank: int) -> str:
    """A 1×1 convolution over `rank` spatial axes, without bias."""
    return graph_builder.convolution(
        builder, value, module, kernel=[1] * rank, strides=[1] * rank, pads=[0] * (2 * rank)
    )


def initial_parameters(random: np.random.Generator) -> Parameters:
    """Draws weights (He initialisation) and normalisations that still have unit statistics."""
    parameters: Parameters = {}

    def weight(module: str, *shape: int) -> None:
        scale = np.sqrt(2.0 / np.prod(shape[1:]))
        values = random.standard_normal(shape) * scale
        parameters[f"{module}.weight"] = values.astype(np.float32)

    def normalization(module: str, channels: int) -> None:
        parameters[f"{module}.weight"] = random.uniform(0.8, 1.2, channels).astype(np.float32)
        parameters[f"{module}.bias"] = random.uniform(-0.2, 0.2, channels).astype(np.float32)
        parameters[f"{module}.running_mean"] = np.zeros(channels, np.float32)
        parameters[f"{module}.running_var"] = np.ones(channels, np.float32)

    for prefix, channels in (("pf", PF_FEATURES), ("sv", SV_FEATURES)):
        normalization(f"{prefix}_conv.fc.0", channels)
        weight(f"{prefix}_conv.fc.1", COLLECTION_CHANNELS, channels, 1)
        normalization(f"{prefix}_conv.fc.2", COLLECTION_CHANNELS)
    block_inputs = COLLECTION_CHANNELS
    for index, channels in enumerate(EDGE_CHANNELS):
        module = f"pn.edge_convs.{index}"
        for layer in range(LAYERS_PER_BLOCK):
            layer_inputs = channels if layer else 2 * block_inputs
            weight(f"{module}.convs.{layer}", channels, layer_inputs, 1, 1)
            normalization(f"{module}.bns.{layer}", channels)
        weight(f"{module}.sc", channels, block_inputs, 1)
        normalization(f"{module}.sc_bn", channels)
        block_inputs = channels
    weight("pn.fusion_block.0", FUSION_CHANNELS, sum(EDGE_CHANNELS), 1)
    normalization("pn.fusion_block.1", FUSION_CHANNELS)
    weight("pn.fc.0.0", FC_CHANNELS, FUSION_CHANNELS)
    weight("pn.fc.1", CLASSES, FC_CHANNELS)
    for module, channels in (("pn.fc.0.0", FC_CHANNELS), ("pn.fc.1", CLASSES)):
        parameters[f"{module}.bias"] = np.zeros(channels, np.float32)
    return parameters


def sample(random: np.random.Generator, jets: int, n_pf: int, n_sv: int) -> dict[str, Array64]:
    """Draws jets of equal size whose features have about unit spread and a mean of their own."""
    inputs: dict[str, Array64] = {}
    for prefix, channels, count in (("pf", PF_FEATURES, n_pf), ("sv", SV_FEATURES, n_sv)):
        own = 0.7 * random.standard_normal((jets, channels, 1))
        inputs[f"{prefix}_points"] = 0.3 * random.standard_normal((jets, 2, count))
        inputs[f"{prefix}_features"] = own + random.standard_normal((jets, channels, count))
        inputs[f"{prefix}_mask"] = np.ones((jets, 1, count))
    return inputs


class _Statistics:
    """Mean and variance of what reaches each BatchNormalization, measured in one pass.

    Each one normalises with what it has just measured, so those after it see what they will see
    in the finished model.
    """

    def __init__(self) -> None:
        self.measured: dict[str, Array64] = {}

    def operator(self) -> type[OpRun]:
        """The BatchNormalization that measures, for the reference evaluator."""
        measured = self.measured

        class BatchNormalization(OpRun):
            op_domain = ""

            def _run(
                self, x: Array64, weight: Array64, bias: Array64, *unused: Array64, **kwargs: object
            ) -> tuple[Array64]:
                axes = tuple(axis for axis in range(x.ndim) if axis != 1)
                shape = [-1 if axis == 1 else 1 for axis in range(x.ndim)]
                mean, variance = x.mean(axes), x.var(axes)
                measured[self.onnx_node.input[3]] = mean
                measured[self.onnx_node.input[4]] = variance
                normal = (x - mean.reshape(shape)) / np.sqrt(variance + 1e-5).reshape(shape)
                return (normal * weight.reshape(shape) + bias.reshape(shape),)

        return BatchNormalization


def _rounded(values: Array64) -> graph_builder.Array32:
    """Keeps the leading bits of each value."""
    mantissa, exponent = np.frexp(values)
    kept = np.round(np.ldexp(mantissa, _KEPT_BITS))
    return np.asarray(np.ldexp(kept, exponent - _KEPT_BITS), np.float32)


def calibrated_parameters(seed: int) -> Parameters:
    """Draws weights and fits normalisations and classifier offsets to a seeded sample."""
    random = np.random.default_rng(seed)
    parameters = initial_parameters(random)
    inputs = sample(random, jets=48, n_pf=40, n_sv=5)

    statistics = _Statistics()
    _evaluate(parameters, inputs, "/pn/Div_output_0", [statistics.operator()])
    parameters |= {name: _rounded(values) for name, values in statistics.measured.items()}

    # The pooled features differ little between jets beside what all jets share: the first layer
    # takes out the common part and brings the differences to unit spread.
    pooled = _evaluate(parameters, inputs, "/pn/Div_output_0")
    weight = parameters["pn.fc.0.0.weight"] / pooled.std(axis=0)
    parameters["pn.fc.0.0.weight"] = _rounded(weight)
    parameters["pn.fc.0.0.bias"] = _rounded(-weight @ pooled.mean(axis=0))

    hidden = _evaluate(parameters, inputs, "/pn/fc.0.1/Relu_output_0")
    weight = parameters["pn.fc.1.weight"].astype(np.float64)
    weight *= _SCORE_SPREAD / (hidden @ weight.T).std(axis=0)[:, None]
    parameters["pn.fc.1.weight"] = _rounded(weight)
    parameters["pn.fc.1.bias"] = _rounded(-weight @ hidden.mean(axis=0))
    return parameters


def _evaluate(
    parameters: Parameters,
    inputs: dict[str, Array64],
    value: str,
    operators: Sequence[type[OpRun]] = (),
) -> Array64:
    """Evaluates one value of the network in float64."""
    model = to_float64(build(parameters))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info(value, onnx.TensorProto.DOUBLE, None))
    evaluator = ReferenceEvaluator(model, new_ops=list(operators))
    outputs = evaluator.run([value], dict(inputs))
    assert isinstance(outputs, list)
    return np.asarray(outputs[0], np.float64)


def make() -> onnx.ModelProto:
    """Returns the model of `particle_net.onnx`."""
    return build(calibrated_parameters(SEED))


if __name__ == "__main__":
    graph_builder.run(make)
