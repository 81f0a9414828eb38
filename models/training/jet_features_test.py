"""Tests of the jet features on jets simple enough to calculate by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models import jet_inputs
from models.jet_inputs import Feature
from models.training import jet_features
from models.training.jet_features import Array, Jet, Particles, Vertices

_NO_VERTICES = Vertices(np.zeros((0, 4)), np.zeros((0, 3)), np.zeros(0, np.int64), 0.05)


def _massless(pt: float, eta: float, phi: float) -> Array:
    return pt * np.array([np.cosh(eta), np.cos(phi), np.sin(phi), np.sinh(eta)])


def _named(values: Array, features: Sequence[Feature]) -> dict[str, Array]:
    """The columns by their names."""
    return {feature.name: values[:, i] for i, feature in enumerate(features)}


def _particles(momentum: Array, pdg_id: list[int], charge: list[int]) -> Particles:
    size = len(momentum)
    impact = np.array([[0.1, -0.2]] * size) * np.abs(np.array(charge))[:, None]
    return Particles(momentum, np.array(pdg_id), np.array(charge), impact, np.full((size, 2), 0.02))


def test_points_are_relative_to_the_axis_and_wrap() -> None:
    jet = Jet(_massless(500, 1.0, 3.1))
    momentum = np.stack([_massless(1, 1.2, 3.1), _massless(2, 0.7, -3.1)])
    expected = [[0.2, 0.0], [-0.3, 2 * np.pi - 6.2]]
    np.testing.assert_allclose(jet_features.points(jet, momentum), expected, atol=1e-12)


def test_particle_features() -> None:
    jet = Jet(_massless(500, 0.5, 1.0))
    momentum = np.stack([_massless(50, 0.6, 1.0), _massless(5, 0.5, 0.9), _massless(20, 0.5, 1.0)])
    particles = _particles(momentum, [-211, 22, 13], [-1, 0, -1])
    features = jet_features.particle_features(jet, particles, _NO_VERTICES)
    assert features.shape == (3, 20)
    named = _named(features, jet_inputs.PARTICLE_FEATURES)
    expected: dict[str, Array | list[float]] = {
        "log_pt": np.log([50, 5, 20]),
        "log_energy": np.log([50 * np.cosh(0.6), 5 * np.cosh(0.5), 20 * np.cosh(0.5)]),
        "log_pt_fraction": np.log([0.1, 0.01, 0.04]),
        "log_e_fraction": np.log([0.1 * np.cosh(0.6) / np.cosh(0.5), 0.01, 0.04]),
        "delta_eta": [0.1, 0, 0],
        "delta_phi": [0, -0.1, 0],
        "delta_r": [0.1, 0.1, 0],
        "abs_eta": [0.6, 0.5, 0.5],
        "charge": [-1, 0, -1],
        "charged_hadron": [1, 0, 0],
        "neutral_hadron": [0, 0, 0],
        "photon": [0, 1, 0],
        "electron": [0, 0, 0],
        "muon": [0, 0, 1],
        "d0": [np.tanh(0.1), 0, np.tanh(0.1)],
        "d0_sig": [np.arcsinh(5), 0, np.arcsinh(5)],
        "vertex_delta_r": [0.8, 0.8, 0.8],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(
            named[name], np.asarray(values, np.float64), atol=1e-9, err_msg=name
        )
    # On the axis nothing is transverse to it; the photon is 0.1 away from it in φ alone.
    angle = np.arccos(1 - (1 - np.cos(0.1)) / np.cosh(0.5) ** 2)
    transverse = 5 * np.cosh(0.5) * np.sin(angle)
    np.testing.assert_allclose(
        named["log_pt_rel"][1:], np.log([0.01 + transverse, 0.01]), atol=1e-6
    )


def test_nearest_vertex() -> None:
    jet = Jet(_massless(500, 0.0, 0.0))
    vertices = Vertices(
        np.stack([_massless(9, 0.3, 0.0), _massless(8, 0.0, 0.1)]),
        np.ones((2, 3)),
        np.array([2, 2]),
        0.05,
    )
    particles = _particles(np.stack([_massless(3, 0.2, 0.0), _massless(3, 0, 0)]), [22, 22], [0, 0])
    features = jet_features.particle_features(jet, particles, vertices)
    named = _named(features, jet_inputs.PARTICLE_FEATURES)
    np.testing.assert_allclose(named["vertex_delta_r"], [0.1, 0.1], atol=1e-9)


def test_vertex_features() -> None:
    jet = Jet(_massless(400, 0.0, 0.0))
    momentum = _massless(40, 0.2, 0.0)[None] + np.array([[1.0, 0, 0, 0]])
    # It flew 5 mm, at right angles to its momentum in the transverse plane.
    vertices = Vertices(momentum, np.array([[0.0, 5.0, 0.0]]), np.array([4]), 0.05)
    features = jet_features.vertex_features(jet, vertices)
    assert features.shape == (1, 11)
    named = _named(features, jet_inputs.VERTEX_FEATURES)
    energy = 40 * np.cosh(0.2)
    for name, expected in {
        "log_pt": np.log(40),
        "log_pt_fraction": np.log(0.1),
        "delta_eta": 0.2,
        "delta_phi": 0,
        "delta_r": 0.2,
        "abs_eta": 0.2,
        "log_mass": np.log(np.sqrt((energy + 1) ** 2 - energy**2)),
        "tracks": 4,
        "log_flight": np.log(5),
        "flight_sig": np.arcsinh(100),
        "pointing": np.log(1e-6 + 1),
    }.items():
        np.testing.assert_allclose(named[name], [expected], atol=1e-9, err_msg=name)


def test_no_vertices() -> None:
    jet = Jet(_massless(400, 0.0, 0.0))
    assert jet_features.vertex_features(jet, _NO_VERTICES).shape == (0, 11)
    assert jet_features.points(jet, _NO_VERTICES.momentum).shape == (0, 2)
