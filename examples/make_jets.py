"""Makes `data/jets.npz`: a sample of simulated jets, as input for ParticleNet.

    python -m venv jets && jets/bin/pip install absl-py==2.5.1 fastjet==3.5.2.0 numpy==2.4.6 \\
        pythia8mc==8.317.2
    jets/bin/python -m examples.make_jets --output=examples/data/jets.npz

This is run by hand, in an environment of its own; it takes a few minutes on one core.

Pythia 8 generates proton-proton collisions at 13.6 TeV with QCD dijets, W or Z with a jet, Higgs
with a jet, and top pairs, all decaying to quarks. What a simple detector sees of the final state
(charged particles above 0.5 GeV and neutral ones above 1 GeV of transverse momentum, |η| < 3.2, no
neutrinos) is clustered by FastJet with the anti-kT algorithm, R = 0.8. Jets have pT > 400 GeV and
|η| < 2.4 and are kept if they are of one of eight classes, in equal numbers and in random order:

    label  class      the jet holds, within ΔR < 0.8 of its axis,
    0      qcd_light  no hadron with b or c of pT > 5 GeV        (QCD events)
    1      qcd_heavy  at least one                               (QCD events)
    2      w_qq       a W and both its quarks
    3      z_qq       a Z and both its quarks, u, d, s or c
    4      z_bb       a Z and both its b quarks
    5      h_bb       a Higgs boson and both its b quarks
    6      t_bqq      a top quark, its b quark and both quarks of its W
    7      t_bq       a top quark, its b quark and one quark of its W

Particles that live longer than cτ = 10 mm are stable, so secondary vertices come from hadrons with
b or c and from τ leptons. A vertex is a set of at least two charged particles of the jet that were
produced at one place, between 0.1 and 100 mm from the collision in the transverse plane. Impact
parameters get a Gaussian error of 0.02 mm ⊕ 0.06 mm·GeV/pT (dz: 1.5 times that), vertex positions
one of 0.05 mm in each direction.

The file is in NumPy's .npz format, its members stored without compression, in C order. Jet j owns
the rows from offsets[j] up to offsets[j + 1] of the particles' or vertices' arrays:

    jet_pt, jet_eta, jet_phi, jet_mass   float32[jets]: GeV, 1, radians, GeV
    label                                int32[jets]: the class, as above
    pf_offsets                           int64[jets + 1]
    pf_points                            float32[particles, 2]: (Δη, Δφ) from the jet axis
    pf_features                          float32[particles, 20]
    sv_offsets                           int64[jets + 1]
    sv_points                            float32[vertices, 2]: (Δη, Δφ) of the vertex's momentum
    sv_features                          float32[vertices, 11]

The features are those of `jet_features`. Particles and vertices are in descending order of pT.
There are no masks, since nothing is padded. With the default flags there are 1000 jets of 11 to 124
particles (45 on average) and 0 to 8 vertices (1.4 on average, none in a third of the jets). A jet
with fewer than 17 particles and vertices in all is too small for ParticleNet's 16 neighbours; the
three that occur are kept, since real samples have them.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import fastjet  # type: ignore[import-not-found]
import numpy as np
import pythia8mc  # type: ignore[import-not-found]
from absl import app, flags, logging

from examples import jet_features
from examples.jet_features import Array, Jet, Particles, Vertices

_OUTPUT = flags.DEFINE_string("output", None, "The .npz file to write.", required=True)
_JETS_PER_CLASS = flags.DEFINE_integer("jets_per_class", 125, "Jets of each class.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 1, "Seed of all random numbers.", lower_bound=1)

CLASSES = ("qcd_light", "qcd_heavy", "w_qq", "z_qq", "z_bb", "h_bb", "t_bqq", "t_bq")
_MINIMUM_PT = 400.0
_MAXIMUM_ETA = 2.4
_ACCEPTANCE = 3.2
_CHARGED_PT = 0.5
_NEUTRAL_PT = 1.0
_FLIGHT_RANGE = (0.1, 100.0)
_POSITION_ERROR = 0.05

_COMMON_SETTINGS = (
    "Print:quiet = on",
    "Beams:eCM = 13600",
    # Softer than the jets by what the other products of the collision may add to them.
    "PhaseSpace:pTHatMin = 380",
    "ParticleDecays:limitTau0 = on",
    "ParticleDecays:tau0Max = 10",
    "Random:setSeed = on",
    # The bosons decay to quarks only.
    "23:onMode = off",
    "24:onMode = off",
    "25:onMode = off",
    "24:onIfAny = 1 2 3 4 5",
    "25:onIfMatch = 5 -5",
)
_PROCESSES = {
    "qcd": ("HardQCD:all = on",),
    "w": ("WeakBosonAndParton:qqbar2Wg = on", "WeakBosonAndParton:qg2Wq = on"),
    "z_qq": (
        "WeakBosonAndParton:qqbar2gmZg = on",
        "WeakBosonAndParton:qg2gmZq = on",
        "WeakZ0:gmZmode = 2",
        "23:onIfAny = 1 2 3 4",
    ),
    "z_bb": (
        "WeakBosonAndParton:qqbar2gmZg = on",
        "WeakBosonAndParton:qg2gmZq = on",
        "WeakZ0:gmZmode = 2",
        "23:onIfMatch = 5 -5",
    ),
    "h": ("HiggsSM:gg2Hg(l:t) = on", "HiggsSM:qg2Hq(l:t) = on"),
    "top": ("Top:gg2ttbar = on", "Top:qqbar2ttbar = on"),
}

# Objects of Pythia and FastJet, which carry no types.
Event = Any
Particle = Any
PseudoJet = Any


@dataclasses.dataclass(frozen=True)
class Sample:
    """One jet as it goes into the file."""

    kinematics: tuple[float, float, float, float]
    label: int
    pf_points: Array
    pf_features: Array
    sv_points: Array
    sv_features: Array


def delta_r(jet: PseudoJet, particle: Particle) -> float:
    """Distance of a particle from the jet axis in (η, φ)."""
    delta_phi = math.remainder(jet.phi() - particle.phi(), 2 * math.pi)
    return math.hypot(jet.eta() - particle.eta(), delta_phi)


def visible(particle: Particle) -> bool:
    """Whether the detector sees a particle."""
    threshold = _CHARGED_PT if particle.isCharged() else _NEUTRAL_PT
    return bool(
        particle.isFinal()
        and particle.isVisible()
        and particle.pT() > threshold
        and abs(particle.eta()) < _ACCEPTANCE
    )


def cluster(event: Event) -> tuple[list[PseudoJet], fastjet.ClusterSequence]:
    """Returns the jets and the cluster sequence, which has to live as long as they do."""
    inputs = []
    for index in range(event.size()):
        particle = event[index]
        if visible(particle):
            pseudojet = fastjet.PseudoJet(particle.px(), particle.py(), particle.pz(), particle.e())
            pseudojet.set_user_index(index)
            inputs.append(pseudojet)
    definition = fastjet.JetDefinition(fastjet.antikt_algorithm, jet_features.JET_RADIUS)
    sequence = fastjet.ClusterSequence(inputs, definition)
    jets = fastjet.sorted_by_pt(sequence.inclusive_jets(_MINIMUM_PT))
    return [jet for jet in jets if abs(jet.eta()) < _MAXIMUM_ETA], sequence


def _is_heavy_hadron(particle: Particle) -> bool:
    """Whether it is a hadron with a b or c quark, by the digits of its PDG number."""
    number = particle.idAbs()
    return not {4, 5}.isdisjoint((number // 100 % 10, number // 1000 % 10))


def qcd_label(event: Event, jet: PseudoJet) -> str | None:
    """Class of a jet of a QCD event."""
    for index in range(event.size()):
        particle = event[index]
        heavy = particle.isHadron() and _is_heavy_hadron(particle) and particle.pT() > 5
        if heavy and delta_r(jet, particle) < jet_features.JET_RADIUS:
            return "qcd_heavy"
    return "qcd_light"


def _decays(event: Event, number: int) -> Iterator[tuple[Particle, list[Particle]]]:
    """Each particle of this PDG number that decays, with its daughters."""
    for index in range(event.size()):
        particle = event[index]
        if particle.idAbs() == number and particle.iBotCopyId() == index:
            daughters = [event[i] for i in particle.daughterList()]
            if daughters:
                yield particle, daughters


def _inside(jet: PseudoJet, particles: Sequence[Particle]) -> int:
    return sum(delta_r(jet, particle) < jet_features.JET_RADIUS for particle in particles)


def boson_label(event: Event, jet: PseudoJet, number: int, name: str) -> str | None:
    """Class of a jet of an event with a W, Z or Higgs boson; none if the boson is elsewhere."""
    for boson, quarks in _decays(event, number):
        if _inside(jet, [boson]) and _inside(jet, quarks) == 2 == len(quarks):
            return name
    return None


def top_label(event: Event, jet: PseudoJet) -> str | None:
    """Class of a jet of an event with top quarks; none if the top quark is not in it."""
    for top, daughters in _decays(event, 6):
        bottoms = [daughter for daughter in daughters if daughter.idAbs() == 5]
        bosons = [event[d.iBotCopyId()] for d in daughters if d.idAbs() == 24]
        if not _inside(jet, [top]) or _inside(jet, bottoms) != 1 or len(bosons) != 1:
            continue
        quarks = _inside(jet, [event[i] for i in bosons[0].daughterList()])
        if quarks:
            return "t_bqq" if quarks == 2 else "t_bq"
    return None


_LABELS: dict[str, Callable[[Event, PseudoJet], str | None]] = {
    "qcd": qcd_label,
    "w": lambda event, jet: boson_label(event, jet, 24, "w_qq"),
    "z_qq": lambda event, jet: boson_label(event, jet, 23, "z_qq"),
    "z_bb": lambda event, jet: boson_label(event, jet, 23, "z_bb"),
    "h": lambda event, jet: boson_label(event, jet, 25, "h_bb"),
    "top": top_label,
}


def _four_momentum(particle: Particle | PseudoJet) -> list[float]:
    return [particle.e(), particle.px(), particle.py(), particle.pz()]


def jet_particles(
    jet: PseudoJet, constituents: Sequence[Particle], random: np.random.Generator
) -> Particles:
    """Measures the particles of a jet."""
    momentum = np.array([_four_momentum(particle) for particle in constituents])
    charge = np.array([round(particle.charge()) for particle in constituents])
    origin = np.array([[p.xProd(), p.yProd(), p.zProd()] for p in constituents])
    direction = momentum[:, 1:] / np.hypot(momentum[:, 1], momentum[:, 2])[:, None]
    # Tracks are straight lines here; the closest point to the beam line is at -along.
    along = np.einsum("ij,ij->i", origin[:, :2], direction[:, :2])
    closest = origin - along[:, None] * direction
    side = closest[:, :2] @ np.array([jet.px(), jet.py()])
    d0 = np.hypot(closest[:, 0], closest[:, 1]) * np.where(side < 0, -1.0, 1.0)
    error = np.hypot(0.02, 0.06 / np.hypot(momentum[:, 1], momentum[:, 2]))
    errors = np.stack([error, 1.5 * error], axis=1)
    impact = np.stack([d0, closest[:, 2]], axis=1)
    impact += errors * random.standard_normal(errors.shape)
    impact[charge == 0] = 0.0
    pdg_id = np.array([particle.id() for particle in constituents])
    return Particles(momentum, pdg_id, charge, impact, errors)


def jet_vertices(constituents: Sequence[Particle], random: np.random.Generator) -> Vertices:
    """Finds the secondary vertices among the particles of a jet."""
    groups: dict[tuple[float, ...], list[Particle]] = collections.defaultdict(list)
    for particle in constituents:
        place = (particle.xProd(), particle.yProd(), particle.zProd())
        if particle.isCharged() and _FLIGHT_RANGE[0] < math.hypot(*place[:2]) < _FLIGHT_RANGE[1]:
            # What decays at once shares the place up to rounding: 1 µm apart is the same place.
            groups[tuple(round(coordinate, 3) for coordinate in place)].append(particle)
    vertices = [(place, tracks) for place, tracks in groups.items() if len(tracks) >= 2]
    momentum = np.array(
        [np.sum([_four_momentum(track) for track in tracks], axis=0) for _, tracks in vertices]
    ).reshape(-1, 4)
    position = np.array([place for place, _ in vertices]).reshape(-1, 3)
    position += _POSITION_ERROR * random.standard_normal(position.shape)
    order = np.argsort(-np.hypot(momentum[:, 1], momentum[:, 2]), kind="stable")
    tracks = np.array([len(tracks) for _, tracks in vertices], np.int64)
    return Vertices(momentum[order], position[order], tracks[order], _POSITION_ERROR)


def measure(event: Event, jet: PseudoJet, label: str, random: np.random.Generator) -> Sample:
    """Turns a clustered jet into the network's inputs."""
    constituents = sorted(
        (event[constituent.user_index()] for constituent in jet.constituents()),
        key=lambda particle: -particle.pT(),
    )
    axis = Jet(np.array(_four_momentum(jet)))
    particles = jet_particles(jet, constituents, random)
    vertices = jet_vertices(constituents, random)
    return Sample(
        kinematics=(jet.pt(), jet.eta(), jet.phi_std(), jet.m()),
        label=CLASSES.index(label),
        pf_points=jet_features.points(axis, particles.momentum),
        pf_features=jet_features.particle_features(axis, particles, vertices),
        sv_points=jet_features.points(axis, vertices.momentum),
        sv_features=jet_features.vertex_features(axis, vertices),
    )


def generate(process: str, jets_per_class: int, seed: int) -> list[Sample]:
    """Generates events of one process until each of its classes is full."""
    generator = pythia8mc.Pythia("", False)
    for setting in (*_COMMON_SETTINGS, *_PROCESSES[process], f"Random:seed = {seed}"):
        if not generator.readString(setting):
            raise RuntimeError(f"Pythia does not know the setting '{setting}'.")
    if not generator.init():
        raise RuntimeError(f"Pythia cannot start the process '{process}'.")
    random = np.random.default_rng(seed)
    wanted = {
        "qcd": ("qcd_light", "qcd_heavy"),
        "w": ("w_qq",),
        "h": ("h_bb",),
        "top": ("t_bqq", "t_bq"),
    }.get(process, (process,))
    found = dict.fromkeys(wanted, 0)
    samples: list[Sample] = []
    while min(found.values()) < jets_per_class:
        if not generator.next():
            continue
        # The sequence owns what the jets refer to.
        jets, sequence = cluster(generator.event)
        for jet in jets:
            label = _LABELS[process](generator.event, jet)
            if label is not None and found[label] < jets_per_class:
                found[label] += 1
                samples.append(measure(generator.event, jet, label, random))
        del sequence
    logging.info("%s: %d jets", process, len(samples))
    return samples


def pack(samples: Sequence[Sample]) -> dict[str, np.ndarray[Any, Any]]:
    """Lays the jets one after another, as described at the top of this file."""
    kinematics = np.array([sample.kinematics for sample in samples], np.float32)
    names = ("jet_pt", "jet_eta", "jet_phi", "jet_mass")
    arrays: dict[str, np.ndarray[Any, Any]] = {
        name: np.ascontiguousarray(column) for name, column in zip(names, kinematics.T, strict=True)
    }
    arrays["label"] = np.array([sample.label for sample in samples], np.int32)
    for kind in ("pf", "sv"):
        points = [getattr(sample, f"{kind}_points") for sample in samples]
        features = [getattr(sample, f"{kind}_features") for sample in samples]
        arrays[f"{kind}_offsets"] = np.cumsum([0, *map(len, points)], dtype=np.int64)
        arrays[f"{kind}_points"] = np.concatenate(points).astype(np.float32)
        arrays[f"{kind}_features"] = np.concatenate(features).astype(np.float32)
    return arrays


def main(argv: Sequence[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unexpected arguments: {' '.join(argv[1:])}.")
    samples: list[Sample] = []
    for index, process in enumerate(_PROCESSES):
        samples += generate(process, _JETS_PER_CLASS.value, _SEED.value + index)
    order = np.random.default_rng(_SEED.value).permutation(len(samples))
    np.savez(_OUTPUT.value, allow_pickle=False, **pack([samples[i] for i in order]))


if __name__ == "__main__":
    app.run(main)
