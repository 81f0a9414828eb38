#!/usr/bin/env python3
"""Fills a folder with every third-party file of the build, for machines without a network.

    python3 third_party/vendor.py FOLDER [--python=cp311 ...]

There, `--repo_env=SOFIE_VENDOR_DIR=FOLDER` takes all of them from the folder. What is there already
is kept if its SHA-256 is right; nothing else in the folder is touched. With --python only the
Python packages for these interpreters are fetched.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import fetch

_LOCK = Path(__file__).resolve().parent / "lock.json"


def files(pythons: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Requirement, file name and SHA-256 of every file in lock.json, each file once."""
    lock = json.loads(_LOCK.read_text(encoding="utf-8"))
    for package in lock["archives"].values():
        yield package["requirement"], package["file"]["name"], package["file"]["sha256"]
    for package in lock["python"].values():
        wanted = {
            (file["name"], file["sha256"])
            for tag, file in package["files"].items()
            if not pythons or tag in pythons
        }
        for name, digest in sorted(wanted):
            yield package["requirement"], name, digest


def fill(folder: Path, pythons: Collection[str]) -> int:
    """Fetches what the folder lacks; returns the number of files in it that the build needs."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for requirement, name, digest in files(pythons):
        count += 1
        target = folder / name
        if target.is_file() and fetch.sha256(target) == digest:
            continue
        print(f"vendor: {name}", file=sys.stderr, flush=True)
        with fetch.obtain(requirement, name, digest) as file:
            partial = folder / f".{name}.part"
            shutil.copyfile(file, partial)
            partial.replace(target)
    return count


def main() -> None:
    """Parses the command line and fills the folder."""
    parser = argparse.ArgumentParser(
        prog="third_party/vendor.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--python", action="append", default=[], choices=("cp311", "cp312", "cp313")
    )
    arguments = parser.parse_args()
    # Else it would be asked for the files that it is to hold.
    os.environ.pop("SOFIE_VENDOR_DIR", None)
    try:
        count = fill(arguments.folder, arguments.python)
    except (fetch.FetchError, OSError) as error:
        sys.exit(f"vendor: {error}")
    print(f"vendor: {arguments.folder} holds all {count} files.")


if __name__ == "__main__":
    main()
