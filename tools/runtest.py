"""GPU tests on request: what a comment `/runtest LABEL` on a pull request starts and gets back.

    .ci/runtest request   checks the comment and its author; tells the workflow label and commit
    .ci/runtest report    writes the result as a comment

Both read what they need from the environment, as .github/workflows/gpu.yml sets it, and use
GitHub's `gh`. A request by somebody without write access, or one that can't be understood, is
answered by a comment and ends with 1.

Only the standard library is used.
"""

import argparse
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from pathlib import Path

# Who may use the runners.
_WRITERS = ("admin", "maintain", "write")
# A label of a runner; nothing that a shell or a workflow could take for something else.
_COMMENT = re.compile(r"/runtest[ \t]+([a-z0-9][a-z0-9-]{0,39})\s*")
_MOST_FAILURES = 20

Gh = Callable[..., str]


def gh(*arguments: str) -> str:
    """Runs GitHub's command-line program."""
    done = subprocess.run(["gh", *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def request(environment: Mapping[str, str], github: Gh) -> dict[str, str] | None:
    """The label of the runner and the commit to test; None if there is nothing to run."""
    repository = environment["GITHUB_REPOSITORY"]
    pull_request = environment["PULL_REQUEST"]
    author = environment["AUTHOR"]

    def refuse(reason: str) -> None:
        body = f"No GPU tests were started: {reason}"
        github("pr", "comment", pull_request, "--repo", repository, "--body", body)

    permission = github(
        "api", f"repos/{repository}/collaborators/{author}/permission", "--jq", ".permission"
    )
    if permission not in _WRITERS:
        refuse(f"@{author} has no write access to this repository.")
        return None
    understood = _COMMENT.fullmatch(environment["COMMENT"])
    if not understood:
        refuse("write `/runtest LABEL`, with a runner's label, as in `/runtest h100`.")
        return None
    commit = github("api", f"repos/{repository}/pulls/{pull_request}", "--jq", ".head.sha")
    if not re.fullmatch("[0-9a-f]{40}", commit):
        refuse("the pull request's commit could not be found out.")
        return None
    return {"label": understood.group(1), "commit": commit}


def summary(results: Path, environment: Mapping[str, str]) -> str:
    """The comment with the result, of a folder that run.sh of a bundle wrote."""
    where = f"on `{environment['LABEL']}` at {environment['COMMIT']}"
    link = f"[the run]({environment['RUN_URL']})"
    if environment["BUILD_RESULT"] != "success":
        return f"GPU tests {where}: **the build failed**; see {link}."
    report = results / "junit.xml"
    if not report.exists():
        return f"GPU tests {where}: **no result**; the machine says why in {link}."
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    failed = [
        f"{case.get('classname')}.{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    passed = environment["RUN_RESULT"] == "success" and not failed and bool(cases)
    word = "**passed**" if passed else "**failed**"
    lines = [f"GPU tests {where}: {word}, {len(cases) - len(failed)} of {len(cases)}; see {link}."]
    lines += [f"- `{name.replace('`', '')}`" for name in failed[:_MOST_FAILURES]]
    if len(failed) > _MOST_FAILURES:
        lines.append(f"- and {len(failed) - _MOST_FAILURES} more")
    return "\n".join(lines)


def main() -> int:
    """Runs one of the two commands."""
    parser = argparse.ArgumentParser(
        prog=".ci/runtest",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("request", "report"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    if arguments.command == "request":
        outputs = request(os.environ, gh)
        if outputs is None:
            return 1
        with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in outputs.items())
        return 0
    body = summary(arguments.results, os.environ)
    repository = os.environ["GITHUB_REPOSITORY"]
    gh("pr", "comment", os.environ["PULL_REQUEST"], "--repo", repository, "--body", body)
    return 0


if __name__ == "__main__":
    sys.exit(main())
