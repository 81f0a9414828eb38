"""Builds targets in two copies of this repository and compares what each action made.

    tools/bazel run //tools:reproducible -- [--arch=sm_90a] [--work=FOLDER] [--second=OPTION ...]
        [TARGET ...] [BAZEL OPTION ...]

Without targets: everything that is made of three models, and //examples:tag_jets. The copies hold
what git knows or would add. They lie in folders of different length, have output bases of different
length, no cache in common but that of downloads, and different seeds of Python's hashes. Options
given with --second are for the second build only: with --second=--config=remote and
--second=--remote_executor=grpc://... a local build is compared with a remote one.

Every output of every action is compared by SHA-256. Exits with 1 and names the first action whose
outputs differ although its inputs are the same: that is the one to mend. What differs after it is a
consequence.

Only the standard library is used.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

_ROOT = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY") or Path(__file__).resolve().parent.parent)


@dataclasses.dataclass(frozen=True)
class Build:
    """One of the two builds.

    Attributes:
      root: folder of the copy.
      output_base: Bazel's folder.
      hash_seed: PYTHONHASHSEED of all actions.
      options: for Bazel.
    """

    root: Path
    output_base: Path
    hash_seed: int
    options: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Action:
    """An action that ran.

    Attributes:
      mnemonic: Bazel's kind of action, such as CppCompile.
      target: label of the target that it belongs to.
      inputs: SHA-256 of each file that it could read, by path.
      outputs: SHA-256 of each file that it made, by path.
    """

    mnemonic: str
    target: str
    inputs: dict[str, str]
    outputs: dict[str, str]

    def __str__(self) -> str:
        return f"{self.mnemonic} of {self.target}"


# Models that together have a kernel of every kind.
MODELS = ("cnn", "mlp", "particle_net")


class ReproducibleError(Exception):
    """Why nothing could be compared."""


def _messages(text: str) -> Iterator[dict[str, object]]:
    decoder = json.JSONDecoder()
    position = 0
    while (position := position + len(text[position:]) - len(text[position:].lstrip())) < len(text):
        message, position = decoder.raw_decode(text, position)
        yield message


def _hashes(files: object) -> dict[str, str]:
    assert isinstance(files, list)
    return {file["path"]: file.get("digest", {}).get("hash", "") for file in files}


def read_log(path: Path) -> list[Action]:
    """The actions in a log that --execution_log_json_file wrote, each after those it needs."""
    actions = []
    for message in _messages(path.read_text(encoding="utf-8")):
        outputs = _hashes(message.get("actualOutputs", []))
        if outputs:
            actions.append(
                Action(
                    mnemonic=str(message.get("mnemonic", "")),
                    target=str(message.get("targetLabel", "")),
                    inputs=_hashes(message.get("inputs", [])),
                    outputs=outputs,
                )
            )
    return actions


def compare(a: Sequence[Action], b: Sequence[Action]) -> list[str]:
    """What differs, as a line for each action; those whose inputs are the same come first."""
    others = {path: action for action in b for path in action.outputs}
    causes, consequences = [], []
    for action in a:
        other = others.get(min(action.outputs))
        if other is None:
            consequences.append(f"{action} made {min(action.outputs)} in one build only")
            continue
        different = sorted(
            path
            for path in {*action.outputs, *other.outputs}
            if action.outputs.get(path) != other.outputs.get(path)
        )
        if not different:
            continue
        changed = sorted(
            path
            for path in {*action.inputs} & {*other.inputs}
            if action.inputs[path] != other.inputs[path]
        )
        if changed:
            consequences.append(f"{action} made another {different[0]} of another {changed[0]}")
        else:
            causes.append(f"{action} made another {different[0]} of the same inputs")
    made = {path for action in a for path in action.outputs}
    for action in b:
        if made.isdisjoint(action.outputs):
            consequences.append(f"{action} made {min(action.outputs)} in one build only")
    return causes + consequences


def summary(actions: Sequence[Action]) -> list[str]:
    """A line for each kind of action: how many there are, and a digest of all their outputs."""
    lines = []
    for mnemonic in sorted({action.mnemonic for action in actions}):
        outputs = {}
        count = 0
        for action in actions:
            if action.mnemonic == mnemonic:
                outputs.update(action.outputs)
                count += 1
        together = hashlib.sha256(json.dumps(sorted(outputs.items())).encode()).hexdigest()
        lines.append(f"{count:4} {mnemonic:20} {together}")
    return lines


def default_targets() -> list[str]:
    """Everything that is made of some models, and a program."""
    parts = ("generated", "cpu", "openmp", "cuda", "library", "weights_object")
    labels = [f"//models:{model}_{part}" for model in MODELS for part in parts]
    return [*labels, "//examples:tag_jets"]


def copy(root: Path) -> None:
    """Copies the files of this repository that git knows or would add."""
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


def _bazel(build: Build, *arguments: str) -> None:
    command = [str(build.root / "tools" / "bazel"), f"--output_base={build.output_base}"]
    if subprocess.run([*command, *arguments], cwd=build.root, check=False).returncode:
        raise ReproducibleError(f"the build in {build.root} failed.")


def build_and_log(build: Build, targets: Sequence[str]) -> list[Action]:
    """Builds in a copy of the repository and gives the actions that ran."""
    print(f"reproducible: building in {build.root}", file=sys.stderr, flush=True)
    log = build.root.parent / f"{build.root.name}.log"
    flags = [
        "--config=cuda",
        # Nothing that another build made.
        "--disk_cache=",
        "--remote_cache=",
        f"--action_env=PYTHONHASHSEED={build.hash_seed}",
        f"--host_action_env=PYTHONHASHSEED={build.hash_seed}",
        "--symlink_prefix=/",
        f"--execution_log_json_file={log}",
        *build.options,
    ]
    try:
        _bazel(build, "build", "--noshow_progress", *flags, *targets)
    finally:
        _bazel(build, "shutdown")
    return read_log(log)


def main() -> int:
    """Builds twice and compares."""
    parser = argparse.ArgumentParser(
        prog="reproducible",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--arch", default="sm_90a", help="the GPU architecture to compile for")
    parser.add_argument("--work", type=Path, help="folder for the builds, kept; else a temporary")
    parser.add_argument("--second", action="append", default=[], help="for the second build only")
    arguments, rest = parser.parse_known_args()
    options = [option for option in rest if option.startswith("-")]
    options.append(f"--//rules/cuda:archs={arguments.arch}")
    targets = [target for target in rest if not target.startswith("-")] or default_targets()
    with tempfile.TemporaryDirectory(prefix="reproducible-") as temporary:
        work = (arguments.work or Path(temporary)).resolve()
        builds = (
            Build(work / "a" / "s", work / "a" / "o", 1, options),
            Build(
                work / "another_folder_with_a_longer_name" / "deep" / "checkout_of_sofie",
                work / "another_output_base_with_a_longer_name",
                4242,
                [*options, *arguments.second],
            ),
        )
        try:
            # Both now: a file may be edited while the first builds.
            for build in builds:
                copy(build.root)
            first, second = [build_and_log(build, targets) for build in builds]
        except ReproducibleError as error:
            print(f"reproducible: {error}", file=sys.stderr)
            return 1
        finally:
            if not arguments.work:
                # Bazel makes its folders read-only.
                subprocess.run(["chmod", "-R", "u+w", temporary], check=False)
    print("\n".join(summary(first)))
    different = compare(first, second)
    if different:
        print(f"reproducible: {different[0]}", file=sys.stderr)
        for line in different[1:20]:
            print(f"  then {line}", file=sys.stderr)
        print(f"reproducible: {len(different)} actions differ.", file=sys.stderr)
        return 1
    if not first:
        print("reproducible: no action ran: there is nothing to compare.", file=sys.stderr)
        return 1
    print("reproducible: both builds gave the same bytes.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
