"""What a tagger's scores are worth: ROC curves, the area below them, background rejection."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Roc:
    """A curve from (0, 0), where nothing is selected, to (1, 1)."""

    signal: Array  # efficiency of the signal, ascending
    background: Array  # efficiency of the background, ascending

    @property
    def area(self) -> float:
        """How likely signal scores higher than background; ties count half."""
        widths = np.diff(self.background)
        return float(np.sum(widths * (self.signal[1:] + self.signal[:-1]) / 2))

    def mistag_rate(self, efficiency: float) -> float:
        """Efficiency of the background at this efficiency of the signal."""
        # Backwards, so that it is the least one where several points have this efficiency.
        return float(np.interp(-efficiency, -self.signal[::-1], self.background[::-1]))


class Discriminant:
    """Scores of signal and background jets, in the order in which a rising threshold drops them."""

    def __init__(self, score: Array, signal: npt.NDArray[np.bool_]) -> None:
        """Sorts score[jets]."""
        self._order = np.argsort(-score, kind="stable")
        ordered = score[self._order]
        # First places of equal scores: a threshold lets all of them pass or none.
        self._first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        self._signal = signal[self._order]

    def roc(self, weights: Array | None = None) -> Roc:
        """The curve, of jets that count as often as weights[jets] says."""
        own = np.ones(len(self._order)) if weights is None else weights[self._order]
        curves = []
        for kind in (self._signal, ~self._signal):
            sums = np.add.reduceat(np.where(kind, own, 0.0), self._first)
            curves.append(np.concatenate([[0.0], np.cumsum(sums) / sums.sum()]))
        return Roc(*curves)


def ratio(probabilities: Array, signal: list[int], background: list[int]) -> Array:
    """p(signal) / (p(signal) + p(background)) of probabilities[jets, classes]."""
    wanted, other = (probabilities[:, classes].sum(axis=1) for classes in (signal, background))
    return np.asarray(wanted / np.maximum(wanted + other, np.finfo(np.float64).tiny))


def bootstrap_weights(jets: int, replicas: int, seed: int) -> npt.NDArray[np.float64]:
    """How often each jet is drawn: Poisson numbers of mean 1, [replicas, jets]."""
    return np.random.default_rng(seed).poisson(1.0, (replicas, jets)).astype(np.float64)
