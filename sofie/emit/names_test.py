"""C++ identifiers for any text."""

import pytest

from sofie.emit.names import Names, identifier, is_identifier


@pytest.mark.parametrize(
    "text",
    [
        "input.1",
        "input1",
        "a/b",
        "int",
        "",
        "1x",
        "__x__",
        "é",
        "a b",
        "x" * 300,
        "\n",
        "class",
        "_",
    ],
)
def test_every_text_becomes_an_identifier(text: str) -> None:
    assert is_identifier(identifier(text))


@pytest.mark.parametrize(
    "text", ["value", "v1", "i0", "r12", "g3", "int64_t", "NULL", "errno", "Load"]
)
def test_what_generated_code_uses_itself_is_not_given_out(text: str) -> None:
    assert identifier(text) != text
    assert is_identifier(identifier(text))


def test_names_of_one_scope_differ() -> None:
    texts = ["input.1", "input1", "input_1", "input/1", "input__1", "input_1_2", "", "?", "x"]
    names = Names()
    made = [names.new(t) for t in texts]
    assert len(set(made)) == len(texts)
    assert all(is_identifier(name) for name in made)


def test_reserved_names_are_not_given_out() -> None:
    assert Names(("acc",)).new("acc") != "acc"


@pytest.mark.parametrize("text", ["int", "a__b", "1a", "a-b", "", "_a", "std", "NULL"])
def test_what_a_user_may_not_choose(text: str) -> None:
    assert not is_identifier(text)
