"""Tests what the comparison of two builds finds and what it says."""

import json
from pathlib import Path

import reproducible
from reproducible import Action

_GENERATE = Action("OnnxGenerate", "//m:m_generated", {"m.onnx": "1"}, {"m.cc": "2", "m.bin": "3"})
_COMPILE = Action("CppCompile", "//m:m", {"m.cc": "2"}, {"m.o": "4"})
_LINK = Action("CppLink", "//m:p", {"m.o": "4"}, {"p": "5"})
_BUILD = [_GENERATE, _COMPILE, _LINK]


def _changed(action: Action, inputs: dict[str, str], outputs: dict[str, str]) -> Action:
    return Action(action.mnemonic, action.target, action.inputs | inputs, action.outputs | outputs)


def test_equal_builds() -> None:
    assert reproducible.compare(_BUILD, list(_BUILD)) == []


def test_any_output_counts() -> None:
    for action in _BUILD:
        for path in action.outputs:
            other = [_changed(a, {}, {path: "other"}) if path in a.outputs else a for a in _BUILD]
            [line] = reproducible.compare(_BUILD, other)
            assert line == f"{action} made another {path} of the same inputs"


def test_the_first_difference_is_the_cause() -> None:
    other = [
        _GENERATE,
        _changed(_COMPILE, {}, {"m.o": "x"}),
        _changed(_LINK, {"m.o": "x"}, {"p": "y"}),
    ]
    # Whatever the order in which they ran.
    lines = reproducible.compare(list(reversed(_BUILD)), other)
    assert lines == [
        "CppCompile of //m:m made another m.o of the same inputs",
        "CppLink of //m:p made another p of another m.o",
    ]


def test_actions_of_one_build_only() -> None:
    assert reproducible.compare(_BUILD, _BUILD[:2]) == ["CppLink of //m:p made p in one build only"]
    assert reproducible.compare(_BUILD[:2], _BUILD) == ["CppLink of //m:p made p in one build only"]


def test_reads_bazels_log(tmp_path: Path) -> None:
    def files(names: dict[str, str]) -> list[dict[str, object]]:
        return [{"path": path, "digest": {"hash": digest}} for path, digest in names.items()]

    messages = [
        {
            "mnemonic": action.mnemonic,
            "targetLabel": action.target,
            "inputs": files(action.inputs),
            "actualOutputs": files(action.outputs),
        }
        for action in _BUILD
    ]
    log = tmp_path / "log"
    log.write_text("\n".join(json.dumps(m, indent=2) for m in messages) + "\n", encoding="utf-8")
    assert reproducible.read_log(log) == _BUILD


def test_summary_depends_on_every_output() -> None:
    lines = reproducible.summary(_BUILD)
    assert [line.split()[:2] for line in lines] == [
        ["1", "CppCompile"],
        ["1", "CppLink"],
        ["1", "OnnxGenerate"],
    ]
    assert lines != reproducible.summary([*_BUILD[:2], _changed(_LINK, {}, {"p": "other"})])
