"""From an ONNX file to the files that are compiled: importer, passes, plan, emit."""

from __future__ import annotations

import dataclasses
import pathlib

from sofie.emit import host, sources
from sofie.emit.files import Files
from sofie.emit.names import is_identifier
from sofie.importer.check import check
from sofie.importer.errors import ModelError
from sofie.importer.load import load
from sofie.ir import dims
from sofie.ir.program import Precision
from sofie.passes import batch, pipeline
from sofie.passes.reduce_rank import LowRank
from sofie.plan.lower import lower


@dataclasses.dataclass(frozen=True)
class Request:
    """What to compile; see the flags of ``sofie/generate.py``."""

    model: pathlib.Path
    name: str
    namespace: str
    include_prefix: str = ""
    shards: int = 2
    embedded_weights: bool = True
    compiler_macros: str = ""
    precision: Precision = Precision.FP32
    low_rank: LowRank | None = None
    strided_inputs: tuple[str, ...] = ()
    ragged: tuple[str, ...] = ()


def compile_model(request: Request) -> Files:
    """Contents of every file to write, by name.

    Raises:
      ModelError: the model can't be compiled, or the namespace is no C++ identifier.
    """
    if not is_identifier(request.namespace):
        raise ModelError(f"the namespace {request.namespace!r} is not a C++ identifier")
    model = load(request.model)
    check(model)
    if request.ragged:
        rows = batch.Batch(None, "its rows have sizes of their own")
    else:
        rows = batch.find(model)
    reduced = pipeline.run(model, request.low_rank)
    program = lower(model, request.precision, request.strided_inputs, request.ragged)
    options = sources.Options(
        name=request.name,
        namespace=request.namespace,
        include_prefix=request.include_prefix,
        shards=request.shards,
        embedded_weights=request.embedded_weights,
        reduced=reduced,
        batch=rows,
        host=host.versions(request.compiler_macros),
    )
    try:
        return sources.render(program, options)
    except dims.SizeError as error:
        raise ModelError(str(error)) from error
