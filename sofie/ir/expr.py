"""Scalar expressions: what one thread computes for one point of a kernel's iteration space.

Indices and offsets inside them are SymPy expressions over loop variables, the model's symbols and
indirect indices (values loaded from an index tensor).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import sympy

from sofie.ir import dims
from sofie.ir.dtype import BOOL, DType

if TYPE_CHECKING:
    from sofie.ir.program import Buffer
    from sofie.ir.tensor import Reduction


@dataclasses.dataclass(frozen=True, eq=False)
class Expr:
    """A value of one element type."""

    dtype: DType

    def children(self) -> tuple[Expr, ...]:
        """Sub-expressions that are evaluated whenever this one is."""
        return ()


@dataclasses.dataclass(frozen=True, eq=False)
class Load(Expr):
    """An element of a buffer, ``offset`` elements after its start."""

    buffer: Buffer
    offset: dims.Expr

    @property
    def is_weight(self) -> bool:
        """True for a constant of the model: small, and in a cache after its first use."""
        return self.buffer.data is not None

    def children(self) -> tuple[Expr, ...]:
        """The indirect indices of the offset."""
        return tuple(s.value for s in indirect_symbols(self.offset))


@dataclasses.dataclass(frozen=True, eq=False)
class Literal(Expr):
    """A number that comes from an attribute (never from an initializer)."""

    value: float | int | bool


@dataclasses.dataclass(frozen=True, eq=False)
class Index(Expr):
    """An integer computed from loop variables and sizes; without a type, of the index type."""

    dtype: DType | None  # type: ignore[assignment]
    value: dims.Expr

    def children(self) -> tuple[Expr, ...]:
        """The indirect indices of the value."""
        return tuple(s.value for s in indirect_symbols(self.value))


@dataclasses.dataclass(frozen=True, eq=False)
class Call(Expr):
    """A C++ expression; ``{0}``, ``{1}``, ... in ``template`` stand for the arguments.

    They come in the type that is computed in; with ``stored``, in that of memory.
    """

    template: str
    args: tuple[Expr, ...]
    stored: bool = False

    def children(self) -> tuple[Expr, ...]:
        """The arguments."""
        return self.args


@dataclasses.dataclass(frozen=True, eq=False)
class Select(Expr):
    """``then`` where the condition holds, else ``other``; only the chosen one is evaluated."""

    condition: Expr
    then: Expr
    other: Expr

    def children(self) -> tuple[Expr, ...]:
        """The condition: the branches are guarded by it."""
        return (self.condition,)


@dataclasses.dataclass(frozen=True, eq=False)
class Fold(Expr):
    """``first``, then joined with ``body`` for every value of ``variable`` from 0 on, in order.

    For loops inside of an element whose length depends on data; see ``fold``.

    Attributes:
      template: a C++ expression with ``{0}`` for what there is and ``{1}`` for ``body``.
      first: what to begin with.
      variable: stands in the indices of ``body``.
      count: how many values the variable takes; none if it is negative.
      body: what is joined.
    """

    template: str
    first: Expr
    variable: sympy.Symbol
    count: Expr
    body: Expr

    def children(self) -> tuple[Expr, ...]:
        """The start and the length: the body is guarded by the length."""
        return (self.first, self.count)


_folds = itertools.count()


def fold(template: str, first: Expr, count: Expr, body: Callable[[dims.Expr], Expr]) -> Fold:
    """A ``Fold`` over a fresh variable, which ``body`` is given."""
    variable = sympy.Symbol(f"rf{next(_folds)}", integer=True, nonnegative=True)
    return Fold(first.dtype, template, first, variable, count, body(variable))


@dataclasses.dataclass(frozen=True, eq=False)
class PendingLoad(Expr):
    """An element of a reduction that has no kernel yet."""

    reduction: Reduction
    indices: tuple[dims.Expr, ...]

    def children(self) -> tuple[Expr, ...]:
        """The indirect indices."""
        return tuple(s.value for index in self.indices for s in indirect_symbols(index))


@dataclasses.dataclass(frozen=True, eq=False)
class Accumulator(Expr):
    """The reduced value inside a reduction's epilogue; ``member`` names a part of it."""

    member: str = ""


class Indirect(sympy.Symbol):
    """An index that is loaded or computed at run time; every instance has a number of its own."""

    value: Expr
    _numbers = itertools.count()

    def __new__(cls, value: Expr) -> Indirect:
        """Makes a fresh symbol that stands for ``value``."""
        self: Indirect = super().__new__(cls, f"g{next(cls._numbers)}", integer=True)
        self.value = value
        return self


@functools.lru_cache(maxsize=100_000)
def indirect_symbols(expr: dims.Expr) -> tuple[Indirect, ...]:
    """The indirect indices in an index expression, in a fixed order."""
    found = [s for s in expr.free_symbols if isinstance(s, Indirect)]
    return tuple(sorted(found, key=lambda s: int(s.name[1:])))


def compare(relation: str, a: dims.Expr, b: dims.Expr) -> Expr:
    """``a relation b`` on indices, as a bool, in the kernel's index type."""
    return Call(BOOL, "{0} " + relation + " {1}", (Index(None, a), Index(None, b)))


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node below ``expr``, guarded branches included, parents first."""
    seen: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        stack.extend(reversed(node.children()))
        if isinstance(node, Select):
            stack.extend((node.other, node.then))
        if isinstance(node, Fold):
            stack.append(node.body)


def substitute_index(index: dims.Expr, change: Mapping[sympy.Symbol, dims.Expr]) -> dims.Expr:
    """Replaces symbols in an index, those that its indirect indices are computed from included."""
    moved = substitute(Index(None, index), lambda _: None, lambda i: i.xreplace(change))
    assert isinstance(moved, Index)
    return moved.value


def _are_same(new: Sequence[Expr], old: Sequence[Expr]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


def substitute(
    expr: Expr,
    replace: Callable[[Expr], Expr | None],
    change_index: Callable[[dims.Expr], dims.Expr] = lambda index: index,
) -> Expr:
    """Rebuilds an expression.

    Args:
      expr: what to rebuild.
      replace: gives the node to take in a node's place, or None to go on below it.
      change_index: applied to every index expression, those inside indirect indices included.
    """
    nodes: dict[int, Expr] = {}
    indirect: dict[Indirect, Indirect] = {}

    def on_index(value: dims.Expr) -> dims.Expr:
        for found in indirect_symbols(value):
            if found not in indirect:
                inner = visit(found.value)
                indirect[found] = found if inner is found.value else Indirect(inner)
        return change_index(value).xreplace(indirect)

    def visit(node: Expr) -> Expr:
        if id(node) not in nodes:
            nodes[id(node)] = rebuild(node)
        return nodes[id(node)]

    def rebuild(node: Expr) -> Expr:
        new = replace(node)
        if new is not None:
            return new
        if isinstance(node, Load):
            offset = on_index(node.offset)
            return node if offset == node.offset else Load(node.dtype, node.buffer, offset)
        if isinstance(node, Index):
            value = on_index(node.value)
            return node if value == node.value else Index(node.dtype, value)
        if isinstance(node, Call):
            args = tuple(visit(a) for a in node.args)
            return node if _are_same(args, node.args) else dataclasses.replace(node, args=args)
        if isinstance(node, Select):
            old = node.condition, node.then, node.other
            condition, then, other = map(visit, old)
            unchanged = _are_same((condition, then, other), old)
            return node if unchanged else Select(node.dtype, condition, then, other)
        if isinstance(node, Fold):
            old = node.first, node.count, node.body
            first, count, body = map(visit, old)
            if _are_same((first, count, body), old):
                return node
            return Fold(node.dtype, node.template, first, node.variable, count, body)
        return node

    return visit(expr)
