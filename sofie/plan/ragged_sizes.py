"""Sizes that are other ones in each row of a batch; see ``ragged``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import sympy

from sofie.ir import dim_text, dims, expr
from sofie.ir.dtype import INT64
from sofie.ir.expr import Expr, Index, Indirect, Load, Select
from sofie.ir.program import Buffer, BufferKind, Loop, Pointwise, Step, Store
from sofie.passes.batch_rules import Extents

# Rows are found by halving: so many times at most.
_ROW_BITS = 31


class RefusalError(Exception):
    """A step is not taken. The message follows the step's nodes."""


@dataclasses.dataclass(frozen=True)
class Table:
    """Of all points of some kind: which row they are of, and where that begins."""

    rows: Buffer
    starts: Buffer


class RaggedSizes:
    """What becomes of sizes, and the tables that say which row a point is of.

    Attributes:
      rows: counts the rows.
      sizes: the symbols that are other sizes in each row; in results, the sums over all rows.
      offsets: for each, where the rows begin.
      longest: for each, the largest one of any row.
      steps: what computes the tables.
      padded: buffers with a matrix for each row, padded to the largest one: their extents.
    """

    def __init__(
        self, symbols: Sequence[str], rows: sympy.Symbol, names: Sequence[str], elements: int
    ) -> None:
        self.symbols = symbols
        self.rows = rows
        self._extents = Extents(rows)
        self.sizes = [dims.symbol(symbols.index(name)) for name in names]
        self.offsets = [
            Buffer(f"{name}_offsets", INT64, (rows + 1,), (0,), BufferKind.INPUT) for name in names
        ]
        self.longest = {
            size: dims.element(elements + position) for position, size in enumerate(self.sizes)
        }
        self.tables: dict[dims.Expr, Table] = {}
        self.steps: list[Step] = []
        self.padded: dict[int, tuple[dims.Expr, dims.Expr]] = {}

    def is_ragged(self, *sizes: dims.Expr) -> bool:
        return any(not size.free_symbols.isdisjoint(self.sizes) for size in sizes)

    def has_rows(self, size: dims.Expr) -> bool:
        return self._extents.has_rows(size)

    def linear(self, size: dims.Expr) -> tuple[dims.Expr, list[dims.Expr]]:
        """Constant and factors of a size that is linear in those of a row."""
        size = sympy.expand(size)
        factors = [size.coeff(symbol, 1) for symbol in self.sizes]
        constant = sympy.expand(
            size - sum((f * s for f, s in zip(factors, self.sizes, strict=True)), dims.ZERO)
        )
        if self.is_ragged(constant, *factors):
            raise RefusalError(f"a size, {size}, grows faster than a row's")
        return constant, factors

    def total(self, each: dims.Expr) -> dims.Expr:
        """The sum of a size over all rows. The symbols of sizes stand for sums from here on."""
        constant, factors = self.linear(each)
        return constant * self.rows + sum(
            (f * s for f, s in zip(factors, self.sizes, strict=True)), dims.ZERO
        )

    def most(self, size: dims.Expr) -> dims.Expr:
        """The same size of a row that is as long as any."""
        return sympy.expand(size).xreplace(self.longest)

    def before(self, each: dims.Expr, row: dims.Expr) -> dims.Expr:
        """The sum of a size over the rows before one."""
        constant, factors = self.linear(each)
        result = constant * row
        for factor, offsets in zip(factors, self.offsets, strict=True):
            if factor != 0:
                result += factor * load(offsets, row)
        return result

    def table(self, each: dims.Expr) -> Table:
        """The table of what each row has so many of."""
        if each not in self.tables:
            count = self.total(each)
            text = dim_text.to_cpp(each, lambda s: self.symbols[int(s.name[1:])])
            made = Table(
                *(
                    Buffer(f"{kind} of {text}", INT64, (count,), (0,), BufferKind.TEMPORARY)
                    for kind in ("rows", "starts")
                )
            )
            self.tables[each] = made
            point = Loop(sympy.Symbol("i0", integer=True, nonnegative=True), count)
            row = Indirect(self._row_of(each, point.var))
            self.steps.append(
                Pointwise(
                    ("rows",),
                    (point,),
                    Store(made.rows, point.var, Index(INT64, row)),
                    (Store(made.starts, point.var, Index(INT64, self.before(each, row))),),
                )
            )
        return self.tables[each]

    def _row_of(self, each: dims.Expr, point: dims.Expr) -> Expr:
        """The last row that begins at a point or before it."""
        row: Expr = Index(INT64, dims.ZERO)
        for bit in reversed(range(_ROW_BITS)):
            known = Indirect(row)
            later = known + 2**bit
            stay = Index(INT64, known)
            begun = expr.compare("<=", self.before(each, later), point)
            there = Select(INT64, begun, Index(INT64, later), stay)
            row = Select(INT64, expr.compare("<", later, self.rows), there, stay)
        return row

    def each(self, count: dims.Expr) -> dims.Expr:
        """A row's part of a count."""
        each = self._extents.each(count)
        if each is None:
            raise RefusalError("it computes what is no part of a row")
        return sympy.expand(each)


def load(buffer: Buffer, place: dims.Expr) -> Indirect:
    """An integer of a table, as an index."""
    return Indirect(Load(INT64, buffer, place))
