"""Tests of the detector and of files of jets. They need what makes jets, which no build has:

jets/bin/pip install pytest && jets/bin/python -m pytest models/training/make_jets_test.py
"""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

pytest.importorskip("pythia8mc")

from models import jet_inputs
from models.training import make_jets
from models.training.jet_features import Array


def _momenta(pt: float, eta: float, phi: float, mass: float, count: int) -> Array:
    p = pt * np.array([np.cos(phi), np.sin(phi), np.sinh(eta)])
    return np.tile([np.sqrt(p @ p + mass**2), *p], (count, 1))


@pytest.mark.parametrize(
    ("number", "charge", "mass", "relative", "angle"),
    [
        (211, 1, 0.13957, np.hypot(0.01, 0.00015 * 50), 0.0003),
        (22, 0, 0.0, np.hypot(0.05 / np.sqrt(50 * np.cosh(1)), 0.01), 0.005),
        (2112, 0, 0.9396, np.hypot(1 / np.sqrt(50 * np.cosh(1)), 0.05), 0.025),
    ],
)
def test_resolutions(number: int, charge: int, mass: float, relative: float, angle: float) -> None:
    count = 20_000
    true = _momenta(50.0, 1.0, 0.7, mass, count)
    measured = make_jets.measure_momenta(
        true, np.full(count, number), np.full(count, charge), np.random.default_rng(1)
    )
    pt = np.hypot(measured[:, 1], measured[:, 2])
    eta, phi = np.arcsinh(measured[:, 3] / pt), np.arctan2(measured[:, 2], measured[:, 1])
    # Tracks measure transverse momentum, calorimeters energy.
    value, expected = (pt, 50.0) if charge else (measured[:, 0], true[0, 0])
    assert value.mean() == pytest.approx(expected, rel=5 * relative / np.sqrt(count))
    assert value.std() / expected == pytest.approx(relative, rel=0.03)
    assert (eta.mean(), phi.mean()) == pytest.approx((1.0, 0.7), abs=5 * angle / np.sqrt(count))
    assert eta.std() == pytest.approx(angle, rel=0.03)
    assert phi.std() == pytest.approx(angle, rel=0.03)


def test_parts_are_an_even_mixture_with_seeds_of_their_own() -> None:
    both = [make_jets.parts(sample) for sample in ("train", "test")]
    seeds = [seed for parts in both for _, seed in parts]
    assert len(set(seeds)) == len(seeds)
    names = [name for name, _ in both[0]]
    assert names[: len(names) // 2].count("qcd") == pytest.approx(names.count("qcd") / 2, abs=1)


def test_a_part_is_reproducible_and_its_jets_can_be_selected(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_jets, "_EVENTS_IN_PART", 100)
    paths = [tmp_path / "first.npz", tmp_path / "second.npz"]
    for path in paths:
        make_jets.make_part("top", 7, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    joined = make_jets.join(paths)
    count = len(joined["label"]) // 2
    assert count > 20
    assert set(joined["label"]) == {jet_inputs.CLASSES.index(name) for name in ("t_bqq", "t_bq")}
    second = make_jets.select(joined, np.arange(count, 2 * count))
    with np.load(paths[1]) as file:
        for name in file:
            np.testing.assert_array_equal(second[name], file[name])
