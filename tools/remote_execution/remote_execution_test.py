"""Builds and tests on a remote-execution engine, and takes parts of the engine away.

Starts BuildGrid and buildbox on this machine and a Bazel of its own on this repository, with
nothing cached. The tests run in the order in which they are written.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import engine
import packages
import pytest
import reproducible

# Not sandboxed: the files of this test are links into the repository.
_ROOT = Path(__file__).resolve().parents[2]
_CPU_TEST = "//tests:mlp_test"
_GPU_TEST = "//tests:mlp_test_gpu"
_PYTHON_TEST = "//third_party:lock_test"
_MODEL = ("//models:mlp", "//models:mlp_cuda")
_FOLDER = "//tools/remote_execution"
# With CUDA for the test on the CPU too: both tests are made of the same objects.
_BUILD = ("--config=ci", "--config=cuda")
# Bazel's exit status.
_TESTS_FAILED = 3
# The workers' actions at a time: nothing waits in the server's queue.
_JOBS = 2


class Bazel:
    """A Bazel server of this test's own.

    Attributes:
      output: what the last command printed.
      seconds: how long it took.
    """

    def __init__(self, folder: Path) -> None:
        self._command = [str(_ROOT / "tools/bazel"), f"--output_base={folder}"]
        self._environment = {"HOME": os.path.expanduser("~"), "PATH": "/usr/bin:/bin"}
        for name in ("HOME", "XDG_CACHE_HOME"):
            if os.environ.get(name):
                self._environment[name] = os.environ[name]
        self.output = ""
        self.seconds = 0.0

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts a command."""
        return subprocess.Popen(
            [*self._command, *arguments],
            cwd=_ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __call__(self, verb: str, *arguments: str) -> int:
        """Runs a command to its end and gives its exit status."""
        since = time.monotonic()
        process = self.start(verb, *arguments)
        self.output, _ = process.communicate()
        self.seconds = time.monotonic() - since
        print(f"$ bazel {verb} {' '.join(arguments)}\n{self.output}", file=sys.stderr, flush=True)
        return process.returncode

    def bin(self, options: Sequence[str]) -> Path:
        """The folder of outputs."""
        process = self.start("info", *options, "bazel-bin")
        return Path(process.communicate()[0].strip().splitlines()[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for everything, removed in the end."""
    path = tmp_path_factory.mktemp("remote")
    yield path
    # Bazel makes its folders read-only.
    subprocess.run(["chmod", "-R", "u+w", str(path)], check=False)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[engine.Engine]:
    """An engine with a worker in each pool."""
    with engine.Engine(folder / "engine") as running:
        running.start_worker("cpu", "default", _JOBS)
        running.start_worker("gpu", "gpu", 1)
        yield running


@pytest.fixture(scope="module")
def bazel(folder: Path) -> Iterator[Bazel]:
    """Bazel with an output base of its own."""
    running = Bazel(folder / "output_base")
    yield running
    running("shutdown")


def _options(service: engine.Engine) -> list[str]:
    return [
        *_BUILD,
        *service.options(),
        f"--jobs={_JOBS}",
        "--disk_cache=",
        "--noshow_progress",
        # The checkout's own links stay as they are.
        "--symlink_prefix=/",
        # Of everything: the outputs are compared.
        "--remote_download_outputs=all",
    ]


def test_tests_run_where_they_belong(service: engine.Engine, bazel: Bazel) -> None:
    status = bazel(
        "test", *_options(service), "--keep_going", _CPU_TEST, _GPU_TEST, _PYTHON_TEST, *_MODEL
    )
    assert status == _TESTS_FAILED
    assert re.search(rf"{_CPU_TEST} +PASSED", bazel.output)
    assert re.search(rf"{_PYTHON_TEST} +PASSED", bazel.output)
    # There is no GPU in the pool: the test says so and is not skipped.
    assert re.search(rf"{_GPU_TEST} +FAILED", bazel.output)
    assert "no CUDA device" in bazel.output

    jobs = service.jobs()
    on_gpu = {(job.mnemonic, job.target) for job in jobs if job.worker == "gpu"}
    assert on_gpu == {("TestRunner", _GPU_TEST)}
    on_cpu = {job.mnemonic for job in jobs if job.worker == "cpu"}
    assert {"CppCompile", "CudaCompile", "CppLink", "OnnxGenerate", "OnnxReference"} <= on_cpu
    assert ("TestRunner", _CPU_TEST) in {(job.mnemonic, job.target) for job in jobs}
    # Everything was remote but what Bazel itself writes.
    assert not re.search(r"\d+ (linux-sandbox|processwrapper-sandbox|local|worker)\b", bazel.output)


def test_local_build_gives_the_same_bytes(
    service: engine.Engine, bazel: Bazel, folder: Path
) -> None:
    compiler = packages.image_version("gcc-12").split("-")[0]
    version = subprocess.run(
        ["/usr/bin/gcc", "-dumpfullversion"], check=True, capture_output=True, text=True
    ).stdout.strip()
    assert version == compiler, (
        f"this machine's GCC is {version} and the executor's {compiler}: only builds by the same "
        "compiler can have the same bytes. Run this test on Debian 12."
    )
    remote_log, local_log = folder / "remote.log", folder / "local.log"
    log = f"--execution_log_json_file={remote_log}"
    assert bazel("clean") == 0
    assert bazel("build", *_options(service), log, *_MODEL) == 0
    local = [
        *_BUILD,
        "--disk_cache=",
        "--noshow_progress",
        "--symlink_prefix=/",
        # The Python that the image has too: the manifest names its version.
        "--repo_env=SOFIE_EXECUTOR_PYTHON=3.11:/usr/bin/python3.11",
    ]
    assert bazel("clean") == 0
    assert bazel("build", *local, f"--execution_log_json_file={local_log}", *_MODEL) == 0
    assert " remote" not in bazel.output
    built = reproducible.read_log(local_log)
    assert {"CppCompile", "CudaCompile", "OnnxGenerate"} <= {action.mnemonic for action in built}
    # Inputs differ: what a program finds in one folder here is many files there.
    assert reproducible.compare(built, reproducible.read_log(remote_log)) == []


def test_second_build_is_answered_from_the_cache(service: engine.Engine, bazel: Bazel) -> None:
    before = len(service.jobs())
    assert bazel("clean") == 0
    assert bazel("test", *_options(service), _CPU_TEST, _PYTHON_TEST, *_MODEL) == 0
    assert len(service.jobs()) == before
    assert re.search(r"\d+ remote cache hit", bazel.output)


def test_undeclared_input_is_not_there(service: engine.Engine, bazel: Bazel) -> None:
    assert bazel("build", *_options(service), f"{_FOLDER}:undeclared") == 1
    assert "server.yml.in: No such file" in bazel.output


def test_killed_worker(service: engine.Engine, bazel: Bazel) -> None:
    target = f"{_FOLDER}:slow"
    build = bazel.start("build", *_options(service), target)
    while not service.running_on("cpu"):
        assert build.poll() is None
        time.sleep(0.2)
    service.workers["cpu"].kill()
    service.start_worker("cpu2", "default", _JOBS)
    output, _ = build.communicate()
    assert build.returncode == 0, output
    jobs = [job for job in service.jobs() if job.target == target]
    assert sum(job.tries for job in jobs) >= 2
    assert jobs[-1].worker == "cpu2"


def test_corrupt_blob(service: engine.Engine, bazel: Bazel) -> None:
    digest = hashlib.sha256(b"slow\n").hexdigest()
    [blob] = [path for path in service.blobs() if path.name in (digest, digest[2:])]
    blob.chmod(0o644)
    blob.write_bytes(b"fast\n")
    assert bazel("clean") == 0
    status = bazel("build", *_options(service), f"{_FOLDER}:slow")
    slow = bazel.bin(_options(service)) / "tools/remote_execution/slow.txt"
    if status == 0:
        assert slow.read_text() == "slow\n"
    else:
        assert digest in bazel.output
    blob.write_bytes(b"slow\n")


def test_full_disk(service: engine.Engine, bazel: Bazel) -> None:
    target = f"{_FOLDER}:large"
    service.workers["cpu2"].stop()
    small = service.start_worker("small", "default", _JOBS, disk=48 << 20)
    build = bazel.start("build", *_options(service), target)
    while "Out of space" not in (small.folder / "worker.log").read_text(errors="replace"):
        assert build.poll() is None
        time.sleep(0.2)
    service.start_worker("cpu3", "default", _JOBS)
    output, _ = build.communicate()
    assert build.returncode == 0, output
    jobs = [job for job in service.jobs() if job.target == target]
    assert sum(job.tries for job in jobs) >= 2
    assert jobs[-1].worker == "cpu3"


def test_missing_gpu_pool(service: engine.Engine, bazel: Bazel) -> None:
    service.workers["gpu"].stop()
    probe = f"{_FOLDER}:probe"
    assert bazel("build", *_options(service), probe) == 0
    assert bazel("test", *_options(service), probe) != 0
    assert "Operation has been queued for too long" in bazel.output
    assert f"Testing {probe}" in bazel.output
    assert bazel.seconds < 60

    without = "--without=container-image"
    remote = f"--remote_executor=grpc://{service.address}"
    pools = ["--symlink_prefix=/", f"{_FOLDER}:pools", "--", remote, without]
    assert bazel("run", "--config=ci", "--noshow_progress", *pools) == 1
    assert "has no worker for the pool 'gpu' (OSFamily=linux, Pool=gpu)" in bazel.output
    assert "pool 'default'" not in bazel.output


def test_server_gone(service: engine.Engine, bazel: Bazel) -> None:
    service.kill_server()
    options = [*_options(service), "--action_env=AGAIN=1"]
    assert bazel("build", *options, f"{_FOLDER}:slow") != 0
    errors = [line for line in bazel.output.splitlines() if line.startswith("ERROR")]
    assert any(service.address in line or "UNAVAILABLE" in line for line in errors), errors
    assert bazel("build", *options, "--remote_local_fallback", f"{_FOLDER}:slow") == 0
