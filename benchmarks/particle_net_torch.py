"""ParticleNet in PyTorch, with the weights of ``models/particle_net.onnx``.

Written as PyTorch users write it (convolutions, batch normalisation, ``topk``, ``gather``), so that
its time is that of the usual implementation. See ``models/particle_net.py`` for the network.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from models import jet_inputs, particle_net
from models.jet_inputs import Feature


def _block(inputs: int, outputs: int, rank: int) -> tuple[nn.Module, nn.Module]:
    convolution = (nn.Conv1d, nn.Conv2d)[rank - 1](inputs, outputs, 1, bias=False)
    return convolution, (nn.BatchNorm1d, nn.BatchNorm2d)[rank - 1](outputs)


class Standardisation(nn.Module):
    """(value - centre) / scale, limited."""

    def __init__(self, features: Sequence[Feature]) -> None:
        super().__init__()
        for part in ("centre", "scale"):
            values = torch.tensor([getattr(feature, part) for feature in features])
            self.register_buffer(part, values[:, None], persistent=False)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Of value [N, features, P]."""
        limit = jet_inputs.LIMIT
        return ((value - self.centre) / self.scale).clamp(-limit, limit)


class EdgeConv(nn.Module):
    """One block: from the features of points to those of their neighbourhoods."""

    def __init__(self, inputs: int, channels: int) -> None:
        super().__init__()
        widths = [2 * inputs] + [channels] * particle_net.LAYERS_PER_BLOCK
        blocks = [_block(a, b, 2) for a, b in zip(widths, widths[1:], strict=False)]
        self.convs = nn.ModuleList(convolution for convolution, _ in blocks)
        self.bns = nn.ModuleList(normalization for _, normalization in blocks)
        self.sc, self.sc_bn = _block(inputs, channels, 1)

    def forward(self, coordinates: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Features [N, channels, P]."""
        k = particle_net.NEIGHBOURS
        with torch.autocast("cuda", enabled=False):  # rounded distances choose other neighbours
            x = coordinates.to(torch.promote_types(coordinates.dtype, torch.float32))
            inner = -2 * torch.matmul(x.transpose(1, 2), x)
            norms = (x**2).sum(1, keepdim=True)
            distance = -norms - inner - norms.transpose(1, 2)
            nearest = distance.topk(k + 1, dim=-1)[1][:, :, 1:]
        batch, channels, points = features.shape
        index = nearest.reshape(batch, 1, -1).expand(-1, channels, -1)
        neighbours = torch.gather(features, 2, index).view(batch, channels, points, k)
        centre = features.unsqueeze(-1).expand(-1, -1, -1, k)
        value = torch.cat((centre, neighbours - centre), 1)
        for convolution, normalization in zip(self.convs, self.bns, strict=True):
            value = torch.relu(normalization(convolution(value)))
        return torch.relu(self.sc_bn(self.sc(features)) + value.mean(-1))


class ParticleNet(nn.Module):
    """The class probabilities [N, 8] of jets."""

    def __init__(self) -> None:
        super().__init__()

        def collection(features: Sequence[Feature]) -> nn.Module:
            channels = len(features)
            convolution, normalization = _block(channels, particle_net.COLLECTION_CHANNELS, 1)
            layers = nn.Sequential(nn.BatchNorm1d(channels), convolution, normalization, nn.ReLU())
            return nn.ModuleDict({"standardise": Standardisation(features), "fc": layers})

        self.pf_conv = collection(particle_net.COLLECTIONS["pf"])
        self.sv_conv = collection(particle_net.COLLECTIONS["sv"])
        widths = (particle_net.COLLECTION_CHANNELS, *particle_net.EDGE_CHANNELS)
        self.pn = nn.ModuleDict(
            {
                "edge_convs": nn.ModuleList(
                    EdgeConv(a, b) for a, b in zip(widths, widths[1:], strict=False)
                ),
                "fusion_block": nn.Sequential(
                    *_block(sum(widths[1:]), particle_net.FUSION_CHANNELS, 1), nn.ReLU()
                ),
                "fc": nn.Sequential(
                    nn.Sequential(
                        nn.Linear(particle_net.FUSION_CHANNELS, particle_net.FC_CHANNELS),
                        nn.ReLU(),
                    ),
                    nn.Linear(particle_net.FC_CHANNELS, particle_net.CLASSES),
                ),
            }
        )

    def forward(
        self,
        pf_points: torch.Tensor,
        pf_features: torch.Tensor,
        pf_mask: torch.Tensor,
        sv_points: torch.Tensor,
        sv_features: torch.Tensor,
        sv_mask: torch.Tensor,
    ) -> torch.Tensor:
        """Inputs in the order of the ONNX file."""
        pf, sv = (
            collection["fc"](collection["standardise"](values) * mask) * mask
            for collection, values, mask in (
                (self.pf_conv, pf_features, pf_mask),
                (self.sv_conv, sv_features, sv_mask),
            )
        )
        features = torch.cat((pf, sv), 2)
        mask = torch.cat((pf_mask, sv_mask), 2)
        points = torch.cat((pf_points, sv_points), 2) * mask
        features = features * mask
        shift = particle_net.COORDINATE_SHIFT * (mask == 0)
        counts = mask.sum(-1).clamp(min=1)
        blocks = []
        for i, block in enumerate(self.pn["edge_convs"]):
            features = block((features if i else points) + shift, features) * mask
            blocks.append(features)
        value = self.pn["fusion_block"](torch.cat(blocks, 1)) * mask
        return torch.softmax(self.pn["fc"](value.sum(-1) / counts), 1)
