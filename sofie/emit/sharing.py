"""Equal kernels are one functor: launches differ in what they initialise its members with.

The layers of a network are often the same code over other buffers and sizes. What is compiled, and
how long that takes, then depends on how many different kernels a model has, not on its depth.
"""

from __future__ import annotations

import dataclasses
import re

from sofie.emit.functor import Functor

_Key = tuple[tuple[str, ...], ...]


class Functors:
    """The functors of a program so far."""

    def __init__(self) -> None:
        self._first: dict[_Key, Functor] = {}

    def shared(self, new: Functor) -> Functor:
        """The functor to launch for ``new``: itself, or an equal one with the values of ``new``."""
        first = self._first.setdefault(_key(new), new)
        parameters = tuple(
            dataclasses.replace(parameter, value=wanted.value)
            for parameter, wanted in zip(first.parameters, new.parameters, strict=True)
        )
        return dataclasses.replace(first, parameters=parameters)


def _key(functor: Functor) -> _Key:
    """The functor's text, its members called after their position."""
    places = {parameter.name: f"p{i}$" for i, parameter in enumerate(functor.parameters)}
    lines = [line for method in functor.methods for line in (method.signature, *method.body)]
    text = re.sub(r"\b[A-Za-z_]\w*\b", lambda m: places.get(m[0], m[0]), "\n".join(lines))
    return functor.constants, tuple(p.cpp_type for p in functor.parameters), (text,)
