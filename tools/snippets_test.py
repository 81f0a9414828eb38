"""Tests how tools/snippets reads commands off a page and adapts them."""

from pathlib import Path

import pytest
import snippets

_PAGE = """\
Text.

```sh
tools/lint   # a comment
tools/bazel test \\
  //...
```

```sh gpu
tools/bazel run --config=cuda //x -- --device=cuda
```

```cpp from=main.cc
int main() {}
```
"""


def test_blocks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(_PAGE, encoding="utf-8")
    found = list(snippets.blocks(page))
    assert [(language, options) for language, options, _ in found] == [
        ("sh", []),
        ("sh", ["gpu"]),
        ("cpp", ["from=main.cc"]),
    ]
    assert [word.split() for word in snippets.commands(found[0][2])] == [
        ["tools/lint"],
        ["tools/bazel", "test", "//..."],
    ]
    assert found[2][2] == "int main() {}\n"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("tools/lint --fix", "tools/lint --fix"),
        ("tools/bazel test //...", "tools/bazel --base test --config=ci //..."),
        ("tools/bazel run //x -- -d cuda", "tools/bazel --base run --config=ci //x -- -d cuda"),
        ("../../tools/bazel run //x", "../../tools/bazel --base run --config=ci //x"),
        ("tools/bazel info bazel-bin", "tools/bazel --base info bazel-bin"),
    ],
)
def test_adapted(command: str, expected: str) -> None:
    assert snippets.adapted(command, ["--base"], ["--config=ci"]) == expected.split()


@pytest.mark.parametrize(
    ("script", "accepted"),
    [
        ("echo cuda:0: this machine offers no CUDA device, get one >&2; exit 1", True),
        ("echo this machine offers no CUDA device; exit 0", False),
        ("echo another error; exit 1", False),
    ],
)
def test_without_a_gpu_only_its_absence_may_stop_a_command(
    tmp_path: Path, script: str, accepted: bool
) -> None:
    words = ["sh", "-c", script]
    if accepted:
        snippets.run_without_gpu(words, tmp_path)
        return
    with pytest.raises(SystemExit):
        snippets.run_without_gpu(words, tmp_path)
