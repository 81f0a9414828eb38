"""Tests of the figures of merit on scores simple enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from models.training import metrics
from models.training.metrics import Discriminant


def test_area_counts_pairs() -> None:
    score = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    signal = np.array([True, False, True, True, False, False])
    # Of 9 pairs the background jet of 0.8 scores higher in two.
    assert Discriminant(score, signal).roc().area == pytest.approx(7 / 9)


def test_ties_count_half() -> None:
    score = np.array([0.5, 0.5, 0.5, 0.1])
    signal = np.array([True, False, True, False])
    assert Discriminant(score, signal).roc().area == pytest.approx(0.75)
    assert Discriminant(np.zeros(4), signal).roc().area == pytest.approx(0.5)


def test_area_of_random_scores_is_that_of_all_pairs() -> None:
    random = np.random.default_rng(1)
    score = np.round(random.standard_normal(300), 1)  # with ties
    signal = random.random(300) < 0.3
    s, b = score[signal][:, None], score[~signal][None]
    expected = np.mean((s > b) + 0.5 * (s == b))
    assert Discriminant(score, signal).roc().area == pytest.approx(expected, abs=1e-12)


def test_mistag_rate() -> None:
    score = np.arange(14.0, 0.0, -1.0)
    signal = np.zeros(14, bool)
    signal[[0, 2, 3, 13]] = True
    # Half of the signal is above the fourth jet, with one of ten background jets.
    roc = Discriminant(score, signal).roc()
    assert roc.mistag_rate(0.5) == pytest.approx(0.1)
    assert roc.mistag_rate(0.25) == 0
    assert roc.mistag_rate(1.0) == pytest.approx(1.0)


def test_weights_repeat_jets() -> None:
    random = np.random.default_rng(2)
    score, signal = random.random(50), random.random(50) < 0.5
    weights = random.poisson(1.0, 50)
    weighted = Discriminant(score, signal).roc(weights.astype(float))
    repeated = Discriminant(np.repeat(score, weights), np.repeat(signal, weights)).roc()
    assert weighted.area == pytest.approx(repeated.area, abs=1e-12)
    assert weighted.mistag_rate(0.5) == pytest.approx(repeated.mistag_rate(0.5))


def test_ratio() -> None:
    probabilities = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(metrics.ratio(probabilities, [0], [1, 2]), [0.2, 0.0])
    np.testing.assert_allclose(metrics.ratio(probabilities, [0], [2]), [0.2 / 0.7, 0.0])


def test_bootstrap_error_is_the_spread_of_samples() -> None:
    """The spread over replicas of one sample is about that over independent samples."""
    random = np.random.default_rng(3)

    def sample() -> tuple[np.ndarray, np.ndarray]:
        signal = np.arange(400) < 200
        return random.standard_normal(400) + signal, signal

    areas = [Discriminant(*sample()).roc().area for _ in range(200)]
    one = Discriminant(*sample())
    replicas = [one.roc(w).area for w in metrics.bootstrap_weights(400, 200, seed=4)]
    assert np.std(replicas) == pytest.approx(np.std(areas), rel=0.3)
