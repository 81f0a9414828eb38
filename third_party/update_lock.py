#!/usr/bin/env python3
"""Writes lock.json: the version, file names and SHA-256 of every package that the build fetches.

    python3 third_party/update_lock.py

Reads requirements.txt (Python packages, with all that they need in turn) and archives.txt (packages
taken for the C++ or CUDA code inside). pip resolves for each Python below, whatever Python runs
this program.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pip._vendor.packaging.markers import Marker

sys.path.insert(0, str(Path(__file__).resolve().parent))
import fetch

_FOLDER = Path(__file__).resolve().parent
_PYTHONS = ("3.11", "3.12", "3.13")
# The C library must be as new as the newest of these: 2.34 (Debian 12, Ubuntu 22.04, RHEL 9).
_GLIBC_MINORS = (34, 31, 28, 27, 26, 24, 17, 12, 5)
_PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in _GLIBC_MINORS]
_PLATFORMS += [
    "manylinux2014_x86_64",
    "manylinux2010_x86_64",
    "manylinux1_x86_64",
    "linux_x86_64",
    "any",
]

# Archives of which only the source distribution holds what is wanted.
_SOURCE_DISTRIBUTIONS = ("cluestering",)


def canonical(name: str) -> str:
    """A package name as Bazel targets spell it."""
    return re.sub(r"[-_.]+", "_", name).lower()


def lines(file: str) -> list[str]:
    """The requirements that one of the lists names."""
    text = (_FOLDER / file).read_text(encoding="utf-8")
    return [line for line in (line.split("#")[0].strip() for line in text.splitlines()) if line]


def _resolve(requirements: list[str], options: list[str]) -> list[dict[str, Any]]:
    """What pip would install for the requirements, from its report."""
    with tempfile.TemporaryDirectory() as folder, fetch.pip_environment() as environment:
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
        ]
        command += [
            "--dry-run",
            "--ignore-installed",
            f"--target={folder}/none",
            f"--report={folder}/report.json",
        ]
        done = subprocess.run([*command, *options, *requirements], check=False, env=environment)
        if done.returncode:
            sys.exit(f"pip could not resolve {' '.join(requirements)}.")
        installed: list[dict[str, Any]] = json.loads(
            Path(folder, "report.json").read_text(encoding="utf-8")
        )["install"]
        return installed


def _file(entry: dict[str, Any]) -> dict[str, str]:
    download = entry["download_info"]
    return {
        "name": download["url"].rsplit("/", 1)[1],
        "sha256": download["archive_info"]["hashes"]["sha256"],
    }


def _requires(entry: dict[str, Any], python: str) -> set[str]:
    environment = {
        "extra": "",
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": f"{python}.0",
        "python_version": python,
        "sys_platform": "linux",
    }
    names = set()
    for requirement in entry["metadata"].get("requires_dist", []):
        specification, _, marker = requirement.partition(";")
        if not marker or Marker(marker).evaluate(environment):
            names.add(canonical(re.split(r"[^A-Za-z0-9._-]", specification.strip())[0]))
    return names


def _python_packages() -> dict[str, Any]:
    packages: dict[str, Any] = {}
    for python in _PYTHONS:
        tag = f"cp{python.replace('.', '')}"
        options = ["--only-binary=:all:", f"--python-version={python}", "--implementation=cp"]
        options += [f"--abi={abi}" for abi in (tag, "abi3", "none")]
        options += [f"--platform={platform}" for platform in _PLATFORMS]
        for entry in _resolve(lines("requirements.txt"), options):
            name = canonical(entry["metadata"]["name"])
            version = entry["metadata"]["version"]
            package = packages.setdefault(
                name,
                {
                    "requirement": f"{entry['metadata']['name']}=={version}",
                    "requires": set(),
                    "files": {},
                },
            )
            if package["requirement"].split("==")[1] != version:
                sys.exit(
                    f"{name} would differ between Pythons: give one version of it in "
                    "requirements.txt."
                )
            package["requires"] |= _requires(entry, python)
            package["files"][tag] = _file(entry)
    for name, package in packages.items():
        package["requires"] = sorted(package["requires"] & packages.keys() - {name})
    return dict(sorted(packages.items()))


def _archives() -> dict[str, Any]:
    archives: dict[str, Any] = {}
    for requirement in lines("archives.txt"):
        # Of some packages there are two versions.
        name = canonical(requirement.replace("==", "_"))
        if canonical(requirement.split("==")[0]) in _SOURCE_DISTRIBUTIONS:
            options = ["--no-build-isolation", "--use-pep517", "--no-binary=:all:"]
        else:
            # The Python in a file's name does not matter: no Python code of these packages is used.
            options = [
                "--only-binary=:all:",
                "--python-version=3.11",
                "--implementation=cp",
                "--abi=cp311",
                "--abi=none",
            ]
            options += [f"--platform={platform}" for platform in _PLATFORMS]
        [entry] = _resolve([requirement], ["--no-deps", *options])
        archives[name] = {"requirement": requirement, "file": _file(entry)}
    return dict(sorted(archives.items()))


def main() -> None:
    """Resolves and writes the lock file."""
    lock = {"archives": _archives(), "python": _python_packages()}
    (_FOLDER / "lock.json").write_text(json.dumps(lock, indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {_FOLDER / 'lock.json'}.")


if __name__ == "__main__":
    main()
