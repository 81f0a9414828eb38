"""Tests of the checked-in sample of jets."""

from __future__ import annotations

import pathlib
import zipfile
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.lib.npyio import NpzFile

from models import jet_inputs
from models.jet_inputs import Feature

_FILE = pathlib.Path(__file__).parent / "data" / "jets.npz"
_JETS = 1000


@pytest.fixture(name="jets")
def _jets() -> Iterator[NpzFile]:
    with np.load(_FILE) as file:
        yield file


def test_members_are_stored_without_compression() -> None:
    with zipfile.ZipFile(_FILE) as archive:
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}


def test_arrays(jets: NpzFile) -> None:
    particles, vertices = (int(jets[f"{kind}_offsets"][-1]) for kind in ("pf", "sv"))
    assert {name: (str(jets[name].dtype), jets[name].shape) for name in jets} == {
        "jet_pt": ("float32", (_JETS,)),
        "jet_eta": ("float32", (_JETS,)),
        "jet_phi": ("float32", (_JETS,)),
        "jet_mass": ("float32", (_JETS,)),
        "label": ("int32", (_JETS,)),
        "pf_offsets": ("int64", (_JETS + 1,)),
        "pf_points": ("float32", (particles, 2)),
        "pf_features": ("float32", (particles, 20)),
        "sv_offsets": ("int64", (_JETS + 1,)),
        "sv_points": ("float32", (vertices, 2)),
        "sv_features": ("float32", (vertices, 11)),
    }
    assert all(np.isfinite(jets[name]).all() for name in jets)
    assert all(jets[name].flags.c_contiguous for name in jets)


def test_sizes(jets: NpzFile) -> None:
    particles, vertices = (np.diff(jets[f"{kind}_offsets"]) for kind in ("pf", "sv"))
    assert jets["pf_offsets"][0] == jets["sv_offsets"][0] == 0
    assert (particles.min(), particles.max()) == (10, 122)
    assert (vertices.min(), vertices.max()) == (0, 6)
    assert np.mean(vertices == 0) == pytest.approx(0.22, abs=0.01)
    assert np.sum(particles + vertices < 17) == 5


def test_jets_are_what_their_label_says(jets: NpzFile) -> None:
    label, mass = jets["label"], jets["jet_mass"]
    np.testing.assert_array_equal(np.bincount(label), [125] * 8)
    assert jets["jet_pt"].min() > 400
    assert np.abs(jets["jet_eta"]).max() < 2.4
    # Masses in GeV of the particles that the jets hold.
    for name, expected in {"w_qq": 80.4, "z_bb": 91.2, "h_bb": 125, "t_bqq": 172.5}.items():
        own = mass[label == jet_inputs.CLASSES.index(name)]
        assert np.median(own) == pytest.approx(expected, rel=0.05)
    vertices = np.diff(jets["sv_offsets"])
    # Hadrons with b decay to hadrons with c, strange ones decay too.
    for name, least, most in (
        ("qcd_light", 0.1, 0.5),
        ("qcd_c", 1, 1.6),
        ("qcd_b", 1.8, 2.6),
        ("z_bb", 2.6, 3.4),
    ):
        assert least < vertices[label == jet_inputs.CLASSES.index(name)].mean() < most


def test_particles_belong_to_their_jets(jets: NpzFile) -> None:
    owner = np.repeat(np.arange(_JETS), np.diff(jets["pf_offsets"]))
    distance = np.linalg.norm(jets["pf_points"], axis=1)
    assert np.median(distance) < 0.4
    assert distance.max() < 2
    names = [feature.name for feature in jet_inputs.PARTICLE_FEATURES]
    pt = jets["pf_features"][:, names.index("log_pt")]
    # Descending within a jet.
    assert (np.diff(pt)[np.diff(owner) == 0] <= 0).all()
    fractions = np.exp(jets["pf_features"][:, names.index("log_pt_fraction")].astype(np.float64))
    # Transverse momenta add up to the jet's but for the directions of the particles.
    sums = np.bincount(owner, fractions)
    assert sums.min() > 1
    assert sums.max() < 1.5


@pytest.mark.parametrize(
    ("kind", "features"),
    [("pf", jet_inputs.PARTICLE_FEATURES), ("sv", jet_inputs.VERTEX_FEATURES)],
)
def test_the_standardisation_fits(jets: NpzFile, kind: str, features: Sequence[Feature]) -> None:
    centre = np.array([feature.centre for feature in features])
    scale = np.array([feature.scale for feature in features])
    standard = (jets[f"{kind}_features"].astype(np.float64) - centre) / scale
    assert np.abs(standard.mean(axis=0)).max() < 0.5
    assert standard.std(axis=0).min() > 0.3
    assert standard.std(axis=0).max() < 1.4
    assert np.mean(np.abs(standard) > jet_inputs.LIMIT, axis=0).max() < 0.03
