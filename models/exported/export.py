"""Makes the models beside it with PyTorch's exporter, to have graphs as users bring them.

    pip install torch==2.14.1 onnx==1.23.0 onnxscript==0.7.2
    python -m models.exported.export --output_dir=models/exported

PyTorch is not among the locked packages: it is needed to make the files anew, and for nothing else.

    encoder  torch.nn.TransformerEncoder on features[N, L, 16] with a padding mask[N, L]
    graph    messages along the edges[2, E] of a graph of nodes[V, 6], summed by index_add
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import onnx
import torch
from absl import app, flags
from torch import nn
from torch.export import Dim

OPSET = 20

_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Folder to write to.", required=True)


class Encoder(nn.Module):
    """Two encoder layers, the mean over what is no padding, a classifier."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            64, 4, 128, batch_first=True, activation="gelu", norm_first=True
        )
        self.embed = nn.Linear(16, 64)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classify = nn.Linear(64, 5)

    def forward(self, features: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        """Probabilities[N, 5]."""
        value = self.layers(self.embed(features), src_key_padding_mask=padding)
        keep = (~padding).unsqueeze(-1).to(value.dtype)
        mean = (value * keep).sum(1) / keep.sum(1).clamp(min=1)
        return self.classify(mean).softmax(-1)


class Graph(nn.Module):
    """One round of message passing."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
        self.update = nn.Linear(14, 8)

    def forward(
        self, nodes: torch.Tensor, edge_index: torch.Tensor, edges: torch.Tensor
    ) -> torch.Tensor:
        """New node features[V, 8]."""
        ends = [nodes[edge_index[0]], nodes[edge_index[1]]]
        message = self.message(torch.cat([*ends, edges], 1))
        total = torch.zeros(nodes.shape[0], 8).index_add(0, edge_index[1], message)
        return self.update(torch.cat([nodes, total], 1)).tanh()


def _export(
    module: nn.Module, example: tuple[torch.Tensor, ...], sizes: Sequence[dict[int, Dim]]
) -> onnx.ModelProto:
    program = torch.onnx.export(
        module.eval(), example, dynamo=True, dynamic_shapes=tuple(sizes), opset_version=OPSET
    )
    model: onnx.ModelProto = program.model_proto
    # Stack traces, with the paths of whoever exported.
    for part in (model, model.graph, *model.graph.node, *model.graph.value_info):
        del part.metadata_props[:]
    return model


def main(argv: Sequence[str]) -> None:
    """Writes the files."""
    if len(argv) > 1:
        raise app.UsageError(f"Unexpected arguments: {' '.join(argv[1:])}.")
    torch.manual_seed(1)
    n, length, v, e = (Dim(name) for name in ("N", "L", "V", "E"))
    models = {
        "encoder": _export(
            Encoder(),
            (torch.randn(2, 7, 16), torch.zeros(2, 7, dtype=torch.bool)),
            [{0: n, 1: length}, {0: n, 1: length}],
        ),
        "graph": _export(
            Graph(),
            (torch.randn(7, 6), torch.randint(0, 7, (2, 20)), torch.randn(20, 4)),
            [{0: v}, {1: e}, {0: e}],
        ),
    }
    for name, model in models.items():
        path = pathlib.Path(_OUTPUT_DIR.value) / f"{name}.onnx"
        path.write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    app.run(main)
