"""Where the points of all rows are, in terms of a step's new loops; see ``ragged``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import sympy

from sofie.ir import dims, expr
from sofie.ir.dtype import INT64
from sofie.ir.expr import Expr, Index, Indirect, Load, Select
from sofie.ir.program import Buffer, BufferKind, Loop, Store
from sofie.plan.ragged_sizes import RaggedSizes, RefusalError, load


class Places:
    """Where the points of a step are, in terms of its new loops.

    Attributes:
      loops: over all points of all rows.
    """

    def __init__(self, of: RaggedSizes, loops: Sequence[Loop]) -> None:
        self.of = of
        self.batch: sympy.Symbol | None = None
        self._flat: sympy.Symbol | None = None
        self._point: sympy.Symbol | None = None
        self.each: dims.Expr | None = None
        self._loads: dict[tuple[int, dims.Expr], Indirect] = {}
        self._row: dims.Expr | None = None
        self._start: dims.Expr | None = None
        result = []
        for loop in loops:
            if loop.extent == of.rows:
                self.batch = loop.var
                continue
            if of.is_ragged(loop.extent):
                if self.each is not None:
                    raise RefusalError("it goes over two sizes of a row at once")
                flat = of.has_rows(loop.extent)
                self.each = of.each(loop.extent) if flat else sympy.expand(loop.extent)
                self._flat, self._point = (loop.var, None) if flat else (None, loop.var)
                loop = Loop(loop.var, of.total(self.each))
            result.append(loop)
        if self._point is not None and self.batch is None:
            raise RefusalError("it computes what is the same for all rows from a row's size")
        if self._flat is not None and self.batch is not None:
            raise RefusalError("it goes over all rows twice")
        if self.batch is not None and self.each is None:
            result = list(loops)
        self.loops = tuple(result)

    @property
    def _var(self) -> sympy.Symbol:
        var = self._flat if self._point is None else self._point
        assert var is not None
        return var

    def row(self) -> dims.Expr:
        """The row of the point at hand."""
        if self.each is None:
            if self.batch is None:
                raise RefusalError("it depends on a row's size, but not on the row")
            return self.batch
        if self._row is None:
            self._row = load(self.of.table(self.each).rows, self._var)
        return self._row

    def start(self) -> dims.Expr:
        """Where, among all points of the loop, those of the row begin."""
        assert self.each is not None
        if self._start is None:
            self._start = load(self.of.table(self.each).starts, self._var)
        return self._start

    def _offset(self, buffer: Buffer, row: dims.Expr) -> dims.Expr:
        key = (id(buffer), row)
        if key not in self._loads:
            self._loads[key] = load(buffer, row)
        return self._loads[key]

    def _before(self, each: dims.Expr) -> dims.Expr:
        """The sum of a size over the rows before the one at hand."""
        constant, factors = self.of.linear(each)
        if self.each is not None:
            of_loop = self.of.linear(self.each)
            ratios = {
                sympy.cancel(a / b)
                for a, b in zip((constant, *factors), (of_loop[0], *of_loop[1]), strict=True)
                if b != 0
            }
            if len(ratios) == 1 and dims.same(next(iter(ratios)) * self.each, each):
                return ratios.pop() * self.start()
        result = constant * self.row() if constant != 0 else dims.ZERO
        for factor, buffer in zip(factors, self.of.offsets, strict=True):
            if factor != 0:
                result += factor * self._offset(buffer, self.row())
        return result

    def size(self, value: dims.Expr) -> dims.Expr:
        """A size of the row at hand."""
        changes = {
            symbol: self._offset(buffer, self.row() + 1) - self._offset(buffer, self.row())
            for symbol, buffer in zip(self.of.sizes, self.of.offsets, strict=True)
            if symbol in value.free_symbols
        }
        return sympy.expand(value.xreplace(changes))

    def place(self, value: dims.Expr) -> dims.Expr:
        """An index, or a place among all rows, in terms of the new loops."""
        value = sympy.expand(value)
        functions: dict[dims.Expr, dims.Expr] = {}
        for found in sorted(value.atoms(sympy.Function, sympy.Max, sympy.Min), key=str):
            if self._flat is not None and found in self._divided(self._flat):
                is_row = isinstance(found, dims.FloorDiv)
                functions[found] = self.row() if is_row else self._flat - self.start()
                continue
            if self.of.rows in found.free_symbols or self.batch in found.free_symbols:
                raise RefusalError("places of rows are rounded")
            if self._flat in found.free_symbols and self.of.is_ragged(found):
                raise RefusalError("places of rows are rounded")
            functions[found] = found.func(*map(self.place, found.args))
        stand_ins = {found: sympy.Dummy(integer=True) for found in functions}
        value = sympy.expand(value.xreplace(stand_ins))
        result = dims.ZERO
        rest = value
        for count, prefix in ((self.batch, self._before), (self.of.rows, self.of.total)):
            if count is None or count not in value.free_symbols:
                continue
            each = value.coeff(count, 1)
            rest = sympy.expand(rest - count * each)
            if {self.batch, self.of.rows} & each.free_symbols or count in rest.free_symbols:
                raise RefusalError("a place grows faster than the number of rows")
            result += prefix(each)
        if self._flat is not None and self.of.is_ragged(rest.coeff(self._flat, 1)):
            raise RefusalError("a place grows faster than the number of points")
        if self._point is not None and self._point in rest.free_symbols:
            rest = self.size(rest).xreplace({self._point: self._point - self.start()})
        else:
            rest = self.size(rest)
        result = sympy.expand(result + rest)
        return result.xreplace({stand_ins[found]: functions[found] for found in functions})

    def _offset_in(self, buffer: Buffer, offset: dims.Expr) -> dims.Expr:
        """Where an element of a buffer lies."""
        if id(buffer) not in self.of.padded:
            self._check_order(buffer, offset)
            return self.place(offset)
        # A matrix of each row: row * m * n + i * n + j.
        m, n = self.of.padded[id(buffer)]
        offset = sympy.expand(offset)
        width, height = self.of.most(n), self.of.most(m)
        if self._flat is not None and dims.same(self.each, m):
            j = sympy.expand(offset - self._flat * n)
            if not self.of.is_ragged(j) and self._flat not in j.free_symbols:
                inside = (self._flat - self.start()) * width + self.place(j)
                return sympy.expand(self.row() * height * width + inside)
        if self.batch is None:
            raise RefusalError("it reads matrices of rows in an order that is not known")
        inner = sympy.expand(offset - self.batch * m * n)
        symbol, factor = next(
            (s, f) for s, f in zip(self.of.sizes, self.of.linear(n)[1], strict=True) if f != 0
        )
        i = sympy.expand(inner.coeff(symbol, 1) / factor)
        j = sympy.expand(inner - i * n)
        if self.batch in inner.free_symbols or self.of.is_ragged(i, j):
            raise RefusalError("it reads matrices of rows in an order that is not known")
        return sympy.expand(self.row() * height * width + self.place(i) * width + self.place(j))

    def _divided(self, flat: sympy.Symbol) -> tuple[dims.Expr, dims.Expr]:
        """The row of a point of all rows, and the point in it, by division."""
        assert self.each is not None
        return dims.FloorDiv(flat, self.each), dims.FloorMod(flat, self.each)

    def _by_row(self, value: dims.Expr) -> dims.Expr:
        """How much larger a place is in a row than in the row before."""
        value = sympy.expand(value)
        factor = value.coeff(self.batch, 1) if self.batch is not None else dims.ZERO
        if self._flat is not None and self.each is not None:
            quotient, remainder = self._divided(self._flat)
            whole = sympy.Dummy(integer=True)
            value = sympy.expand(
                value.xreplace({remainder: self._flat - self.each * whole, quotient: whole})
            )
            factor += value.coeff(whole, 1) + value.coeff(self._flat, 1) * self.each
        return sympy.expand(factor)

    def _check_order(self, buffer: Buffer, offset: dims.Expr) -> None:
        """Rows must be outermost in memory, or be found by places in a table of all points."""
        if buffer.kind is BufferKind.WEIGHT or not self.of.has_rows(buffer.elements):
            return
        factor = self._by_row(offset)
        if factor == 0 and expr.indirect_symbols(offset):
            return
        if not dims.same(factor * self.of.rows, sympy.expand(buffer.elements)):
            raise RefusalError(f"rows are not outermost in the memory of {buffer.name!r}")

    def value(self, value: Expr) -> Expr:
        """A value at the point at hand."""
        known: dict[int, Expr] = {}
        indirect: dict[Indirect, Indirect] = {}

        def index(old: dims.Expr, change: Callable[[dims.Expr], dims.Expr]) -> dims.Expr:
            new = change(old)
            for found in expr.indirect_symbols(old):
                if found not in indirect:
                    indirect[found] = Indirect(visit(found.value))
            return new.xreplace(indirect)

        def visit(node: Expr) -> Expr:
            if id(node) not in known:
                known[id(node)] = rebuild(_sized(node))
            return known[id(node)]

        def rebuild(node: Expr) -> Expr:
            if isinstance(node, Load):
                place = index(node.offset, lambda o: self._offset_in(node.buffer, o))
                return Load(node.dtype, node.buffer, place)
            if isinstance(node, Index):
                self._check(node.value)
                return Index(node.dtype, index(node.value, self.place))
            if isinstance(node, expr.Call):
                return dataclasses.replace(node, args=tuple(map(visit, node.args)))
            if isinstance(node, Select):
                parts = (visit(node.condition), visit(node.then), visit(node.other))
                return Select(node.dtype, *parts)
            if isinstance(node, expr.Literal | expr.Accumulator):
                return node
            raise RefusalError("it has a loop of its own for each point")

        return visit(value)

    def _check(self, value: dims.Expr) -> None:
        """Numbers of rows are no data: only places among all points of all rows are."""
        by_row, by_count = self._by_row(value), sympy.expand(value).coeff(self.of.rows, 1)
        for each in (by_row, by_count):
            if each != 0 and not self.of.is_ragged(each):
                raise RefusalError("it computes with the numbers of rows")

    def store(self, store: Store) -> Store:
        """What is stored at the point at hand."""
        value = self.value(store.value)
        return Store(store.buffer, self._offset_in(store.buffer, store.offset), value)

    def guarded(self, loop: Loop, value: Expr, other: Expr) -> Expr:
        """A value within a row's own size, and another one beyond."""
        inside = expr.compare("<", loop.var, self.size(loop.extent))
        return Select(value.dtype, inside, value, other)


def _sized(node: Expr) -> Expr:
    """Sums and products of indices as one index."""
    if isinstance(node, expr.Call) and node.dtype is INT64 and len(node.args) == 2:
        a, b = (_sized(argument) for argument in node.args)
        if isinstance(a, Index) and isinstance(b, Index):
            if node.template == "{0} * {1}":
                return Index(INT64, sympy.expand(a.value * b.value))
            if node.template == "{0} + {1}":
                return Index(INT64, sympy.expand(a.value + b.value))
    return node
