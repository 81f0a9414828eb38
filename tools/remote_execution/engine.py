"""A remote-execution engine on this machine: BuildGrid as the server, buildbox as the workers.

    tools/bazel run //tools/remote_execution:engine

starts a server with a worker in the pool `default` and one in the pool `gpu`, prints how Bazel uses
them and runs until it is interrupted. Actions run in bubblewrap: they see their declared inputs and
the executor's image, and nothing else of this machine.

The processes and their files lie below one folder and end with the program.
"""

import argparse
import contextlib
import dataclasses
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import debian
import packages

# What an action may see of the image: folders, and where they appear.
_MOUNTS = {
    "etc": "etc",
    "usr": "usr",
    # The image has links in these places, which the runner would not follow.
    "usr/bin": "bin",
    "usr/lib": "lib",
    "usr/lib64": "lib64",
}
_START_SECONDS = 120
# A signal's number is subtracted from 0 in the return code of a process that it ended.
_STOP_SECONDS = 10


class EngineError(Exception):
    """Why the engine doesn't run."""


@dataclasses.dataclass(frozen=True)
class Job:
    """An action as the server recorded it.

    Attributes:
      mnemonic: Bazel's kind of action, such as CppCompile.
      target: label of the target that it belongs to.
      worker: name of the worker that ran it last.
      tries: how often it was given to a worker.
      done: whether it has ended, well or not.
    """

    mnemonic: str
    target: str
    worker: str
    tries: int
    done: bool


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _end(process: subprocess.Popen[bytes], sign: signal.Signals) -> None:
    """Ends a process and those it started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Worker:
    """A worker with a cache of its own.

    Attributes:
      name: under which the server knows it.
      folder: its files; casd.log and worker.log are what its programs say.
    """

    def __init__(
        self, name: str, pool: str, server: str, folder: Path, jobs: int, disk: int | None
    ) -> None:
        """Starts it.

        Args:
          name: its name.
          pool: execution property `Pool` of the actions that it runs.
          server: the server's address.
          folder: for its files.
          jobs: how many actions it runs at a time.
          disk: size of its disk in bytes; None for that of the machine.
        """
        self.name = name
        self.folder = folder
        folder.mkdir(parents=True)
        programs = packages.buildbox()
        image = packages.image()
        cache = folder / "cache"
        cache.mkdir()
        self._environment = {"PATH": f"{programs}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        self._confined = []
        if disk is not None:
            # Both programs then share one namespace with a small file system in it.
            self._confined = [str(programs / "bwrap"), "--dev-bind", "/", "/", "--die-with-parent"]
            self._confined += ["--size", str(disk), "--tmpfs", str(cache)]
        port = _free_port()
        casd = [str(programs / "buildbox-casd"), f"--cas-remote=http://{server}"]
        # Room that it leaves on the disk; the default is 2 GB.
        casd += [f"--bind=127.0.0.1:{port}", "--log-level=info", "--reserved=1M", str(cache)]
        worker = [str(programs / "buildbox-worker"), f"--bots-remote=http://{server}"]
        worker += [f"--cas-remote=http://127.0.0.1:{port}", f"--concurrent-jobs={jobs}"]
        worker += [f"--buildbox-run={programs / 'buildbox-run-bubblewrap'}"]
        worker += ["--platform", "OSFamily=linux", "--platform", f"Pool={pool}"]
        # It takes no more actions after two that it could not do; those go to other workers.
        worker += ["--consecutive-errors-threshold=2"]
        worker += [
            f"--runner-arg=--ro-bind-mount={image / source}:/{place}"
            for source, place in _MOUNTS.items()
        ]
        worker += ["--runner-arg=--staging-mode=copy-or-link", name]
        if disk is None:
            self._processes = [self._start(casd, "casd.log")]
            _wait_for(f"127.0.0.1:{port}", self._processes[0], folder / "casd.log")
            self._processes.append(self._start(worker, "worker.log"))
        else:
            script = '"$0" $1 & shift; sleep 2; exec "$@"'
            both = ["sh", "-c", script, casd[0], " ".join(casd[1:]), *worker]
            self._processes = [self._start([*self._confined, *both], "worker.log")]

    def _start(self, command: Sequence[str], log: str) -> subprocess.Popen[bytes]:
        with (self.folder / log).open("wb") as output:
            return subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Ends it as a power failure would."""
        for process in self._processes:
            _end(process, signal.SIGKILL)

    def stop(self) -> None:
        """Ends it."""
        for process in reversed(self._processes):
            _end(process, signal.SIGTERM)


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until something listens at an address."""
    host, port = address.split(":")
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
            return
        if process.poll() is not None:
            break
        time.sleep(0.2)
    tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-10:])
    raise EngineError(f"{log.stem} did not start; it said at last:\n{tail}")


class Engine:
    """A server and its workers.

    Attributes:
      address: of the server, such as 127.0.0.1:50051.
      folder: its files; server.log is what the server says.
      workers: those that were started, by name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{_free_port()}"
        self.workers: dict[str, Worker] = {}
        self._server: subprocess.Popen[bytes] | None = None
        self._database = folder / "scheduler.db"

    def __enter__(self) -> Self:
        try:
            self._start_server()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start_server(self) -> None:
        # Here: what only needs the names above does not wait for these.
        from buildgrid.server.sql.models import Base
        from sqlalchemy import create_engine

        self.folder.mkdir(parents=True, exist_ok=True)
        database = create_engine(f"sqlite:///{self._database}")
        with database.connect() as connection:
            # Readers and the writer don't wait for each other.
            connection.exec_driver_sql("pragma journal_mode=wal")
        Base.metadata.create_all(database)
        database.dispose()
        template = Path(__file__).with_name("server.yml.in").read_text(encoding="utf-8")
        settings = self.folder / "server.yml"
        settings.write_text(
            template.replace("@FOLDER@", str(self.folder)).replace("@ADDRESS@", self.address),
            encoding="utf-8",
        )
        program = "from buildgrid.server.app import cli; cli()"
        command = [sys.executable, "-c", program, "server", "start", str(settings)]
        log = self.folder / "server.log"
        with log.open("wb") as output:
            self._server = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        _wait_for(self.address, self._server, log)

    def start_worker(self, name: str, pool: str, jobs: int = 2, disk: int | None = None) -> Worker:
        """Starts a worker; see Worker for the arguments."""
        folder = self.folder / "workers" / name
        self.workers[name] = Worker(name, pool, self.address, folder, jobs, disk)
        return self.workers[name]

    def kill_server(self) -> None:
        """Ends the server as a power failure would."""
        if self._server:
            _end(self._server, signal.SIGKILL)

    def stop(self) -> None:
        """Ends everything."""
        for worker in self.workers.values():
            worker.stop()
        if self._server:
            _end(self._server, signal.SIGTERM)

    def jobs(self) -> list[Job]:
        """The actions that the server was given, from its own records, in order."""
        columns = "action_mnemonic, target_id, worker_name, n_tries, stage"
        query = (
            f"select {columns} from jobs join operations on operations.job_name = jobs.name "
            "join request_metadata on request_metadata.id = operations.request_metadata_id "
            "order by jobs.queued_timestamp"
        )
        with contextlib.closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True)) as db:
            # 4: completed, in the protocol's ExecutionStage.
            return [Job(m, t, w or "", n, s == 4) for m, t, w, n, s in db.execute(query)]

    def running_on(self, worker: str) -> list[Job]:
        """The actions that a worker has at this moment."""
        return [job for job in self.jobs() if job.worker == worker and not job.done]

    def blobs(self) -> Iterator[Path]:
        """The files in the server's store, each named by its SHA-256."""
        return (path for path in (self.folder / "cas").rglob("*") if path.is_file())

    def options(self) -> list[str]:
        """Bazel's options for building on it."""
        return [
            "--config=remote",
            f"--remote_executor=grpc://{self.address}",
            "--host_platform=//tools/remote_execution:loopback",
            # A busy server cancels single uploads. It also says UNAVAILABLE of an action that has
            # waited too long for a worker: each retry adds that time.
            "--remote_retries=2",
            # An action's inputs are thousands of files that are sent at once: the last one's time
            # runs from the start.
            "--remote_timeout=900",
        ]


def main() -> int:
    """Starts an engine and waits for an interrupt."""
    parser = argparse.ArgumentParser(
        prog="engine", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="for its files, kept; else a temporary one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the pool default")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="engine-"))
    try:
        with Engine(folder.resolve()) as engine:
            engine.start_worker("cpu", "default", arguments.jobs)
            engine.start_worker("gpu", "gpu", 1)
            options = " ".join([*engine.options(), f"--jobs={arguments.jobs}"])
            print(f"The engine runs in {folder}. Use it until you interrupt this program:\n")
            print(f"  tools/bazel test {options} //...", flush=True)
            while True:
                time.sleep(1)
    except (EngineError, debian.DebianError) as error:
        print(f"engine: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        if not arguments.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
