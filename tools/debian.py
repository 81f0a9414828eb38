"""Private copies of programs from Debian's packages, beside whatever the machine has.

A record, a JSON file, names the packages with the SHA-256 of each. They are downloaded through
apt's own transport, compared with the record, unpacked into the user's cache folder and made to run
on the C library that came with them. That needs no root and changes nothing outside of the cache
folder. A copy appears under its final name by one rename at the very end, so a start that was
killed leaves nothing that a later one would take for complete, and a lock makes a second start wait
for the first.

Only the standard library is used.
"""

import contextlib
import dataclasses
import datetime
import fcntl
import glob
import hashlib
import json
import os
import platform
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

LIBRARIES = "usr/lib/x86_64-linux-gnu"

_APT_HELPER = "/usr/lib/apt/apt-helper"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# How many packages an error names.
_MOST_NAMED = 5


class DebianError(Exception):
    """What went wrong and what the user can do about it."""


def cache_folder() -> Path:
    """The user's cache folder; also right where HOME is unset or empty."""
    cache = os.environ.get("XDG_CACHE_HOME")
    if cache and os.path.isabs(cache):
        return Path(cache) / "sofie"
    home = os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    return Path(home) / ".cache" / "sofie"


def run(command: Sequence[str], why: str) -> str:
    """Runs a command and gives its standard output; `why` begins the error if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DebianError(
            f"{why}: {' '.join(command[:3])} ... failed:\n{(done.stdout + done.stderr).strip()}"
        )
    return done.stdout


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclasses.dataclass(frozen=True)
class Packages:
    """Recorded packages of Debian.

    Attributes:
      what: what they make, as messages name it ("Bazel 7.7.1").
      record: the JSON file that names them: `suite`, `recorded` (a date) and `packages`, each with
        name, version, path and SHA-256.
      update: the command that records what Debian has now.
      otherwise: a sentence on what the user can do where they can't be had.
    """

    what: str
    record: Path
    update: str
    otherwise: str

    def load(self) -> dict[str, Any]:
        """The record."""
        record: dict[str, Any] = json.loads(self.record.read_text(encoding="utf-8"))
        return record

    def mirror(self) -> str:
        """The Debian mirror to use: SOFIE_DEBIAN_MIRROR, else the first in apt's own sources."""
        named = os.environ.get("SOFIE_DEBIAN_MIRROR")
        if named:
            return named.rstrip("/")
        for source in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*"))]:
            with contextlib.suppress(OSError):
                found = re.search(
                    r"^[^#\n]*?((?:https?|file)://?[^\s]+/debian)/?(?:\s|$)",
                    Path(source).read_text(encoding="utf-8"),
                    re.MULTILINE,
                )
                if found:
                    return found.group(1)
        raise DebianError(
            f"{self.what} is not installed, and apt's sources name no Debian mirror to fetch it "
            "from. Set SOFIE_DEBIAN_MIRROR to the URL of one (it ends in /debian). "
            f"{self.otherwise}"
        )

    def require_tools(self) -> None:
        """Raises DebianError where packages can't be fetched and unpacked."""
        if platform.system() != "Linux" or platform.machine() != "x86_64":
            raise DebianError(
                f"{self.what} is not installed, and the copy made from Debian's packages runs on "
                f"x86-64 Linux only. {self.otherwise}"
            )
        missing = [tool for tool in (_APT_HELPER, "dpkg-deb") if not shutil.which(tool)]
        if missing:
            raise DebianError(
                f"{self.what} is not installed, and this machine has no "
                f"{' and no '.join(missing)} to make a copy from Debian's packages. "
                f"{self.otherwise}"
            )

    def download(
        self, packages: Sequence[dict[str, str]], folder: Path, record: dict[str, Any]
    ) -> list[Path]:
        """Fetches packages through apt's own transport and verifies them."""
        mirror = self.mirror()
        files = [folder / Path(package["path"]).name for package in packages]
        command = [_APT_HELPER, "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=2"]
        command += ["download-file"]
        for package, file in zip(packages, files, strict=True):
            command += [f"{mirror}/{package['path']}", str(file), f"SHA256:{package['sha256']}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        wrong = [
            f"{package['name']} {package['version']}"
            for package, file in zip(packages, files, strict=True)
            if not file.exists() or _sha256(file) != package["sha256"]
        ]
        if not wrong:
            return files
        if len(wrong) > _MOST_NAMED:
            wrong[_MOST_NAMED:] = [f"{len(wrong) - _MOST_NAMED} more"]
        if "Hash Sum mismatch" in said or "unexpected size" in said:
            raise DebianError(
                f"{mirror} gives files for {', '.join(wrong)} that do not have the SHA-256 "
                f"recorded in {self.record}. Name another mirror in SOFIE_DEBIAN_MIRROR. "
                f"{self.otherwise}"
            )
        if re.search(r"\b404\b|File not found", said):
            raise DebianError(
                f"Debian {record['suite']} has moved on since {record['recorded']}: {mirror} no "
                f"longer has {', '.join(wrong)}. Set SOFIE_DEBIAN_MIRROR to a snapshot of "
                "Debian's archive of that date, or record what Debian has now with "
                f"'{self.update}'. {self.otherwise}"
            )
        errors = "\n".join(re.findall(r"^E: .*$", said, re.MULTILINE)[:3])
        raise DebianError(
            f"{self.what} is not installed, and its Debian packages could not be fetched from "
            f"{mirror}. Is the network reachable? {self.otherwise} apt said:\n{errors}"
        )

    def install(
        self, name: str, sources: Sequence[Path], make: Callable[[Path, Path], None]
    ) -> Path:
        """The folder of the copy, which is made first where it does not exist.

        Args:
          name: of the folder; a digest of what the copy is made from is added.
          sources: files beside the record and this one that the copy depends on.
          make: makes the copy run, given the folder with the unpacked packages in `root` and the
            path that it will have in the end.
        """
        made_from = b"".join(p.read_bytes() for p in (self.record, Path(__file__), *sources))
        cache = cache_folder()
        final = cache / f"{name}-{hashlib.sha256(made_from).hexdigest()[:12]}"
        if final.exists():
            return final
        self.require_tools()
        if re.search(r"\s", str(final)):
            raise DebianError(
                f"{self.what} is not installed, and a copy of it can't lie in {cache}, because of "
                f"the space in that path. Set XDG_CACHE_HOME to another folder. {self.otherwise}"
            )
        try:
            with _locked(cache, name):
                if not final.exists():
                    self._make(cache, name, final, make)
        except OSError as error:
            raise DebianError(
                f"{self.what} is not installed, and the copy made from Debian's packages could "
                f"not be written: {error}. Set XDG_CACHE_HOME to a folder with 1 GB of space. "
                f"{self.otherwise}"
            ) from error
        return final

    def _make(
        self, cache: Path, name: str, final: Path, make: Callable[[Path, Path], None]
    ) -> None:
        """Makes the copy. The caller holds the lock."""
        # What others left here was left by a killed start.
        for left in cache.glob(f".{name}-tmp-*"):
            shutil.rmtree(left)
        record = self.load()
        print(
            f"Making a private copy of {self.what} in {final} (once; it downloads 100 to 150 MB) "
            "...",
            file=sys.stderr,
        )
        with tempfile.TemporaryDirectory(prefix=f".{name}-tmp-", dir=cache) as temporary:
            folder = Path(temporary) / "copy"
            archives = Path(temporary) / "archives"
            folder.mkdir()
            archives.mkdir()
            for archive in self.download(record["packages"], archives, record):
                unpack(archive, folder / "root")
            make(folder, final)
            folder.rename(final)

    def record_now(
        self,
        suite: str,
        wanted: Sequence[str],
        skipped: str | None,
        needed: Callable[[Path, dict[str, str]], set[str]] | None,
        extra: dict[str, Any],
    ) -> list[dict[str, str]]:
        """Writes the record anew: the packages that Debian has now.

        Args:
          suite: Debian's release.
          wanted: names of packages; what they depend on is recorded too.
          skipped: pattern of packages that nothing of the copy runs; None for none.
          needed: tells which packages the copy needs, given a folder with all of them and the
            owner of each file; None for all.
          extra: further entries of the record.

        Returns:
          The recorded packages.
        """
        self.require_tools()
        with tempfile.TemporaryDirectory() as temporary:
            planned = _planned(Path(temporary) / "apt", self.mirror(), suite, wanted, skipped)
            record: dict[str, Any] = {
                **extra,
                "suite": suite,
                "recorded": datetime.datetime.now(datetime.UTC).date().isoformat(),
            }
            if needed:
                root = Path(temporary) / "root"
                owners: dict[str, str] = {}
                archives = Path(temporary) / "archives"
                archives.mkdir()
                downloaded = self.download(planned, archives, record)
                for package, archive in zip(planned, downloaded, strict=True):
                    unpack(archive, root)
                    for name in _content(archive):
                        owners[name] = package["name"]
                names = needed(root, owners)
                planned = [package for package in planned if package["name"] in names]
            record["packages"] = planned
        self.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(f"Recorded {len(planned)} packages in {self.record}.")
        return planned


def unpack(archive: Path, root: Path) -> None:
    """Unpacks a package's files."""
    run(["dpkg-deb", "-x", str(archive), str(root)], "A package could not be unpacked")


def relocate(root: Path, final: Path, programs: Sequence[Path], folders: Sequence[Path]) -> None:
    """Makes unpacked programs run from another folder, on the C library that came with them.

    Args:
      root: the unpacked packages, patchelf among them.
      final: the path that `root` will have in the end.
      programs: the programs, relative to `root`.
      folders: where their libraries lie beside the usual folder, relative to `root`.
    """
    loader = Path(LIBRARIES) / "ld-linux-x86-64.so.2"
    run_path = ":".join(str(final / folder) for folder in (*folders, Path(LIBRARIES)))
    patchelf = [
        str(root / loader),
        "--library-path",
        str(root / LIBRARIES),
        str(root / "usr/bin/patchelf"),
    ]
    for program in programs:
        options = ["--set-interpreter", str(final / loader), "--force-rpath", "--set-rpath"]
        run(
            [*patchelf, *options, run_path, str(root / program)],
            f"{program} could not be relocated",
        )


def libraries(binaries: Sequence[Path], folders: Sequence[Path]) -> Iterator[Path]:
    """The shared libraries that binaries need in turn, of those in the folders."""
    queue = list(binaries)
    seen: set[Path] = set()
    while queue:
        binary = queue.pop()
        if binary in seen:
            continue
        seen.add(binary)
        dynamic = subprocess.run(
            ["objdump", "-p", str(binary)], capture_output=True, text=True, check=False
        ).stdout
        for name in re.findall(r"NEEDED\s+(\S+)", dynamic):
            found = next((folder / name for folder in folders if (folder / name).exists()), None)
            if found is not None:
                yield found
                queue.append(found)


def owners_of(path: Path, root: Path, owners: dict[str, str]) -> Iterator[str]:
    """The packages that own a file and the symbolic links on the way to it."""
    while True:
        relative = os.path.normpath(path.relative_to(root))
        if relative in owners:
            yield owners[relative]
        if not path.is_symlink():
            return
        target = os.readlink(path)
        path = (
            root / target.lstrip("/")
            if os.path.isabs(target)
            else Path(os.path.normpath(path.parent / target))
        )


@contextlib.contextmanager
def _locked(cache: Path, name: str) -> Iterator[None]:
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f".{name}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _content(archive: Path) -> Iterator[str]:
    """The paths of a package's files."""
    tar = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", str(archive)], capture_output=True, check=True
    ).stdout
    listing = subprocess.run(["tar", "-t"], input=tar, capture_output=True, check=True)
    for name in listing.stdout.decode().splitlines():
        if not name.endswith("/"):
            yield os.path.normpath(name)


def _planned(
    state: Path, mirror: str, suite: str, wanted: Sequence[str], skipped: str | None
) -> list[dict[str, str]]:
    """What apt would install for the wanted packages on an empty machine."""
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True)
    (state / "status").touch()
    (state / "sources.list").write_text(
        f"deb [signed-by={_KEYRING}] {mirror} {suite} main\n", encoding="utf-8"
    )
    options = {
        "Dir::Etc::sourcelist": state / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
    }
    arguments = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    run(["apt-get", "-qq", *arguments, "update"], "Debian's package lists could not be read")
    plan = run(
        ["apt-get", "-qq", *arguments, "-y", "--simulate", "install", *wanted],
        "Debian's packages could not be resolved",
    )
    names = sorted(set(re.findall(r"^Inst (\S+)", plan, re.MULTILINE)))
    if skipped:
        names = [name for name in names if not re.match(skipped, name)]
    shown = run(
        ["apt-cache", *arguments, "show", "--no-all-versions", *names],
        "Debian's packages could not be listed",
    )
    packages = []
    for stanza in shown.strip().split("\n\n"):
        fields = dict(
            re.findall(r"^(Package|Version|Filename|SHA256): (.*)$", stanza, re.MULTILINE)
        )
        packages.append(
            {
                "name": fields["Package"],
                "version": fields["Version"],
                "path": fields["Filename"],
                "sha256": fields["SHA256"],
            }
        )
    return packages
