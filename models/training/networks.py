"""The taggers in PyTorch for training: without padding, with the parameters of the ONNX graphs.

`models/particle_net.py` and `models/particle_transformer.py` describe the networks and make the
graphs. Here the particles of a batch lie one jet after another, so that little time goes into
padding and the statistics of the normalisations are those of real particles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from models import jet_inputs, particle_net, particle_transformer
from models.jet_inputs import Feature
from models.training.batches import Batch, Packed

CLASSES = len(jet_inputs.CLASSES)
_DROPOUT = 0.1


class Standardisation(nn.Module):
    """What `graph_builder.standardisation` does."""

    def __init__(self, features: Sequence[Feature]) -> None:
        super().__init__()
        for part in ("centre", "scale"):
            values = torch.tensor([getattr(feature, part) for feature in features])
            self.register_buffer(part, values, persistent=False)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Of value [rows, features]."""
        limit = jet_inputs.LIMIT
        return ((value - self.centre) / self.scale).clamp(-limit, limit)


def _dense(inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=False)


class EdgeConv(nn.Module):
    """From the features of points to those of their neighbourhoods."""

    def __init__(self, inputs: int, channels: int) -> None:
        super().__init__()
        widths = [2 * inputs] + [channels] * particle_net.LAYERS_PER_BLOCK
        pairs = list(zip(widths, widths[1:], strict=False))
        self.convs = nn.ModuleList(_dense(*pair) for pair in pairs)
        self.bns = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:])
        self.sc = _dense(inputs, channels)
        self.sc_bn = nn.BatchNorm1d(channels)

    def forward(self, features: torch.Tensor, nearest: torch.Tensor) -> torch.Tensor:
        """Features [points, channels], nearest [points, neighbours]."""
        points, neighbours = nearest.shape
        # The first layer sees (x, y - x) of a point and a neighbour: W₁x + W₂(y - x).
        own, difference = self.convs[0].weight.chunk(2, dim=1)
        centre = functional.linear(features, own - difference)
        other = functional.linear(features, difference)
        # Unlike indexing, this has a fast derivative.
        gathered = other.index_select(0, nearest.flatten())
        value = centre[:, None] + gathered.view(points, neighbours, -1)
        value = value.flatten(0, 1)
        for layer, normalization in enumerate(self.bns):
            if layer:
                value = self.convs[layer](value)
            value = functional.relu(normalization(value))
        value = value.view(points, neighbours, -1).mean(1)
        return functional.relu(self.sc_bn(self.sc(features)) + value)


def inner_products(table: torch.Tensor) -> torch.Tensor:
    """Of the points of table [jets, points, channels], each with each: [jets, points, points]."""
    return table @ table.transpose(1, 2)


class Grid:
    """Where the points of a batch, in one list, are in a table of one row for each jet."""

    def __init__(self, jet: torch.Tensor, rank: torch.Tensor, jets: int, most: int) -> None:
        self.jet, self.rank = jet, rank
        self.jets, self.most = jets, most
        self.rows = jet.new_zeros(jets, most)
        self.rows[jet, rank] = torch.arange(len(jet), device=jet.device)
        self.real = torch.zeros(jets, most, dtype=torch.bool, device=jet.device)
        self.real[jet, rank] = True

    def spread(self, value: torch.Tensor) -> torch.Tensor:
        """Of value [points, channels] the table [jets, most, channels], 0 where nothing is."""
        table = value.new_zeros(self.jets, self.most, value.shape[1])
        return table.index_put((self.jet, self.rank), value)

    def nearest(self, coordinates: torch.Tensor, neighbours: int) -> torch.Tensor:
        """For each point the places of its nearest others in its jet: [points, neighbours]."""
        with torch.no_grad(), torch.autocast(coordinates.device.type, enabled=False):
            table = self.spread(coordinates.detach().float())
            norms = table.square().sum(2)
            distance = norms[:, :, None] + norms[:, None] - 2 * inner_products(table)
            distance.masked_fill_(~self.real[:, None], torch.inf)
            # The nearest of all is the point itself.
            distance.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
            found = distance.topk(neighbours + 1, dim=2, largest=False).indices[:, :, 1:]
            places = self.rows.gather(1, found.flatten(1)).view_as(found)
            return places[self.jet, self.rank]


class ParticleNet(nn.Module):
    """The class scores of jets."""

    def __init__(self) -> None:
        super().__init__()

        def collection(features: Sequence[Feature]) -> nn.ModuleDict:
            count, channels = len(features), particle_net.COLLECTION_CHANNELS
            layers = nn.Sequential(
                nn.BatchNorm1d(count),
                _dense(count, channels),
                nn.BatchNorm1d(channels),
                nn.ReLU(),
            )
            return nn.ModuleDict({"standardise": Standardisation(features), "fc": layers})

        self.pf_conv = collection(jet_inputs.PARTICLE_FEATURES)
        self.sv_conv = collection(jet_inputs.VERTEX_FEATURES)
        widths = (particle_net.COLLECTION_CHANNELS, *particle_net.EDGE_CHANNELS)
        fused, hidden = particle_net.FUSION_CHANNELS, particle_net.FC_CHANNELS
        self.pn = nn.ModuleDict(
            {
                "edge_convs": nn.ModuleList(
                    EdgeConv(a, b) for a, b in zip(widths, widths[1:], strict=False)
                ),
                "fusion_block": nn.Sequential(
                    _dense(sum(widths[1:]), fused), nn.BatchNorm1d(fused), nn.ReLU()
                ),
                "fc": nn.ModuleList(
                    [
                        nn.Sequential(nn.Linear(fused, hidden), nn.ReLU(), nn.Dropout(_DROPOUT)),
                        nn.Linear(hidden, CLASSES),
                    ]
                ),
            }
        )

    def _embedded(self, module: nn.Module, packed: Packed) -> torch.Tensor:
        return module["fc"](module["standardise"](packed.features))

    def forward(self, batch: Batch) -> torch.Tensor:
        """Returns [jets, classes]."""
        particles, vertices = batch.particles, batch.vertices
        features = torch.cat(
            [self._embedded(self.pf_conv, particles), self._embedded(self.sv_conv, vertices)]
        )
        points = torch.cat([particles.points, vertices.points])
        jet = torch.cat([particles.jet, vertices.jet])
        rank = torch.cat([particles.rank, vertices.rank + batch.counts[vertices.jet]])
        grid = Grid(jet, rank, batch.size, batch.most)
        blocks = []
        for index, block in enumerate(self.pn["edge_convs"]):
            coordinates = features if index else points
            features = block(features, grid.nearest(coordinates, particle_net.NEIGHBOURS))
            blocks.append(features)
        fused = self.pn["fusion_block"](torch.cat(blocks, 1)).float()
        sums = fused.new_zeros(batch.size, fused.shape[1]).index_add(0, jet, fused)
        pooled = sums / torch.bincount(jet, minlength=batch.size)[:, None]
        first, last = self.pn["fc"]
        return last(first(pooled))

    def parameters_of_graph(self) -> dict[str, npt.NDArray[np.float32]]:
        """The parameters as `particle_net.build` takes them."""
        state = _arrays(self)
        return {
            name: state[name].reshape(shape)
            for name, shape in particle_net.parameter_shapes().items()
        }


class Attention(nn.Module):
    """Multi-head attention with a bias."""

    def __init__(self) -> None:
        super().__init__()
        width = particle_transformer.WIDTH
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(
        self, query: torch.Tensor, memory: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        """Query [jets, q, width], memory [jets, k, width], bias [jets, heads or 1, q or 1, k]."""
        heads = particle_transformer.HEADS
        q, k, v = (
            layer(value).unflatten(2, (heads, -1)).transpose(1, 2)
            for layer, value in ((self.query, query), (self.key, memory), (self.value, memory))
        )
        bias = bias.to(q.dtype).expand(-1, heads, q.shape[2], -1)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and a feed-forward network, each normalised first and added to what came in."""

    def __init__(self) -> None:
        super().__init__()
        width, hidden = particle_transformer.WIDTH, particle_transformer.HIDDEN
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention()
        self.ff = nn.ModuleList([nn.Linear(width, hidden), nn.Linear(hidden, width)])
        self.dropout = nn.Dropout(_DROPOUT)

    def forward(
        self, value: torch.Tensor, bias: torch.Tensor, memory: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Of value [jets, q, width]; `memory` is what it attends to, by default itself."""
        normal = self.norm1(value)
        attended = self.attention(normal, normal if memory is None else memory, bias)
        value = value + self.dropout(attended)
        hidden = functional.gelu(self.ff[0](self.norm2(value)))
        return value + self.dropout(self.ff[1](hidden))


class Pairs(nn.Module):
    """The attention bias of pairs of particles."""

    def __init__(self) -> None:
        super().__init__()
        widths = particle_transformer.PAIR_WIDTHS
        self.layers = nn.ModuleList(
            nn.Linear(a, b) for a, b in zip(widths, widths[1:], strict=False)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:-1])

    @staticmethod
    def features(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """[pairs, 4]: ln Δ, ln kT, ln z, ln m² of kinematics [pairs, 3] (ln pT, η, φ)."""
        pt_i, pt_j = first[:, 0].exp(), second[:, 0].exp()
        eta, phi = (first[:, 1:] - second[:, 1:]).unbind(1)
        delta = torch.sqrt(eta.square() + phi.square())
        smaller = torch.minimum(pt_i, pt_j)
        gap = 4 * ((eta / 2).sinh().square() + (phi / 2).sin().square())
        values = [delta, smaller * delta, smaller / (pt_i + pt_j), pt_i * pt_j * gap]
        return torch.stack(values, 1).clamp(min=particle_transformer.SMALLEST).log()

    def forward(self, grid: Grid, kinematics: torch.Tensor) -> torch.Tensor:
        """The bias [jets, heads, most, most], 0 where nothing is."""
        jet, row, column = torch.nonzero(grid.real[:, :, None] & grid.real[:, None], as_tuple=True)
        with torch.autocast(kinematics.device.type, enabled=False):
            value = self.features(
                kinematics[grid.rows[jet, row]], kinematics[grid.rows[jet, column]]
            )
        for layer, module in enumerate(self.layers):
            value = module(value)
            if layer < len(self.norms):
                value = functional.gelu(self.norms[layer](value))
        table = value.new_zeros(grid.jets, grid.most, grid.most, value.shape[1])
        return table.index_put((jet, row, column), value).permute(0, 3, 1, 2)


class ParticleTransformer(nn.Module):
    """The class scores of jets, from their particles alone."""

    def __init__(self) -> None:
        super().__init__()
        width, hidden = particle_transformer.WIDTH, particle_transformer.HIDDEN
        count = len(jet_inputs.PARTICLE_FEATURES)
        self.standardise = Standardisation(jet_inputs.PARTICLE_FEATURES)
        self.embed = nn.ModuleList([nn.Linear(count, hidden), nn.Linear(hidden, width)])
        self.embed_norm = nn.LayerNorm(width)
        self.pairs = Pairs()
        self.layers = nn.ModuleList(Block() for _ in range(particle_transformer.LAYERS))
        self.class_layers = nn.ModuleList(Block() for _ in range(particle_transformer.CLASS_LAYERS))
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, CLASSES)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Returns [jets, classes]."""
        particles = batch.particles
        most = math.ceil(batch.most_particles / 8) * 8  # attention is fastest on aligned biases
        grid = Grid(particles.jet, particles.rank, batch.size, most)
        # The first feature is ln pT.
        kinematics = torch.cat([particles.features[:, :1], particles.points], 1)
        absent = torch.where(grid.real, 0.0, -1e4)[:, None, None]
        bias = self.pairs(grid, kinematics) + absent
        value = functional.gelu(self.embed[0](self.standardise(particles.features)))
        value = grid.spread(self.embed_norm(self.embed[1](value)))
        for layer in self.layers:
            value = layer(value, bias)
        token = self.token.expand(batch.size, -1, -1)
        class_bias = functional.pad(absent, (1, 0))
        for layer in self.class_layers:
            token = layer(token, class_bias, torch.cat([token, value], 1))
        return self.fc(self.norm(token)[:, 0])

    def parameters_of_graph(self) -> dict[str, npt.NDArray[np.float32]]:
        """The parameters as `particle_transformer.build` takes them."""
        state = {}
        for name, array in _arrays(self).items():
            name = name.replace("embed_norm.", "embed.norm.").replace("pairs.layers.", "pairs.")
            name = name.replace("pairs.norms.", "pairs.bn")
            # The graph's matrix products have weights [inputs, outputs].
            state[name] = array.T if array.ndim == 2 and not name.startswith("pairs.") else array
        return {
            name: np.ascontiguousarray(state[name]).reshape(shape)
            for name, shape in particle_transformer.parameter_shapes().items()
        }


def _arrays(module: nn.Module) -> dict[str, npt.NDArray[np.float32]]:
    return {
        name: tensor.detach().float().cpu().numpy() for name, tensor in module.state_dict().items()
    }


NETWORKS: dict[str, type[ParticleNet] | type[ParticleTransformer]] = {
    "particle_net": ParticleNet,
    "particle_transformer": ParticleTransformer,
}
