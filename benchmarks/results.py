"""What benchmarks do with what they measure."""

from __future__ import annotations

import csv
import os
import pathlib
import sys
from collections.abc import Iterable, Mapping, Sequence

Row = Mapping[str, object]


def folders(output: str, name: str) -> tuple[pathlib.Path, pathlib.Path]:
    """Folders, which exist afterwards, for the results and for files on the way to them."""
    made = pathlib.Path(output), pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / name
    for folder in made:
        folder.mkdir(parents=True, exist_ok=True)
    return made


def user_path(name: str) -> pathlib.Path:
    """A file that the user names, who is in another folder than a program that Bazel runs."""
    return pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), name)


def write(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Writes rows to a CSV file; the first one has all columns."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def collect(rows: Iterable[Row], columns: Sequence[str], path: pathlib.Path) -> list[Row]:
    """Writes each row to a CSV file, and prints it, as soon as it is there; returns all of them.

    What a row lacks is left empty.
    """
    found = []
    shown = csv.writer(sys.stdout, lineterminator="\n")
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        for row in rows:
            found.append(row)
            writer.writerow(row)
            file.flush()
            values = [row.get(column, "") for column in columns]
            shown.writerow(f"{v:.4g}" if isinstance(v, float) else v for v in values)
            sys.stdout.flush()
    return found
