#!/usr/bin/env python3
"""Puts a private copy of Bazel, made from Debian's packages, into the user's cache folder and
prints its path.

`tools/bazel` calls this where no suitable Bazel is installed. It needs no root and changes nothing
outside the cache folder: the packages named in `bazel_debian.json` are downloaded, compared with
the SHA-256 recorded there, unpacked and made to run on the C library that came with them, whatever
the machine's own is. The copy appears under its final name by one rename at the very end, so a
start that was killed leaves nothing that a later one would take for complete, and a lock makes a
second start wait for the first.

With `--update` it records the packages that Debian has now (needs apt's archive key for Debian, as
on any Debian).

Only the standard library is used, as nothing else is there yet when this runs.
"""

import argparse
import contextlib
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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

_TOOLS = Path(__file__).resolve().parent
_RECORD = _TOOLS / "bazel_debian.json"
_SUITE = "forky"
_APT_HELPER = "/usr/lib/apt/apt-helper"
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_HELPERS = "usr/libexec/x86_64-linux-gnu/bazel"
_CLASS_PATH = "usr/share/bazel/bazel_classpath_debian_depends.txt"

# Bazel's own modules name these, and a C++ and Python build on Linux loads none of their files. An
# empty registry entry answers for each, so that no registry has to be reachable.
_STUB_MODULES = (
    ("apple_support", "1.23.1"),
    ("buildozer", "7.1.2"),
    ("protobuf", "3.19.6"),
    ("protobuf", "21.7"),
    ("zlib", "1.3.1.bcr.3"),
)

# How many packages an error names.
_MOST_NAMED = 5

# Needed at run time, though no dependency of a program or of the class path says so.
_ALWAYS = (
    "bazel-",
    "patchelf",
    "libperfmark-java",
    "libnetty-java",
    "libnetty-common-java",
    "libnetty-buffer-java",
)


class BootstrapError(Exception):
    """What went wrong and what the user can do about it."""


def _other_ways(version: str) -> str:
    return f"Otherwise install Bazelisk or Bazel {version} and put it on the PATH."


def _cache_folder() -> Path:
    """The user's cache folder; also right where HOME is unset or empty."""
    cache = os.environ.get("XDG_CACHE_HOME")
    if cache and os.path.isabs(cache):
        return Path(cache) / "sofie"
    home = os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    return Path(home) / ".cache" / "sofie"


def _mirror(version: str) -> str:
    """The Debian mirror to use: SOFIE_DEBIAN_MIRROR, else the first one in apt's own sources."""
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
    raise BootstrapError(
        f"Bazel {version} is not installed, and apt's sources name no Debian mirror to fetch it "
        "from. Set "
        f"SOFIE_DEBIAN_MIRROR to the URL of one (it ends in /debian). {_other_ways(version)}"
    )


def _require_debian_tools(version: str) -> None:
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise BootstrapError(
            f"Bazel {version} is not installed, and the copy made from Debian's packages runs on "
            "x86-64 Linux only. "
            f"{_other_ways(version)}"
        )
    missing = [tool for tool in (_APT_HELPER, "dpkg-deb") if not shutil.which(tool)]
    if missing:
        raise BootstrapError(
            f"Bazel {version} is not installed, and this machine has no "
            f"{' and no '.join(missing)} to make a copy "
            f"from Debian's packages. {_other_ways(version)}"
        )


def _run(command: Sequence[str], why: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BootstrapError(
            f"{why}: {' '.join(command[:3])} ... failed:\n{(done.stdout + done.stderr).strip()}"
        )
    return done.stdout


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(
    packages: Sequence[dict[str, str]], folder: Path, record: dict[str, Any]
) -> list[Path]:
    """Fetches the recorded packages through apt's own transport and verifies them."""
    version = record["bazel"]
    mirror = _mirror(version)
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
        raise BootstrapError(
            f"{mirror} gives files for {', '.join(wrong)} that do not have the SHA-256 recorded in "
            f"{_RECORD}. Name another mirror in SOFIE_DEBIAN_MIRROR. {_other_ways(version)}"
        )
    if re.search(r"\b404\b|File not found", said):
        raise BootstrapError(
            f"Debian {record['suite']} has moved on since {record['recorded']}: {mirror} no longer "
            f"has {', '.join(wrong)}. Set SOFIE_DEBIAN_MIRROR to a snapshot of Debian's archive of "
            "that date, or record what Debian has now with 'python3 tools/bootstrap_bazel.py "
            f"--update'. {_other_ways(version)}"
        )
    errors = "\n".join(re.findall(r"^E: .*$", said, re.MULTILINE)[:3])
    raise BootstrapError(
        f"Bazel {version} is not installed, and its Debian packages could not be fetched from "
        f"{mirror}. Is the network reachable? {_other_ways(version)} apt said:\n{errors}"
    )


def _java_home(root: Path) -> Path:
    return root / "usr/lib/jvm" / next((root / "usr/lib/jvm").glob("java-*-openjdk-amd64")).name


def _programs(root: Path) -> list[Path]:
    """The executables that the copy runs, relative to the root."""
    java = _java_home(root).relative_to(root)
    helpers = sorted(
        path.relative_to(root) for path in (root / _HELPERS).iterdir() if path.is_file()
    )
    return [Path("usr/bin/bazel"), java / "bin/java", java / "lib/jspawnhelper", *helpers]


def _relocate(root: Path, final: Path) -> None:
    """Makes the unpacked packages in `root` run from `final`, where they will lie."""
    final_root = final / "root"
    for folder in ("usr/lib/jvm", "usr/share/java", "usr/share/bazel", _LIBRARIES):
        for parent, folders, files in os.walk(root / folder):
            for name in folders + files:
                path = Path(parent) / name
                if path.is_symlink() and os.path.isabs(target := os.readlink(path)):
                    path.unlink()
                    path.symlink_to(f"{final_root}{target}")
    java = _java_home(root).relative_to(root)
    loader = Path(_LIBRARIES) / "ld-linux-x86-64.so.2"
    run_path = ":".join(
        str(final_root / part) for part in (java / "lib", java / "lib/server", Path(_LIBRARIES))
    )
    patchelf = [
        str(root / loader),
        "--library-path",
        str(root / _LIBRARIES),
        str(root / "usr/bin/patchelf"),
    ]
    for program in _programs(root):
        _run(
            [
                *patchelf,
                "--set-interpreter",
                str(final_root / loader),
                "--force-rpath",
                "--set-rpath",
                run_path,
            ]
            + [str(root / program)],
            f"{program} could not be relocated",
        )
    class_path = root / _CLASS_PATH
    # One jar a line. Bazel's gRPC needs PerfMark, which Debian's list leaves out.
    jars = [*class_path.read_text(encoding="utf-8").split(), "/usr/share/java/perfmark-api.jar"]
    class_path.write_text("".join(f"{final_root}{jar}\n" for jar in jars), encoding="utf-8")


def _configure(folder: Path, final: Path) -> None:
    """Writes the start script, its options and the stub registry."""
    root = folder / "root"
    share = final / "root/usr/share/bazel"
    registry = folder / "registry"
    for name, version in _STUB_MODULES:
        module = registry / "modules" / name / version
        module.mkdir(parents=True)
        (module / "MODULE.bazel").write_text(
            f'module(name = "{name}", version = "{version}")\n', encoding="utf-8"
        )
        (module / "source.json").write_text(
            '{"type": "local_path", "path": "/nonexistent"}', encoding="utf-8"
        )
    (registry / "bazel_registry.json").write_text("{}", encoding="utf-8")
    java = final / "root" / _java_home(root).relative_to(root)
    options = [
        f"startup --install_base={share}",
        "startup --trust_install_base",
        f"startup --server_javabase={java}",
        f"common --registry=file://{final}/registry",
        # This Bazel stops at its own lock file, also where another workspace asks for none.
        "common --lockfile_mode=off",
        # Without a WORKSPACE file it would look for rule sets on the network.
        "common --noenable_workspace",
        # Sandboxes hide /tmp and may hide more; the helpers that tests run lie here.
        f"build --sandbox_add_mount_pair={final}",
    ]
    overrides = (root / "etc/bazel/bazelrc").read_text(encoding="utf-8").splitlines()
    options += [
        line.replace("/usr/share/bazel", str(share))
        for line in overrides
        if line.startswith("common --override_module")
    ]
    (folder / "bazelrc").write_text("\n".join(options) + "\n", encoding="utf-8")
    start = folder / "bazel"
    command = f"{final}/root/usr/bin/bazel --nosystem_rc --bazelrc={final}/bazelrc"
    start.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    start.chmod(0o755)


@contextlib.contextmanager
def _locked(cache: Path) -> Iterator[None]:
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".bazel.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def bootstrap() -> Path:
    """Returns the start script of the private copy, which is made first where it does not exist."""
    record = json.loads(_RECORD.read_text(encoding="utf-8"))
    version = record["bazel"]
    digest = hashlib.sha256(_RECORD.read_bytes() + Path(__file__).read_bytes()).hexdigest()[:12]
    cache = _cache_folder()
    final = cache / f"bazel-{version}-{digest}"
    if (final / "bazel").exists():
        return final / "bazel"
    _require_debian_tools(version)
    if re.search(r"\s", str(final)):
        raise BootstrapError(
            f"Bazel {version} is not installed, and a copy of it can't lie in {cache}, because of "
            f"the space in that path. Set XDG_CACHE_HOME to another folder. {_other_ways(version)}"
        )
    try:
        with _locked(cache):
            if not (final / "bazel").exists():
                _make(record, cache, final)
    except OSError as error:
        raise BootstrapError(
            f"Bazel {version} is not installed, and the copy made from Debian's packages could not "
            f"be written: {error}. Set XDG_CACHE_HOME to a folder with 1 GB of space. "
            f"{_other_ways(version)}"
        ) from error
    return final / "bazel"


def _make(record: dict[str, Any], cache: Path, final: Path) -> None:
    """Makes the private copy. The caller holds the lock."""
    # What others left here was left by a killed start.
    for left in cache.glob(".bazel-tmp-*"):
        shutil.rmtree(left)
    print(
        f"Making a private copy of Bazel {record['bazel']} in {final} (once; it downloads 150 MB) "
        "...",
        file=sys.stderr,
    )
    with tempfile.TemporaryDirectory(prefix=".bazel-tmp-", dir=cache) as temporary:
        folder = Path(temporary) / "copy"
        archives = Path(temporary) / "archives"
        folder.mkdir()
        archives.mkdir()
        for archive in _download(record["packages"], archives, record):
            _run(
                ["dpkg-deb", "-x", str(archive), str(folder / "root")],
                "A package could not be unpacked",
            )
        _relocate(folder / "root", final)
        _configure(folder, final)
        folder.rename(final)


def _needed_packages(root: Path, owners: dict[str, str]) -> set[str]:
    """The packages that own what the class path and the programs need, of all apt would install."""
    needed = {
        name for name in owners.values() if name.startswith(_ALWAYS) or "-jre-headless" in name
    }
    needed -= {name for name in needed if name.startswith("default-jre")}

    def need(path: Path) -> None:
        while True:
            relative = os.path.normpath(path.relative_to(root))
            if relative in owners:
                needed.add(owners[relative])
            if not path.is_symlink():
                return
            target = os.readlink(path)
            path = (
                root / target.lstrip("/")
                if os.path.isabs(target)
                else Path(os.path.normpath(path.parent / target))
            )

    for jar in (root / _CLASS_PATH).read_text(encoding="utf-8").split():
        need(root / jar.lstrip("/"))
    queue = [root / program for program in _programs(root)]
    queue += sorted(_java_home(root).glob("lib/**/*.so")) + [root / "usr/bin/patchelf"]
    seen: set[Path] = set()
    folders = [root / _LIBRARIES, _java_home(root) / "lib", _java_home(root) / "lib/server"]
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
                need(found)
                queue.append(found)
    return needed


def update(version: str) -> None:
    """Records the packages that Debian has now."""
    _require_debian_tools(version)
    with tempfile.TemporaryDirectory() as temporary:
        state = Path(temporary) / "apt"
        for folder in ("lists/partial", "cache/archives/partial"):
            (state / folder).mkdir(parents=True)
        (state / "status").touch()
        key = "/usr/share/keyrings/debian-archive-keyring.gpg"
        (state / "sources.list").write_text(
            f"deb [signed-by={key}] {_mirror(version)} {_SUITE} main\n", encoding="utf-8"
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
        _run(["apt-get", "-qq", *arguments, "update"], "Debian's package lists could not be read")
        planned = _run(
            [
                "apt-get",
                "-qq",
                *arguments,
                "-y",
                "--simulate",
                "install",
                "bazel-bootstrap",
                "patchelf",
            ],
            "Debian's packages could not be resolved",
        )
        names = sorted(set(re.findall(r"^Inst (\S+)", planned, re.MULTILINE)))
        # The compilers and the Java compiler are large, and none of Bazel's own programs runs them.
        skipped = re.compile(r"(openjdk-.*-jdk|gcc-\d|g\+\+-\d|cpp-\d|perl|python3|binutils)")
        shown = _run(
            [
                "apt-cache",
                *arguments,
                "show",
                "--no-all-versions",
                *(n for n in names if not skipped.match(n)),
            ],
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
        record: dict[str, Any] = {
            "bazel": version,
            "suite": _SUITE,
            "recorded": datetime.datetime.now(datetime.UTC).date().isoformat(),
        }
        root = Path(temporary) / "root"
        owners: dict[str, str] = {}
        archives = Path(temporary) / "archives"
        archives.mkdir()
        for package, archive in zip(packages, _download(packages, archives, record), strict=True):
            _run(["dpkg-deb", "-x", str(archive), str(root)], "A package could not be unpacked")
            tar = subprocess.run(
                ["dpkg-deb", "--fsys-tarfile", str(archive)], capture_output=True, check=True
            ).stdout
            listing = subprocess.run(
                ["tar", "-t"], input=tar, capture_output=True, check=True
            ).stdout.decode()
            for name in listing.splitlines():
                if not name.endswith("/"):
                    owners[os.path.normpath(name)] = package["name"]
        build = next(
            package["version"] for package in packages if package["name"] == "bazel-bootstrap"
        )
        if not build.startswith(version):
            raise BootstrapError(
                f"Debian {_SUITE} now has Bazel {build}, but .bazelversion asks for {version}."
            )
        needed = _needed_packages(root, owners)
        record["packages"] = [package for package in packages if package["name"] in needed]
        _RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(f"Recorded {len(record['packages'])} packages in {_RECORD}.")


def _fail(message: str) -> NoReturn:
    print(f"tools/bazel: {message}", file=sys.stderr)
    sys.exit(1)


def main() -> None:
    """Parses the command line and prints the path of the start script."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--update", action="store_true", help="record the packages that Debian has now"
    )
    arguments = parser.parse_args()
    try:
        if arguments.update:
            update((_TOOLS.parent / ".bazelversion").read_text(encoding="utf-8").strip())
        else:
            print(bootstrap())
    except BootstrapError as error:
        _fail(str(error))


if __name__ == "__main__":
    main()
