"""What the example tag_jets prints, against ONNX Runtime.

SOFIE_TEST_BACKENDS names the devices to test: "cpu,openmp" or "cuda". Needs nothing but pytest and
bazel-runfiles, so that it runs on machines with another Python than the one that built it.
"""

from __future__ import annotations

import collections
import math
import os
import pathlib
import subprocess
from xml.etree import ElementTree

import pytest

from rules.private.data_file import data_file

_BACKENDS = os.environ["SOFIE_TEST_BACKENDS"].split(",")
_JETS = 1000
_CLASSES = 8
# Relative error of a jet's probabilities: ‖printed − expected‖ / ‖expected‖.
_TOLERANCE = 2e-5
_LOOSE_TOLERANCE = 1e-2
_MOST_LOOSE = 0.05
# Of a printed number, which has six decimals.
_ROUNDING = 0.5e-6


def tag_jets(*arguments: str) -> list[list[str]]:
    """The words of the lines that the program prints."""
    result = subprocess.run(
        [data_file("examples/tag_jets"), *arguments], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return [line.split() for line in result.stdout.splitlines()]


@pytest.fixture(name="expected", scope="module")
def _expected() -> list[str]:
    lines = data_file("tests/jets_expected.csv").read_text().splitlines()
    assert len(lines) == 100
    return lines


@pytest.mark.parametrize("backend", _BACKENDS)
@pytest.mark.parametrize("batch", [[], ["--batch=3"]], ids=["default_batch", "small_batch"])
def test_probabilities(backend: str, batch: list[str], expected: list[str]) -> None:
    header, *lines, summary = tag_jets(f"--device={backend}", *batch)
    rows = [line for line in lines if line[0] != "#"]
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


def test_classes_are_counted_beside_the_truth() -> None:
    lines = tag_jets(f"--device={_BACKENDS[0]}")
    rows = [line for line in lines[:-1] if line[0] != "#"]
    names = lines[0][4 : 4 + _CLASSES]
    found = collections.Counter(row[-1] for row in rows if row[3] != "too")
    begin = lines.index(["#", "class", "found", "true", "both"])
    table = {line[1]: [int(word) for word in line[2:]] for line in lines[begin + 1 : begin + 9]}
    assert list(table) == names
    assert {name: counts[0] for name, counts in table.items()} == {n: found[n] for n in names}
    tagged = sum(found.values())
    assert sum(true for _, true, _ in table.values()) == tagged
    # The sample has 125 jets of each class, and few are too small.
    assert all(115 <= true <= 125 for _, true, _ in table.values())
    assert all(both <= min(of_class, true) for of_class, true, both in table.values())
    assert lines[begin + 9][:2] == ["#", "accuracy"]
    accuracy = sum(both for _, _, both in table.values()) / tagged
    assert float(lines[begin + 9][2]) == pytest.approx(accuracy, abs=5e-4)
    # models/training/README.md: what the network does on jets like these.
    assert 0.72 < accuracy < 0.84


def test_plot(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "scores.svg"
    tag_jets(f"--device={_BACKENDS[0]}", f"--plot={path}")
    root = ElementTree.parse(path).getroot()
    space = "{http://www.w3.org/2000/svg}"
    panels = root.findall(f"{space}g")
    assert len(panels) == _CLASSES
    assert panels[0].findtext(f"{space}text") == "qcd_light"
    for panel in panels:
        assert len(panel.findall(f"{space}path")) == 2


def test_the_sample_is_what_its_script_describes() -> None:
    _, *lines, _ = tag_jets(f"--device={_BACKENDS[0]}")
    rows = [line for line in lines if line[0] != "#"]
    particles = [int(row[1]) for row in rows]
    vertices = [int(row[2]) for row in rows]
    assert (min(particles), max(particles)) == (10, 122)
    assert (min(vertices), max(vertices)) == (0, 6)
    small = [row for row in rows if row[3] == "too"]
    assert all(int(row[1]) + int(row[2]) < 17 for row in small)
    assert len(small) == 5
