"""What the generator makes: files by name, each a sequence of stretches of bytes.

A file of weights may be as large as a machine's memory, so no file need be in one piece.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable
from typing import TypeAlias

Bytes: TypeAlias = bytes | memoryview
# File names without a folder, and contents.
Files: TypeAlias = dict[str, Iterable[Bytes]]


def write(content: Iterable[Bytes], path: pathlib.Path) -> None:
    """Writes one file, a stretch at a time."""
    with path.open("wb") as stream:
        stream.writelines(content)
