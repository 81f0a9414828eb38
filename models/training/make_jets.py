"""Makes labelled jets: proton-proton collisions, an idealised detector, jets, features.

    python -m venv jets && jets/bin/pip install -r models/training/requirements.txt
    jets/bin/python -m models.training.make_jets --sample=train --output=/data/train
    jets/bin/python -m models.training.make_jets --sample=test --output=/data/test

Each command makes /data/train.npz (about 300,000 jets) or /data/test.npz (50,000) on all cores, by
way of a folder of parts of 1000 events; if it is stopped, the same command goes on. An event takes
about 10 ms of a core. What a part holds depends on its seed alone, and `--parts=20` is the
beginning of the whole sample, with the same mixture of classes.

**Collisions.** Pythia 8 generates proton-proton collisions at 13.6 TeV with QCD dijets, W or Z with
a jet, Higgs with a jet, and top pairs, the bosons decaying to quarks. Hadrons decay where their
decay is within 100 mm of the beam line and 1 m of the collision; others are stable. There are no
further collisions (pile-up).

**Detector.** Seen are charged particles above 0.5 GeV and neutral ones above 1 GeV of transverse
momentum, after smearing, with |η| < 3.2; neutrinos are not. Measured values are Gaussian about the
true ones; ⊕ is a sum in quadrature, E and pT in GeV:

    particles                 quantity  σ of the momentum or energy  σ of η and of φ
    charged                   pT        pT · (1 % ⊕ 0.015 % · pT)    0.0003
    photons                   E         E · (5 % / √E ⊕ 1 %)         0.005
    other neutral particles   E         E · (100 % / √E ⊕ 5 %)       0.025

Photons and neutral hadrons are massless, charged hadrons have the pion's mass. Impact parameters
have errors of 0.02 mm ⊕ 0.06 mm·GeV/pT (dz: 1.5 times that). Every particle is identified, and none
is lost or invented. A secondary vertex is a set of at least two charged particles of a jet that
were produced at one place, between 0.1 and 100 mm from the collision in the transverse plane; its
position has an error of 0.05 mm in each direction.

**Jets.** FastJet clusters what is seen with the anti-kT algorithm, R = 0.8. Jets have pT > 400 GeV
and |η| < 2.4 and are kept if they are of one of eight classes:

    label  class      the jet holds, within ΔR < 0.8 of its axis,
    0      qcd_light  no hadron with b or c of pT > 5 GeV               (QCD events)
    1      qcd_c      at least one with c, none with b                  (QCD events)
    2      qcd_b      at least one with b                               (QCD events)
    3      w_qq       a W and both its quarks
    4      z_bb       a Z and both its b quarks
    5      h_bb       a Higgs boson and both its b quarks
    6      t_bqq      a top quark, its b quark and both quarks of its W
    7      t_bq       a top quark, its b quark and one quark of its W

**File.** NumPy's .npz format, its members stored without compression, in C order. Jet j owns the
rows from offsets[j] up to offsets[j + 1] of the particles' or vertices' arrays:

    jet_pt, jet_eta, jet_phi, jet_mass   float32[jets]: GeV, 1, radians, GeV
    label                                int32[jets]: the class, as above
    pf_offsets                           int64[jets + 1]
    pf_points                            float32[particles, 2]: (Δη, Δφ) from the jet axis
    pf_features                          float32[particles, 20]
    sv_offsets                           int64[jets + 1]
    sv_points                            float32[vertices, 2]: (Δη, Δφ) of the vertex's momentum
    sv_features                          float32[vertices, 11]

The features are those of `jet_features`. Particles and vertices are in descending order of pT.
There are no masks, since nothing is padded. Jets are in random order. A jet with fewer than 17
particles and vertices in all is too small for ParticleNet's 16 neighbours; the few that occur are
kept, since real samples have them.
"""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import functools
import math
import multiprocessing
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import awkward as ak
import fastjet
import numpy as np
import numpy.typing as npt
import pythia8mc
import tqdm
from absl import app, flags, logging

from models import jet_inputs
from models.training import jet_features
from models.training.jet_features import Array, Jet, Particles, Vertices

_OUTPUT = flags.DEFINE_string(
    "output", None, "The .npz file to write, without .npz.", required=True
)
_SAMPLE = flags.DEFINE_enum("sample", "train", ["train", "test"], "Which of the two to make.")
_PARTS = flags.DEFINE_integer("parts", None, "Make only the first parts.", lower_bound=1)
_WORKERS = flags.DEFINE_integer("workers", os.cpu_count(), "Processes.", lower_bound=1)
_EXCERPT = flags.DEFINE_string("excerpt", None, "Also write 125 jets of each class to this file.")

_MINIMUM_PT = 400.0
_MAXIMUM_ETA = 2.4
_ACCEPTANCE = 3.2
_CHARGED_PT = 0.5
_NEUTRAL_PT = 1.0
_HEAVY_HADRON_PT = 5.0
_FLIGHT_RANGE = (0.1, 100.0)
_POSITION_ERROR = 0.05
_PION_MASS = 0.13957
_LEPTON_MASSES = {11: 0.000511, 13: 0.10566}

_COMMON_SETTINGS = (
    "Print:quiet = on",
    "Beams:eCM = 13600",
    # Softer than the jets by what the other products of the collision may add to them.
    "PhaseSpace:pTHatMin = 380",
    "ParticleDecays:limitCylinder = on",
    "ParticleDecays:xyMax = 100",
    "ParticleDecays:zMax = 1000",
    "Random:setSeed = on",
    # The bosons decay to quarks only.
    "23:onMode = off",
    "24:onMode = off",
    "25:onMode = off",
    "23:onIfMatch = 5 -5",
    "24:onIfAny = 1 2 3 4 5",
    "25:onIfMatch = 5 -5",
)


@dataclasses.dataclass(frozen=True)
class Process:
    """One kind of collision."""

    settings: tuple[str, ...]
    # PDG number of what the jets hold; None for QCD.
    resonance: int | None
    # Parts of `_EVENTS_IN_PART` events in the training sample and in the test sample.
    parts: dict[str, int]


# The class of jets that hold a boson, by its PDG number.
_BOSONS = {23: "z_bb", 24: "w_qq", 25: "h_bb"}
_EVENTS_IN_PART = 1000
_EVENTS_IN_BATCH = 100  # each takes about half a megabyte
_PROCESSES = {
    "qcd": Process(("HardQCD:all = on",), None, {"train": 200, "test": 34}),
    "w": Process(
        ("WeakBosonAndParton:qqbar2Wg = on", "WeakBosonAndParton:qg2Wq = on"),
        24,
        {"train": 60, "test": 10},
    ),
    "z": Process(
        (
            "WeakBosonAndParton:qqbar2gmZg = on",
            "WeakBosonAndParton:qg2gmZq = on",
            "WeakZ0:gmZmode = 2",
        ),
        23,
        {"train": 76, "test": 13},
    ),
    "h": Process(
        ("HiggsSM:gg2Hg(l:t) = on", "HiggsSM:qg2Hq(l:t) = on"), 25, {"train": 64, "test": 11}
    ),
    "top": Process(("Top:gg2ttbar = on", "Top:qqbar2ttbar = on"), 6, {"train": 100, "test": 17}),
}
# The most jets of a class, which QCD jets without b and c and whole top quarks reach; and of all.
_MOST_OF_CLASS = {"train": 51_000, "test": 8_600}
_MOST_JETS = {"train": 300_000, "test": 50_000}
_EXCERPT_OF_CLASS = 125
# No two parts have the same seed.
_FIRST_SEED = {"train": 1, "test": 500_001}
_SEEDS_OF_PROCESS = 10_000


@dataclasses.dataclass(frozen=True)
class Collisions:
    """Events one after another: what was generated, and what the detector sees of it."""

    # Everything that was generated; event i owns the places from offsets[i] up to offsets[i + 1].
    offsets: npt.NDArray[np.int64]  # [events + 1]
    pdg_id: npt.NDArray[np.int64]  # [all]
    daughters: npt.NDArray[np.int64]  # [all, 2]: places of the first and the last; none: first < 0
    momentum: Array  # [all, 4]: E, px, py, pz in GeV
    # What is seen; event i owns the rows from seen_offsets[i] up to seen_offsets[i + 1].
    seen_offsets: npt.NDArray[np.int64]  # [events + 1]
    seen_pdg_id: npt.NDArray[np.int64]  # [seen]
    charge: npt.NDArray[np.int64]  # [seen], in units of e
    measured: Array  # [seen, 4]: E, px, py, pz in GeV
    origin: Array  # [seen, 3]: where it was produced, in mm


@functools.cache
def _charge(number: int) -> int:
    """Charge in units of e of the particle with this PDG number."""
    return int(round(_particle_data().charge(number)))


@functools.cache
def _particle_data() -> Any:
    return pythia8mc.Pythia("", False).particleData


def _charges(pdg_id: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    numbers, inverse = np.unique(pdg_id, return_inverse=True)
    return np.array([_charge(int(number)) for number in numbers], np.int64)[inverse]


def measure_momenta(
    momentum: Array,
    pdg_id: npt.NDArray[np.int64],
    charge: npt.NDArray[np.int64],
    random: np.random.Generator,
) -> Array:
    """What the detector makes of momenta [n, 4] in GeV; see the top of this file."""
    kind = np.abs(pdg_id)
    charged, photon = charge != 0, kind == 22
    energy = momentum[:, 0]
    transverse = np.hypot(momentum[:, 1], momentum[:, 2])
    relative = np.select(
        [charged, photon],
        [np.hypot(0.01, 0.00015 * transverse), np.hypot(0.05 / np.sqrt(energy), 0.01)],
        np.hypot(1.0 / np.sqrt(energy), 0.05),
    )
    angle = np.select([charged, photon], [0.0003, 0.005], 0.025)
    normal = random.standard_normal((3, len(momentum)))
    eta = np.arcsinh(momentum[:, 3] / transverse) + angle * normal[0]
    phi = np.arctan2(momentum[:, 2], momentum[:, 1]) + angle * normal[1]
    factor = np.maximum(1 + relative * normal[2], 0)
    # Calorimeters measure energy, and take it to be massless.
    transverse = factor * np.where(charged, transverse, energy / np.cosh(eta))
    mass = np.where(charged, _PION_MASS, 0.0)
    for lepton, value in _LEPTON_MASSES.items():
        mass[kind == lepton] = value
    return np.stack(
        [
            np.hypot(transverse * np.cosh(eta), mass),
            transverse * np.cos(phi),
            transverse * np.sin(phi),
            transverse * np.sinh(eta),
        ],
        axis=1,
    )


def _columns(records: Any, names: Sequence[str]) -> npt.NDArray[Any]:
    return np.stack([ak.to_numpy(records[name]) for name in names], axis=1)


def _offsets(counts: npt.ArrayLike) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def detect(batch: Any, random: np.random.Generator) -> Collisions:
    """Passes events, as Pythia's nextBatch gives them, through the detector."""
    offsets = _offsets(ak.to_numpy(ak.num(batch.prt)))
    generated = ak.flatten(batch.prt)
    event = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    pdg_id = ak.to_numpy(generated.id).astype(np.int64)
    momentum = _columns(generated.p, ("e", "px", "py", "pz"))
    # Pythia's daughters are places in their event; place 0 stands for none.
    daughters = _columns(generated, ("daughter1", "daughter2")).astype(np.int64)
    daughters = np.where(daughters > 0, daughters + offsets[event][:, None], -1)

    final = (ak.to_numpy(generated.status) > 0) & ~np.isin(np.abs(pdg_id), (12, 14, 16))
    places = np.flatnonzero(final)
    charge = _charges(pdg_id[places])
    measured = measure_momenta(momentum[places], pdg_id[places], charge, random)
    transverse = np.hypot(measured[:, 1], measured[:, 2])
    seen = transverse > np.where(charge != 0, _CHARGED_PT, _NEUTRAL_PT)
    seen &= np.abs(measured[:, 3]) < transverse * math.sinh(_ACCEPTANCE)
    places = places[seen]
    origin = generated.vProd[places]
    return Collisions(
        offsets=offsets,
        pdg_id=pdg_id,
        daughters=daughters,
        momentum=momentum,
        seen_offsets=_offsets(np.bincount(event[places], minlength=len(offsets) - 1)),
        seen_pdg_id=pdg_id[places],
        charge=charge[seen],
        measured=measured[seen],
        # What has no vertex of its own was produced in the collision itself.
        origin=np.stack(
            [ak.to_numpy(ak.fill_none(origin[name], 0.0)) for name in ("px", "py", "pz")], axis=1
        ),
    )


@dataclasses.dataclass(frozen=True)
class FoundJet:
    """A jet of an event."""

    event: int
    momentum: Array  # [4]: E, px, py, pz in GeV
    constituents: npt.NDArray[np.int64]  # rows of what is seen, in descending order of pT


def cluster(collisions: Collisions) -> Iterator[FoundJet]:
    """Finds the jets of each event, in descending order of pT."""
    columns = dict(zip(("E", "px", "py", "pz"), collisions.measured.T, strict=True))
    seen = ak.unflatten(ak.zip(columns, with_name="Momentum4D"), np.diff(collisions.seen_offsets))
    definition = fastjet.JetDefinition(fastjet.antikt_algorithm, jet_features.JET_RADIUS)
    sequence = fastjet.ClusterSequence(seen, definition)
    jets = ak.to_list(sequence.inclusive_jets(_MINIMUM_PT))
    constituents = ak.to_list(sequence.constituent_index(_MINIMUM_PT))
    transverse = np.hypot(collisions.measured[:, 1], collisions.measured[:, 2])
    for event, (of_event, rows_of_event) in enumerate(zip(jets, constituents, strict=True)):
        found = []
        for jet, rows in zip(of_event, rows_of_event, strict=True):
            momentum = np.array([jet[name] for name in columns])
            if abs(jet_features.pseudorapidity(momentum[None])[0]) < _MAXIMUM_ETA:
                places = np.array(rows, np.int64) + collisions.seen_offsets[event]
                places = places[np.argsort(-transverse[places], kind="stable")]
                found.append(FoundJet(event, momentum, places))
        yield from sorted(found, key=lambda jet: -math.hypot(*jet.momentum[1:3]))


def _inside(jet: FoundJet, momentum: Array) -> npt.NDArray[np.bool_]:
    """Which of these momenta [n, 4] are within the radius of the jet's axis."""
    offset = jet_features.points(Jet(jet.momentum), momentum)
    return np.asarray(np.hypot(offset[:, 0], offset[:, 1]) < jet_features.JET_RADIUS)


class Truth:
    """Says of what class a jet is."""

    def __init__(self, collisions: Collisions, resonance: int | None) -> None:
        """Looks for what decides about the classes.

        Args:
          collisions: the events.
          resonance: PDG number of the particle whose decay a jet has to hold; None for QCD.
        """
        self._collisions = collisions
        self._resonance = resonance
        number = np.abs(collisions.pdg_id)
        if resonance is None:
            digits = np.stack([number // 100 % 10, number // 1000 % 10])
            hadron = (number > 100) & (number < 1_000_000)
            momentum = collisions.momentum
            hard = np.hypot(momentum[:, 1], momentum[:, 2]) > _HEAVY_HADRON_PT
            self._heavy = {
                quark: np.flatnonzero(hadron & hard & (digits == quark).any(axis=0))
                for quark in (4, 5)
            }
        else:
            first = collisions.daughters[:, 0]
            decays = (number == resonance) & (first >= 0) & (number[first] != resonance)
            self._decays = np.flatnonzero(decays)

    def name(self, jet: FoundJet) -> str | None:
        """The class of a jet, or None if it is of none."""
        begin, end = self._collisions.offsets[jet.event : jet.event + 2]
        if self._resonance is None:
            for quark, found in ((5, "qcd_b"), (4, "qcd_c")):
                places = self._heavy[quark]
                own = places[(places >= begin) & (places < end)]
                if _inside(jet, self._collisions.momentum[own]).any():
                    return found
            return "qcd_light"
        decays = self._decays[(self._decays >= begin) & (self._decays < end)]
        for decay in decays:
            if _inside(jet, self._collisions.momentum[[decay]])[0]:
                name = self._decay_class(jet, self._daughters(decay))
                if name is not None:
                    return name
        return None

    def _daughters(self, place: np.int64) -> npt.NDArray[np.int64]:
        first, last = self._collisions.daughters[place]
        return np.arange(first, max(first, last) + 1)

    def _decay_class(self, jet: FoundJet, daughters: npt.NDArray[np.int64]) -> str | None:
        momentum, pdg_id = self._collisions.momentum, self._collisions.pdg_id
        if self._resonance in _BOSONS:
            whole = _inside(jet, momentum[daughters]).all()
            return _BOSONS[self._resonance] if whole else None
        bottom = daughters[np.abs(pdg_id[daughters]) == 5]
        bosons = daughters[np.abs(pdg_id[daughters]) == 24]
        if len(bottom) != 1 or len(bosons) != 1 or not _inside(jet, momentum[bottom])[0]:
            return None
        products = self._daughters(bosons[0])
        while len(products) == 1:  # the same boson, after recoils
            products = self._daughters(products[0])
        return {2: "t_bqq", 1: "t_bq"}.get(int(_inside(jet, momentum[products]).sum()))


def jet_particles(collisions: Collisions, jet: FoundJet, random: np.random.Generator) -> Particles:
    """Measures the impact parameters of the particles of a jet."""
    rows = jet.constituents
    momentum, charge = collisions.measured[rows], collisions.charge[rows]
    origin = collisions.origin[rows]
    transverse = np.hypot(momentum[:, 1], momentum[:, 2])
    direction = momentum[:, 1:] / transverse[:, None]
    # Tracks are straight lines here; the closest point to the beam line is at -along.
    along = np.einsum("ij,ij->i", origin[:, :2], direction[:, :2])
    closest = origin - along[:, None] * direction
    side = closest[:, :2] @ jet.momentum[1:3]
    d0 = np.hypot(closest[:, 0], closest[:, 1]) * np.where(side < 0, -1.0, 1.0)
    error = np.hypot(0.02, 0.06 / transverse)
    errors = np.stack([error, 1.5 * error], axis=1)
    impact = np.stack([d0, closest[:, 2]], axis=1)
    impact += errors * random.standard_normal(errors.shape)
    impact[charge == 0] = 0.0
    return Particles(momentum, collisions.seen_pdg_id[rows], charge, impact, errors)


def jet_vertices(collisions: Collisions, jet: FoundJet, random: np.random.Generator) -> Vertices:
    """Finds the secondary vertices among the particles of a jet."""
    rows = jet.constituents[collisions.charge[jet.constituents] != 0]
    flight = np.hypot(collisions.origin[rows, 0], collisions.origin[rows, 1])
    rows = rows[(flight > _FLIGHT_RANGE[0]) & (flight < _FLIGHT_RANGE[1])]
    # What decays at once shares the place up to rounding: 1 µm apart is the same place.
    groups: dict[tuple[float, ...], list[int]] = collections.defaultdict(list)
    for row, place in zip(rows, np.round(collisions.origin[rows], 3), strict=True):
        groups[tuple(place)].append(int(row))
    vertices = [tracks for tracks in groups.values() if len(tracks) >= 2]
    momentum = np.array([collisions.measured[tracks].sum(axis=0) for tracks in vertices]).reshape(
        -1, 4
    )
    position = np.array([collisions.origin[tracks[0]] for tracks in vertices]).reshape(-1, 3)
    position += _POSITION_ERROR * random.standard_normal(position.shape)
    order = np.argsort(-np.hypot(momentum[:, 1], momentum[:, 2]), kind="stable")
    tracks = np.array([len(tracks) for tracks in vertices], np.int64)
    return Vertices(momentum[order], position[order], tracks[order], _POSITION_ERROR)


@dataclasses.dataclass(frozen=True)
class Sample:
    """One jet as it goes into the file."""

    kinematics: tuple[float, float, float, float]
    label: int
    pf_points: Array
    pf_features: Array
    sv_points: Array
    sv_features: Array


def measure(
    collisions: Collisions, jet: FoundJet, label: int, random: np.random.Generator
) -> Sample:
    """Turns a clustered jet into the networks' inputs."""
    axis = Jet(jet.momentum)
    particles = jet_particles(collisions, jet, random)
    vertices = jet_vertices(collisions, jet, random)
    energy, px, py, pz = jet.momentum
    return Sample(
        kinematics=(
            math.hypot(px, py),
            float(jet_features.pseudorapidity(jet.momentum[None])[0]),
            math.atan2(py, px),
            math.sqrt(max(energy**2 - px**2 - py**2 - pz**2, 0.0)),
        ),
        label=label,
        pf_points=jet_features.points(axis, particles.momentum),
        pf_features=jet_features.particle_features(axis, particles, vertices),
        sv_points=jet_features.points(axis, vertices.momentum),
        sv_features=jet_features.vertex_features(axis, vertices),
    )


Arrays = dict[str, npt.NDArray[Any]]


def pack(samples: Sequence[Sample]) -> Arrays:
    """Lays the jets one after another, as described at the top of this file."""
    kinematics = np.array([sample.kinematics for sample in samples], np.float32).reshape(-1, 4)
    names = ("jet_pt", "jet_eta", "jet_phi", "jet_mass")
    arrays: Arrays = {
        name: np.ascontiguousarray(column) for name, column in zip(names, kinematics.T, strict=True)
    }
    arrays["label"] = np.array([sample.label for sample in samples], np.int32)
    for kind in ("pf", "sv"):
        points = [getattr(sample, f"{kind}_points") for sample in samples]
        features = [getattr(sample, f"{kind}_features") for sample in samples]
        arrays[f"{kind}_offsets"] = _offsets([len(rows) for rows in points])
        arrays[f"{kind}_points"] = np.concatenate(points).astype(np.float32)
        arrays[f"{kind}_features"] = np.concatenate(features).astype(np.float32)
    return arrays


def make_part(name: str, seed: int, path: pathlib.Path) -> None:
    """Makes the jets of a thousand events of one process and writes them to a file."""
    process = _PROCESSES[name]
    generator = pythia8mc.Pythia("", False)
    for setting in (*_COMMON_SETTINGS, *process.settings, f"Random:seed = {seed}"):
        if not generator.readString(setting):
            raise RuntimeError(f"Pythia does not know the setting '{setting}'.")
    if not generator.init():
        raise RuntimeError(f"Pythia cannot start the process '{name}'.")
    random = np.random.default_rng(seed)
    samples = []
    for _ in range(_EVENTS_IN_PART // _EVENTS_IN_BATCH):
        collisions = detect(generator.nextBatch(_EVENTS_IN_BATCH), random)
        truth = Truth(collisions, process.resonance)
        for jet in cluster(collisions):
            label = truth.name(jet)
            if label is not None:
                number = jet_inputs.CLASSES.index(label)
                samples.append(measure(collisions, jet, number, random))
    write(path, pack(samples))


def parts(sample: str) -> list[tuple[str, int]]:
    """Process and seed of each part, the processes evenly mixed."""
    wanted = []
    for index, (name, process) in enumerate(_PROCESSES.items()):
        count = process.parts[sample]
        first = _FIRST_SEED[sample] + index * _SEEDS_OF_PROCESS
        wanted += [((i + 0.5) / count, name, first + i) for i in range(count)]
    return [(name, seed) for _, name, seed in sorted(wanted)]


def join(paths: Sequence[pathlib.Path]) -> Arrays:
    """Joins files with jets."""
    loaded = []
    for path in paths:
        with np.load(path) as file:
            loaded.append({name: file[name] for name in file})
    joined: Arrays = {}
    for name in loaded[0]:
        if name.endswith("offsets"):
            counts = np.concatenate([np.diff(part[name]) for part in loaded])
            joined[name] = _offsets(counts)
        else:
            joined[name] = np.concatenate([part[name] for part in loaded])
    return joined


def select(arrays: Arrays, chosen: npt.NDArray[np.int64]) -> Arrays:
    """The jets with these numbers, in this order."""
    selected: Arrays = {}
    for kind in ("pf", "sv"):
        offsets = arrays[f"{kind}_offsets"]
        counts = np.diff(offsets)[chosen]
        own = _offsets(counts)
        rows = np.arange(own[-1]) + np.repeat(offsets[chosen] - own[:-1], counts)
        selected[f"{kind}_offsets"] = own
        for name in (f"{kind}_points", f"{kind}_features"):
            selected[name] = arrays[name][rows]
    return {name: selected[name] if name in selected else arrays[name][chosen] for name in arrays}


def first_of_class(label: npt.NDArray[np.int32], most: int) -> npt.NDArray[np.int64]:
    """Numbers of the first jets of each class, ascending."""
    places = [np.flatnonzero(label == number)[:most] for number in range(len(jet_inputs.CLASSES))]
    return np.sort(np.concatenate(places))


def write(path: pathlib.Path, arrays: Arrays) -> None:
    """Writes jets; whole or not at all."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    temporary.replace(path)


def make_parts(wanted: dict[pathlib.Path, tuple[str, int]]) -> None:
    """Makes the parts that are not there yet, on all cores."""
    missing = {path: part for path, part in wanted.items() if not path.exists()}
    context = multiprocessing.get_context("spawn")
    with (
        concurrent.futures.ProcessPoolExecutor(_WORKERS.value, context) as executor,
        tqdm.tqdm(total=len(wanted), initial=len(wanted) - len(missing), unit="part") as progress,
    ):
        futures = [executor.submit(make_part, *part, path) for path, part in missing.items()]
        for future in concurrent.futures.as_completed(futures):
            future.result()
            progress.update()


def main(argv: Sequence[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unexpected arguments: {' '.join(argv[1:])}.")
    folder, sample = pathlib.Path(_OUTPUT.value), _SAMPLE.value
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {
        folder / f"{name}-{seed}.npz": (name, seed) for name, seed in parts(sample)[: _PARTS.value]
    }
    make_parts(wanted)

    arrays = join(list(wanted))
    random = np.random.default_rng(_FIRST_SEED[sample])
    order = random.permutation(len(arrays["label"]))
    order = order[first_of_class(arrays["label"][order], _MOST_OF_CLASS[sample])]
    arrays = select(arrays, order[: _MOST_JETS[sample]])
    write(folder.with_suffix(".npz"), arrays)
    if _EXCERPT.value:
        chosen = first_of_class(arrays["label"], _EXCERPT_OF_CLASS)
        write(pathlib.Path(_EXCERPT.value), select(arrays, chosen))
    counts = np.bincount(arrays["label"], minlength=len(jet_inputs.CLASSES))
    logging.info(
        "%d jets: %s",
        len(arrays["label"]),
        ", ".join(
            f"{count} {name}" for count, name in zip(counts, jet_inputs.CLASSES, strict=True)
        ),
    )


if __name__ == "__main__":
    app.run(main)
