"""Runs the programs of a GPU bundle on all GPUs of this machine.

    run.sh [OPTION ...] [NAME ...]

runs those whose label contains one of the names, or all. First it checks the driver, the GPUs'
compute capability and the libraries that the programs need, and says what is missing. Tests run in
shards, one process per GPU at a time; benchmarks one after another, each alone. Every program locks
its GPU (gpu_lock.sh): other runs of a bundle, and tests that Bazel starts, wait for it.

Results: standard output in short; RESULTS/junit.xml, and for each program its output, the files
that it wrote and, if it is a GoogleTest, GoogleTest's own XML. Exits with 1 if anything failed or
nothing ran.

  CUDA_LIBRARIES         folder of libcublasLt.so.13, by default /usr/local/cuda/lib64
  CUDA_VISIBLE_DEVICES   the GPUs to use, as everywhere; Slurm and HTCondor set it
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import ctypes
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, NamedTuple

_HERE = Path(__file__).resolve().parent
_RUNFILES = _HERE / "runfiles"
# cuDeviceGetAttribute's names of the two halves of the compute capability.
_MAJOR, _MINOR = 75, 76

# manifest.json, and one of its programs.
Manifest = dict[str, Any]
Program = dict[str, Any]
# Environment variables.
Variables = dict[str, str]
# A GPU: index and ten times the compute capability.
Device = tuple[int, int]


class Options(NamedTuple):
    """What holds for every program: its environment, where results go, and how long it may take."""

    environment: Variables
    results: Path
    arguments: list[str]
    timeout: float


def _needed_driver(manifest: Manifest) -> int:
    """CUDA version of the bundle, as the driver counts: 13000 for 13.0."""
    major, minor = manifest["cuda"].split(".")[:2]
    return int(major) * 1000 + int(minor) * 10


def driver_problem(manifest: Manifest) -> tuple[str | None, list[Device]]:
    """Why no program can run here, or None; with the GPUs' (index, architecture)."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no NVIDIA driver (libcuda.so.1 can't be loaded)", []
    version = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    # A driver runs programs of later minor versions of its major version too.
    if version.value // 1000 < _needed_driver(manifest) // 1000:
        return (
            f"the driver is for CUDA {version.value // 1000}.{version.value % 1000 // 10}, and the "
            f"programs need {manifest['cuda']}: install a newer driver",
            [],
        )
    error = cuda.cuInit(0)
    if error:
        return f"the driver finds no GPU (cuInit gave {error}); does nvidia-smi list one?", []
    count = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    devices = []
    for index in range(count.value):
        major, minor = ctypes.c_int(), ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, index)
        cuda.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, index)
        devices.append((index, major.value * 10 + minor.value))
    return (None if devices else "the driver finds no GPU"), devices


def _runs(capability: int, arch: str) -> bool:
    """Whether a GPU runs code for an architecture: for "90" it may be newer, for "90a" not."""
    number = arch.rstrip("af")
    return capability >= int(number) if number == arch else capability == int(number)


def architecture_problem(manifest: Manifest, devices: list[Device]) -> str | None:
    """Why some GPU can't run the bundle's code, or None."""
    for index, capability in devices:
        if not any(_runs(capability, arch.removeprefix("sm_")) for arch in manifest["archs"]):
            return (
                f"GPU {index} has compute capability {capability // 10}.{capability % 10}, and the "
                f"programs were compiled for {', '.join(manifest['archs'])}: build the bundle with "
                f"--//rules/cuda:archs=sm_{capability}"
            )
    return None


def library_problem(programs: list[Program], environment: Variables) -> str | None:
    """Why a program can't be loaded, or None: the libraries that are not found."""
    missing: Variables = {}
    for program in programs:
        for binary in program["binaries"]:
            done = subprocess.run(
                ["ldd", str(_RUNFILES / binary)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            for name in re.findall(r"^\s*(\S+) => not found", done.stdout, re.MULTILINE):
                missing.setdefault(name, program["name"])
            for name in re.findall(r"version `(\S+)' not found", done.stdout):
                missing.setdefault(name, program["name"])
    if not missing:
        return None
    return (
        f"{', '.join(sorted(missing))} can't be found. cuBLASLt lies where CUDA is installed: name "
        "the folder in CUDA_LIBRARIES. A missing GLIBC_ or GLIBCXX_ version means that this "
        "machine's C or C++ library is older than the one of the machine that built the bundle."
    )


def device_names(devices: list[Device]) -> list[str]:
    """The GPUs to use, as CUDA_VISIBLE_DEVICES names them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip()]
    return [str(index) for index, _ in devices]


class Run:
    """One run of one shard of a program.

    Attributes:
      program: its entry in the manifest.
      shard: number of the shard, from 0, and how many there are.
    """

    def __init__(self, program: Program, shard: int, shards: int) -> None:
        self.program = program
        self.shard = (shard, shards)
        suffix = f" [{shard + 1}/{shards}]" if shards > 1 else ""
        self.name = program["name"] + suffix
        self.file = re.sub(r"[^A-Za-z0-9]+", "_", self.name).strip("_")
        self.status: int | str | None = None
        self.seconds = 0.0
        self.output = ""

    def start(self, device: str, options: Options) -> None:
        """Runs it on a GPU; the program's launcher waits until nothing else uses it."""
        shard, shards = self.shard
        variables = dict(options.environment)
        variables.update(self.program["environment"])
        variables["CUDA_VISIBLE_DEVICES"] = device
        if shards > 1:
            variables["GTEST_SHARD_INDEX"] = str(shard)
            variables["GTEST_TOTAL_SHARDS"] = str(shards)
        if self.program["gtest"]:
            variables["GTEST_OUTPUT"] = f"xml:{options.results / (self.file + '.xml')}"
        folder = tempfile.mkdtemp(prefix="bundle-")
        variables["TEST_TMPDIR"] = folder
        outputs = options.results / self.file
        outputs.mkdir(exist_ok=True)
        variables["TEST_UNDECLARED_OUTPUTS_DIR"] = str(outputs)
        command = [str(_RUNFILES / self.program["path"]), *options.arguments]
        log = options.results / (self.file + ".log")
        with log.open("wb") as output:
            since = time.monotonic()
            try:
                self.status = subprocess.run(
                    command,
                    cwd=str(_RUNFILES / variables["TEST_WORKSPACE"]),
                    env=variables,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=options.timeout,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                self.status = f"it ran longer than {options.timeout:g} s"
            except OSError as error:
                self.status = str(error)
            self.seconds = time.monotonic() - since
        with contextlib.suppress(OSError):
            outputs.rmdir()  # If the program wrote nothing.
        shutil.rmtree(folder, ignore_errors=True)
        self.output = log.read_text(encoding="utf-8", errors="replace")

    def passed(self) -> bool:
        """True if it ended well."""
        return self.status == 0


def junit(runs: list[Run], results: Path) -> ElementTree.ElementTree[Any]:
    """The runs as JUnit XML: what GoogleTest wrote, and one case for what is no GoogleTest.

    A program that ended badly without a report, or although its report is good, is a failed case.
    """
    suites = ElementTree.Element("testsuites", name="bundle")
    for run in runs:
        report = results / (run.file + ".xml")
        found: list[ElementTree.Element] = []
        with contextlib.suppress(OSError, ElementTree.ParseError):
            found = list(ElementTree.parse(str(report)).getroot())
        for suite in found:
            suite.set("name", f"{run.name} {suite.get('name')}")
        failures = sum(int(s.get("failures", 0)) + int(s.get("errors", 0)) for s in found)
        suites.extend(found)
        if found and (run.passed() or failures):
            continue
        seconds = f"{run.seconds:.3f}"
        suite = ElementTree.SubElement(suites, "testsuite", name=run.name, time=seconds, tests="1")
        suite.set("failures", "0" if run.passed() else "1")
        case = ElementTree.SubElement(
            suite, "testcase", name=run.name, classname="bundle", time=seconds
        )
        if not run.passed():
            failure = ElementTree.SubElement(
                case, "failure", message=f"{run.name} ended with {run.status}"
            )
            # What XML can't hold is left out.
            failure.text = re.sub(r"[^\t\n\r -\ud7ff\ue000-\ufffd]", "", run.output[-20000:])
    return ElementTree.ElementTree(suites)


def run_all(runs: list[Run], devices: list[str], options: Options) -> None:
    """Runs everything, each run on a free GPU."""
    free: queue.Queue[str] = queue.Queue()
    for device in devices:
        free.put(device)

    def one(run: Run) -> None:
        device = free.get()
        try:
            run.start(device, options)
        finally:
            free.put(device)
        word = "passed" if run.passed() else f"FAILED ({run.status})"
        print(f"{word} in {run.seconds:.1f} s on GPU {device}: {run.name}", flush=True)
        if not run.passed() or run.program["kind"] == "benchmark":
            print(run.output, end="" if run.output.endswith("\n") else "\n", flush=True)

    with concurrent.futures.ThreadPoolExecutor(len(devices)) as pool:
        for done in [pool.submit(one, run) for run in runs]:
            done.result()


def main() -> int:
    """Parses the command line, checks the machine and runs."""
    parser = argparse.ArgumentParser(
        prog="run.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder for results")
    parser.add_argument(
        "--timeout", type=float, default=900, help="seconds that a program may take"
    )
    parser.add_argument("--check", action="store_true", help="only check the machine")
    parser.add_argument("--list", action="store_true", help="only list the programs")
    parser.add_argument("--argument", action="append", default=[], help="for every program")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    manifest = json.loads((_HERE / "manifest.json").read_text(encoding="utf-8"))
    programs = [
        program
        for program in manifest["programs"]
        if not arguments.names or any(name in program["name"] for name in arguments.names)
    ]
    if arguments.list:
        print("\n".join(program["name"] for program in programs))
        return 0
    if not programs:
        print("run.sh: no program has such a name; --list shows all", file=sys.stderr)
        return 1

    libraries = os.environ.get("CUDA_LIBRARIES", "/usr/local/cuda/lib64")
    environment = dict(os.environ)
    environment["LD_LIBRARY_PATH"] = ":".join(
        part for part in (libraries, os.environ.get("LD_LIBRARY_PATH", "")) if part
    )
    for variable in ("RUNFILES_DIR", "TEST_SRCDIR"):
        environment[variable] = str(_RUNFILES)
    environment["TEST_WORKSPACE"] = manifest["workspace"]

    problem, devices = driver_problem(manifest)
    problems = [
        problem,
        architecture_problem(manifest, devices),
        library_problem(programs, environment),
    ]
    for problem in filter(None, problems):
        print(f"run.sh: {problem}.", file=sys.stderr)
    names = device_names(devices)
    if not any(problems) and not names:
        print("run.sh: CUDA_VISIBLE_DEVICES is empty: no GPU may be used.", file=sys.stderr)
    if any(problems) or not names:
        return 1
    found = ", ".join(f"{index} (sm_{capability})" for index, capability in devices)
    print(f"GPUs: {found}; used: {', '.join(names)}", flush=True)
    if arguments.check:
        return 0

    arguments.results.mkdir(parents=True, exist_ok=True)
    results = arguments.results.resolve()
    runs = []
    for program in programs:
        # Only GoogleTest knows how to be cut into pieces.
        shards = len(names) if program["gtest"] else 1
        runs += [Run(program, shard, shards) for shard in range(shards)]
    alone = [run for run in runs if run.program["kind"] == "benchmark"]
    tests = [run for run in runs if run.program["kind"] != "benchmark"]
    options = Options(environment, results, arguments.argument, arguments.timeout)
    run_all(tests, names, options)
    # Benchmarks share the processor and its memory: one at a time, on the first GPU.
    run_all(alone, names[:1], options)
    junit(runs, results).write(str(results / "junit.xml"), encoding="utf-8", xml_declaration=True)

    failed = [run.name for run in runs if not run.passed()]
    print(f"{len(runs) - len(failed)} of {len(runs)} runs passed; results in {results}")
    if failed:
        print("failed: " + ", ".join(failed))
    return 1 if failed or not runs else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
