"""Loop nests: in which order a kernel walks its axes, and which of them are one loop."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence

import sympy

from sofie.ir import dim_values, dims, expr
from sofie.ir.program import Combine, DenseLayer, DenseReduce, Loop, Policy, Reduce, Scatter, Store

# Reductions of a known length up to this are one thread's work.
_ONE_THREAD = 32
_WARP = 32
_BLOCK = 256
_SHARED_LANES = 8


@dataclasses.dataclass(frozen=True)
class Nest:
    """Loops over some axes.

    Attributes:
      variables: one a logical axis of the iterated shape.
      shape: their extents.
      order: the axes to loop over, outermost first.
    """

    variables: Sequence[sympy.Symbol]
    shape: dims.Shape
    order: Sequence[int]

    def loops(self) -> list[Loop]:
        """The loops, those of one iteration left out."""
        return [Loop(self.variables[a], self.shape[a]) for a in self.order if self.shape[a] != 1]

    def units(self) -> dict[sympy.Symbol, dims.Expr]:
        """The variables of axes with one iteration: zero."""
        return {self.variables[a]: dims.ZERO for a in self.order if self.shape[a] == 1}

    def collapse_pointwise(
        self, stores: Sequence[Store]
    ) -> tuple[tuple[Loop, ...], tuple[Store, ...]]:
        """The fewest loops that visit the same elements, and the stores in terms of them."""
        stores = [_substitute_store(store, self.units()) for store in stores]
        loops = self.loops()
        while (
            pair := _mergeable(loops, [i for s in stores for i in _store_indices(s)])
        ) is not None:
            loops, zero = _merge(loops, pair)
            stores = [_substitute_store(store, zero) for store in stores]
        return tuple(loops), tuple(stores)


def choose_order(
    values: Sequence[expr.Expr], variables: Sequence[sympy.Symbol], shape: Sequence[dims.Expr]
) -> tuple[int, ...]:
    """The axes in the order in which the widest load of ``values`` has them in memory.

    Reading and writing in that order keeps neighbouring threads on neighbouring elements.
    """
    logical = tuple(range(len(variables)))
    wide = [a for a in logical if shape[a] != 1]
    best: tuple[int, dict[int, int]] = (0, {})
    for value in values:
        for node in expr.walk(value):
            if not isinstance(node, expr.Load):
                continue
            strides = {
                a: dim_values.nominal(s)
                for a in wide
                if (s := coefficient(node.offset, variables[a])) is not None and s != 0
            }
            if len(strides) > best[0]:
                best = (len(strides), strides)
    if best[0] < len(wide):
        return logical
    return tuple(sorted(logical, key=lambda a: -best[1].get(a, 1 << 62)))


# Layers of a network ask for the same ones.
@functools.lru_cache(maxsize=100_000)
def coefficient(offset: dims.Expr, variable: sympy.Symbol) -> dims.Expr | None:
    """The factor of a variable in an offset; None where the offset is not linear in it."""
    if variable not in offset.free_symbols:
        return dims.ZERO
    expanded = sympy.expand(offset)
    factor = expanded.coeff(variable)
    if (
        variable in factor.free_symbols
        or variable in (expanded - factor * variable).expand().free_symbols
    ):
        return None
    return factor


def reduction(
    kept: Nest,
    reduced: Nest,
    combine: Combine,
    load: expr.Expr,
    store: Store,
    per_element: bool = False,
) -> Reduce:
    """A reduction over collapsed loops, with the policy that suits how its elements lie."""
    units = {**kept.units(), **reduced.units()}
    load = _substitute(load, units)
    store = _substitute_store(store, units)
    outer, inner = kept.loops(), reduced.loops()
    for loops in (outer, inner):
        while True:
            indices = [*_indices(load), *_store_indices(store)]
            pair = _mergeable(loops, indices)
            if pair is None:
                break
            merged, zero = _merge(loops, pair)
            loops[:] = merged
            load = _substitute(load, zero)
            store = _substitute_store(store, zero)
    return Reduce(
        nodes=(),
        kept=tuple(outer),
        reduced=tuple(inner),
        combine=combine,
        load=load,
        store=store,
        policy=_policy(outer, inner, load),
        per_element=per_element,
    )


def scatter(
    lines: Nest, updates: Nest, combine: Combine, store: Store, nodes: tuple[str, ...]
) -> Scatter:
    """Updates over the loops that have more than one iteration."""
    store = _substitute_store(store, {**lines.units(), **updates.units()})
    return Scatter(nodes, tuple(lines.loops()), tuple(updates.loops()), combine, store)


def dense_reduction(
    groups: Nest,
    row: Loop,
    channel: Loop,
    load: expr.Expr,
    layers: tuple[DenseLayer, ...],
    combine: Combine,
    store: Store,
    output: Loop,
    nodes: tuple[str, ...],
) -> DenseReduce:
    """Dense layers over groups of rows, the loops over groups collapsed."""
    units = groups.units()
    load, store = _substitute(load, units), _substitute_store(store, units)
    kept = groups.loops()
    while (pair := _mergeable(kept, [*_indices(load), *_store_indices(store)])) is not None:
        kept, zero = _merge(kept, pair)
        load, store = _substitute(load, zero), _substitute_store(store, zero)
    return DenseReduce(nodes, tuple(kept), row, (channel,), load, layers, combine, store, output)


def selection(groups: Nest, along: Loop, load: expr.Expr) -> tuple[tuple[Loop, ...], expr.Expr]:
    """The fewest loops over rows, and an element of a row in terms of them and of ``along``."""
    load = _substitute(load, groups.units() | ({along.var: dims.ZERO} if along.extent == 1 else {}))
    kept = groups.loops()
    while (pair := _mergeable(kept, list(_indices(load)))) is not None:
        kept, zero = _merge(kept, pair)
        load = _substitute(load, zero)
    return tuple(kept), load


def _policy(kept: Sequence[Loop], reduced: Sequence[Loop], load: expr.Expr) -> Policy:
    length = dims.product([loop.extent for loop in reduced])
    short = bool(length.is_Integer) and int(length) <= _ONE_THREAD
    along_reduced = True
    if kept and reduced:
        for node in expr.walk(load):
            if isinstance(node, expr.Load):
                if _is_unit(coefficient(node.offset, reduced[-1].var)):
                    break
                if _is_unit(coefficient(node.offset, kept[-1].var)):
                    along_reduced = False
                    break
    if not along_reduced:
        return Policy(False, 1 if short else _SHARED_LANES)
    if not kept:
        return Policy(True, _BLOCK)
    return Policy(True, 1 if short else _WARP)


def _is_unit(stride: dims.Expr | None) -> bool:
    """True where neighbours lie side by side, as they do along the last axis of most views."""
    return stride is not None and dim_values.nominal(stride) == 1


def _indices(value: expr.Expr) -> Iterator[dims.Expr]:
    for node in expr.walk(value):
        if isinstance(node, expr.Load):
            yield node.offset
        elif isinstance(node, expr.Index):
            yield node.value


def _store_indices(store: Store) -> list[dims.Expr]:
    return [*_indices(expr.Index(None, store.offset)), *_indices(store.value)]


def _mergeable(loops: Sequence[Loop], indices: Sequence[dims.Expr]) -> int | None:
    """Position of the first loop that is one with the next: every index walks them as one."""
    for position in range(len(loops) - 1):
        outer, inner = loops[position], loops[position + 1]
        if all(_walks_as_one(index, outer, inner) for index in indices):
            return position
    return None


def _walks_as_one(index: dims.Expr, outer: Loop, inner: Loop) -> bool:
    a, b = coefficient(index, outer.var), coefficient(index, inner.var)
    return a is not None and b is not None and dims.same(a, b * inner.extent)


def _merge(
    loops: Sequence[Loop], position: int
) -> tuple[list[Loop], dict[sympy.Symbol, dims.Expr]]:
    """One loop in place of two; the outer variable becomes 0 wherever it stands."""
    outer, inner = loops[position], loops[position + 1]
    merged = Loop(inner.var, sympy.expand(outer.extent * inner.extent))
    return [*loops[:position], merged, *loops[position + 2 :]], {outer.var: dims.ZERO}


def _substitute(value: expr.Expr, change: dict[sympy.Symbol, dims.Expr]) -> expr.Expr:
    if not change:
        return value
    return expr.substitute(value, lambda _: None, lambda index: index.xreplace(change))


def _substitute_store(store: Store, change: dict[sympy.Symbol, dims.Expr]) -> Store:
    if not change:
        return store
    offset = expr.substitute_index(store.offset, change)
    return Store(store.buffer, offset, _substitute(store.value, change))
