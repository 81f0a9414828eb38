"""Measures what is rebuilt after a change, and how long it takes.

    tools/bazel run //tools:incremental -- [--work=FOLDER] [BAZEL OPTION ...]

Builds all models and //examples:tag_jets in a copy of this repository, then changes one thing after
another and builds again: nothing; one model's weights; one model's graph; a kernel header that all
models include; a file of the generator whose change alters no output. Prints a table for
docs/performance.md. Exits with 1 where more ran than should: a compiler after a change of weights
or after a change of the generator without effect, anything after no change.
"""

import argparse
import collections
import dataclasses
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import onnx
import reproducible
from onnx import numpy_helper

# Seconds that a build may take in which nothing changed.
_NOTHING_SECONDS = 2.0
_COMPILERS = ("CppCompile", "CudaCompile")


@dataclasses.dataclass(frozen=True)
class Result:
    """What a build did.

    Attributes:
      change: what was changed before.
      seconds: how long it took.
      actions: how many actions of each kind ran.
    """

    change: str
    seconds: float
    actions: collections.Counter[str]

    def row(self) -> str:
        """A line of the table."""
        ran = ", ".join(f"{count} {kind}" for kind, count in sorted(self.actions.items()))
        return f"| {self.change} | {ran or 'nothing'} | {self.seconds:.1f} s |"


def change_weights(path: Path) -> None:
    """Adds one to every element of a model's largest initializer."""
    model = onnx.load(path)
    weights = max(
        (t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT),
        key=lambda t: len(t.raw_data),
    )
    changed = numpy_helper.from_array(numpy_helper.to_array(weights) + 1, weights.name)
    weights.CopyFrom(changed)
    onnx.save(model, path)


def change_graph(path: Path) -> None:
    """Negates a model's first output."""
    model = onnx.load(path)
    output = model.graph.output[0]
    for node in model.graph.node:
        for index, name in enumerate(node.output):
            if name == output.name:
                node.output[index] = name + "_before"
    model.graph.node.append(
        onnx.helper.make_node("Neg", [output.name + "_before"], [output.name], name="negated")
    )
    onnx.save(model, path)


def append(path: Path, text: str) -> None:
    """Adds a line to a file."""
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def ran(log: Path) -> collections.Counter[str]:
    """How many actions of each kind ran, of a log by --execution_log_json_file; none if absent."""
    if not log.exists():
        return collections.Counter()
    return collections.Counter(action.mnemonic for action in reproducible.read_log(log))


def problems(results: Sequence[Result]) -> list[str]:
    """What should not have happened."""
    found = []
    by_change = {result.change: result for result in results}
    nothing = by_change["nothing"]
    if nothing.actions or nothing.seconds >= _NOTHING_SECONDS:
        found.append(f"nothing changed, and a build took {nothing.seconds:.1f} s: {nothing.row()}")
    for change in ("one model's weights", "a generator file, without effect"):
        compiled = [kind for kind in _COMPILERS if by_change[change].actions[kind]]
        if compiled:
            found.append(f"{change} changed, and {' and '.join(compiled)} ran")
    for change in ("one model's graph", "one kernel header"):
        if not by_change[change].actions["CppCompile"]:
            found.append(f"{change} changed, and nothing was compiled: the change had no effect")
    return found


def measure(build: reproducible.Build, targets: Sequence[str]) -> list[Result]:
    """Builds, changes, and builds again."""
    log = build.root.parent / "execution.log"
    command = [str(build.root / "tools" / "bazel"), f"--output_base={build.output_base}"]

    def run(change: str) -> Result:
        log.unlink(missing_ok=True)
        flags = ["--config=cuda", "--noshow_progress", "--symlink_prefix=/", "--disk_cache="]
        flags += [f"--execution_log_json_file={log}", *build.options]
        since = time.monotonic()
        done = subprocess.run([*command, "build", *flags, *targets], cwd=build.root, check=False)
        seconds = time.monotonic() - since
        if done.returncode:
            raise reproducible.ReproducibleError(f"the build after a change of {change} failed.")
        return Result(change, seconds, ran(log))

    models = build.root / "models"
    changes: list[tuple[str, Callable[[], None]]] = [
        ("everything", lambda: None),
        ("nothing", lambda: None),
        ("one model's weights", lambda: change_weights(models / "particle_net.onnx")),
        ("one model's graph", lambda: change_graph(models / "mlp.onnx")),
        (
            "one kernel header",
            lambda: append(build.root / "sofie/runtime/kernels/math.h", "// Changed.\n"),
        ),
        (
            "a generator file, without effect",
            lambda: append(build.root / "sofie/plan/lower.py", "\n# Changed.\n"),
        ),
    ]
    results = []
    try:
        for change, make in changes:
            make()
            results.append(run(change))
    finally:
        subprocess.run([*command, "shutdown"], cwd=build.root, check=False)
    return results


def main() -> int:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(
        prog="incremental",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--work", type=Path, help="folder for the builds, kept; else a temporary")
    arguments, options = parser.parse_known_args()
    targets = [f"//models:{model}" for model in reproducible.MODELS]
    with tempfile.TemporaryDirectory(prefix="incremental-") as temporary:
        work = (arguments.work or Path(temporary)).resolve()
        build = reproducible.Build(work / "sofie", work / "output_base", 0, options)
        try:
            reproducible.copy(build.root)
            results = measure(build, [*targets, "//examples:tag_jets"])
        except reproducible.ReproducibleError as error:
            print(f"incremental: {error}", file=sys.stderr)
            return 1
        finally:
            if not arguments.work:
                # Bazel makes its folders read-only.
                subprocess.run(["chmod", "-R", "u+w", temporary], check=False)
    print("| Changed | Ran | Time |\n| --- | --- | --- |")
    print("\n".join(result.row() for result in results))
    found = problems(results)
    for problem in found:
        print(f"incremental: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
