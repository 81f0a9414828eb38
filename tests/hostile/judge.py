"""Compiles hostile files in a process of its own, and says what it must not do.

    judge.py FOLDER FIRST COUNT

Writes the files of the numbers FIRST, FIRST + 1, … to FOLDER one after another. Says "begin" and
the number before each, and after it "end", the number and what is wrong with the compiler, if
anything.
"""

from __future__ import annotations

import functools
import pathlib
import random
import resource
import signal
import sys
import sysconfig
import traceback
from types import FrameType

from absl import logging

import sofie
from sofie.compile import Request, compile_model
from sofie.importer.errors import ModelError
from tests.conformance import random_graphs, suite
from tests.hostile import mutations

# Of processor time: a machine may be busy with other things.
SECONDS = 10
BYTES = 2 << 30

# Good files are these node tests, which have every kind of value and attribute, and random graphs.
_RANDOM_GRAPHS = 100


class SlowError(BaseException):
    """No answer in time. No Exception: the compiler must not take it for one of its own."""


@functools.cache
def good_files() -> list[bytes]:
    """What is mutated."""
    cases = suite.load(("node",))
    small = [case.model.SerializeToString() for case in cases if case.model.ByteSize() < 20_000]
    graphs = [random_graphs.numbered(i).model for i in range(_RANDOM_GRAPHS)]
    return small + [model.SerializeToString() for model in graphs]


def hostile(number: int) -> bytes:
    """The file of a number."""
    rng = random.Random(number)
    return mutations.mutate(rng, rng.choice(good_files()))


def judge(content: bytes, folder: pathlib.Path) -> str:
    """What is wrong with how the compiler takes a file, "" if nothing is.

    Args:
      content: the file's.
      folder: where it is to lie.
    """
    path = folder / "model.onnx"
    path.write_bytes(content)
    watch.folder, watch.opened = folder.resolve(), []
    before = _peak()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        compile_model(Request(path, "model", "model", shards=1))
    except ModelError as error:
        if not str(error).strip():
            return "the error says nothing"
    except SlowError as error:
        return f"no answer after {SECONDS} s: {_place(error)}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}: {_place(error)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        opened, watch.folder = watch.opened, None
    if opened:
        return f"reads {', '.join(opened)}"
    if _peak() > max(before, BYTES):
        return f"takes {_peak() >> 20} MiB"
    return ""


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/sofie/" in frame.filename] or list(frames)
    return f"{own[-1].filename.split('/sofie/')[-1]}:{own[-1].lineno}"


def _peak() -> int:
    """The most bytes that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class _Watch:
    """Hears of every file that Python opens."""

    def __init__(self) -> None:
        self.folder: pathlib.Path | None = None
        self.opened: list[str] = []
        installed = [*map(pathlib.Path, sysconfig.get_paths().values())]
        # Among Bazel's runfiles files are links, to a folder that is not on the path.
        installed.append(pathlib.Path(sofie.__file__).resolve().parent)
        self.allowed = [
            p.resolve() for p in (*installed, *map(pathlib.Path, sys.path)) if p != p.parent
        ]

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.folder is None or event != "open" or not isinstance(arguments[0], str | bytes):
            return
        folder, self.folder = self.folder, None  # Resolving a path may open files itself.
        name = arguments[0] if isinstance(arguments[0], str) else arguments[0].decode()
        path = pathlib.Path(name).resolve()
        # The importer's own files: templates, modules that are imported late.
        if not any(path.is_relative_to(p) for p in (folder, *self.allowed)):
            self.opened.append(str(path))
        self.folder = folder


watch = _Watch()


def _alarm(_number: int, _frame: FrameType | None) -> None:
    raise SlowError


def prepare(folder: pathlib.Path) -> pathlib.Path:
    """Makes a model's folder below `folder`, and beside it what must not be read."""
    (folder / "secret.bin").write_bytes(bytes(1 << 12))
    model = folder / "model"
    model.mkdir(exist_ok=True)
    (model / "weights.bin").write_bytes(bytes(64))
    link = model / "link.bin"
    if not link.is_symlink():
        link.symlink_to("../secret.bin")
    signal.signal(signal.SIGPROF, _alarm)
    sys.addaudithook(watch)
    return model


def main() -> None:
    logging.set_verbosity(logging.FATAL)
    folder, first, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder = prepare(folder)
    good_files()
    # What libraries map but do not use counts here: twice as much as may be in use.
    resource.setrlimit(resource.RLIMIT_AS, (4 * BYTES, 4 * BYTES))
    for number in range(first, first + count):
        print(f"begin {number}", flush=True)
        why = judge(hostile(number), folder).replace("\n", " ")
        print(f"end {number} {why}", flush=True)


if __name__ == "__main__":
    main()
