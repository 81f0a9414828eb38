"""Tests what a comment `/runtest LABEL` starts, and what is reported."""

from pathlib import Path

import pytest
import runtest

_COMMIT = "0123456789abcdef0123456789abcdef01234567"
_REQUEST = {
    "AUTHOR": "someone",
    "COMMENT": "/runtest h100",
    "GITHUB_REPOSITORY": "owner/sofie",
    "PULL_REQUEST": "7",
}
_REPORT = {
    "BUILD_RESULT": "success",
    "COMMIT": _COMMIT,
    "LABEL": "h100",
    "RUN_RESULT": "success",
    "RUN_URL": "https://example.org/run",
}
_GOOD = '<testsuites><testsuite><testcase classname="S" name="A"/></testsuite></testsuites>'
_BAD = _GOOD.replace("/></", "/><testcase classname='S' name='B'><failure/></testcase></")


class _GitHub:
    """A stand-in for gh that answers and remembers the comments."""

    def __init__(self, permission: str = "write") -> None:
        self.permission = permission
        self.comments: list[str] = []

    def __call__(self, *arguments: str) -> str:
        if arguments[:2] == ("pr", "comment"):
            self.comments.append(arguments[-1])
            return ""
        answers = {
            "repos/owner/sofie/collaborators/someone/permission": self.permission,
            "repos/owner/sofie/pulls/7": _COMMIT,
        }
        return answers[arguments[1]]


@pytest.mark.parametrize("permission", ["admin", "maintain", "write"])
def test_starts_for_people_with_write_access(permission: str) -> None:
    github = _GitHub(permission)
    assert runtest.request(_REQUEST, github) == {"label": "h100", "commit": _COMMIT}
    assert github.comments == []


@pytest.mark.parametrize("permission", ["read", "triage", "none", ""])
def test_refuses_others(permission: str) -> None:
    github = _GitHub(permission)
    assert runtest.request(_REQUEST, github) is None
    assert github.comments == [
        "No GPU tests were started: @someone has no write access to this repository."
    ]


@pytest.mark.parametrize(
    "comment",
    [
        "/runtest",
        "/runtest h100; rm -rf /",
        "/runtest h100 a100",
        "/runtest ${{ secrets.X }}",
        "/runtest h100\nlabel=other",
        "/runtest -h100",
        "/runtests h100",
    ],
)
def test_refuses_what_it_does_not_understand(comment: str) -> None:
    github = _GitHub()
    assert runtest.request({**_REQUEST, "COMMENT": comment}, github) is None
    assert "write `/runtest LABEL`" in github.comments[0]


def _summary(folder: Path, report: str | None, **environment: str) -> str:
    if report:
        (folder / "junit.xml").write_text(report, encoding="utf-8")
    return runtest.summary(folder, {**_REPORT, **environment})


def test_reports(tmp_path: Path) -> None:
    assert "**no result**" in _summary(tmp_path, None, RUN_RESULT="failure")
    assert "**the build failed**" in _summary(tmp_path, None, BUILD_RESULT="failure")
    good = _summary(tmp_path, _GOOD)
    assert good.startswith(f"GPU tests on `h100` at {_COMMIT}: **passed**, 1 of 1; see [the run](")
    bad = _summary(tmp_path, _BAD, RUN_RESULT="failure")
    assert "**failed**, 1 of 2" in bad
    assert bad.endswith("- `S.B`")


def test_a_good_report_of_a_bad_run_is_bad(tmp_path: Path) -> None:
    assert "**failed**" in _summary(tmp_path, _GOOD, RUN_RESULT="failure")
    assert "**failed**" in _summary(tmp_path, "<testsuites/>")
