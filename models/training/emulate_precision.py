"""What rounded factors of matrix products change in ParticleNet's results, without a GPU.

    jets/bin/python -m models.training.emulate_precision --file=/data/test.npz \\
        --checkpoint=/data/particle_net/checkpoint.pt

Rounds the factors of every matrix product as the values of `precision` do (docs/numbers.md), in
PyTorch on a CPU: the sums are float32. Distances between neighbours are in float32, as in the
project's code, or from rounded factors too, to show why they are not. Prints, beside float32, the
changes that `evaluate_precisions` measures on a GPU.
"""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Iterator, Sequence
from unittest import mock

import numpy as np
import torch
from absl import app, flags
from torch.nn import functional

from models import particle_net
from models.training import evaluate, networks
from models.training.batches import Jets
from models.training.metrics import Array

_FILE = flags.DEFINE_string("file", None, "A file of jets of `make_jets`.", required=True)
_CHECKPOINT = flags.DEFINE_string("checkpoint", None, "What `train` left.", required=True)
_MOST = flags.DEFINE_integer("most", 4000, "Use the first jets of the file.", lower_bound=1)
_BATCH = 256

Rounding = Callable[[torch.Tensor], torch.Tensor]


def _tf32(value: torch.Tensor) -> torch.Tensor:
    """To 11 significant bits, halves to even."""
    bits = value.contiguous().view(torch.int32)
    rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF
    return rounded.view(torch.float32)


_ROUNDINGS: dict[str, Rounding] = {
    "tf32": _tf32,
    "bf16": lambda value: value.bfloat16().float(),
    "fp16": lambda value: value.half().float(),
}


@contextlib.contextmanager
def rounded(rounding: Rounding, distances: bool) -> Iterator[None]:
    """Rounds the factors of matrix products; those of distances too if `distances` says so."""
    exact_linear, exact_product = functional.linear, networks.inner_products

    def linear(
        value: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        return exact_linear(rounding(value), rounding(weight), bias)

    def product(table: torch.Tensor) -> torch.Tensor:
        return exact_product(rounding(table) if distances else table)

    with (
        mock.patch.object(functional, "linear", linear),
        mock.patch.object(networks, "inner_products", product),
    ):
        yield


def main(argv: Sequence[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unexpected arguments: {' '.join(argv[1:])}.")
    network = networks.ParticleNet()
    state = torch.load(_CHECKPOINT.value, map_location="cpu", weights_only=True)
    network.load_state_dict(state["network"])
    network.eval()
    jets = Jets(pathlib.Path(_FILE.value), particle_net.NEIGHBOURS, "cpu")
    numbers = jets.numbers[: _MOST.value]
    label = jets.label[numbers].numpy()

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def probabilities() -> Array:
        scores = [network(jets.batch(chunk)) for chunk in numbers.split(_BATCH)]
        return np.asarray(torch.cat(scores).double().softmax(1).numpy())

    reference = probabilities()
    results = {}
    for name, rounding in _ROUNDINGS.items():
        for suffix in ("", "_neighbours"):
            with rounded(rounding, distances=bool(suffix)):
                results[name + suffix] = (probabilities(), None)
    print(f"{len(label)} jets, emulated on a CPU")
    evaluate.print_precisions(reference, results, label)


if __name__ == "__main__":
    app.run(main)
