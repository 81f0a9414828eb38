#!/usr/bin/env python3
"""Fetches one package file, checks its SHA-256 and unpacks a part of it, for a repository rule.

The file comes from the folder that SOFIE_VENDOR_DIR names, where it is set: see vendor.py. Else it
comes from the download folder in the user's cache, if an earlier build left it there, or through
`pip download`, so that pip's own configuration says where packages come from. Nothing of a package
is run: a source distribution, for which pip would start its build script, meets a
build backend that only repeats what the package says of itself.

Only the standard library and pip are used.
"""

import argparse
import compileall
import contextlib
import fnmatch
import hashlib
import os
import pwd
import py_compile
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, NoReturn

# A build backend by setuptools' name, for pip to find in place of setuptools.
_METADATA_ONLY_BACKEND = """
import os, re


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    with open("PKG-INFO", encoding="utf-8") as file:
        text = file.read()
    name, version = (re.search(f"^{k}: (.*)$", text, re.M).group(1) for k in ("Name", "Version"))
    folder = f"{re.sub('[-_.]+', '_', name)}-{version}.dist-info"
    os.makedirs(os.path.join(metadata_directory, folder))
    with open(os.path.join(metadata_directory, folder, "METADATA"), "w", encoding="utf-8") as file:
        file.write(f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    return folder
"""


class FetchError(Exception):
    """What went wrong and what the user can do about it."""


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_source(file: str) -> bool:
    """Whether a package file is a source distribution (else it is a wheel)."""
    return not file.endswith(".whl")


def pip_selection(file: str) -> list[str]:
    """The options that make pip choose the file of this name, whatever Python runs pip."""
    if is_source(file):
        return ["--no-build-isolation", "--use-pep517", "--no-binary=:all:"]
    python, abi, platforms = file.removesuffix(".whl").split("-")[-3:]
    options = ["--only-binary=:all:", f"--abi={abi}"]
    if python.startswith("cp"):
        options += ["--implementation=cp", f"--python-version={python[2]}.{python[3:]}"]
    return options + [f"--platform={platform}" for platform in platforms.split(".")]


@contextlib.contextmanager
def pip_environment() -> Iterator[dict[str, str]]:
    """An environment in which pip runs no package's build script."""
    with tempfile.TemporaryDirectory(prefix="sofie-backend-") as folder:
        backend = Path(folder, "setuptools")
        backend.mkdir()
        (backend / "__init__.py").touch()
        (backend / "build_meta.py").write_text(_METADATA_ONLY_BACKEND, encoding="utf-8")
        path = [folder, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        yield os.environ | {
            "PYTHONPATH": os.pathsep.join(part for part in path if part),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LC_ALL": "C.UTF-8",
        }


def _cache_folder() -> Path:
    """The user's cache folder; also right where HOME is unset or empty."""
    cache = os.environ.get("XDG_CACHE_HOME") or ""
    if os.path.isabs(cache):
        return Path(cache)
    return Path(os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir) / ".cache"


def _download_folder() -> Path | None:
    """Where downloads are kept between builds, or None where there is no place for them."""
    try:
        folder = _cache_folder() / "sofie" / "downloads"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, KeyError):
        return None
    return folder if os.access(folder, os.W_OK) else None


_NO_NETWORK = ("NewConnectionError", "Max retries", "Connection refused", "Name or service")
_NO_PACKAGE = ("No matching distribution", "Could not find a version")


def _explain(requirement: str, file: str, output: str) -> str:
    """Says what a failed `pip download` means for the user."""
    if "No module named pip" in output:
        return f"{sys.executable} has no pip, which fetches packages. Install it (python3-pip)."
    if "DO NOT MATCH THE HASHES" in output:
        return (
            f"the package index offers another {requirement} than the one in "
            "third_party/lock.json. Use an index that you trust; if the change is meant, record it "
            "with 'python3 third_party/update_lock.py'."
        )
    if any(s in output for s in _NO_PACKAGE) and not any(s in output for s in _NO_NETWORK):
        return (
            f"the package index that pip is set up to use does not have {file}. "
            "'pip config list' shows its settings."
        )
    return (
        f"pip could not fetch {file}. Is the network reachable? Behind a proxy or a mirror, set "
        "pip up for it ('pip config')."
    )


def _pip_download(requirement: str, file: str, digest: str, folder: Path) -> Path:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{requirement} --hash=sha256:{digest}\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
    ]
    # pip's own cache would keep a second copy of what the download folder keeps.
    command += [
        "--no-cache-dir",
        "--no-deps",
        "--require-hashes",
        f"--dest={folder}",
        *pip_selection(file),
    ]
    with pip_environment() as environment:
        done = subprocess.run(
            [*command, f"--requirement={requirements}"],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
    output = done.stdout + done.stderr
    fetched = folder / file
    if done.returncode or not fetched.exists():
        last = "\n".join(output.strip().splitlines()[-6:])
        raise FetchError(f"{_explain(requirement, file, output)}\npip said at last:\n{last}")
    if sha256(fetched) != digest:
        raise FetchError(f"{file} does not have the SHA-256 recorded in third_party/lock.json.")
    return fetched


def _remove_left(folder: Path) -> None:
    """Removes what fetches that were killed left behind; none takes a day."""
    for left in folder.glob(".fetch-*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > 24 * 3600:
                shutil.rmtree(left)


def _vendored(folder: str, file: str, digest: str) -> Path:
    """The file in a folder that vendor.py filled; nothing else is asked for it."""
    path = Path(folder) / file
    if path.is_file() and sha256(path) == digest:
        return path
    what = "holds another file of that name" if path.is_file() else "does not have it"
    raise FetchError(
        f"{file} is to come from SOFIE_VENDOR_DIR, and {folder} {what}. Where there is a network, "
        "'python3 third_party/vendor.py FOLDER' fills a folder."
    )


@contextlib.contextmanager
def obtain(requirement: str, file: str, digest: str) -> Iterator[Path]:
    """Gives the path of a package file whose SHA-256 is right.

    Args:
        requirement: name and version, as pip takes them ("numpy==2.4.6").
        file: name of the package's file.
        digest: the file's SHA-256 in hexadecimal.
    """
    vendored = os.environ.get("SOFIE_VENDOR_DIR")
    if vendored:
        yield _vendored(vendored, file, digest)
        return
    kept = _download_folder()
    if kept is not None:
        path = kept / digest / file
        if path.exists() and sha256(path) == digest:
            yield path
            return
        _remove_left(kept)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=kept) as temporary:
        fetched = _pip_download(requirement, file, digest, Path(temporary))
        if kept is not None:
            path.parent.mkdir(exist_ok=True)
            # Atomic: a build running beside this one sees no file or all of it.
            fetched = fetched.replace(path)
        yield fetched


def _members(archive: Path) -> Iterator[tuple[str, bool, IO[bytes]]]:
    """Name, executable bit and content of each file in an archive."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            for entry in wheel.infolist():
                if not entry.is_dir():
                    with wheel.open(entry) as content:
                        yield (
                            entry.filename,
                            bool(entry.external_attr >> 16 & stat.S_IXUSR),
                            content,
                        )
    else:
        with tarfile.open(archive) as source:
            for member in source:
                content_or_none = source.extractfile(member) if member.isfile() else None
                if content_or_none is not None:
                    yield member.name, bool(member.mode & stat.S_IXUSR), content_or_none


def unpack(
    archive: Path, folder: Path, strip_prefix: str, include: Sequence[str], exclude: Sequence[str]
) -> int:
    """Unpacks what lies below `strip_prefix` and matches one of `include` and none of `exclude`.

    Patterns hold for the path below the prefix; `*` matches slashes too. Returns the number of
    files.
    """
    count = 0
    for name, executable, content in _members(archive):
        if not name.startswith(strip_prefix):
            continue
        path = PurePosixPath(name[len(strip_prefix) :].lstrip("/"))
        if path.is_absolute() or ".." in path.parts:
            raise FetchError(f"{archive.name} has a file {name} that would lie outside its folder.")
        if not any(fnmatch.fnmatchcase(str(path), pattern) for pattern in include):
            continue
        if any(fnmatch.fnmatchcase(str(path), pattern) for pattern in exclude):
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as out:
            shutil.copyfileobj(content, out)
        target.chmod(0o755 if executable else 0o644)
        count += 1
    return count


def _install_wheel_data(folder: Path) -> None:
    """Moves what a wheel keeps in its .data folder to where an installer would put it."""
    for data in sorted(folder.glob("*.data")):
        for kind in sorted(data.iterdir()):
            target = folder if kind.name in ("purelib", "platlib") else folder.parent / kind.name
            shutil.copytree(kind, target, dirs_exist_ok=True)
        shutil.rmtree(data)
    for script in (folder.parent / "scripts").glob("*"):
        script.chmod(0o755)


def _compile_python(folder: Path) -> None:
    """Compiles Python files once, so that no sandboxed action has to; the same bytes everywhere."""
    compileall.compile_dir(
        folder,
        quiet=2,
        stripdir=str(folder),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def _fail(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(1)


def main() -> None:
    """Parses the command line, fetches and unpacks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requirement", required=True, help="name==version")
    parser.add_argument("--file", required=True, help="name of the package's file")
    parser.add_argument("--sha256", required=True)
    parser.add_argument("--into", required=True, type=Path, help="folder to unpack into")
    parser.add_argument(
        "--strip-prefix", default="", help="unpack only what lies below this folder of the archive"
    )
    parser.add_argument(
        "--include", action="append", help="pattern of files to unpack (all, if not given)"
    )
    parser.add_argument(
        "--exclude", action="append", default=[], help="pattern of files to leave out"
    )
    parser.add_argument(
        "--python", action="store_true", help="the files are a Python package to import"
    )
    arguments = parser.parse_args()
    try:
        with obtain(arguments.requirement, arguments.file, arguments.sha256) as archive:
            count = unpack(
                archive,
                arguments.into,
                arguments.strip_prefix,
                arguments.include or ["*"],
                arguments.exclude,
            )
        if not count:
            raise FetchError(f"{arguments.file} has no file that the rule asks for.")
        if arguments.python:
            _install_wheel_data(arguments.into)
            _compile_python(arguments.into)
    except FetchError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{arguments.file} could not be unpacked: {error}")


if __name__ == "__main__":
    main()
