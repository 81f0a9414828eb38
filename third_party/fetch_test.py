"""Tests fetching and unpacking, with packages made here and pip kept from the network."""

import hashlib
import io
import os
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import fetch
import pip
import pytest
import vendor


def _wheel(folder: Path, name: str, files: dict[str, str]) -> Path:
    """Writes a wheel `name`-1.0 with these files; those in a bin folder are executable."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            entry = zipfile.ZipInfo(file)
            entry.external_attr = (0o744 if "/bin/" in file else 0o640) << 16
            archive.writestr(entry, text)
    return path


def _source(folder: Path, name: str, files: dict[str, str]) -> Path:
    """Writes a source distribution `name`-1.0 with these files."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{file}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def _fetch(
    work: Path, requirement: str, file: str, digest: str, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs the program as a repository rule does, with a folder in place of a package index."""
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(work / "home"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(work / "index"),
        "PIP_CONFIG_FILE": os.devnull,
        "PYTHONPATH": str(Path(pip.__file__).parents[1]),
        **environment,
    }
    return subprocess.run(
        [
            sys.executable,
            fetch.__file__,
            f"--requirement={requirement}",
            f"--file={file}",
            f"--sha256={digest}",
            f"--into={work / 'into'}",
            *options,
        ],
        capture_output=True,
        text=True,
        check=False,
        env=variables,
    )


def _tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_unpacks_what_is_asked_for(tmp_path: Path) -> None:
    wheel = _wheel(
        tmp_path / "index",
        "kit",
        {"kit/bin/tool": "t", "kit/include/a.h": "a", "kit/include/x/b.h": "b", "kit/c": "c"},
    )
    done = _fetch(
        tmp_path,
        "kit==1.0",
        wheel.name,
        fetch.sha256(wheel),
        "--strip-prefix=kit/",
        "--include=bin/*",
        "--include=include/*",
        "--exclude=include/x/*",
    )
    assert done.returncode == 0, done.stderr
    assert _tree(tmp_path / "into") == {"bin/tool": b"t", "include/a.h": b"a"}
    assert stat.S_IMODE((tmp_path / "into/bin/tool").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "into/include/a.h").stat().st_mode) == 0o644


def test_keeps_downloads(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path / "index", "kit", {"kit/a": "a"})
    digest = fetch.sha256(wheel)
    assert _fetch(tmp_path, "kit==1.0", wheel.name, digest).returncode == 0
    wheel.unlink()
    assert _fetch(tmp_path, "kit==1.0", wheel.name, digest).returncode == 0


def test_does_not_trust_a_kept_download(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path / "index", "kit", {"kit/a": "a"})
    digest = fetch.sha256(wheel)
    kept = tmp_path / "home/.cache/sofie/downloads" / digest / wheel.name
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"other")
    assert _fetch(tmp_path, "kit==1.0", wheel.name, digest).returncode == 0
    assert (tmp_path / "into/kit/a").read_bytes() == b"a"


def test_removes_what_killed_fetches_left(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path / "index", "kit", {"kit/a": "a"})
    downloads = tmp_path / "home/.cache/sofie/downloads"
    for name in (".fetch-old", ".fetch-new"):
        (downloads / name).mkdir(parents=True)
    os.utime(downloads / ".fetch-old", (0, 0))
    assert _fetch(tmp_path, "kit==1.0", wheel.name, fetch.sha256(wheel)).returncode == 0
    assert not (downloads / ".fetch-old").exists()
    assert (downloads / ".fetch-new").exists()


def test_runs_nothing_of_a_source_distribution(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    source = _source(
        tmp_path / "index",
        "kit",
        {
            "PKG-INFO": "Metadata-Version: 2.1\nName: kit\nVersion: 1.0\n",
            "pyproject.toml": "[build-system]\nrequires = []\n"
            'build-backend = "setuptools.build_meta"\n',
            "setup.py": f"open({str(mark)!r}, 'w')",
            "include/a.h": "a",
        },
    )
    done = _fetch(
        tmp_path,
        "kit==1.0",
        source.name,
        fetch.sha256(source),
        "--strip-prefix=kit-1.0/include/",
    )
    assert done.returncode == 0, done.stderr
    assert _tree(tmp_path / "into") == {"a.h": b"a"}
    assert not mark.exists()


def test_compiles_python_to_the_same_bytes_everywhere(tmp_path: Path) -> None:
    files = {"kit/__init__.py": "def f():\n    return 1\n", "kit-1.0.data/scripts/kit": "#!x\n"}
    wheel = _wheel(tmp_path / "index", "kit", files)
    trees = []
    for name in ("a", "a longer name"):
        done = _fetch(
            tmp_path,
            "kit==1.0",
            wheel.name,
            fetch.sha256(wheel),
            "--python",
            f"--into={tmp_path / name / 'site-packages'}",
        )
        assert done.returncode == 0, done.stderr
        trees.append(_tree(tmp_path / name))
    assert trees[0] == trees[1]
    assert any(name.endswith(".pyc") for name in trees[0])
    assert trees[0]["scripts/kit"] == b"#!x\n"


def test_says_that_the_hash_differs(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path / "index", "kit", {"kit/a": "a"})
    digest = hashlib.sha256(b"other").hexdigest()
    done = _fetch(tmp_path, "kit==1.0", wheel.name, digest)
    assert done.returncode == 1
    assert "another kit==1.0 than the one in third_party/lock.json" in done.stderr
    assert not (tmp_path / "into").exists()


def test_says_that_the_index_lacks_a_file(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    done = _fetch(tmp_path, "kit==1.0", "kit-1.0-py3-none-any.whl", "0" * 64)
    assert done.returncode == 1
    assert "does not have kit-1.0-py3-none-any.whl. 'pip config list'" in done.stderr


def test_says_that_nothing_matches(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path / "index", "kit", {"kit/a": "a"})
    done = _fetch(tmp_path, "kit==1.0", wheel.name, fetch.sha256(wheel), "--include=none")
    assert done.returncode == 1
    assert f"{wheel.name} has no file that the rule asks for" in done.stderr


def test_takes_vendored_files_and_no_other(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path / "index", "kit", {"kit/a": "a"})
    digest = fetch.sha256(wheel)
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.mkdir()
    _wheel(other, "kit", {"kit/a": "other"})
    file = ("kit==1.0", wheel.name, digest)
    done = _fetch(tmp_path, *file, SOFIE_VENDOR_DIR=str(wheel.parent), PIP_FIND_LINKS=str(empty))
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "home").exists()
    done = _fetch(tmp_path, *file, SOFIE_VENDOR_DIR=str(empty))
    assert done.returncode == 1
    assert f"{empty} does not have it" in done.stderr
    done = _fetch(tmp_path, *file, SOFIE_VENDOR_DIR=str(other))
    assert done.returncode == 1
    assert f"{other} holds another file of that name" in done.stderr


def test_fills_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = _wheel(tmp_path / "index", "kit", {"kit/a": "a"})
    digest = fetch.sha256(wheel)
    monkeypatch.setattr(vendor, "files", lambda _: [("kit==1.0", wheel.name, digest)])
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("PYTHONPATH", str(Path(pip.__file__).parents[1]))
    folder = tmp_path / "vendored"
    assert vendor.fill(folder, []) == 1
    assert fetch.sha256(folder / wheel.name) == digest
    # What is there is not fetched again, and what is wrong is.
    wheel.unlink()
    assert vendor.fill(folder, []) == 1
    (folder / wheel.name).write_bytes(b"damaged")
    assert vendor.fill(folder, []) == 1
    assert fetch.sha256(folder / wheel.name) == digest


def test_refuses_a_file_outside(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, "kit", {"../a": "a"})
    with pytest.raises(fetch.FetchError, match="outside its folder"):
        fetch.unpack(wheel, tmp_path / "into", "", ["*"], [])


def test_selects_the_file_whatever_python_runs_pip() -> None:
    assert fetch.pip_selection(
        "a-1-cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"
    ) == [
        "--only-binary=:all:",
        "--abi=cp312",
        "--implementation=cp",
        "--python-version=3.12",
        "--platform=manylinux_2_27_x86_64",
        "--platform=manylinux_2_28_x86_64",
    ]
