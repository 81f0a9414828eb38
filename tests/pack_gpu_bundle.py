"""Packs tests for a machine without Bazel; see gpu_bundle.bzl.

pack_gpu_bundle.py MANIFEST.json STRIP OUTPUT.tar.xz
"""

from __future__ import annotations

import io
import json
import lzma
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

_RUN = """\
#!/bin/sh
# Runs the GPU tests in this folder: all, or those whose names contain an argument.
#   CUDA_LIBRARIES  folder of libcublasLt.so.13, by default /usr/local/cuda/lib64
here=$(cd "$(dirname "$0")" && pwd) || exit 1
RUNFILES_DIR=$here/runfiles
TEST_SRCDIR=$RUNFILES_DIR
TEST_WORKSPACE={workspace}
TEST_TMPDIR=$(mktemp -d) || exit 1
LD_LIBRARY_PATH=${{CUDA_LIBRARIES:-/usr/local/cuda/lib64}}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}
export RUNFILES_DIR TEST_SRCDIR TEST_WORKSPACE TEST_TMPDIR LD_LIBRARY_PATH
trap 'rm -rf "$TEST_TMPDIR"' EXIT
cd "$RUNFILES_DIR/{workspace}" || exit 1

passed=0
failed=
run() {{
  name=$1
  shift
  echo "=== $name"
  if "$@"; then
    passed=$((passed + 1))
  else
    echo "=== $name FAILED with status $?"
    failed="$failed $name"
  fi
}}
wanted() {{
  name=$1
  shift
  [ $# -eq 0 ] && return 0
  for part in "$@"; do
    case $name in *"$part"*) return 0 ;; esac
  done
  return 1
}}

{calls}
echo "$passed tests passed"
if [ -n "$failed" ]; then
  echo "failed:$failed"
  exit 1
fi
if [ "$passed" -eq 0 ]; then
  echo "no test has such a name"
  exit 1
fi
"""
# The tests have a lot in common: the dictionary is larger than several of them.
_COMPRESSION = {"id": lzma.FILTER_LZMA2, "preset": 3, "dict_size": 64 << 20}
_ELF = b"\x7fELF"
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
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = mode
    bundle.addfile(entry, io.BytesIO(data))


def call(test: Mapping[str, Any]) -> str:
    """The line of run.sh that runs a test if it is wanted."""
    name = shlex.quote(test["name"])
    environment = [f"{name}={value}" for name, value in sorted(test["environment"].items())]
    command = f'{shlex.join(["env", *environment])} "$RUNFILES_DIR"/{shlex.quote(test["path"])}'
    return f'wanted {name} "$@" && run {name} {command}'


def main() -> None:
    manifest_path, strip, output = sys.argv[1:]
    manifest = json.loads(pathlib.Path(manifest_path).read_text())
    calls = "\n".join(call(test) for test in manifest["tests"])
    script = _RUN.format(workspace=manifest["workspace"], calls=calls)

    with (
        lzma.open(output, "wb", filters=[_COMPRESSION]) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as bundle,
    ):
        add(bundle, "run.sh", script.encode(), 0o755)
        for name, path in files(manifest["files"]):
            mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            add(bundle, f"runfiles/{name}", content(path, strip), mode)


if __name__ == "__main__":
    main()
