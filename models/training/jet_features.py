"""The inputs of the jet taggers, computed from the particles and secondary vertices of a jet.

Momenta and energies are in GeV, lengths in mm, angles in radians. Δη and Δφ are taken from the jet
axis, the direction of the jet's four-momentum, and ΔR = √(Δη² + Δφ²). A point is (Δη, Δφ).

The features, in the order of the networks' inputs. They are as they stand here: centring, scaling
and limits are part of the networks (`models/jet_inputs.py`).

    particle                                            vertex (sum over its tracks)
    log_pt            ln pT                             log_pt          ln pT
    log_energy        ln E                              log_pt_fraction ln(pT / pT of the jet)
    log_pt_fraction   ln(pT / pT of the jet)            delta_eta       Δη
    log_e_fraction    ln(E / E of the jet)              delta_phi       Δφ
    delta_eta         Δη                                delta_r         ΔR
    delta_phi         Δφ                                abs_eta         |η|
    delta_r           ΔR                                log_mass        ln mass
    abs_eta           |η|                               tracks          number of tracks
    charge            charge in units of e              log_flight      ln of the transverse
    charged_hadron    1 or 0                                            distance from the collision
    neutral_hadron    1 or 0                            flight_sig      asinh(distance / its error)
    photon            1 or 0                            pointing        ln(1e-6 + 1 - cos of the
    electron          1 or 0                                            angle between flight and
    muon              1 or 0                                            momentum)
    d0                tanh of the transverse impact parameter, positive if on the jet's side of
                      the collision; 0 for neutral particles, as are the next three
    d0_sig            asinh(d0 / its error)
    dz                tanh of the longitudinal impact parameter
    dz_sig            asinh(dz / its error)
    log_pt_rel        ln(0.01 GeV + momentum transverse to the jet axis)
    vertex_delta_r    ΔR to the nearest vertex, 0.8 if there is none or if it is further
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from models import jet_inputs
from models.jet_inputs import Feature

JET_RADIUS = 0.8

Array = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Jet:
    """A jet's four-momentum (E, px, py, pz) in GeV."""

    momentum: Array


@dataclasses.dataclass(frozen=True)
class Particles:
    """The n particles of a jet."""

    momentum: Array  # [n, 4]: E, px, py, pz in GeV
    pdg_id: npt.NDArray[np.int64]  # [n]
    charge: npt.NDArray[np.int64]  # [n], in units of e
    impact: Array  # [n, 2]: signed d0 and dz in mm; 0 for neutral particles
    impact_error: Array  # [n, 2]: their errors in mm; any positive number for neutral particles


@dataclasses.dataclass(frozen=True)
class Vertices:
    """The m secondary vertices of a jet."""

    momentum: Array  # [m, 4]: E, px, py, pz of the sum of its tracks in GeV
    position: Array  # [m, 3]: from the collision, in mm
    tracks: npt.NDArray[np.int64]  # [m]
    flight_error: float  # error of the transverse flight distance in mm


def pseudorapidity(momentum: Array) -> Array:
    """η of each momentum [n, 4]."""
    transverse = np.hypot(momentum[:, 1], momentum[:, 2])
    return np.asarray(np.arcsinh(momentum[:, 3] / transverse), np.float64)


def points(jet: Jet, momentum: Array) -> Array:
    """(Δη, Δφ) of each momentum [n, 4] from the jet axis: [n, 2]."""
    axis = jet.momentum[None]
    delta_phi = np.arctan2(momentum[:, 2], momentum[:, 1]) - np.arctan2(axis[:, 2], axis[:, 1])
    delta_phi = (delta_phi + np.pi) % (2 * np.pi) - np.pi
    return np.stack([pseudorapidity(momentum) - pseudorapidity(axis), delta_phi], axis=1)


def particle_features(jet: Jet, particles: Particles, vertices: Vertices) -> Array:
    """The features [n, 20] of the jet's particles."""
    momentum, pdg_id = particles.momentum, np.abs(particles.pdg_id)
    offset = points(jet, momentum)
    transverse = np.hypot(momentum[:, 1], momentum[:, 2])
    axis = jet.momentum[1:] / np.linalg.norm(jet.momentum[1:])
    across = np.linalg.norm(np.cross(momentum[:, 1:], axis), axis=1)
    lepton_or_photon = np.isin(pdg_id, (11, 13, 22))
    charged = particles.charge != 0
    d0, dz = particles.impact.T
    d0_error, dz_error = particles.impact_error.T
    between = offset[:, None] - points(jet, vertices.momentum)[None]
    nearest = np.linalg.norm(between, axis=2).min(axis=1, initial=JET_RADIUS)
    columns = {
        "log_pt": np.log(transverse),
        "log_energy": np.log(momentum[:, 0]),
        "log_pt_fraction": np.log(transverse / _transverse_momentum(jet)),
        "log_e_fraction": np.log(momentum[:, 0] / jet.momentum[0]),
        "delta_eta": offset[:, 0],
        "delta_phi": offset[:, 1],
        "delta_r": np.linalg.norm(offset, axis=1),
        "abs_eta": np.abs(pseudorapidity(momentum)),
        "charge": particles.charge,
        "charged_hadron": charged & ~lepton_or_photon,
        "neutral_hadron": ~charged & ~lepton_or_photon,
        "photon": pdg_id == 22,
        "electron": pdg_id == 11,
        "muon": pdg_id == 13,
        "d0": np.tanh(d0),
        "d0_sig": np.arcsinh(d0 / d0_error),
        "dz": np.tanh(dz),
        "dz_sig": np.arcsinh(dz / dz_error),
        "log_pt_rel": np.log(0.01 + across),
        "vertex_delta_r": nearest,
    }
    return _ordered(columns, jet_inputs.PARTICLE_FEATURES)


def vertex_features(jet: Jet, vertices: Vertices) -> Array:
    """The features [m, 11] of the jet's secondary vertices."""
    momentum = vertices.momentum
    offset = points(jet, momentum)
    transverse = np.hypot(momentum[:, 1], momentum[:, 2])
    length = np.linalg.norm(momentum[:, 1:], axis=1)
    mass = np.sqrt(np.maximum(momentum[:, 0] ** 2 - length**2, 1e-6))
    flight = np.hypot(vertices.position[:, 0], vertices.position[:, 1])
    along = np.einsum("ij,ij->i", momentum[:, 1:], vertices.position)
    cosine = along / (length * np.linalg.norm(vertices.position, axis=1))
    columns = {
        "log_pt": np.log(transverse),
        "log_pt_fraction": np.log(transverse / _transverse_momentum(jet)),
        "delta_eta": offset[:, 0],
        "delta_phi": offset[:, 1],
        "delta_r": np.linalg.norm(offset, axis=1),
        "abs_eta": np.abs(pseudorapidity(momentum)),
        "log_mass": np.log(mass),
        "tracks": vertices.tracks,
        "log_flight": np.log(flight),
        "flight_sig": np.arcsinh(flight / vertices.flight_error),
        "pointing": np.log(1e-6 + 1 - np.minimum(cosine, 1.0)),
    }
    return _ordered(columns, jet_inputs.VERTEX_FEATURES)


def _transverse_momentum(jet: Jet) -> float:
    return float(np.hypot(jet.momentum[1], jet.momentum[2]))


def _ordered(columns: dict[str, npt.NDArray[np.generic]], features: Sequence[Feature]) -> Array:
    """Puts the columns [rows] in the order of the features: [rows, features]."""
    return np.stack([columns[feature.name].astype(np.float64) for feature in features], axis=1)
