"""The evaluation as its user runs it, on a few jets, and what it is made of."""

from __future__ import annotations

import pathlib
import re
import subprocess
from typing import Any

import numpy as np
import numpy.typing as npt

from models import jet_inputs
from models.training import evaluate
from rules.private.data_file import data_file

_JETS = 120

Arrays = dict[str, npt.NDArray[Any]]


def _first_jets() -> Arrays:
    with np.load(data_file("examples/data/jets.npz")) as file:
        arrays = {name: file[name] for name in file}
    first: Arrays = {"label": arrays["label"][:_JETS]}
    for kind in ("pf", "sv"):
        offsets = arrays[f"{kind}_offsets"][: _JETS + 1]
        first[f"{kind}_offsets"] = offsets
        for name in (f"{kind}_points", f"{kind}_features"):
            first[name] = arrays[name][: offsets[-1]]
    return first


def test_program(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "jets.npz", allow_pickle=False, **_first_jets())
    result = subprocess.run(
        [
            data_file("models/training/evaluate"),
            f"--jets={tmp_path}/jets.npz",
            f"--output={tmp_path}",
            "--device=cpu",
            "--replicas=10",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "roc.png").read_bytes().startswith(b"\x89PNG")
    for name in jet_inputs.CLASSES:
        assert re.search(rf"^\| {name} \| rest \| [01]\.\d{{4}} ± ", result.stdout, re.MULTILINE)
    accuracies = re.findall(r"^accuracy, [\w ]+: (0\.\d+) ± ", result.stdout, re.MULTILINE)
    assert len(accuracies) == 2
    assert accuracies[0] == accuracies[1]
    # Of 120 jets about 82 % (README.md), within four standard deviations.
    assert 0.68 < float(accuracies[0]) < 0.96
    (typical,) = re.findall(r"in 99 % of the jets at most ([\d.e+-]+)", result.stdout)
    assert float(typical) < 2e-5


def test_no_background_above_the_threshold_is_a_limit() -> None:
    assert str(evaluate.MistagRate(0.0, 0.0, 3000)) == "> 1000"
    assert str(evaluate.MistagRate(0.01, 0.001, 3000)) == "100 ± 10"
