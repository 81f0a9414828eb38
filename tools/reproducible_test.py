"""Tests what tools/reproducible compares and what it says."""

from pathlib import Path

import pytest
import reproducible

_FILES = {
    "models/m.h": b"int x;",
    "models/m_weights.bin": b"\0\1",
    "models/m_manifest.json": b"{}",
    "models/_objs/m/m.o": b"\x7fELF object",
    "models/libm.a": b"!<arch>",
    "examples/program": b"\x7fELF program",
}


def _write(folder: Path, files: dict[str, bytes]) -> dict[tuple[str, str], str]:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return reproducible.digests(folder)


def test_finds_every_kind(tmp_path: Path) -> None:
    found = _write(tmp_path, _FILES)
    assert {path for _, path in found} == set(_FILES)
    assert {kind for kind, _ in found} == {
        "generated sources",
        "weights",
        "manifests",
        "objects",
        "libraries",
        "programs",
    }


def test_leaves_out_what_has_absolute_paths(tmp_path: Path) -> None:
    extra = {"examples/program.runfiles/x.h": b"", "examples/program.runfiles_manifest": b"/tmp"}
    assert _write(tmp_path, extra) == {}


def test_equal_builds(tmp_path: Path) -> None:
    _, different = reproducible.compare(
        _write(tmp_path / "a", _FILES), _write(tmp_path / "b", _FILES)
    )
    assert different == []


@pytest.mark.parametrize("name", _FILES)
def test_one_different_byte(tmp_path: Path, name: str) -> None:
    changed = _FILES | {name: _FILES[name] + b"!"}
    _, different = reproducible.compare(
        _write(tmp_path / "a", _FILES), _write(tmp_path / "b", changed)
    )
    assert len(different) == 1
    assert different[0].startswith(f"{name} differs")


def test_the_first_difference_is_the_cause(tmp_path: Path) -> None:
    changed = _FILES | {
        "examples/program": b"\x7fELF other",
        "models/m.h": b"int y;",
        "models/_objs/m/m.o": b"\x7fELF other",
    }
    _, different = reproducible.compare(
        _write(tmp_path / "a", _FILES), _write(tmp_path / "b", changed)
    )
    assert [line.split()[0] for line in different] == [
        "models/m.h",
        "models/_objs/m/m.o",
        "examples/program",
    ]


def test_missing_files_and_kinds(tmp_path: Path) -> None:
    fewer = {name: content for name, content in _FILES.items() if not name.endswith(".bin")}
    a, b = _write(tmp_path / "a", _FILES), _write(tmp_path / "b", fewer)
    assert reproducible.compare(a, b)[1] == ["models/m_weights.bin exists in one build only"]
    assert reproducible.compare(b, b)[1] == ["there are no weights to compare"]
