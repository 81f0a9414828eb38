"""Runs pytest on the files named on the command line, as a Bazel test does."""

from __future__ import annotations

import os
import sys

import pytest


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
    # Without a configuration file of its own pytest would look for one up to the root of the disk.
    options.extend(["-c", os.devnull, f"--rootdir={os.getcwd()}", "--import-mode=importlib"])
    return int(pytest.main([*options, *sys.argv[1:]]))


if __name__ == "__main__":
    sys.exit(main())
