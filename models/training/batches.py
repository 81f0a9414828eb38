"""Jets in the memory of a device, and batches of them without padding."""

from __future__ import annotations

import dataclasses
import pathlib

import numpy as np
import torch


@dataclasses.dataclass(frozen=True)
class Packed:
    """The particles or the vertices of a batch of jets, one jet after another."""

    points: torch.Tensor  # [rows, 2]
    features: torch.Tensor  # [rows, features]
    jet: torch.Tensor  # int64[rows]: the jet in the batch
    rank: torch.Tensor  # int64[rows]: the place in the jet


@dataclasses.dataclass(frozen=True)
class Batch:
    """Some jets."""

    particles: Packed
    vertices: Packed
    counts: torch.Tensor  # int64[jets]: particles of each jet
    most: int  # the most particles and vertices of a jet together
    most_particles: int
    label: torch.Tensor  # int64[jets]

    @property
    def size(self) -> int:
        """The number of jets."""
        return len(self.label)


class Jets:
    """The jets of a file of `make_jets` on a device; those too small for k neighbours left out."""

    def __init__(self, path: pathlib.Path, neighbours: int, device: str) -> None:
        with np.load(path) as file:
            self._arrays = {
                name: torch.from_numpy(file[name]).to(device)
                for name in file
                if name.startswith(("pf_", "sv_"))
            }
            label = file["label"].astype(np.int64)
        sizes = sum(self._arrays[f"{kind}_offsets"].diff() for kind in ("pf", "sv"))
        assert isinstance(sizes, torch.Tensor)
        self.label = torch.from_numpy(label).to(device)
        # Numbers, in the file, of the jets that are kept.
        self.numbers = torch.nonzero(sizes > neighbours).flatten()

    def batch(self, jets: torch.Tensor) -> Batch:
        """The jets with these numbers in the file, int64[jets]."""
        counts = {kind: self._arrays[f"{kind}_offsets"].diff()[jets] for kind in ("pf", "sv")}
        return Batch(
            particles=self._packed("pf", jets, counts["pf"]),
            vertices=self._packed("sv", jets, counts["sv"]),
            counts=counts["pf"],
            most=int((counts["pf"] + counts["sv"]).max()),
            most_particles=int(counts["pf"].max()),
            label=self.label[jets],
        )

    def _packed(self, kind: str, jets: torch.Tensor, counts: torch.Tensor) -> Packed:
        jet = torch.repeat_interleave(torch.arange(len(jets), device=jets.device), counts)
        starts = counts.cumsum(0) - counts
        rank = torch.arange(len(jet), device=jets.device) - starts[jet]
        rows = self._arrays[f"{kind}_offsets"][jets][jet] + rank
        points, features = (self._arrays[f"{kind}_{name}"][rows] for name in ("points", "features"))
        return Packed(points, features, jet, rank)


def mirrored(batch: Batch, sign: torch.Tensor, columns: dict[str, dict[str, int]]) -> Batch:
    """Mirrors jets, which physics does not tell from their mirror images.

    Args:
      batch: the jets.
      sign: float[jets, 2] of 1 and -1: what to multiply η and φ by.
      columns: places of the features by name, of "particles" and of "vertices".
    """
    changed = {}
    for kind, places in columns.items():
        packed = getattr(batch, kind)
        own = sign[packed.jet]
        features = packed.features.clone()
        for name, axis in (("delta_eta", 0), ("delta_phi", 1), ("dz", 0), ("dz_sig", 0)):
            if name in places:
                features[:, places[name]] *= own[:, axis]
        changed[kind] = dataclasses.replace(packed, points=packed.points * own, features=features)
    return dataclasses.replace(batch, **changed)
