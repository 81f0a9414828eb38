"""What became of each test, and how that is reported. Only the standard library is needed."""

from __future__ import annotations

import collections
import dataclasses
import json
import pathlib
from collections.abc import Iterator, Mapping

PASSED = "passed"
REFUSED = "refused"
WRONG = "wrong"
FAILED_TO_BUILD = "failed_to_build"
RESULTS = (PASSED, REFUSED, WRONG, FAILED_TO_BUILD)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a test.

    Attributes:
      kind: the set that the test belongs to, "node" and so on.
      result: one of ``RESULTS``.
      reason: why it did not pass.
    """

    kind: str
    result: str
    reason: str = ""


Verdicts = Mapping[str, Verdict]


def write_json(verdicts: Verdicts, path: pathlib.Path) -> None:
    """An object from every test's name to its verdict."""
    content = {name: dataclasses.asdict(verdict) for name, verdict in sorted(verdicts.items())}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_json(path: pathlib.Path) -> dict[str, Verdict]:
    """What ``write_json`` wrote."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return {name: Verdict(**fields) for name, fields in content.items()}


def table(verdicts: Verdicts) -> str:
    """A table in Markdown: how many of each set, then every test that did not pass, by reason."""
    lines = ["| Set | Tests | " + " | ".join(RESULTS) + " |", "| --- | ---: " + "| ---: " * 4 + "|"]
    kinds = sorted({verdict.kind for verdict in verdicts.values()})
    for kind in [*kinds, "all"]:
        counts = collections.Counter(v.result for v in verdicts.values() if kind in (v.kind, "all"))
        cells = [counts.total(), *(counts[result] for result in RESULTS)]
        lines.append(f"| {kind} | " + " | ".join(map(str, cells)) + " |")
    for result in (WRONG, FAILED_TO_BUILD, REFUSED):
        lines += _by_reason(verdicts, result)
    return "\n".join(lines) + "\n"


def _by_reason(verdicts: Verdicts, result: str) -> Iterator[str]:
    reasons: dict[str, list[str]] = collections.defaultdict(list)
    for name, verdict in sorted(verdicts.items()):
        if verdict.result == result:
            reasons[verdict.reason].append(name)
    if not reasons:
        return
    yield f"\n| {result} because | Tests |\n| --- | --- |"
    for reason, names in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        text = reason.replace("|", "\\|").replace("\n", "<br>")
        yield f"| {text} | {len(names)}: {', '.join(names)} |"


def complaints(verdicts: Verdicts, refused: Mapping[str, str]) -> list[str]:
    """What is not as it must be: all pass, except those whose refusal is on record.

    Args:
      verdicts: of the tests that ran.
      refused: reasons by name, of all tests that are to be refused.
    """
    problems = []
    for name, verdict in sorted(verdicts.items()):
        if verdict.result in (WRONG, FAILED_TO_BUILD):
            problems.append(f"{name}: {verdict.result}: {verdict.reason}")
        elif verdict.result == REFUSED and name not in refused:
            problems.append(f"{name}: refused, which is not on record: {verdict.reason}")
        elif verdict.result == REFUSED and verdict.reason != refused[name]:
            problems.append(
                f"{name}: refused because {verdict.reason!r}; on record is {refused[name]!r}"
            )
        elif verdict.result == PASSED and name in refused:
            problems.append(f"{name}: passes; on record it is refused because {refused[name]!r}")
    return problems


def read_refused(path: pathlib.Path) -> dict[str, str]:
    """The tests on record as refused, with reasons."""
    content: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return content


def write_refused(verdicts: Verdicts, path: pathlib.Path) -> None:
    """Puts the refused tests on record."""
    refused = {n: v.reason for n, v in sorted(verdicts.items()) if v.result == REFUSED}
    path.write_text(json.dumps(refused, indent=0) + "\n", encoding="utf-8")
