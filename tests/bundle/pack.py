"""Packs GPU programs for a machine without Bazel; see gpu_bundle.bzl.

pack.py MANIFEST.json STRIP OUTPUT.tar.xz
"""

from __future__ import annotations

import io
import json
import lzma
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

# The programs have a lot in common: the dictionary is larger than several of them.
_COMPRESSION = {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 64 << 20}
_ELF = b"\x7fELF"
# What only GoogleTest's library asks the environment for.
_GOOGLETEST = b"GTEST_SHARD_INDEX"
# Python programs name the interpreter of the machine that built them.
_INTERPRETER = re.compile(rb"^PYTHON_BINARY = '.*'$", re.MULTILINE)
_SHEBANG = re.compile(rb"^#!.*")


def files(sources: Mapping[str, str]) -> Iterator[tuple[str, pathlib.Path]]:
    """Names in the bundle with the files; Python packages come as folders."""
    for name, source in sorted(sources.items()):
        path = pathlib.Path(source)
        if not path.is_dir():
            yield name, path
            continue
        for inner in sorted(path.rglob("*")):
            if inner.is_file() and "__pycache__" not in inner.parts:
                yield f"{name}/{inner.relative_to(path)}", inner


def content(path: pathlib.Path, strip: str) -> bytes:
    """What goes into the bundle in the place of this file."""
    data = path.read_bytes()
    if data.startswith(_ELF):
        with tempfile.TemporaryDirectory() as folder:
            stripped = pathlib.Path(folder) / "stripped"
            subprocess.run([strip, "-o", stripped, path], check=True)
            return stripped.read_bytes()
    if _INTERPRETER.search(data):
        data = _INTERPRETER.sub(b"PYTHON_BINARY = 'python3'", data)
        return _SHEBANG.sub(b"#!/usr/bin/env python3", data, count=1)
    return data


def add(bundle: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    """Adds a file, as anyone would at any time."""
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = mode
    bundle.addfile(entry, io.BytesIO(data))


def runner_manifest(manifest: Mapping[str, Any], contents: Mapping[str, bytes]) -> dict[str, Any]:
    """What run.py reads: where each program is, what it is and which binaries it loads."""
    programs = []
    for program in manifest["programs"]:
        binaries = [
            name
            for name in sorted(program["files"])
            if contents.get(name, b"").startswith(_ELF) and "/site-packages/" not in name
        ]
        programs.append(
            {
                "binaries": binaries,
                "environment": program["environment"],
                "gtest": any(_GOOGLETEST in contents[name] for name in binaries),
                "kind": program["kind"],
                "name": program["name"],
                "path": program["path"],
            }
        )
    kept = {key: manifest[key] for key in ("archs", "cuda", "workspace")}
    return {**kept, "programs": programs}


def main() -> None:
    """Packs."""
    manifest_path, strip, output = sys.argv[1:]
    manifest = json.loads(pathlib.Path(manifest_path).read_text(encoding="utf-8"))
    contents = {}
    modes = {}
    for name, path in files(manifest["files"]):
        contents[name] = content(path, strip)
        modes[name] = 0o755 if path.stat().st_mode & 0o100 else 0o644

    with (
        lzma.open(output, "wb", filters=[_COMPRESSION]) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as bundle,
    ):
        for source in sorted(manifest["runner"]):
            path = pathlib.Path(source)
            add(bundle, path.name, path.read_bytes(), 0o755 if path.suffix == ".sh" else 0o644)
        text = json.dumps(runner_manifest(manifest, contents), indent=1)
        add(bundle, "manifest.json", text.encode(), 0o644)
        for name, data in sorted(contents.items()):
            add(bundle, f"runfiles/{name}", data, modes[name])


if __name__ == "__main__":
    main()
