"""The inputs of ParticleNet, computed from the particles and secondary vertices of a jet.

Momenta and energies are in GeV, lengths in mm, angles in radians. Δη and Δφ are taken from the jet
axis, the direction of the jet's four-momentum, and ΔR = √(Δη² + Δφ²). A point is (Δη, Δφ).

A feature enters the network as (value - mean) / scale, limited to ±5, with the mean and scale in
`PARTICLE_FEATURES` and `VERTEX_FEATURES` beside its name; these two tables fix the order:

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

import numpy as np
import numpy.typing as npt

JET_RADIUS = 0.8
_LIMIT = 5.0

Array = npt.NDArray[np.float64]

# Name, mean and scale, in the order of the network's input.
PARTICLE_FEATURES = (
    ("log_pt", 1.6, 1.2),
    ("log_energy", 2.0, 1.3),
    ("log_pt_fraction", -4.6, 1.2),
    ("log_e_fraction", -4.6, 1.2),
    ("delta_eta", 0.0, 0.2),
    ("delta_phi", 0.0, 0.2),
    ("delta_r", 0.3, 0.2),
    ("abs_eta", 0.8, 0.6),
    ("charge", 0.0, 0.7),
    ("charged_hadron", 0.5, 0.5),
    ("neutral_hadron", 0.1, 0.3),
    ("photon", 0.3, 0.5),
    ("electron", 0.0, 0.2),
    ("muon", 0.0, 0.2),
    ("d0", 0.0, 0.11),
    ("d0_sig", 0.0, 1.0),
    ("dz", 0.0, 0.15),
    ("dz_sig", 0.0, 1.0),
    ("log_pt_rel", 0.0, 1.2),
    ("vertex_delta_r", 0.4, 0.3),
)
VERTEX_FEATURES = (
    ("log_pt", 3.6, 1.0),
    ("log_pt_fraction", -2.6, 1.0),
    ("delta_eta", 0.0, 0.2),
    ("delta_phi", 0.0, 0.2),
    ("delta_r", 0.2, 0.2),
    ("abs_eta", 0.8, 0.6),
    ("log_mass", 0.1, 0.6),
    ("tracks", 2.9, 1.2),
    ("log_flight", 2.1, 1.4),
    ("flight_sig", 5.8, 1.4),
    ("pointing", -9.5, 2.4),
)


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
    return _standardised(columns, PARTICLE_FEATURES)


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
    return _standardised(columns, VERTEX_FEATURES)


def _transverse_momentum(jet: Jet) -> float:
    return float(np.hypot(jet.momentum[1], jet.momentum[2]))


def _standardised(
    columns: dict[str, npt.NDArray[np.generic]], table: tuple[tuple[str, float, float], ...]
) -> Array:
    """Puts the columns in the table's order, on its scales."""
    values = np.stack([columns[name].astype(np.float64) for name, _, _ in table], axis=1)
    mean = np.array([row[1] for row in table])
    scale = np.array([row[2] for row in table])
    return np.asarray(np.clip((values - mean) / scale, -_LIMIT, _LIMIT), np.float64)
