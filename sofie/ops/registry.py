"""Which operators exist: a file registers its operator, and this module finds the files."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence

from sofie.ir.builder import Builder
from sofie.ir.dtype import DType
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor

# Gives one reason for each thing about the node that is not supported.
Check = Callable[[Node], Iterable[str]]
# True for a node that it lowers; see ``Operator``.
Takes = Callable[[Node], bool]
# Computes the outputs from the inputs (None where an optional input is absent).
Lower = Callable[[Node, Builder, Sequence[Tensor | None]], Sequence[Tensor | None]]


@dataclasses.dataclass(frozen=True)
class Operator:
    """One operator of one opset range.

    Attributes:
      name: ONNX's name.
      domain: empty for ONNX's own operators.
      since: first opset whose definition the lowering follows.
      until: last one, or None.
      dtypes: element types that the first input may have; None where the operator has no input.
      takes: says which nodes it lowers; others become what ONNX says that they are made of. What it
        asks for, such as extents that are numbers, may not come to be unknown once it is known.
      check: what else it demands.
      lower: its kernels.
    """

    name: str
    domain: str
    since: int
    until: int | None
    dtypes: frozenset[DType] | None
    takes: Takes
    check: Check
    lower: Lower

    def covers(self, version: int) -> bool:
        """True where the opset version is in the range."""
        return self.since <= version and (self.until is None or version <= self.until)


_OPERATORS: dict[tuple[str, str], list[Operator]] = {}


def _accept(node: Node) -> Iterable[str]:
    return ()


def _take(node: Node) -> bool:
    return True


def operator(
    name: str,
    *,
    since: int,
    until: int | None = None,
    domain: str = "",
    dtypes: Iterable[DType] | None,
    takes: Takes = _take,
    check: Check = _accept,
) -> Callable[[Lower], Lower]:
    """Registers the decorated lowering as an operator; see ``Operator`` for the arguments."""

    def register(lower: Lower) -> Lower:
        types = None if dtypes is None else frozenset(dtypes)
        entry = Operator(name, domain, since, until, types, takes, check, lower)
        _OPERATORS.setdefault((domain, name), []).append(entry)
        return lower

    return register


def find(node: Node) -> Operator | None:
    """The operator that lowers the node; None where there is none."""
    for entry in _entries().get((node.raw.domain, node.raw.op_type), ()):
        if entry.covers(node.version) and entry.takes(node):
            return entry
    return None


def opsets(domain: str, name: str) -> list[tuple[int, int | None]]:
    """The opset ranges in which an operator is supported."""
    return [(entry.since, entry.until) for entry in _entries().get((domain, name), ())]


def every() -> list[Operator]:
    """All operators, sorted by domain, name and opset."""
    flat = [entry for entries in _entries().values() for entry in entries]
    return sorted(flat, key=lambda e: (e.domain, e.name, e.since))


_loaded = False


def _entries() -> dict[tuple[str, str], list[Operator]]:
    global _loaded
    if not _loaded:
        _loaded = True
        package = importlib.import_module("sofie.ops")
        for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
            if not module.endswith("_test"):
                importlib.import_module(f"sofie.ops.{module}")
    return _OPERATORS
