"""Tests that lock.json is complete and agrees with the lists that it is made from."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import update_lock
import vendor

_FOLDER = Path(__file__).parent
_LOCK: dict[str, Any] = json.loads((_FOLDER / "lock.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("file", "part"), [("requirements.txt", "python"), ("archives.txt", "archives")]
)
def test_has_what_is_listed(file: str, part: str) -> None:
    for line in update_lock.lines(file):
        name, version = line.split("==")
        key = f"{name}_{version}" if part == "archives" else name
        entry = _LOCK[part].get(update_lock.canonical(key))
        assert entry, f"{line} of {file} is not locked: run python3 third_party/update_lock.py"
        assert entry["requirement"].split("==")[1] == version


def test_has_all_that_python_packages_need() -> None:
    for package in _LOCK["python"].values():
        assert set(package["requires"]) <= set(_LOCK["python"])


def test_has_a_file_for_each_python() -> None:
    for package in _LOCK["python"].values():
        assert sorted(package["files"]) == ["cp311", "cp312", "cp313"]
        for tag, file in package["files"].items():
            python, abi = file["name"].removesuffix(".whl").split("-")[-3:-1]
            assert python.startswith("py") or abi in (tag, "abi3")


def test_pins_each_file() -> None:
    files = [archive["file"] for archive in _LOCK["archives"].values()]
    files += [file for package in _LOCK["python"].values() for file in package["files"].values()]
    assert len(files) > len(_LOCK["python"]) * 3
    for file in files:
        assert re.fullmatch("[0-9a-f]{64}", file["sha256"]), file
        assert "/" not in file["name"]


def test_vendored_files_have_names_of_their_own() -> None:
    names = [name for _, name, _ in vendor.files([])]
    assert len(names) > len(_LOCK["archives"]) + len(_LOCK["python"])
    assert len(set(names)) == len(names)
    assert len(list(vendor.files(["cp311"]))) == len(_LOCK["archives"]) + len(_LOCK["python"])
