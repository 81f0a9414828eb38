"""Compiles the tests' models in groups, with the toolchain that the build has resolved.

A build folder holds the generated sources (``src/<test>``: one test's ``<test>_steps.h`` may have
the name of another one's header), objects (``obj``), a case's arrays and weights (``data``:
``<test>.<number>.npz`` with ``input_<i>``, ``output_<i>`` and ``tolerances``, the two of
``numpy.allclose``), and the program ``conformance``: the driver with every model that compiles.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
import json
import os
import pathlib
import re
import subprocess
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from sofie.compile import Request, compile_model
from sofie.emit import files
from tests.conformance.generate import compile_case
from tests.conformance.suite import Array, Case
from tests.conformance.verdicts import FAILED_TO_BUILD, PASSED, Verdict

# Models in one source: reading the headers takes as long as compiling some twenty models.
_GROUP = 40
_SOURCES = {"cpu": "cpu.cc", "openmp": "openmp.cc", "cuda": "cuda.cu"}


@dataclasses.dataclass(frozen=True)
class Toolchain:
    """How to compile and link; see commands.bzl. Paths lie in the runfiles.

    Attributes:
      compile: the C++ compiler with its options.
      nvcc: the CUDA compiler with its options; empty where the build has no CUDA.
      link: the linker with its options, for what comes before and after the objects.
      libraries: shared libraries that the program needs when it runs.
    """

    compile: list[str]
    nvcc: list[str]
    link: tuple[list[str], list[str]]
    libraries: list[pathlib.Path]

    @staticmethod
    def read(commands: pathlib.Path) -> Toolchain:
        """Reads the file that compile_commands has written."""
        root = str(pathlib.Path(__file__).absolute().parents[3])
        content = json.loads(commands.read_text(encoding="utf-8"))

        def place(words: Sequence[str]) -> list[str]:
            return [word.replace("{runfiles}", root) for word in words]

        libraries = place(content["libraries"])
        shared = [pathlib.Path(name) for name in libraries if not name.endswith((".a", ".lo"))]
        after = ["-Wl,--start-group", *libraries, "-Wl,--end-group", *place(content["link_flags"])]
        return Toolchain(
            place(content["compile"]),
            place(content["nvcc"]),
            (place(content["link"]), after),
            shared,
        )

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the program runs with on this machine."""
        folders = dict.fromkeys(str(library.parent) for library in self.libraries)
        return {"LD_LIBRARY_PATH": ":".join(folders)}


class Builder:
    """Builds one program with the models of many tests."""

    def __init__(
        self, toolchain: Toolchain, backend: str, folder: pathlib.Path, processes: int
    ) -> None:
        self.toolchain = toolchain
        self.backend = backend
        self.folder = folder
        self.pool = concurrent.futures.ThreadPoolExecutor(processes)
        self.numbers = itertools.count()
        for name in ("src", "obj", "data"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    @property
    def program(self) -> pathlib.Path:
        """The program, once ``build`` has made it."""
        return self.folder / "conformance"

    def build(self, cases: Sequence[Case], symbolic: bool = False) -> dict[str, Verdict]:
        """Generates, compiles and links. "passed" means that a test is ready to run."""
        verdicts: dict[str, Verdict] = {}
        ready: list[Case] = []
        futures = []
        for case in cases:
            verdicts[case.name] = self._generate(case, symbolic)
            if verdicts[case.name].result == PASSED:
                self._write_data(case)
                ready.append(case)
            if len(ready) == _GROUP:
                futures.append(self.pool.submit(self._compile, ready))
                ready = []
        if ready:
            futures.append(self.pool.submit(self._compile, ready))
        objects: list[pathlib.Path] = []
        for future in futures:
            group_objects, failures = future.result()
            objects += group_objects
            verdicts.update(failures)
        self._link(objects)
        return verdicts

    def _generate(self, case: Case, symbolic: bool) -> Verdict:
        source = self.folder / "model.onnx"

        def generate(model: onnx.ModelProto) -> files.Files:
            source.write_bytes(model.SerializeToString())
            request = Request(source, case.name, case.name, shards=1, embedded_weights=False)
            return compile_model(request)

        generated = compile_case(case, generate, symbolic)
        if isinstance(generated, Verdict):
            return generated
        sources = self.folder / "src" / case.name
        sources.mkdir(exist_ok=True)
        for name, content in generated.items():
            folder = self.folder / "data" if name.endswith("_weights.safetensors") else sources
            files.write(content, folder / name)
        return Verdict(case.kind, PASSED)

    def _write_data(self, case: Case) -> None:
        for number, (inputs, outputs) in enumerate(case.data_sets):
            arrays: dict[str, Any] = {f"input_{i}": _plain(a) for i, a in enumerate(inputs)}
            arrays |= {f"output_{i}": _plain(a) for i, a in enumerate(outputs)}
            arrays["tolerances"] = np.array([case.rtol, case.atol])
            np.savez(self.folder / "data" / f"{case.name}.{number}.npz", **arrays)

    def _compile(self, cases: Sequence[Case]) -> tuple[list[pathlib.Path], dict[str, Verdict]]:
        """Objects with these models, and verdicts on those that do not compile."""
        objects, error = self._compile_sources(cases)
        if not error:
            return objects, {}
        if len(cases) == 1:
            first = re.search(r"^.*\berror\b.*$", error, re.MULTILINE)
            why = first[0] if first else error[-600:]
            return [], {cases[0].name: Verdict(cases[0].kind, FAILED_TO_BUILD, why)}
        # Those that messages name are apart from the others, else each half is.
        named = set(re.findall(r"\b(test_\w+?)_(?:steps|session)[_.]", error))
        halves = [[c for c in cases if c.name in named], [c for c in cases if c.name not in named]]
        if not all(halves) or len(halves[0]) > 1:
            halves = [list(cases[: len(cases) // 2]), list(cases[len(cases) // 2 :])]
        objects, failures = [], {}
        for half in halves:
            half_objects, half_failures = self._compile(half)
            objects += half_objects
            failures.update(half_failures)
        return objects, failures

    def _compile_sources(self, cases: Sequence[Case]) -> tuple[list[pathlib.Path], str]:
        """Objects of one group of models, or what the compiler says."""
        number = next(self.numbers)
        steps = [
            f'#include "{case.name}/{case.name}_steps_0_{_SOURCES[self.backend]}"' for case in cases
        ]
        sessions = ['#include "tests/conformance/registry.h"']
        for case in cases:
            name = case.name
            sessions.append(f'#include "{name}/{name}_session.cc"')
            sessions.append(
                f"static const sofie::conformance::Registration k_{name}"
                f'({{"{name}", {name}::Info, {name}::NewSession}});'
            )
        define = f"-DSOFIE_WITH_{self.backend.upper()}=1"
        sources = {f"group_{number}.cc": (self.toolchain.compile, [*sessions])}
        if self.backend == "cuda":
            sources[f"group_{number}.cu"] = (self.toolchain.nvcc, steps)
        else:
            sources[f"group_{number}.cc"][1].extend(steps)
        objects = []
        for source, (command, lines) in sources.items():
            path = self.folder / "src" / source
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            objects.append(self.folder / "obj" / f"{source}.o")
            include = ["-I", str(path.parent)]
            done = _call([*command, define, *include, "-c", str(path), "-o", str(objects[-1])])
            if done.returncode:
                return [], done.stdout
        return objects, ""

    def _link(self, objects: Sequence[pathlib.Path]) -> None:
        before, after = self.toolchain.link
        done = _call([*before, "-o", str(self.program), *map(str, objects), *after])
        if done.returncode:
            raise RuntimeError(f"the program does not link:\n{done.stdout[-4000:]}")


def _call(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )


def _plain(array: Array | None) -> Array:
    """The array with an element type that .npy files know: bfloat16 and float8 as their bits."""
    assert array is not None
    array = np.asarray(array, order="C")
    return array if array.dtype.kind in "biuf" else array.view(f"u{array.dtype.itemsize}")
