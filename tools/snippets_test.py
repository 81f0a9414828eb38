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

```cpp file=main.cc
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
        ("cpp", ["file=main.cc"]),
    ]
    assert [word.split() for word in snippets.commands(found[0][2])] == [
        ["tools/lint"],
        ["tools/bazel", "test", "//..."],
    ]
    assert found[2][2] == "int main() {}\n"


@pytest.mark.parametrize(
    ("command", "build_only", "expected"),
    [
        ("tools/lint --fix", False, "tools/lint --fix"),
        ("tools/bazel test //...", False, "tools/bazel --base test --config=ci //..."),
        ("tools/bazel test //:gpu", True, "tools/bazel --base build --config=ci //:gpu"),
        ("tools/bazel run //x -- -d cuda", True, "tools/bazel --base build --config=ci //x"),
        ("../sofie/tools/bazel run //x", False, "../sofie/tools/bazel --base run --config=ci //x"),
        ("tools/bazel info bazel-bin", False, "tools/bazel --base info bazel-bin"),
    ],
)
def test_adapted(command: str, build_only: bool, expected: str) -> None:
    words = snippets.adapted(command, ["--base"], ["--config=ci"], build_only)
    assert words == expected.split()
