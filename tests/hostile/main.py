"""Throws damaged and malicious ONNX files at the compiler.

    tools/bazel run //tests/hostile -- --count=100000 [--first=N] [--keep=FOLDER]

Each must be compiled or refused with a message within 10 s and 2 GiB, without a crash and without
a look outside of the model's folder. Names every file that is not, by its number, and exits with 1.
"""

from __future__ import annotations

import collections
import concurrent.futures
import os
import pathlib
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

from absl import app, flags

from tests.hostile import judge

_COUNT = flags.DEFINE_integer("count", 1000, "Number of files.", 1)
_FIRST = flags.DEFINE_integer("first", 0, "Number of the first file.", 0)
_PROCESSES = flags.DEFINE_integer("processes", os.cpu_count() or 1, "Processes at a time.", 1)
_KEEP = flags.DEFINE_string("keep", None, "Folder to write the files to that show a fault.")

# Seconds without a word after which a process is beyond the alarm that it has set itself.
_SILENCE = 60
# Files that one process judges.
_BATCH = 500


def run(first: int, count: int, command: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The numbers of files with faults, and the faults.

    Args:
      first: number of the first file.
      count: number of files.
      command: what starts judge.py.
    """
    number, end = first, first + count
    while number < end:
        current = None
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [*command, folder, str(number), str(end - number)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            assert process.stdout is not None and process.stderr is not None
            selector = selectors.DefaultSelector()
            selector.register(process.stdout, selectors.EVENT_READ)
            fault = ""
            while not fault:
                if not selector.select(_SILENCE):
                    fault = f"no answer after {_SILENCE} s, the alarm unheard"
                    break
                line = process.stdout.readline()
                if not line:
                    break
                word, text, why = (line.rstrip("\n").split(" ", 2) + [""])[:3]
                current = int(text) if word == "begin" else None
                if word == "end":
                    number = int(text) + 1
                    if why:
                        yield int(text), why
            if fault:
                process.kill()
            _, errors = process.communicate()
        if current is not None:
            yield current, fault or f"the process ends with {process.returncode}: {errors[-500:]}"
            number = current + 1
        elif number < end:
            raise RuntimeError(f"judge.py stops with {process.returncode}: {errors[-2000:]}")


def main(argv: Sequence[str]) -> None:
    """Judges the files that the flags ask for."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    keep = None
    if _KEEP.value:
        keep = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), _KEEP.value)
        keep.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.hostile.judge"]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    end = _FIRST.value + _COUNT.value
    faults: dict[int, str] = {}
    with concurrent.futures.ThreadPoolExecutor(_PROCESSES.value) as pool:
        batches = [
            pool.submit(lambda a, n: list(run(a, n, command)), start, min(_BATCH, end - start))
            for start in range(_FIRST.value, end, _BATCH)
        ]
        for batch in concurrent.futures.as_completed(batches):
            for number, why in batch.result():
                faults[number] = why
                print(f"{number}: {why}", flush=True)
                if keep:
                    (keep / f"{number}.onnx").write_bytes(judge.hostile(number))
    kinds = collections.Counter(why.split(":")[0] for why in faults.values())
    print(f"{_COUNT.value} files, {len(faults)} with faults {dict(kinds)}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    app.run(main)
