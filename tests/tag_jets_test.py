"""What the example tag_jets prints, against ONNX Runtime.

SOFIE_TEST_BACKENDS names the devices to test: "cpu,openmp" or "cuda". Needs nothing but pytest and
bazel-runfiles, so that it runs on machines with another Python than the one that built it.
"""

from __future__ import annotations

import math
import os
import pathlib
import subprocess

import pytest
from runfiles import Runfiles

_BACKENDS = os.environ["SOFIE_TEST_BACKENDS"].split(",")
_JETS = 1000
_CLASSES = 8
# Relative error of a jet's probabilities: ‖printed − expected‖ / ‖expected‖.
_TOLERANCE = 2e-5
_LOOSE_TOLERANCE = 1e-2
_MOST_LOOSE = 0.05
# Of a printed number, which has six decimals.
_ROUNDING = 0.5e-6


def locate(path: str) -> str:
    runfiles = Runfiles.Create()
    assert runfiles is not None
    location = runfiles.Rlocation(f"{os.environ['TEST_WORKSPACE']}/{path}")
    assert location is not None
    return location


def tag_jets(*arguments: str) -> list[list[str]]:
    """The words of the lines that the program prints."""
    result = subprocess.run(
        [locate("examples/tag_jets"), *arguments], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return [line.split() for line in result.stdout.splitlines()]


@pytest.fixture(name="expected", scope="module")
def _expected() -> list[str]:
    lines = pathlib.Path(locate("tests/jets_expected.csv")).read_text().splitlines()
    assert len(lines) == 100
    return lines


@pytest.mark.parametrize("backend", _BACKENDS)
@pytest.mark.parametrize("batch", [[], ["--batch=3"]], ids=["default_batch", "small_batch"])
def test_probabilities(backend: str, batch: list[str], expected: list[str]) -> None:
    header, *rows, summary = tag_jets(f"--device={backend}", *batch)
    assert header[:5] == ["#", "jet", "particles", "vertices", "qcd_light"]
    assert [int(row[0]) for row in rows] == list(range(_JETS))
    loose = 0
    for row, line in zip(rows, expected, strict=False):
        if line == "too small":
            assert row[3:5] == ["too", "small:"], row
            continue
        mark, *numbers = line.split(",")
        wanted = [float(number) for number in numbers]
        printed = [float(word) for word in row[3 : 3 + _CLASSES]]
        tolerance = _LOOSE_TOLERANCE if int(mark) else _TOLERANCE
        loose += int(mark)
        limit = tolerance * math.hypot(*wanted) + _ROUNDING * math.sqrt(_CLASSES)
        assert math.dist(printed, wanted) <= limit, (row, wanted)
    assert loose <= _MOST_LOOSE * len(expected)

    tagged = [row for row in rows if row[3] != "too"]
    for row in tagged:
        assert sum(float(word) for word in row[3 : 3 + _CLASSES]) == pytest.approx(1, abs=1e-5)
    assert summary[:5] == [str(len(tagged)), "jets", "tagged", "on", summary[4]]
    assert summary[4].startswith(backend)
    assert float(summary[summary.index("jets/s;") - 1]) > 0
    assert summary[-4:] == [str(_JETS - len(tagged)), "jets", "too", "small"]


def test_the_sample_is_what_its_script_describes() -> None:
    _, *rows, _ = tag_jets(f"--device={_BACKENDS[0]}")
    particles = [int(row[1]) for row in rows]
    vertices = [int(row[2]) for row in rows]
    assert (min(particles), max(particles)) == (11, 124)
    assert (min(vertices), max(vertices)) == (0, 8)
    small = [row for row in rows if row[3] == "too"]
    assert all(int(row[1]) + int(row[2]) < 17 for row in small)
    assert len(small) == 3
