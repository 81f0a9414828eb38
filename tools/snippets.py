"""Runs every command that the pages show, in the order in which they show them.

    tools/snippets [--gpu] [--startup=OPTION ...] [BAZEL OPTION ...]

The pages are README.md, CONTRIBUTING.md and docs/*.md. A block of kind

  sh                  is run in the repository
  sh gpu              likewise; without --gpu, its last command must fail for want of a CUDA device
  sh folder=FOLDER    is run in that folder of the repository, a workspace of its own
  cpp                 is compiled and run by //docs:interface_test

Further options are given to every Bazel command that builds. Exits with 1 at the first command that
fails.
"""

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a session says where there is no GPU.
_NO_DEVICE = "this machine offers no CUDA device"


def pages() -> list[Path]:
    """The pages with commands."""
    found = [_ROOT / "README.md", _ROOT / "CONTRIBUTING.md", *sorted(_ROOT.glob("docs/*.md"))]
    return [page for page in found if page.exists()]


def blocks(page: Path) -> Iterator[tuple[str, list[str], str]]:
    """Language, options and text of each block of a page."""
    for kind, body in _BLOCK.findall(page.read_text(encoding="utf-8")):
        language, *options = kind.split()
        yield language, options, body


def commands(body: str) -> list[str]:
    """The commands of a block: its lines, joined where one ends with a backslash."""
    joined = body.replace("\\\n", " ")
    lines = [line.split(" #")[0].strip() for line in joined.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def adapted(command: str, startup: Sequence[str], options: Sequence[str]) -> list[str]:
    """A command as it is run here: with options for Bazel."""
    words = shlex.split(command.replace("$PWD", str(_ROOT)))
    if not words[0].endswith("tools/bazel"):
        return words
    program, verb, *rest = words
    if verb in ("build", "run", "test"):
        rest = [*options, *rest]
    return [program, *startup, verb, *rest]


def _run(words: Sequence[str], folder: Path) -> None:
    print(f"snippets: {shlex.join(words)}", file=sys.stderr, flush=True)
    if subprocess.run(words, cwd=folder, check=False).returncode:
        sys.exit(f"snippets: this failed in {folder}: {shlex.join(words)}")


def run_without_gpu(words: Sequence[str], folder: Path) -> None:
    """Runs a command as far as the machine's lack of a GPU lets it come, which it must say."""
    print(f"snippets: without a GPU: {shlex.join(words)}", file=sys.stderr, flush=True)
    done = subprocess.run(
        words, cwd=folder, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode == 0 or _NO_DEVICE not in done.stdout:
        print(done.stdout, file=sys.stderr)
        sys.exit(
            f"snippets: exit status {done.returncode}, expected a failure with '{_NO_DEVICE}' "
            f"(on a machine with a GPU: tools/snippets --gpu): {shlex.join(words)}"
        )


def _run_elsewhere(command: str, folder: Path, options: Sequence[str]) -> None:
    """Runs a command in another workspace, with Bazel's server and outputs of its own."""
    with tempfile.TemporaryDirectory(prefix="snippets-") as temporary:
        base = f"--output_base={temporary}/output_base"
        shared = [o for o in options if o.startswith("--disk_cache")]
        # Bazel's sandboxes have a /tmp of their own, and this repository may lie there.
        shared.append(f"--sandbox_add_mount_pair={tempfile.gettempdir()}")
        try:
            _run(adapted(command, [base], shared), folder)
        finally:
            bazel = [str(_ROOT / "tools" / "bazel"), base, "shutdown"]
            subprocess.run(bazel, cwd=folder, check=False)
            # Bazel makes its folders read-only.
            subprocess.run(["chmod", "-R", "u+w", temporary], check=False)


def main() -> None:
    """Runs the commands."""
    parser = argparse.ArgumentParser(
        prog="tools/snippets",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--gpu", action="store_true", help="run what needs a GPU too")
    parser.add_argument("--startup", action="append", default=[], help="for Bazel's start")
    arguments, options = parser.parse_known_args()
    count = 0
    for page in pages():
        for language, kinds, body in blocks(page):
            if language != "sh":
                continue
            shown = commands(body)
            for number, command in enumerate(shown, start=1):
                count += 1
                folder = [k.removeprefix("folder=") for k in kinds if k.startswith("folder=")]
                if folder:
                    _run_elsewhere(command, _ROOT / folder[0], options)
                    continue
                no_gpu = "gpu" in kinds and not arguments.gpu and number == len(shown)
                run = run_without_gpu if no_gpu else _run
                run(adapted(command, arguments.startup, options), _ROOT)
    if not count:
        sys.exit("snippets: the pages show no command.")
    print(f"snippets: {count} commands ran.", file=sys.stderr)


if __name__ == "__main__":
    main()
