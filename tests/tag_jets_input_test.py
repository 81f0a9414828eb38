"""The files that tag_jets takes and those that it refuses, with one clear line for each."""

from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from rules.private.data_file import data_file

Arrays = dict[str, npt.NDArray[Any]]


def run(
    *arguments: str, folder: pathlib.Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [data_file("examples/tag_jets"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | environment,
    )


def tags(*arguments: str) -> list[list[str]]:
    """The words of each jet's line."""
    result = run(*arguments)
    assert (result.returncode, result.stderr) == (0, "")
    lines = [line.split() for line in result.stdout.splitlines()]
    return [line for line in lines[:-1] if line[0] != "#"]


def refusal(*arguments: str) -> str:
    """The one line on stderr of a run that fails."""
    result = run(*arguments)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("tag_jets: ")
    return result.stderr.removeprefix("tag_jets: ").rstrip("\n")


def random_jets(sizes: list[tuple[int, int]]) -> Arrays:
    random = np.random.default_rng(3)
    arrays: Arrays = {}
    for kind, features, counts in (
        ("pf", 20, [size[0] for size in sizes]),
        ("sv", 11, [size[1] for size in sizes]),
    ):
        rows = sum(counts)
        arrays[f"{kind}_offsets"] = np.cumsum([0, *counts], dtype=np.int64)
        arrays[f"{kind}_points"] = (0.3 * random.standard_normal((rows, 2))).astype(np.float32)
        arrays[f"{kind}_features"] = random.standard_normal((rows, features)).astype(np.float32)
    return arrays


@pytest.fixture(name="jets")
def _jets() -> Arrays:
    return random_jets([(20, 1), (30, 0), (20, 1), (5, 2), (17, 0)])


def save(folder: pathlib.Path, arrays: Arrays) -> str:
    path = folder / "jets.npz"
    np.savez(path, allow_pickle=False, **arrays)
    return f"--input={path}"


def test_jets_come_out_in_the_order_of_the_file(tmp_path: pathlib.Path, jets: Arrays) -> None:
    rows = tags(save(tmp_path, jets))
    assert [row[:3] for row in rows] == [
        ["0", "20", "1"],
        ["1", "30", "0"],
        ["2", "20", "1"],
        ["3", "5", "2"],
        ["4", "17", "0"],
    ]
    # Of equal size, but other jets.
    assert rows[0][3:] != rows[2][3:]
    assert " ".join(rows[3][3:5]) == "too small:"
    # Each jet alone gives the same.
    offsets, vertices = jets["pf_offsets"], jets["sv_offsets"]
    alone = {
        "pf_offsets": np.array([0, 20]),
        "pf_points": jets["pf_points"][offsets[2] : offsets[3]],
        "pf_features": jets["pf_features"][offsets[2] : offsets[3]],
        "sv_offsets": np.array([0, 1]),
        "sv_points": jets["sv_points"][vertices[2] : vertices[3]],
        "sv_features": jets["sv_features"][vertices[2] : vertices[3]],
    }
    (row,) = tags(save(tmp_path, alone))
    numbers = [float(word) for word in row[3:11]]
    assert numbers == pytest.approx([float(word) for word in rows[2][3:11]], abs=2e-6)


def test_npy_is_particles_with_padding(tmp_path: pathlib.Path, jets: Arrays) -> None:
    particles = np.concatenate([jets["pf_points"], jets["pf_features"]], axis=1)
    offsets = jets["pf_offsets"]
    padded = np.zeros((2, 40, 22), np.float32)
    padded[0, :30] = particles[offsets[1] : offsets[2]]
    padded[1, :17] = particles[offsets[4] : offsets[5]]
    path = tmp_path / "jets.npy"
    np.save(path, padded)
    from_npy = tags(f"--input={path}")
    from_npz = tags(save(tmp_path, jets))
    for row, same in zip(from_npy, (from_npz[1], from_npz[4]), strict=True):
        assert row[1:3] == same[1:3]
        numbers = [float(word) for word in row[3:11]]
        assert numbers == pytest.approx([float(word) for word in same[3:11]], abs=2e-6)


def test_classes_without_the_truth(tmp_path: pathlib.Path, jets: Arrays) -> None:
    lines = [line.split() for line in run(save(tmp_path, jets)).stdout.splitlines()]
    begin = lines.index(["#", "class", "found"])
    assert sum(int(line[2]) for line in lines[begin + 1 : begin + 9]) == 4
    assert lines[begin + 9] == lines[-1]


def test_a_file_without_jets(tmp_path: pathlib.Path) -> None:
    assert tags(save(tmp_path, random_jets([]))) == []


def test_relative_paths_are_the_users(tmp_path: pathlib.Path, jets: Arrays) -> None:
    save(tmp_path, jets)
    assert run("--input=jets.npz", folder=tmp_path).returncode == 0
    # As `bazel run` calls it.
    result = run("--input", "jets.npz", BUILD_WORKING_DIRECTORY=str(tmp_path))
    assert (result.returncode, result.stderr) == (0, "")


def test_help() -> None:
    result = run("--help")
    assert (result.returncode, result.stderr) == (0, "")
    for flag in ("--input=FILE", "--device=cpu|openmp|cuda", "--batch=N", "--plot=FILE"):
        assert flag in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--colour"], "unknown argument '--colour'; see --help."),
        (["jets.npz"], "unknown argument 'jets.npz'; see --help."),
        (["--input"], "--input needs a value; see --help."),
        (["--batch=0"], "--batch=0 is not a positive number."),
        (["--batch=7x"], "--batch=7x is not a positive number."),
        (["--device=tpu"], "--device=tpu is not one of cpu, openmp, cuda."),
        (["--input=/no/jets.npz"], "/no/jets.npz: the file can't be opened."),
        (
            ["--input=/no/jets.root"],
            "/no/jets.root: the name of the file must end with .npz or .npy, NumPy's formats.",
        ),
    ],
)
def test_refused_arguments(arguments: list[str], message: str) -> None:
    assert refusal(*arguments) == message


def test_refuses_a_device_that_is_not_there() -> None:
    # Whether or not this build has CUDA, the process is shown no GPU.
    result = run("--device=cuda", CUDA_VISIBLE_DEVICES="")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert "no cuda backend" in result.stderr or "no CUDA device" in result.stderr


def test_refuses_other_dtypes(tmp_path: pathlib.Path, jets: Arrays) -> None:
    jets["pf_features"] = jets["pf_features"].astype(np.float64)
    assert refusal(save(tmp_path, jets)) == (
        f"{tmp_path}/jets.npz, 'pf_features': the array has dtype f8; convert it to float32 with "
        "numpy.astype."
    )
    jets["pf_features"] = jets["pf_features"].astype(np.float32)
    jets["sv_offsets"] = jets["sv_offsets"].astype(np.int32)
    assert "'sv_offsets': the array has dtype i4; convert it to int64" in refusal(
        save(tmp_path, jets)
    )


def test_refuses_other_shapes(tmp_path: pathlib.Path, jets: Arrays) -> None:
    jets["sv_points"] = jets["sv_points"][:-1]
    assert refusal(save(tmp_path, jets)) == (
        f"{tmp_path}/jets.npz, 'sv_points': the array has shape [3, 2], but the offsets and the "
        "model want [4, 2]."
    )


def test_refuses_other_labels(tmp_path: pathlib.Path, jets: Arrays) -> None:
    jets["label"] = np.zeros(4, np.int32)
    assert refusal(save(tmp_path, jets)) == (
        f"{tmp_path}/jets.npz, 'label': the array has shape [4], not [5]."
    )
    jets["label"] = np.zeros(5, np.int64)
    assert "'label': the array has dtype i8; convert it to int32" in refusal(save(tmp_path, jets))


def test_refuses_a_plot_that_cannot_be_written(tmp_path: pathlib.Path, jets: Arrays) -> None:
    result = run(save(tmp_path, jets), "--plot=/no/scores.svg")
    assert result.returncode == 1
    assert result.stderr == "tag_jets: /no/scores.svg: the file can't be written.\n"


def test_refuses_offsets_out_of_order(tmp_path: pathlib.Path, jets: Arrays) -> None:
    jets["pf_offsets"][2] = 10
    assert refusal(save(tmp_path, jets)) == (
        f"{tmp_path}/jets.npz, 'pf_offsets': offsets decrease at jet 1; jets lie one after another."
    )
    jets["pf_offsets"] += 1
    assert "'pf_offsets': offsets begin at 1, not at 0." in refusal(save(tmp_path, jets))


def test_refuses_missing_arrays(tmp_path: pathlib.Path, jets: Arrays) -> None:
    del jets["sv_features"]
    assert refusal(save(tmp_path, jets)) == (
        f"{tmp_path}/jets.npz: the file has no array 'sv_features'."
    )


def test_refuses_unequal_numbers_of_jets(tmp_path: pathlib.Path, jets: Arrays) -> None:
    jets["sv_offsets"] = np.append(jets["sv_offsets"], jets["sv_offsets"][-1])
    assert refusal(save(tmp_path, jets)) == (
        f"{tmp_path}/jets.npz: 'pf_offsets' has 5 jets, but 'sv_offsets' has 6."
    )


def test_refuses_damaged_files(tmp_path: pathlib.Path, jets: Arrays) -> None:
    save(tmp_path, jets)
    whole = (tmp_path / "jets.npz").read_bytes()
    for size in (0, 10, 100, len(whole) // 2, len(whole) - 1):
        path = tmp_path / "part.npz"
        path.write_bytes(whole[:size])
        assert refusal(f"--input={path}").startswith(f"{path}: "), size


def test_refuses_compressed_files(tmp_path: pathlib.Path, jets: Arrays) -> None:
    path = tmp_path / "compressed.npz"
    np.savez_compressed(path, allow_pickle=False, **jets)
    assert refusal(f"--input={path}").endswith("is compressed; write the file with numpy.savez.")


def test_refuses_other_npy_files(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "jets.npy"
    np.save(path, np.zeros((3, 22), np.float32))
    assert refusal(f"--input={path}") == (
        f"{path}: the array has shape [3, 22], not [jets, particles, 22]."
    )
