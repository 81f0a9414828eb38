"""Tests of the program that writes references."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np

from models import reference

_MLP = pathlib.Path(reference.__file__).with_name("mlp.onnx")


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, reference.__file__, f"--model={_MLP}", *arguments]
    path = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    return subprocess.run(command, env=path, capture_output=True, text=True, check=False)


def test_writes_one_file_for_each_case(tmp_path: pathlib.Path) -> None:
    first, second = tmp_path / "first.npz", tmp_path / "second.npz"
    result = _run("--case=N=2", f"--output={first}", "--case=N=5", f"--output={second}")
    assert result.returncode == 0, result.stderr
    for path, rows in ((first, 2), (second, 5)):
        with np.load(path) as file:
            assert file["input_0"].shape == (rows, 16)
            assert file["output_0"].shape == (rows, 5)


def test_one_output_for_each_case(tmp_path: pathlib.Path) -> None:
    result = _run("--case=N=2", "--case=N=3", f"--output={tmp_path / 'only.npz'}")
    assert result.returncode == 1
    assert "2 --case and 1 --output: give one for one." in result.stdout + result.stderr


def test_a_case_that_does_not_fit(tmp_path: pathlib.Path) -> None:
    result = _run("--case=M=2", f"--output={tmp_path / 'none.npz'}")
    assert result.returncode == 1
    assert "The case gives no extent for 'N' of 'features'." in result.stdout + result.stderr
    assert not (tmp_path / "none.npz").exists()
