"""Text of models inside generated code."""

import pytest

from sofie.emit.text import c_string, comment


@pytest.mark.parametrize("text", ["a\nb", "end\\", "int main() {\n}", "a??/b", "tab\there"])
def test_a_comment_stays_on_its_line(text: str) -> None:
    line = comment(text)
    assert "\n" not in line
    assert "\\" not in line
    assert "??/" not in line


def test_string_literals() -> None:
    assert c_string('a"b') == '"a\\042b"'
    assert c_string("back\\slash\n") == '"back\\134slash\\012"'
    assert c_string("é") == '"\\303\\251"'
    assert c_string("what??/") == '"what\\077\\077/"'
