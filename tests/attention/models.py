"""Writes a model of a suite of attention nodes.

models --suite=serving --output=FILE.onnx
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence

from absl import app, flags

from sofie.testing import attention_suites

_SUITES: dict[str, Callable[[], list[attention_suites.Part]]] = {
    "dense": lambda: attention_suites.strided("bfloat16"),
    "serving": lambda: attention_suites.serving(128),
}

_SUITE = flags.DEFINE_enum("suite", None, sorted(_SUITES), "Which nodes.", required=True)
_OUTPUT = flags.DEFINE_string("output", None, "The model.", required=True)


def main(argv: Sequence[str]) -> None:
    """Writes the model."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    model = attention_suites.model(_SUITES[_SUITE.value]())
    pathlib.Path(_OUTPUT.value).write_bytes(model.SerializeToString())


if __name__ == "__main__":
    app.run(main)
