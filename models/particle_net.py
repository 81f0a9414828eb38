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

The features are as `training/jet_features.py` defines them; centring, scaling and limits are part
of the graph. The weights, in `particle_net.npz`, are trained: `training/README.md`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from models import graph_builder, jet_inputs
from models.jet_inputs import Feature

COLLECTIONS = {"pf": jet_inputs.PARTICLE_FEATURES, "sv": jet_inputs.VERTEX_FEATURES}
COLLECTION_CHANNELS = 32
EDGE_CHANNELS = (64, 128, 256)
LAYERS_PER_BLOCK = 3
NEIGHBOURS = 16
FUSION_CHANNELS = 384
FC_CHANNELS = 256
CLASSES = len(jet_inputs.CLASSES)

# Moves masked points out of reach of every real one.
COORDINATE_SHIFT = 1e9

Parameters = dict[str, graph_builder.Array32]


def build(parameters: Parameters) -> onnx.ModelProto:
    """Returns the network with these parameters."""
    builder = graph_builder.GraphBuilder("particle_net", parameters)
    points, features, masks = [], [], []
    for prefix, collection in COLLECTIONS.items():
        symbol = f"n_{prefix}"
        points.append(builder.input(f"{prefix}_points", ["N", 2, symbol]))
        raw = builder.input(f"{prefix}_features", ["N", len(collection), symbol])
        mask = builder.input(f"{prefix}_mask", ["N", 1, symbol])
        masks.append(mask)
        features.append(_collection_features(builder, prefix, collection, raw, mask))
    scores = _tagger(
        builder,
        builder.op("Concat", points, "", axis=2),
        builder.op("Concat", features, "", axis=2),
        builder.op("Concat", masks, "", axis=2),
    )
    builder.output("softmax", builder.op("Softmax", [scores], "", axis=1), ["N", CLASSES])
    return builder.model("ParticleNet, arXiv:1902.08570, with particles and secondary vertices.")


def _collection_features(
    builder: graph_builder.GraphBuilder,
    prefix: str,
    collection: Sequence[Feature],
    features: str,
    mask: str,
) -> str:
    """Brings one collection's features to the common channels; zero where the mask is."""
    module = f"{prefix}_conv.fc"
    value = graph_builder.standardisation(
        builder,
        features,
        f"/{prefix}_conv",
        centres=[feature.centre for feature in collection],
        scales=[feature.scale for feature in collection],
        limit=jet_inputs.LIMIT,
    )
    value = builder.op("Mul", [value, mask], "")
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


def parameter_shapes() -> dict[str, tuple[int, ...]]:
    """The shape of every parameter of the network."""
    shapes: dict[str, tuple[int, ...]] = {}

    def normalization(module: str, channels: int) -> None:
        for part in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{module}.{part}"] = (channels,)

    for prefix, features in COLLECTIONS.items():
        normalization(f"{prefix}_conv.fc.0", len(features))
        shapes[f"{prefix}_conv.fc.1.weight"] = (COLLECTION_CHANNELS, len(features), 1)
        normalization(f"{prefix}_conv.fc.2", COLLECTION_CHANNELS)
    block_inputs = COLLECTION_CHANNELS
    for index, channels in enumerate(EDGE_CHANNELS):
        module = f"pn.edge_convs.{index}"
        for layer in range(LAYERS_PER_BLOCK):
            layer_inputs = channels if layer else 2 * block_inputs
            shapes[f"{module}.convs.{layer}.weight"] = (channels, layer_inputs, 1, 1)
            normalization(f"{module}.bns.{layer}", channels)
        shapes[f"{module}.sc.weight"] = (channels, block_inputs, 1)
        normalization(f"{module}.sc_bn", channels)
        block_inputs = channels
    shapes["pn.fusion_block.0.weight"] = (FUSION_CHANNELS, sum(EDGE_CHANNELS), 1)
    normalization("pn.fusion_block.1", FUSION_CHANNELS)
    for module, inputs, outputs in (
        ("pn.fc.0.0", FUSION_CHANNELS, FC_CHANNELS),
        ("pn.fc.1", FC_CHANNELS, CLASSES),
    ):
        shapes[f"{module}.weight"] = (outputs, inputs)
        shapes[f"{module}.bias"] = (outputs,)
    return shapes


def make() -> onnx.ModelProto:
    """Returns the model of `particle_net.onnx`."""
    with np.load(pathlib.Path(__file__).with_suffix(".npz")) as weights:
        return build(dict(weights))


if __name__ == "__main__":
    graph_builder.run(make)
