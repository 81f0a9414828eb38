"""Runs pytest on the files named on the command line, as a Bazel test does."""

from __future__ import annotations

import os
import pathlib
import sys

import pytest


class Shard:
    """Runs every so many of the tests, as Bazel's shard_count asks."""

    def __init__(self, index: int, shards: int) -> None:
        self._mine = slice(index, None, shards)
        self.all_tests = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.all_tests = len(items)
        items[:] = items[self._mine]


def main() -> int:
    # Plugins that this machine's Python happens to have must not change a test.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-p", "no:cacheprovider", "--strict-markers", "--strict-config", "-ra"]
    # Bazel's own conventions: where to report, and which tests to run.
    if report := os.environ.get("XML_OUTPUT_FILE"):
        options.append(f"--junitxml={report}")
    if pattern := os.environ.get("TESTBRIDGE_TEST_ONLY"):
        options.append(f"-k={pattern}")
    if temporary := os.environ.get("TEST_TMPDIR"):
        options.append(f"--basetemp={temporary}/pytest")
    shard = None
    if shards := os.environ.get("TEST_TOTAL_SHARDS"):
        # Tells Bazel that not every shard runs everything.
        pathlib.Path(os.environ["TEST_SHARD_STATUS_FILE"]).touch()
        shard = Shard(int(os.environ["TEST_SHARD_INDEX"]), int(shards))
    # Without a configuration file of its own pytest would look for one up to the root of the disk.
    options.extend(["-c", os.devnull, f"--rootdir={os.getcwd()}", "--import-mode=importlib"])
    result = pytest.main([*options, *sys.argv[1:]], [shard] if shard else [])
    if result == pytest.ExitCode.NO_TESTS_COLLECTED and shard and shard.all_tests:
        return 0  # The other shards have them.
    return int(result)


if __name__ == "__main__":
    sys.exit(main())
