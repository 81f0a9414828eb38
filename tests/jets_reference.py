"""Writes what ParticleNet should say of the first jets of a file, according to ONNX Runtime.

jets_reference.py MODEL.onnx JETS.npz OUTPUT.csv

One line for each jet: 1 if its result hangs on a near tie (see models/near_ties.py) and 0 if not,
then the probability of each class; `too small` in their place where the model takes no such jet.
"""

from __future__ import annotations

import pathlib
import sys
from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import onnx

from models import near_ties, reference_case
from models.near_ties import AnyArray

# Near ties take an evaluation in float64, which is slow: about 0.2 s for a jet.
_JETS = 100
_NEIGHBOURS = 17  # the jet's own point included


def batch(arrays: Mapping[str, AnyArray], jets: list[int]) -> dict[str, AnyArray]:
    """The model's inputs for jets of equal size."""
    inputs: dict[str, AnyArray] = {}
    for kind in ("pf", "sv"):
        offsets = arrays[f"{kind}_offsets"]
        for name in ("points", "features"):
            rows = [arrays[f"{kind}_{name}"][offsets[j] : offsets[j + 1]].T for j in jets]
            inputs[f"{kind}_{name}"] = np.ascontiguousarray(np.stack(rows))
        shape = inputs[f"{kind}_points"].shape
        inputs[f"{kind}_mask"] = np.ones((shape[0], 1, shape[2]), np.float32)
    return inputs


def main() -> None:
    model_path, jets_path, output_path = sys.argv[1:]
    model = onnx.load(model_path)
    with np.load(jets_path) as file:
        arrays = {name: file[name] for name in file}
    particles, vertices = (np.diff(arrays[f"{kind}_offsets"]) for kind in ("pf", "sv"))

    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for jet in range(_JETS):
        groups[int(particles[jet]), int(vertices[jet])].append(jet)
    lines = ["too small"] * _JETS
    for size, jets in groups.items():
        if sum(size) < _NEIGHBOURS:
            continue
        inputs = batch(arrays, jets)
        outputs, _ = reference_case.expected_outputs(model, inputs)
        (loose,) = near_ties.loose_rows(model, inputs, outputs)
        for row, jet in enumerate(jets):
            numbers = ",".join(f"{probability:.9g}" for probability in outputs[0][row])
            lines[jet] = f"{int(row in loose)},{numbers}"
    pathlib.Path(output_path).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
