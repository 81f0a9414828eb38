"""Writes test inputs for an ONNX model and the outputs to expect.

    python -m models.reference --model=models/particle_net.onnx \\
        --case=N=1,n_pf=100,n_sv=10 --output=/tmp/first.npz \\
        --case=N=7,n_pf=33,n_sv=3 --output=/tmp/second.npz

What a case is, where the numbers come from and how the files are laid out stands in
`reference_case.py`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import onnx
from absl import app, flags, logging

from models import reference_case

_MODEL = flags.DEFINE_string("model", None, "The ONNX file.", required=True)
_CASE = flags.DEFINE_multi_string(
    "case", None, "Extents of the symbols, as N=1,n_pf=100; give it once for each --output."
)
_OUTPUT = flags.DEFINE_multi_string("output", None, "The .npz file of the case beside it.")
_TOLERANCE = flags.DEFINE_float(
    "tolerance", None, "Largest relative error of float32 outputs.", lower_bound=0
)
_SEED = flags.DEFINE_integer("seed", 1, "The first seed to try.", lower_bound=0)


def main(argv: Sequence[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unexpected arguments: {' '.join(argv[1:])}.")
    cases, paths = _CASE.value or [""], _OUTPUT.value or []
    if len(cases) != len(paths):
        raise app.UsageError(f"{len(cases)} --case and {len(paths)} --output: give one for one.")
    model = onnx.load(_MODEL.value)
    for text, path in zip(cases, paths, strict=True):
        try:
            reference = reference_case.make_reference(
                model, reference_case.parse_case(text), _SEED.value, _TOLERANCE.value
            )
        except reference_case.CaseError as error:
            raise app.UsageError(f"{_MODEL.value}: {error}") from error
        reference_case.write(reference, pathlib.Path(path))
        logging.info(
            "%s: seed %d, %s, loose rows %s",
            text,
            reference.seed,
            reference.oracle,
            [rows.tolist() for rows in reference.loose_rows],
        )


if __name__ == "__main__":
    app.run(main)
