"""Tests the runner of a GPU bundle, with stand-ins for GPUs and for programs."""

import json
import os
import stat
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from tests.bundle import pack, run

_MANIFEST: dict[str, Any] = {"archs": ["sm_80", "sm_90"], "cuda": "13.0", "workspace": "_main"}
# A GoogleTest of three tests, one of which fails where FAIL is in the environment.
_GOOGLETEST = """\
#!/bin/sh
case ${GTEST_SHARD_INDEX:-0} in
  0) cases='<testcase name="A" time="0"/><testcase name="B" time="0"/>' n=2 f=0 ;;
  *) cases='<testcase name="C" time="0"/>' n=1 f=0 ;;
esac
echo "on $CUDA_VISIBLE_DEVICES, shard ${GTEST_SHARD_INDEX:-none} of ${GTEST_TOTAL_SHARDS:-none}"
cat > "${GTEST_OUTPUT#xml:}" << END
<testsuites><testsuite name="S" tests="$n" failures="$f" errors="0">$cases</testsuite></testsuites>
END
"""


def _program(folder: Path, name: str, script: str, **entry: Any) -> dict[str, Any]:
    path = folder / "runfiles" / "_main" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {
        "binaries": [],
        "environment": {},
        "gtest": False,
        "kind": "test",
        "name": f"//tests:{name}",
        "path": f"_main/{name}",
    } | entry


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle's folder on a machine with two GPUs."""
    monkeypatch.setattr(run, "_HERE", tmp_path)
    monkeypatch.setattr(run, "_RUNFILES", tmp_path / "runfiles")
    monkeypatch.setattr(run, "driver_problem", lambda _: (None, [(0, 90), (1, 90)]))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(bundle: Path, programs: list[dict[str, Any]], *arguments: str) -> int:
    (bundle / "manifest.json").write_text(json.dumps(_MANIFEST | {"programs": programs}))
    sys.argv = ["run.sh", *arguments]
    return int(run.main())


def test_googletests_are_cut_into_shards(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    programs = [_program(bundle, "g", _GOOGLETEST, gtest=True)]
    assert _run(bundle, programs) == 0
    assert "2 of 2 runs passed" in capsys.readouterr().out
    logs = sorted(path.read_text() for path in (bundle / "results").glob("*.log"))
    assert {line.split(",")[1].strip() for line in logs} == {"shard 0 of 2", "shard 1 of 2"}
    assert {line.split(",")[0] for line in logs} <= {"on 0", "on 1"}
    report = ElementTree.parse(bundle / "results" / "junit.xml")
    names = sorted(case.get("name", "") for case in report.iter("testcase"))
    assert names == ["A", "B", "C"]


def test_any_failure_counts(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    programs = [
        _program(bundle, "good", "#!/bin/sh\necho fine\n"),
        _program(bundle, "bad", "#!/bin/sh\necho 'no & <good>'\nexit 7\n"),
    ]
    assert _run(bundle, programs) == 1
    said = capsys.readouterr().out
    assert "FAILED (7)" in said
    assert "failed: //tests:bad" in said
    [failure] = ElementTree.parse(bundle / "results" / "junit.xml").iter("failure")
    assert failure.get("message") == "//tests:bad ended with 7"
    assert failure.text == "no & <good>\n"


def test_a_crash_after_a_good_report_counts(bundle: Path) -> None:
    programs = [_program(bundle, "g", _GOOGLETEST + "kill -SEGV $$\n", gtest=True)]
    assert _run(bundle, programs) == 1
    assert len(list(ElementTree.parse(bundle / "results" / "junit.xml").iter("failure"))) == 2


def test_too_long_counts(bundle: Path) -> None:
    programs = [_program(bundle, "slow", "#!/bin/sh\nexec sleep 60\n")]
    assert _run(bundle, programs, "--timeout=0.5") == 1


def test_benchmarks_run_alone_and_are_shown(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "#!/bin/sh\nmkdir busy || exit 9\necho measured 1 us\nsleep 0.2\nrmdir busy\n"
    programs = [_program(bundle, f"b{i}", script, kind="benchmark") for i in range(3)]
    assert _run(bundle, programs) == 0
    assert capsys.readouterr().out.count("measured 1 us") == 3


def test_keeps_the_files_that_a_program_writes(bundle: Path) -> None:
    writes = '#!/bin/sh\necho 1,2 > "$TEST_UNDECLARED_OUTPUTS_DIR/times.csv"\n'
    programs = [_program(bundle, "b", writes), _program(bundle, "silent", "#!/bin/sh\n")]
    assert _run(bundle, programs) == 0
    assert (bundle / "results" / "tests_b" / "times.csv").read_text() == "1,2\n"
    assert not (bundle / "results" / "tests_silent").exists()


def test_names_choose(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    programs = [_program(bundle, name, "#!/bin/sh\n") for name in ("one", "two")]
    assert _run(bundle, programs, "--list", "tw") == 0
    assert capsys.readouterr().out == "//tests:two\n"
    assert _run(bundle, programs, "three") == 1


def test_visible_devices(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [_program(bundle, "p", "#!/bin/sh\necho $CUDA_VISIBLE_DEVICES\n")]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-b")
    assert _run(bundle, programs) == 0
    assert (bundle / "results" / "tests_p.log").read_text() == "GPU-b\n"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert _run(bundle, programs) == 1


@pytest.mark.parametrize(
    ("archs", "capability", "runs"),
    [
        (["sm_80", "sm_90a"], 89, True),
        (["sm_80", "sm_90a"], 100, True),
        (["sm_90a"], 90, True),
        (["sm_90a"], 100, False),
        (["sm_90"], 89, False),
    ],
)
def test_code_for_one_architecture_alone(archs: list[str], capability: int, runs: bool) -> None:
    problem = run.architecture_problem({**_MANIFEST, "archs": archs}, [(0, capability)])
    assert (problem is None) == runs


def test_says_what_is_missing(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = [_program(bundle, "p", "#!/bin/sh\n", binaries=["_main/p"])]
    monkeypatch.setattr(run, "driver_problem", lambda _: ("there is no NVIDIA driver", []))
    assert _run(bundle, programs) == 1
    assert "there is no NVIDIA driver." in capsys.readouterr().err

    monkeypatch.setattr(run, "driver_problem", lambda _: (None, [(0, 75)]))
    assert _run(bundle, programs) == 1
    assert "compute capability 7.5" in capsys.readouterr().err

    monkeypatch.setattr(run, "driver_problem", lambda _: (None, [(0, 90)]))
    ldd = bundle / "bin" / "ldd"
    ldd.parent.mkdir()
    ldd.write_text("#!/bin/sh\necho ' libcublasLt.so.13 => not found'\n")
    ldd.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ldd.parent}:{os.environ['PATH']}")
    assert _run(bundle, programs) == 1
    assert "libcublasLt.so.13 can't be found" in capsys.readouterr().err


def test_says_so_without_a_driver(tmp_path: Path) -> None:
    """The real check, by the real start script; no machine that runs this test has a driver."""
    for name in ("run.sh", "run.py"):
        source = Path(run.__file__).with_name(name)
        (tmp_path / name).write_bytes(source.read_bytes())
    (tmp_path / "run.sh").chmod(0o755)
    programs = [_program(tmp_path, "p", "#!/bin/sh\n")]
    (tmp_path / "manifest.json").write_text(json.dumps(_MANIFEST | {"programs": programs}))
    done = subprocess.run(
        [tmp_path / "run.sh"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 1
    assert "NVIDIA driver" in done.stderr or "finds no GPU" in done.stderr


def test_manifest_tells_googletests_from_others() -> None:
    contents = {
        "_main/a": b"\x7fELF GTEST_SHARD_INDEX",
        "_main/b": b"\x7fELF",
        "_main/launcher": b"#!/bin/sh",
        "pypi/site-packages/x.so": b"\x7fELF",
    }
    programs = [
        {"environment": {}, "files": files, "kind": "test", "name": name, "path": "_main/launcher"}
        for name, files in (("a", ["_main/a", "_main/launcher"]), ("b", ["_main/b"]))
    ]
    programs[1]["files"] = ["_main/b", "pypi/site-packages/x.so"]
    made = pack.runner_manifest(_MANIFEST | {"programs": programs}, contents)
    assert [program["gtest"] for program in made["programs"]] == [True, False]
    assert [program["binaries"] for program in made["programs"]] == [["_main/a"], ["_main/b"]]
