"""Builds the models in two copies of this repository and compares what came out, byte by byte.

    tools/reproducible [--arch=sm_90] [--work=FOLDER] [BAZEL OPTION ...]

The copies hold what git knows or would add. They lie in folders of different length, have output
bases of different length, no cache in common but that of downloads, and different seeds of
Python's hashes. Compared by SHA-256 are generated sources, weights, manifests, objects (those that
nvcc makes included), libraries and the program //examples:tag_jets.

Exits with 1 and names the file that differs first, in the order in which a build makes them: what
differs later is mostly a consequence.

Only the standard library is used.
"""

import argparse
import dataclasses
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent

# What is compared, in the order in which a build makes it: kind, and how its files' names end.
_KINDS = (
    ("generated sources", (".h", ".cc", ".cu")),
    ("weights", (".bin",)),
    ("manifests", (".json",)),
    ("objects", (".o",)),
    ("libraries", (".a", ".lo", ".so")),
)
_PROGRAMS = "programs"
_ORDER = [kind for kind, _ in _KINDS] + [_PROGRAMS]
# Where the outputs to compare lie, below bazel-bin.
_FOLDERS = ("models", "examples", "sofie")


@dataclasses.dataclass(frozen=True)
class Build:
    """One of the two builds.

    Attributes:
      root: folder of the copy.
      output_base: Bazel's folder.
      hash_seed: PYTHONHASHSEED of all actions.
    """

    root: Path
    output_base: Path
    hash_seed: int


class ReproducibleError(Exception):
    """Why nothing could be compared."""


def kind_of(path: Path) -> str | None:
    """What an output file is compared as; None for what says nothing about the outputs' bytes."""
    if any(part.endswith(".runfiles") for part in path.parts):
        return None
    for kind, suffixes in _KINDS:
        if path.name.endswith(suffixes):
            return kind
    with path.open("rb") as file:
        return _PROGRAMS if file.read(4) == b"\x7fELF" else None


def digests(folder: Path) -> dict[tuple[str, str], str]:
    """SHA-256 of the outputs in a folder like bazel-bin, by kind and path."""
    found = {}
    for top in _FOLDERS:
        for path in sorted((folder / top).rglob("*")):
            if path.is_file() and (kind := kind_of(path)):
                with path.open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                found[kind, str(path.relative_to(folder))] = digest
    return found


def compare(
    a: Mapping[tuple[str, str], str], b: Mapping[tuple[str, str], str]
) -> tuple[list[str], list[str]]:
    """What is equal, as a line for each kind, and what differs, in build order."""
    equal, different = [], []
    for kind in _ORDER:
        keys = sorted(key for key in {*a, *b} if key[0] == kind)
        for key in keys:
            if key not in a or key not in b:
                different.append(f"{key[1]} exists in one build only")
            elif a[key] != b[key]:
                different.append(f"{key[1]} differs: {a[key][:16]}… and {b[key][:16]}…")
        if not keys:
            different.append(f"there are no {kind} to compare")
        together = hashlib.sha256("".join(a.get(key, "") for key in keys).encode()).hexdigest()
        equal.append(f"{len(keys):4} {kind:17} {together}")
    return equal, different


def targets() -> list[str]:
    """Everything that is made of the models, and a program."""
    parts = ("generated", "cpu", "openmp", "cuda", "library", "weights_object")
    names = sorted(path.stem for path in (_ROOT / "models").glob("*.onnx"))
    labels = [f"//models:{name}_{part}" for name in names for part in parts]
    return [*labels, "//examples:tag_jets"]


def _copy(root: Path) -> None:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ReproducibleError(f"git can't list the files of {_ROOT}: {error}") from error
    for name in set(done.stdout.split("\0")) - {""}:
        source, target = _ROOT / name, root / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def _bazel(build: Build, *arguments: str) -> str:
    command = [str(build.root / "tools" / "bazel"), f"--output_base={build.output_base}"]
    done = subprocess.run(
        [*command, *arguments], cwd=build.root, check=False, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise ReproducibleError(f"the build in {build.root} failed.")
    return done.stdout.strip()


def build_and_digest(build: Build, options: Sequence[str]) -> dict[tuple[str, str], str]:
    """Builds in a copy of the repository and gives the digests of the outputs."""
    print(f"reproducible: building in {build.root}", file=sys.stderr, flush=True)
    flags = [
        "--config=cuda",
        # Nothing that another build made.
        "--disk_cache=",
        "--remote_cache=",
        f"--action_env=PYTHONHASHSEED={build.hash_seed}",
        f"--host_action_env=PYTHONHASHSEED={build.hash_seed}",
        "--symlink_prefix=/",
        *options,
    ]
    try:
        _bazel(build, "build", "--noshow_progress", *flags, *targets())
        return digests(Path(_bazel(build, "info", *flags, "bazel-bin")))
    finally:
        _bazel(build, "shutdown")


def main() -> int:
    """Builds twice and compares."""
    parser = argparse.ArgumentParser(
        prog="tools/reproducible",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--arch", default="sm_90", help="the GPU architecture to compile for")
    parser.add_argument("--work", type=Path, help="folder for the builds, kept; else a temporary")
    arguments, options = parser.parse_known_args()
    options.append(f"--//rules/cuda:archs={arguments.arch}")
    with tempfile.TemporaryDirectory(prefix="reproducible-") as temporary:
        work = (arguments.work or Path(temporary)).resolve()
        builds = (
            Build(work / "a" / "s", work / "a" / "o", 1),
            Build(
                work / "another_folder_with_a_longer_name" / "deep" / "checkout_of_sofie",
                work / "another_output_base_with_a_longer_name",
                4242,
            ),
        )
        try:
            # Both now: a file may be edited while the first builds.
            for build in builds:
                _copy(build.root)
            results = [build_and_digest(build, options) for build in builds]
        except ReproducibleError as error:
            print(f"reproducible: {error}", file=sys.stderr)
            return 1
        finally:
            if not arguments.work:
                # Bazel makes its folders read-only.
                subprocess.run(["chmod", "-R", "u+w", temporary], check=False)
    equal, different = compare(*results)
    print("\n".join(equal))
    if different:
        print(f"reproducible: {different[0]}", file=sys.stderr)
        for line in different[1:20]:
            print(f"  then {line}", file=sys.stderr)
        print(f"reproducible: {len(different)} differences.", file=sys.stderr)
        return 1
    print("reproducible: both builds gave the same bytes.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
