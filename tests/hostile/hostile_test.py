"""A few hundred hostile files, and that a fault would be seen."""

from __future__ import annotations

import os
import pathlib
import sys

import pytest

from tests.hostile import judge, main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return judge.prepare(tmp_path_factory.mktemp("hostile"))


def test_every_file_is_compiled_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    assert list(main.run(0, 60, [sys.executable, "-m", "tests.hostile.judge"])) == []


def test_files_differ_and_a_number_names_one() -> None:
    files = [judge.hostile(number) for number in range(50)]
    assert len(set(files)) == 50
    assert not set(files) & set(judge.good_files())
    assert judge.hostile(7) == files[7]


def test_good_files_have_no_fault(folder: pathlib.Path) -> None:
    for content in judge.good_files()[::40]:
        assert judge.judge(content, folder) == ""


def _forever() -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("what", "fault"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (_forever, "no answer after"),
        (lambda: pathlib.Path("/etc/passwd").read_text(), "reads /etc/passwd"),
        (lambda: sys.exit(0), "SystemExit"),
    ],
)
def test_faults_are_seen(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, what: object, fault: str
) -> None:
    monkeypatch.setattr(judge, "SECONDS", 0.2)
    monkeypatch.setattr(judge, "compile_model", lambda request: what())  # type: ignore[operator]
    assert judge.judge(b"", folder).startswith(fault)


def test_a_crash_is_seen() -> None:
    crash = "import os, sys; print('begin', sys.argv[2], flush=True); os.abort()"
    ((number, why),) = main.run(3, 1, [sys.executable, "-c", crash])
    assert number == 3 and "ends with -6" in why
