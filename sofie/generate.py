"""Compiles an ONNX model to C++ sources, a weights file and a manifest.

    generate --model=net.onnx --name=net --namespace=net --output_dir=out

Exit status 0: every file is written. Otherwise 1, a message on stderr, and nothing is written.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence

from absl import app, flags

from sofie.compile import Request, compile_model
from sofie.emit import files
from sofie.importer.errors import ModelError
from sofie.ir.program import Precision
from sofie.passes.reduce_rank import LowRank

_MODEL = flags.DEFINE_string("model", None, "The ONNX file.", required=True)
_NAME = flags.DEFINE_string("name", None, "Stem of the files to write.", required=True)
_NAMESPACE = flags.DEFINE_string("namespace", None, "C++ namespace; the name by default.")
_INCLUDE_PREFIX = flags.DEFINE_string(
    "include_prefix", "", "The output folder as #include lines spell it."
)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Folder to write to.", required=True)
_SHARDS = flags.DEFINE_integer("shards", 2, "Sources to spread the kernels over.", 1, 256)
_PRECISION = flags.DEFINE_enum(
    "precision", "fp32", ["fp32", "tf32", "bf16", "fp16"], "Of matrix products on a GPU."
)
_LOW_RANK = flags.DEFINE_string(
    "low_rank", None, "Which rank constant matrices get: error=1e-3 or ratio=0.5, for instance."
)
_STRIDED_INPUTS = flags.DEFINE_multi_string(
    "strided_input", [], "An input whose views have strides of their own; repeat for more."
)
_RAGGED = flags.DEFINE_multi_string(
    "ragged", [], "A size that is another one in each row of a batch; repeat for more."
)
_COMPILER_MACROS = flags.DEFINE_string(
    "compiler_macros",
    None,
    "What `echo '#include <cstddef>' | $CXX -E -dM -x c++ -` prints: names the compiler and the C "
    "library in the manifest.",
)
_WEIGHTS = flags.DEFINE_enum("weights", "embedded", ["embedded", "file"], "Where weights are.")


def main(argv: Sequence[str]) -> None:
    """Writes the files that the flags ask for."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    macros = _COMPILER_MACROS.value
    try:
        low_rank = LowRank.parse(_LOW_RANK.value) if _LOW_RANK.value else None
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    request = Request(
        model=pathlib.Path(_MODEL.value),
        name=_NAME.value,
        namespace=_NAMESPACE.value or _NAME.value,
        include_prefix=_INCLUDE_PREFIX.value,
        shards=_SHARDS.value,
        embedded_weights=_WEIGHTS.value == "embedded",
        compiler_macros=pathlib.Path(macros).read_text() if macros else "",
        precision=Precision[_PRECISION.value.upper()],
        low_rank=low_rank,
        strided_inputs=tuple(_STRIDED_INPUTS.value),
        ragged=tuple(_RAGGED.value),
    )
    try:
        generated = compile_model(request)
    except ModelError as error:
        print(f"error: {request.model}: {error}", file=sys.stderr)
        sys.exit(1)
    folder = pathlib.Path(_OUTPUT_DIR.value)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in generated.items():
        files.write(content, folder / name)


if __name__ == "__main__":
    app.run(main)
