"""Holds the checked-in models to the scripts that make them; their outputs depend on inputs."""

from __future__ import annotations

import importlib
import pathlib

import numpy as np
import onnx
import pytest

from models import graph_builder, reference_case

_FOLDER = pathlib.Path(reference_case.__file__).parent
# A case with several rows for each model.
_CASES = {
    "bdt": "N=9",
    "interaction_network": "V=5,E=11",
    "lstm_tagger": "N=4,L=9",
    "mlpf": "N=2,E=7",
    "packed_transformer": "N=5,T=15",
    "particle_transformer": "N=3,P=9",
    "quantized_mlp": "N=5",
    "resnet": "N=3,H=16,W=12",
    "transformer": "N=3,L=7",
    "unet": "N=3,L=31",
    "vae": "N=5",
}


@pytest.mark.parametrize("name", _CASES)
def test_file_is_what_the_script_makes(name: str) -> None:
    made = importlib.import_module(f"models.{name}").make()
    assert (_FOLDER / f"{name}.onnx").read_bytes() == made.SerializeToString(deterministic=True)


@pytest.mark.parametrize(("name", "case"), _CASES.items())
def test_outputs_differ_between_rows(name: str, case: str) -> None:
    model = onnx.load(_FOLDER / f"{name}.onnx")
    reference = reference_case.make_reference(model, reference_case.parse_case(case))
    own = any(opset.domain == graph_builder.SOFIE for opset in model.opset_import)
    assert reference.oracle == ("ONNX reference evaluator" if own else "ONNX Runtime")
    for output, values in reference.outputs.items():
        assert np.isfinite(values).all(), output
        assert np.std(values, axis=0).max() > 0.01, output
