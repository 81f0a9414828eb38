"""Runs ONNX's backend tests and writes a table in Markdown.

    tools/bazel run //tests/conformance -- --backend=cpu [--filter=REGEX] [--json=FILE]

Exits with 1 if a result is wrong, a model fails to build, or what is refused, and why, is not what
tests/conformance/refused.json says.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence

from absl import app, flags, logging

from tests.conformance import build, execute, interpret, options, suite, verdicts

_BACKEND = flags.DEFINE_enum(
    "backend", None, ["cpu", "openmp", "interpreter"], "What runs the models.", required=True
)
_JSON = flags.DEFINE_string("json", None, "File for an object from test name to verdict.")
_OUTPUT = flags.DEFINE_string("output", None, "File for the table; standard output by default.")
_UPDATE = flags.DEFINE_bool("update", False, "Put what is refused on record.")


def run(
    cases: Sequence[suite.Case], backend: str, work: pathlib.Path
) -> dict[str, verdicts.Verdict]:
    """The verdicts on tests, by name."""
    symbolic = options.SYMBOLIC.value
    if backend == "interpreter":
        return {case.name: interpret.run(case, symbolic) for case in cases}
    toolchain = build.Toolchain.read(pathlib.Path(__file__).with_name("commands.json"))
    builder = build.Builder(toolchain, backend, work, options.PROCESSES.value)
    found = builder.build(cases, symbolic)
    names = [name for name, verdict in found.items() if verdict.result == verdicts.PASSED]
    jobs = execute.jobs_of(work / "data", found, names)
    return {**found, **execute.run(builder.program, backend, jobs, toolchain.environment)}


def main(argv: Sequence[str]) -> None:
    """Runs the tests that the flags ask for."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    logging.set_verbosity(logging.ERROR)
    with options.work() as work:
        found = run(options.cases(), _BACKEND.value, work)
    table = verdicts.table(found)
    if _OUTPUT.value:
        options.path(_OUTPUT.value).write_text(table, encoding="utf-8")
    else:
        print(table)
    if _JSON.value:
        verdicts.write_json(found, options.path(_JSON.value))
    if _UPDATE.value:
        verdicts.write_refused(found, options.record())
    problems = verdicts.complaints(found, verdicts.read_refused(options.record()))
    print("\n".join(problems), file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    app.run(main)
