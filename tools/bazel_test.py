"""Tests which Bazel `tools/bazel` starts, with stand-ins for Bazel, and what it says otherwise."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import bootstrap_bazel
import debian
import pytest

_TOOLS = Path(__file__).parent
_VERSION = (_TOOLS.parent / ".bazelversion").read_text(encoding="utf-8").strip()


def _stand_in(path: Path, version: str) -> None:
    """Writes a program that answers as a Bazel of some version and repeats its arguments."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f'#!/bin/sh\n[ "$*" = --version ] && exec echo "bazel {version}"\necho "$0 got: $*"\n',
        encoding="utf-8",
    )
    path.chmod(0o755)


def _start(
    folder: Path, *arguments: str, path: str = "/usr/bin:/bin", **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(_TOOLS / "bazel"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={
            "PATH": path,
            "HOME": str(folder),
            # Nothing is there: a test that gets as far as fetching a package ends with an error.
            "SOFIE_DEBIAN_MIRROR": f"file:{folder}/debian",
            **environment,
        },
    )


@pytest.mark.parametrize("name", ["bazel", f"bazel-{_VERSION}", "bazelisk"])
def test_starts_what_the_path_has(tmp_path: Path, name: str) -> None:
    _stand_in(tmp_path / "bin" / name, _VERSION)
    done = _start(tmp_path, "test", "//a b", path=f"{tmp_path}/bin:/usr/bin:/bin")
    assert done.stdout == f"{tmp_path}/bin/{name} got: test //a b\n"
    assert done.returncode == 0


def test_starts_bazel_real_first(tmp_path: Path) -> None:
    _stand_in(tmp_path / "bin" / "bazel", _VERSION)
    _stand_in(tmp_path / "real" / "bazel", _VERSION)
    done = _start(
        tmp_path,
        "info",
        path=f"{tmp_path}/bin:/usr/bin:/bin",
        BAZEL_REAL=f"{tmp_path}/real/bazel",
    )
    assert done.stdout == f"{tmp_path}/real/bazel got: info\n"


def test_passes_over_another_version(tmp_path: Path) -> None:
    _stand_in(tmp_path / "bin" / "bazelisk", _VERSION)
    _stand_in(tmp_path / "bin" / "bazel", f"{_VERSION}1")
    _stand_in(tmp_path / "real" / "bazel", "8.0.0")
    done = _start(
        tmp_path,
        "info",
        path=f"{tmp_path}/bin:/usr/bin:/bin",
        BAZEL_REAL=f"{tmp_path}/real/bazel",
    )
    assert done.stdout == f"{tmp_path}/bin/bazelisk got: info\n"


def test_says_what_to_do_without_python(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for program in ("bash", "dirname", "realpath", "sed"):
        (tmp_path / "bin" / program).symlink_to(f"/usr/bin/{program}")
    done = _start(tmp_path, "info", path=f"{tmp_path}/bin")
    assert done.returncode == 1
    assert "no Python 3.11 or newer" in done.stderr
    assert f"Install Python, and Bazelisk or Bazel {_VERSION}" in done.stderr


def test_refuses_a_lock_file_that_debians_bazel_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "MODULE.bazel").touch()
    (tmp_path / "MODULE.bazel.lock").touch()
    (tmp_path / "below").mkdir()
    done = _start(tmp_path / "below", "info", path=f"{Path(sys.executable).parent}:/usr/bin:/bin")
    assert done.returncode == 1
    assert f"can't read {tmp_path}/MODULE.bazel.lock. Remove it" in done.stderr


def test_says_what_to_do_without_debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(debian.DebianError, match="no dpkg-deb .* install Bazelisk"):
        bootstrap_bazel.bootstrap()


def test_refuses_a_cache_folder_with_a_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a b"))
    monkeypatch.setattr(debian.Packages, "require_tools", lambda packages: None)
    with pytest.raises(debian.DebianError, match="space in that path"):
        bootstrap_bazel.bootstrap()


@pytest.mark.parametrize("home", ["", None])
def test_finds_a_home_where_the_environment_names_none(
    monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if home is None:
        monkeypatch.delenv("HOME", raising=False)
    else:
        monkeypatch.setenv("HOME", home)
    folder = debian.cache_folder()
    assert folder.is_absolute()
    assert folder != Path("/.cache/sofie") or os.path.expanduser(f"~{os.getuid()}") == "/"


def test_record_is_complete() -> None:
    record = json.loads((_TOOLS / "bazel_debian.json").read_text(encoding="utf-8"))
    assert record["bazel"] == _VERSION
    names = {package["name"] for package in record["packages"]}
    assert {"bazel-bootstrap", "bazel-bootstrap-data", "libc6", "patchelf"} <= names
    for package in record["packages"]:
        assert re.fullmatch("[0-9a-f]{64}", package["sha256"])
        assert package["path"].startswith("pool/main/")
        assert package["path"].endswith(".deb")
