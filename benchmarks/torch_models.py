"""Models of this repository in PyTorch, with the names and the inputs of their ONNX files.

Written as PyTorch users write them (linear layers, `scaled_dot_product_attention`, `index_add`; one
product for queries, keys and values), so that their time is that of the usual implementation. The
scripts in `models/` describe the networks; `particle_net_torch.py` has ParticleNet.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from benchmarks.particle_net_torch import Standardisation
from models import (
    cnn,
    interaction_network,
    jet_inputs,
    mlp,
    mlpf,
    particle_transformer,
    transformer,
)


def _layers(widths: Sequence[int]) -> nn.ModuleList:
    """Linear layers from each width to the next."""
    return nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))


class Mlp(nn.Module):
    """`models/mlp.py`."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = _layers(mlp.WIDTHS)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Features [N, 16] to probabilities [N, 5]."""
        *hidden, last = self.layers
        for layer in hidden:
            features = torch.relu(layer(features))
        return torch.softmax(last(features), 1)


class Cnn(nn.Module):
    """`models/cnn.py`."""

    def __init__(self) -> None:
        super().__init__()
        first, second = itertools.pairwise(cnn.CHANNELS)
        self.convs = nn.ModuleList(
            [nn.Conv2d(*first, 3, padding=1), nn.Conv2d(*second, 3, stride=2, padding=1)]
        )
        self.bns = nn.ModuleList([nn.BatchNorm2d(first[1])])
        self.fc = _layers(cnn.WIDTHS)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Image [N, 1, 32, 32] to probabilities [N, 3]."""
        value = torch.relu(self.bns[0](self.convs[0](image)))
        value = functional.max_pool2d(value, 2)
        value = torch.relu(self.convs[1](value)).flatten(1)
        return torch.softmax(self.fc[1](torch.relu(self.fc[0](value))), 1)


class Attention(nn.Module):
    """Multi-head attention with a bias on the scores."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(
        self, query: torch.Tensor, memory: torch.Tensor | None, bias: torch.Tensor
    ) -> torch.Tensor:
        """Query [N, Q, width], memory [N, K, width] or None for the same, bias [N, any, any, K]."""
        layer, width = self.query_key_value, query.shape[2]
        if memory is None:
            q, k, v = layer(query).chunk(3, -1)
        else:
            q = functional.linear(query, layer.weight[:width], layer.bias[:width])
            k, v = functional.linear(memory, layer.weight[width:], layer.bias[width:]).chunk(2, -1)
        q, k, v = (x.unflatten(2, (self.heads, -1)).transpose(1, 2) for x in (q, k, v))
        bias = bias.to(q.dtype).expand(-1, self.heads, q.shape[2], -1)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and a feed-forward network, each normalised first and added to what came in."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.ff = _layers((width, hidden, width))

    def forward(
        self, value: torch.Tensor, bias: torch.Tensor, memory: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Of value [N, Q, width]; `memory` is what it attends to, by default itself."""
        value = value + self.attention(self.norm1(value), memory, bias)
        return value + self.ff[1](functional.gelu(self.ff[0](self.norm2(value))))


def _key_bias(mask: torch.Tensor) -> torch.Tensor:
    """Of mask [N, K], what keeps attention off padding: [N, 1, 1, K]."""
    return ((1 - mask) * -1e4)[:, None, None]


class Transformer(nn.Module):
    """`models/transformer.py`."""

    def __init__(self) -> None:
        super().__init__()
        width = transformer.WIDTH
        self.embed = nn.Linear(transformer.FEATURES, width)
        self.layers = nn.ModuleList(
            Block(width, transformer.HEADS, transformer.HIDDEN) for _ in range(transformer.LAYERS)
        )
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, transformer.CLASSES)

    def forward(self, features: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Features [N, L, 16] and mask [N, L] to probabilities [N, 5]."""
        bias = _key_bias(mask)
        value = self.embed(features)
        for layer in self.layers:
            value = layer(value, bias)
        total = (self.norm(value) * mask[..., None]).sum(1)
        return torch.softmax(self.fc(total / mask.sum(1, keepdim=True).clamp(min=1)), -1)


class Pairs(nn.Module):
    """The bias that attention has of each pair of particles."""

    def __init__(self) -> None:
        super().__init__()
        widths = particle_transformer.PAIR_WIDTHS
        for layer, pair in enumerate(itertools.pairwise(widths)):
            self.add_module(str(layer), nn.Conv2d(*pair, 1))
        for layer, width in enumerate(widths[1:-1]):
            self.add_module(f"bn{layer}", nn.BatchNorm2d(width))

    @staticmethod
    def features(kinematics: torch.Tensor) -> torch.Tensor:
        """[N, 4, P, P]: ln Δ, ln kT, ln z, ln m² of kinematics [N, 3, P] (ln pT, Δη, Δφ)."""
        pt = kinematics[:, 0].exp()
        pt_i, pt_j = pt[:, :, None], pt[:, None]
        eta, phi = (kinematics[:, 1:, :, None] - kinematics[:, 1:, None]).unbind(1)
        delta = torch.sqrt(eta.square() + phi.square())
        smaller = torch.minimum(pt_i, pt_j)
        gap = 4 * ((eta / 2).sinh().square() + (phi / 2).sin().square())
        values = [delta, smaller * delta, smaller / (pt_i + pt_j), pt_i * pt_j * gap]
        return torch.stack(values, 1).clamp(min=particle_transformer.SMALLEST).log()

    def forward(self, kinematics: torch.Tensor) -> torch.Tensor:
        """The bias [N, heads, P, P]."""
        value = self.features(kinematics)
        last = len(particle_transformer.PAIR_WIDTHS) - 2
        for layer in range(last):
            convolution, norm = self.get_submodule(str(layer)), self.get_submodule(f"bn{layer}")
            value = functional.gelu(norm(convolution(value)))
        bias: torch.Tensor = self.get_submodule(str(last))(value)
        return bias


class ParticleTransformer(nn.Module):
    """`models/particle_transformer.py`."""

    def __init__(self) -> None:
        super().__init__()
        width, heads = particle_transformer.WIDTH, particle_transformer.HEADS
        hidden = particle_transformer.HIDDEN
        features = jet_inputs.PARTICLE_FEATURES
        self.standardise = Standardisation(features)
        self.embed = nn.Sequential(nn.Linear(len(features), hidden), nn.Linear(hidden, width))
        self.embed.add_module("norm", nn.LayerNorm(width))
        self.pairs = Pairs()
        self.layers, self.class_layers = (
            nn.ModuleList(Block(width, heads, hidden) for _ in range(count))
            for count in (particle_transformer.LAYERS, particle_transformer.CLASS_LAYERS)
        )
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, particle_transformer.CLASSES)

    def forward(
        self, features: torch.Tensor, kinematics: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Features [N, 20, P], kinematics [N, 3, P] and mask [N, 1, P] to probabilities [N, 8]."""
        absent = _key_bias(mask[:, 0])
        bias = self.pairs(kinematics) + absent
        first, second, norm = self.embed
        value = self.standardise(features).transpose(1, 2)
        value = norm(second(functional.gelu(first(value))))
        for layer in self.layers:
            value = layer(value, bias)
        token = self.token.expand(len(value), -1, -1)
        class_bias = functional.pad(absent, (1, 0))
        for layer in self.class_layers:
            token = layer(token, class_bias, torch.cat([token, value], 1))
        return torch.softmax(self.fc(self.norm(token)[:, 0]), -1)


class Mlpf(nn.Module):
    """`models/mlpf.py`."""

    def __init__(self) -> None:
        super().__init__()
        width, hidden, features = mlpf.WIDTH, mlpf.HIDDEN, mlpf.FEATURES
        self.embed = _layers((features, hidden, width))
        self.layers = nn.ModuleList(Block(width, mlpf.HEADS, hidden) for _ in range(2))
        for name, outputs in mlpf.OUTPUTS.items():
            setattr(self, name, _layers((width + features, hidden, outputs)))

    def forward(
        self, elements: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Elements [N, E, 12] and mask [N, E] to class [N, E, 6], charge [N, E, 3], momentum."""
        bias, present = _key_bias(mask), mask[..., None]
        value = _two_layers(self.embed, elements)
        for layer in self.layers:
            value = layer(value, bias)
        joined = torch.cat([value, elements], -1)
        kinds, charges, momentum = (
            _two_layers(getattr(self, name), joined) for name in mlpf.OUTPUTS
        )
        momentum = momentum + elements[..., : momentum.shape[-1]]
        return kinds.softmax(-1) * present, charges.softmax(-1) * present, momentum * present


def _two_layers(layers: nn.ModuleList, value: torch.Tensor) -> torch.Tensor:
    first, second = layers
    result: torch.Tensor = second(functional.elu(first(value)))
    return result


class InteractionNetwork(nn.Module):
    """`models/interaction_network.py`."""

    def __init__(self) -> None:
        super().__init__()
        widths = interaction_network.NETWORKS
        self.edge, self.node = (
            nn.ModuleList(_layers(widths[f"{part}.{number}"]) for number in (0, 1))
            for part in ("edge", "node")
        )
        self.score = _layers(widths["score"])

    def forward(
        self, nodes: torch.Tensor, edges: torch.Tensor, edge_index: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Nodes [V, 6], edges [E, 4], edge_index [2, E] to scores [E, 1] and features [V, 8]."""
        source, destination = edge_index
        for edge, node in zip(self.edge, self.node, strict=True):
            around = torch.cat([nodes[source], nodes[destination], edges], 1)
            edges = edge[1](torch.relu(edge[0](around)))
            total = edges.new_zeros(len(nodes), edges.shape[1]).index_add(0, destination, edges)
            nodes = node[1](torch.relu(node[0](torch.cat([nodes, total], 1))))
        score = self.score[1](torch.relu(self.score[0](edges)))
        return torch.sigmoid(score), torch.tanh(nodes)
