"""Finds the files of a test target's `data`, in whatever folder the test runs."""

from __future__ import annotations

import os
import pathlib

from runfiles import Runfiles


def data_file(path: str) -> pathlib.Path:
    """The file with this path from the root of the workspace, among the test's runfiles."""
    runfiles = Runfiles.Create()
    assert runfiles is not None
    location = runfiles.Rlocation(f"{os.environ['TEST_WORKSPACE']}/{path}")
    assert location is not None, path
    return pathlib.Path(location)
