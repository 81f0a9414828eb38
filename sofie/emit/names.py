"""C++ identifiers for ONNX's names, which may be any text."""

from __future__ import annotations

import re

_KEYWORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
    co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq""".split()
)
# Names that are no keywords, but mean something else where generated code stands: types, macros of
# the C library, and what functors call their locals and members.
_TAKEN = frozenset(
    """int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t std sofie
    NULL EOF BUFSIZ FILENAME_MAX RAND_MAX INFINITY NAN HUGE_VAL errno assert stdin stdout stderr
    unix linux value Value Load Store Combine acc core""".split()
)
_LOCAL = re.compile(r"[girv][0-9]+")
_LONGEST = 48


def is_identifier(text: str) -> bool:
    """True for what C++ takes as a name that a user may choose."""
    return (
        re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text) is not None
        and text not in _KEYWORDS
        and text not in _TAKEN
        and "__" not in text
    )


def identifier(text: str) -> str:
    """The nearest identifier to a text; different texts may give the same one."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    name = re.sub(r"__+", "_", name)
    if len(name) > _LONGEST:
        name = name[-_LONGEST:].strip("_")
    if not name or not name[0].isalpha():
        name = f"x{name}" if name else "x"
    taken = name in _KEYWORDS or name in _TAKEN or _LOCAL.fullmatch(name) is not None
    return f"{name}_" if taken else name


class Names:
    """Identifiers of one scope: every text gets one, and no two the same."""

    def __init__(self, reserved: tuple[str, ...] = ()) -> None:
        self._taken = set(reserved)

    def new(self, text: str) -> str:
        """An identifier for a text, numbered where the plain one is taken."""
        base = identifier(text)
        name, count = base, 2
        while name in self._taken:
            name = f"{base.rstrip('_')}_{count}"
            count += 1
        self._taken.add(name)
        return name
