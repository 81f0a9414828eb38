"""Tests of pytest_main.py: what it must not let pass."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from rules.private import pytest_main


def _run(folder: pathlib.Path, source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest_main.py on a file with this source."""
    file = folder / "some_test.py"
    file.write_text(source, encoding="utf-8")
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("XML_OUTPUT_FILE", "TESTBRIDGE_TEST_ONLY", "TEST_TMPDIR")
        and "SHARD" not in name
    }
    return subprocess.run(
        [sys.executable, pytest_main.__file__, str(file)],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**inherited, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )


def test_passes(tmp_path: pathlib.Path) -> None:
    result = _run(tmp_path, "def test_a():\n    assert True\n")
    assert result.returncode == 0, result.stdout
    assert "1 passed" in result.stdout


@pytest.mark.parametrize(
    "source",
    [
        "def test_a():\n    assert False\n",
        "import no_such_module\n",
        "",
        "def helper():\n    pass\n",
    ],
)
def test_fails(tmp_path: pathlib.Path, source: str) -> None:
    assert _run(tmp_path, source).returncode != 0


def test_runs_what_bazel_asks_for(tmp_path: pathlib.Path) -> None:
    source = "def test_a():\n    assert True\ndef test_b():\n    assert False\n"
    result = _run(tmp_path, source, TESTBRIDGE_TEST_ONLY="test_a")
    assert result.returncode == 0, result.stdout


def test_reports_where_bazel_asks(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "report.xml"
    _run(tmp_path, "def test_a():\n    assert True\n", XML_OUTPUT_FILE=str(report))
    assert 'tests="1"' in report.read_text(encoding="utf-8")


def test_shards_share_the_tests(tmp_path: pathlib.Path) -> None:
    names = ["test_a", "test_b", "test_c", "test_d"]
    source = "".join(f"def {name}():\n    pass\n" for name in names)
    source += "def test_e():\n    assert False\n"
    passed, statuses = 0, []
    for index in range(6):
        status_file = tmp_path / f"status{index}"
        result = _run(
            tmp_path,
            source,
            TEST_TOTAL_SHARDS="6",
            TEST_SHARD_INDEX=str(index),
            TEST_SHARD_STATUS_FILE=str(status_file),
        )
        assert status_file.exists()
        passed += result.stdout.count("1 passed")
        statuses.append(result.returncode)
    assert passed == len(names)
    assert statuses == [0, 0, 0, 0, 1, 0]


def test_no_shard_hides_that_there_are_no_tests(tmp_path: pathlib.Path) -> None:
    shard = {"TEST_TOTAL_SHARDS": "2", "TEST_SHARD_INDEX": "1"}
    status_file = str(tmp_path / "status")
    assert _run(tmp_path, "", TEST_SHARD_STATUS_FILE=status_file, **shard).returncode != 0
