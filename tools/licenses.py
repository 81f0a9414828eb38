"""Lists every third-party file that the programs contain, with licence and source.

    tools/bazel run //tools:licenses [-- --files]

For each program, what it is compiled and linked from: the package that it comes from, its licence
and where its source is; with --files also each file. The build's own tools (compilers, the
generator's Python packages) leave nothing in a program but what is listed here. The machine's C and
C++ libraries are not third-party files of this repository.

Exits with 1 if there is a file that third_party/licenses.json does not cover.
"""

import argparse
import collections
import dataclasses
import fnmatch
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_ROOT = _HERE.parent


@dataclasses.dataclass(frozen=True, order=True)
class Part:
    """What one licence covers.

    Attributes:
      repository: Bazel's name of the repository, such as alpaka.
      what: the work.
      license: SPDX expression.
      source: address of the source.
    """

    repository: str
    what: str
    license: str
    source: str


class LicenseError(Exception):
    """A file of which nobody has said what its licence is."""


def split(path: str) -> tuple[str, str]:
    """Repository and path below it, of the path of a file as Bazel names it."""
    # bazel-out/.../external/_main~third_party~cuda/include/x.h
    _, _, below = path.rpartition("external/")
    repository, _, inner = below.partition("/")
    return repository.split("~")[-1], inner


def part_of(path: str, licenses: dict[str, Any]) -> Part:
    """The part that a file belongs to."""
    repository, inner = split(path)
    for entry in licenses.get(repository, []):
        if fnmatch.fnmatchcase(inner, entry["files"]):
            return Part(repository, entry["what"], entry["license"], entry["source"])
    raise LicenseError(
        f"{path}: third_party/licenses.json does not say what the licence of this file is."
    )


def programs() -> dict[str, list[str]]:
    """The paths of the third-party files of each program."""
    listed: dict[str, list[str]] = json.loads(
        (_HERE / "licensed_files.json").read_text(encoding="utf-8")
    )
    return listed


def licenses() -> dict[str, Any]:
    """The content of licenses.json."""
    content: dict[str, Any] = json.loads(
        (_ROOT / "third_party" / "licenses.json").read_text(encoding="utf-8")
    )
    return content


def packages() -> dict[str, list[str]]:
    """The packages that each repository is made of, as name==version."""
    content: dict[str, list[str]] = json.loads(
        (_ROOT / "third_party" / "packages.json").read_text(encoding="utf-8")
    )
    return content


def report(show_files: bool) -> Iterator[str]:
    """The lines of the listing."""
    known, made_of = licenses(), packages()
    for program, paths in sorted(programs().items()):
        yield f"{program.lstrip('@')} contains {len(paths)} third-party files:"
        parts = collections.defaultdict(list)
        for path in paths:
            parts[part_of(path, known)].append(path)
        for part, files in sorted(parts.items()):
            yield f"  {part.what}: {part.license}, {len(files)} files"
            yield f"    source: {part.source}"
            yield f"    from: {', '.join(made_of.get(part.repository, ['Bazel itself']))}"
            if show_files:
                yield from (f"      {'/'.join(split(path))}" for path in files)


def main() -> int:
    """Prints the listing."""
    parser = argparse.ArgumentParser(
        prog="licenses", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", action="store_true", help="list each file")
    arguments = parser.parse_args()
    try:
        print("\n".join(report(arguments.files)))
    except LicenseError as error:
        print(f"licenses: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
