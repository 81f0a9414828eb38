"""Tests that the listing of licences leaves nothing out."""

import json
import re
import subprocess
from pathlib import Path

import licenses
import pytest

_LICENSES = licenses.licenses()
# Of the C++ compiler and the C library: the machine's own.
_SYSTEM = re.compile(r"(ld-linux|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|gomp)\.so).*")


def test_every_file_has_a_licence() -> None:
    for program, paths in licenses.programs().items():
        parts = {licenses.part_of(path, _LICENSES).repository for path in paths}
        # All backends are in it, so all that can be in a program is.
        assert {"alpaka", "boost", "openblas"} <= parts, program
        assert {part.rsplit("_13_")[0] for part in parts} == {
            "alpaka",
            "bazel_tools",
            "boost",
            "cublas",
            "cuda",
            "openblas",
        }


def test_every_package_has_a_licence() -> None:
    made_of = licenses.packages()
    assert {*made_of, "bazel_tools"} == set(_LICENSES)
    lock = json.loads(Path("third_party/lock.json").read_text(encoding="utf-8"))
    listed = {package for packages in made_of.values() for package in packages}
    assert listed == {entry["requirement"] for entry in lock["archives"].values()}
    for entries in _LICENSES.values():
        assert entries[-1]["files"] == "*"
        for entry in entries:
            assert set(entry) == {"files", "license", "source", "what"}
            assert entry["source"].startswith("https://")


def test_every_linked_library_is_listed() -> None:
    done = subprocess.run(
        ["readelf", "--dynamic", "examples/tag_jets"], check=True, capture_output=True, text=True
    )
    needed = re.findall(r"NEEDED.*\[(.+)\]", done.stdout)
    assert needed
    [paths] = licenses.programs().values()
    names = {Path(path).name for path in paths}
    # Libraries of this repository itself are named by their target's path.
    own = re.compile(r"lib(sofie|models|examples|rules|.*_U).*\.so")
    assert [n for n in needed if n not in names and not _SYSTEM.match(n) and not own.match(n)] == []


def test_a_file_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(licenses.LicenseError, match="does not say what the licence of this file"):
        licenses.part_of("external/_main~third_party~other/a.h", _LICENSES)


def test_listing_names_licence_source_and_package() -> None:
    text = "\n".join(licenses.report(show_files=True))
    assert "alpaka: MPL-2.0" in text
    assert "https://github.com/alpaka-group/alpaka" in text
    assert "from: CLUEstering==" in text
    assert "alpaka/include/alpaka/alpaka.hpp" in text
