"""Flags of the programs in this folder: which tests to run, how, and where."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import tempfile
from collections.abc import Iterator, Sequence

from absl import app, flags

from tests.conformance import random_graphs, suite

_FILTER = flags.DEFINE_string("filter", "", "Only tests whose names contain this expression.")
_SHARD = flags.DEFINE_string("shard", "1/1", "Only the i-th of n parts: 1/4.")
_FUZZ = flags.DEFINE_integer("fuzz", 0, "This many random graphs in place of ONNX's tests.", 0)
_SEED = flags.DEFINE_integer("seed", 0, "Number of the first random graph.", 0)
SYMBOLIC = flags.DEFINE_bool("symbolic", False, "Turn the sizes of inputs into symbols first.")
_WORK = flags.DEFINE_string("work", None, "Folder to build in, kept; a temporary one by default.")
PROCESSES = flags.DEFINE_integer("processes", os.cpu_count() or 1, "Compilers at a time.", 1)


def path(name: str) -> pathlib.Path:
    """A file that the user names, who is in another folder than a program that Bazel runs."""
    return pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), name)


def select(names: Sequence[str], pattern: str, shard: str) -> Sequence[str]:
    """The names that contain a pattern, or every n-th of them.

    Args:
      names: of all tests.
      pattern: regular expression.
      shard: "i/n", from 1.
    """
    match = re.fullmatch(r"(\d+)/(\d+)", shard)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise app.UsageError(f"--shard={shard}: write i/n, such as 1/4")
    selected = [name for name in names if re.search(pattern, name)]
    if not selected:
        raise app.UsageError(f"--filter={pattern}: no test has such a name")
    return selected[int(match[1]) - 1 :: int(match[2])]


def cases() -> list[suite.Case]:
    """The tests that the flags name."""
    if not _FUZZ.value:
        every = {case.name: case for case in suite.load()}
        return [every[name] for name in select(list(every), _FILTER.value, _SHARD.value)]
    numbers = {f"fuzz_{_SEED.value + i}": _SEED.value + i for i in range(_FUZZ.value)}
    names = select(list(numbers), _FILTER.value, _SHARD.value)
    return [random_graphs.numbered(numbers[name]) for name in names]


@contextlib.contextmanager
def work() -> Iterator[pathlib.Path]:
    """The folder to build in."""
    with tempfile.TemporaryDirectory() as temporary:
        yield path(_WORK.value) if _WORK.value else pathlib.Path(temporary)


def record() -> pathlib.Path:
    """The file, in the source tree, with the tests that are to be refused."""
    name = "refused_symbolic.json" if SYMBOLIC.value else "refused.json"
    folder = os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")
    return pathlib.Path(folder, "tests", "conformance", name)
