"""What jet taggers take in and tell apart, and how their graphs standardise the inputs.

A feature enters a network's first layer as (value - centre) / scale, limited to ±`LIMIT`. That is
part of the graphs, so that callers pass the quantities as `training/jet_features.py` defines them.
"""

from __future__ import annotations

from typing import NamedTuple

# In the order of the networks' outputs; training/make_jets.py says what is in each.
CLASSES = ("qcd_light", "qcd_c", "qcd_b", "w_qq", "z_bb", "h_bb", "t_bqq", "t_bq")
LIMIT = 5.0


class Feature(NamedTuple):
    """One input of a network: about its mean and its spread over the jets of all classes."""

    name: str
    centre: float
    scale: float


PARTICLE_FEATURES = (
    Feature("log_pt", 1.6, 1.2),
    Feature("log_energy", 2.0, 1.3),
    Feature("log_pt_fraction", -4.6, 1.2),
    Feature("log_e_fraction", -4.6, 1.2),
    Feature("delta_eta", 0.0, 0.2),
    Feature("delta_phi", 0.0, 0.2),
    Feature("delta_r", 0.3, 0.2),
    Feature("abs_eta", 0.8, 0.6),
    Feature("charge", 0.0, 0.7),
    Feature("charged_hadron", 0.5, 0.5),
    Feature("neutral_hadron", 0.1, 0.3),
    Feature("photon", 0.3, 0.5),
    Feature("electron", 0.0, 0.2),
    Feature("muon", 0.0, 0.2),
    Feature("d0", 0.0, 0.11),
    Feature("d0_sig", 0.0, 1.0),
    Feature("dz", 0.0, 0.15),
    Feature("dz_sig", 0.0, 1.0),
    Feature("log_pt_rel", 0.0, 1.2),
    Feature("vertex_delta_r", 0.4, 0.3),
)
VERTEX_FEATURES = (
    Feature("log_pt", 3.6, 1.0),
    Feature("log_pt_fraction", -2.6, 1.0),
    Feature("delta_eta", 0.0, 0.2),
    Feature("delta_phi", 0.0, 0.2),
    Feature("delta_r", 0.2, 0.2),
    Feature("abs_eta", 0.8, 0.6),
    Feature("log_mass", 0.1, 0.6),
    Feature("tracks", 2.9, 1.2),
    Feature("log_flight", 2.1, 1.4),
    Feature("flight_sig", 5.8, 1.4),
    Feature("pointing", -9.5, 2.4),
)
