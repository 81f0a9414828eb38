"""Runs compiled tests; also the program of a bundle, on a machine without Bazel.

    run.sh [--device=cuda] [--json=FILE] [--filter=REGEX]

Only the standard library is needed.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import re
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from tests.conformance import verdicts as v

# Seconds after which a test hangs. It includes the start of the process and of the device.
_TIMEOUT = 120


@dataclasses.dataclass(frozen=True)
class Job:
    """A compiled test.

    Attributes:
      name: of the test.
      kind: the set it belongs to.
      weights: the model's weights, a file.
      cases: files with inputs and outputs.
    """

    name: str
    kind: str
    weights: pathlib.Path
    cases: tuple[pathlib.Path, ...]


def run(
    program: pathlib.Path, device: str, jobs: Sequence[Job], environment: Mapping[str, str]
) -> dict[str, v.Verdict]:
    """The verdicts on the tests. One that ends the process does not take the others with it.

    Args:
      program: the driver with all models.
      device: "cpu", "openmp" or "cuda".
      jobs: what to run.
      environment: variables beside this process's own.
    """
    verdicts: dict[str, v.Verdict] = {}
    left = list(jobs)
    while left:
        found = _run_until_death(program, device, left, environment)
        verdicts.update(found)
        left = [job for job in left if job.name not in verdicts]
        if left and not found:
            raise RuntimeError(f"{program} does not start: it named no test")
    return verdicts


def _run_until_death(
    program: pathlib.Path, device: str, jobs: Sequence[Job], environment: Mapping[str, str]
) -> dict[str, v.Verdict]:
    by_name = {job.name: job for job in jobs}
    verdicts: dict[str, v.Verdict] = {}
    current = ""
    death = ""
    with tempfile.TemporaryDirectory() as folder:
        jobs_file = pathlib.Path(folder) / "jobs.txt"
        jobs_file.write_text(
            "".join("\t".join(map(str, (j.name, j.weights, *j.cases))) + "\n" for j in jobs)
        )
        errors = pathlib.Path(folder) / "stderr.txt"
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                [program, device, jobs_file],
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **environment},
            )
        try:
            for line in _lines(process):
                word, name, *rest = line.split("\t", 2)
                if word == "begin":
                    current = name
                else:
                    current = ""
                    verdicts[name] = v.Verdict(by_name[name].kind, word, *rest)
        except TimeoutError:
            death = f"it hangs: no end after {_TIMEOUT} s"
            process.kill()
        status = process.wait()
        if current:
            tail = errors.read_text(errors="replace").strip()[-600:]
            death = death or f"the process ends with status {status}"
            verdicts[current] = v.Verdict(by_name[current].kind, v.WRONG, f"{death} {tail}".strip())
        elif status != 0 and not verdicts:
            raise RuntimeError(f"{program}: {errors.read_text(errors='replace')[-2000:]}")
    return verdicts


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """Lines of the process's output. Raises TimeoutError if it writes nothing for too long."""
    assert process.stdout is not None
    selector = selectors.DefaultSelector()
    selector.register(process.stdout, selectors.EVENT_READ)
    rest = b""
    while True:
        if not selector.select(_TIMEOUT):
            raise TimeoutError
        data = os.read(process.stdout.fileno(), 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")


def jobs_of(folder: pathlib.Path, verdicts: v.Verdicts, names: Sequence[str]) -> list[Job]:
    """The jobs whose weights, ``<name>_weights.safetensors``, and cases lie in a folder."""
    jobs = []
    for name in names:
        cases = sorted(folder.glob(f"{name}.*.npz"))
        weights = folder / f"{name}_weights.safetensors"
        jobs.append(Job(name, verdicts[name].kind, weights, tuple(cases)))
    return jobs


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the bundle's tests.")
    parser.add_argument("bundle", type=pathlib.Path, help="the bundle's folder")
    parser.add_argument("--device", default="cuda", help="cpu, openmp or cuda")
    parser.add_argument("--json", type=pathlib.Path, help="file for the verdicts")
    parser.add_argument("--filter", default="", help="regular expression that names contain")
    options = parser.parse_args()
    here = options.bundle.absolute()
    built = v.read_json(here / "built.json")
    selected = {n: verdict for n, verdict in built.items() if re.search(options.filter, n)}
    names = [name for name, verdict in selected.items() if verdict.result == v.PASSED]
    jobs = jobs_of(here / "data", selected, names)
    libraries = os.environ.get("CUDA_LIBRARIES", "/usr/local/cuda/lib64")
    environment = {"LD_LIBRARY_PATH": f"{here}/lib:{libraries}"}
    verdicts = {**selected, **run(here / "conformance", options.device, jobs, environment)}
    print(v.table(verdicts))
    if options.json:
        v.write_json(verdicts, options.json)
    problems = v.complaints(verdicts, v.read_refused(here / "refused.json"))
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems or not verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
