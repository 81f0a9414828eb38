"""Text from models inside generated code."""

from __future__ import annotations


def comment(text: str) -> str:
    """A name as part of a ``//`` comment: one line, printable, no line continuation."""
    safe = "".join(c if c.isprintable() else "?" for c in text)
    return safe.replace("\\", "/").replace("??/", "?")


def c_string(text: str) -> str:
    """A C++ string literal with the text's UTF-8 bytes."""
    out = []
    for byte in text.encode("utf-8", "surrogatepass"):
        char = chr(byte)
        if char in '"\\?' or byte < 0x20 or byte > 0x7E:
            out.append(f"\\{byte:03o}")
        else:
            out.append(char)
    return f'"{"".join(out)}"'
