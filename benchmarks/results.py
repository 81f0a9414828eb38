"""What benchmarks on a GPU machine do with what they measure."""

from __future__ import annotations

import csv
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence

Row = Mapping[str, object]


def folders(output: str, name: str) -> tuple[pathlib.Path, pathlib.Path]:
    """Folders, which exist afterwards, for the results and for files on the way to them."""
    made = pathlib.Path(output), pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / name
    for folder in made:
        folder.mkdir(parents=True, exist_ok=True)
    return made


def collect(rows: Iterable[Row], columns: Sequence[str], path: pathlib.Path) -> list[Row]:
    """Writes each row to a CSV file, and prints it, as soon as it is there; returns all of them.

    What a row lacks is left empty.
    """
    found = []
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        for row in rows:
            found.append(row)
            writer.writerow(row)
            file.flush()
            values = [row.get(column, "") for column in columns]
            text = (f"{v:.4g}" if isinstance(v, float) else str(v) for v in values)
            print(",".join(text), flush=True)
    return found
