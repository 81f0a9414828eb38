"""Packs ONNX's backend tests, compiled for CUDA, for a machine with a GPU and without Bazel.

    tools/bazel run //tests/conformance:bundle -- --output=conformance.tar.xz

There: unpack it and call run.sh. It writes the table that //tests/conformance writes, and exits
with 1 in the same cases; ``--json=FILE`` and ``--filter=REGEX`` mean the same.
"""

from __future__ import annotations

import io
import lzma
import os
import pathlib
import subprocess
import sys
import tarfile
from collections.abc import Sequence

from absl import app, flags, logging

from tests.conformance import build, options, verdicts

_OUTPUT = flags.DEFINE_string("output", None, "The archive to write, .tar.xz.", required=True)

# Libraries of the machine with the GPU.
_PROVIDED = "libcublasLt"
_RUN = """\
#!/bin/sh
# Runs the tests in this folder; --help explains the options.
#   CUDA_LIBRARIES  folder of libcublasLt.so.13, by default /usr/local/cuda/lib64
here=$(cd "$(dirname "$0")" && pwd) || exit 1
PYTHONPATH=$here exec python3 -m tests.conformance.execute "$here" "$@"
"""
# Generated kernels have much in common.
_COMPRESSION = {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 128 << 20}


def pack(
    builder: build.Builder, built: verdicts.Verdicts, refused: pathlib.Path, output: pathlib.Path
) -> None:
    """Writes the archive.

    Args:
      builder: it has built the program.
      built: its verdicts.
      refused: the tests on record as refused, a file.
      output: the archive.
    """
    folder = builder.folder
    verdicts.write_json(built, folder / "built.json")
    (folder / "run.sh").write_text(_RUN, encoding="utf-8")
    (folder / "run.sh").chmod(0o755)
    subprocess.run(["strip", builder.program], check=True)
    here = pathlib.Path(__file__).absolute().parent
    with (
        lzma.open(output, "wb", filters=[_COMPRESSION]) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):

        def add(file: pathlib.Path, name: str) -> None:
            entry = tarfile.TarInfo(name)
            content = file.read_bytes()
            entry.size = len(content)
            entry.mode = 0o755 if os.access(file, os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(content))

        for name in ("run.sh", "built.json", "conformance"):
            add(folder / name, name)
        add(refused, "refused.json")
        for name in ("execute.py", "verdicts.py"):
            add(here / name, f"tests/conformance/{name}")
        for library in builder.toolchain.libraries:
            if _PROVIDED not in library.name:
                add(library, f"lib/{library.name}")
        for file in sorted((folder / "data").iterdir()):
            add(file, f"data/{file.name}")


def main(argv: Sequence[str]) -> None:
    """Builds and packs the tests that the flags ask for."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    logging.set_verbosity(logging.ERROR)
    with options.work() as work:
        toolchain = build.Toolchain.read(pathlib.Path(__file__).with_name("cuda_commands.json"))
        builder = build.Builder(toolchain, "cuda", work, options.PROCESSES.value)
        built = builder.build(options.cases(), options.SYMBOLIC.value)
        pack(builder, built, options.record(), options.path(_OUTPUT.value))
    print(verdicts.table(built))
    failed = [name for name, v in built.items() if v.result == verdicts.FAILED_TO_BUILD]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    app.run(main)
