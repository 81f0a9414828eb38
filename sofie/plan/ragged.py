"""Batches of rows that have sizes of their own, in one run and without padding.

A model with ``x [N, C, n]`` and a batch whose rows do not meet (``sofie/passes/batch.py``) becomes
one with ``x [n, C]``, the points of all rows one after the other, and ``n_offsets [N + 1]``, where
each row's begin. Launches over N times n points become launches over all points there are. Nothing
but places in memory changes: what was ``row * size + point`` is the row's offset, plus the point.

* A size that grows with the row's number, ``row * (a + b * n)``, becomes ``row * a + b * offset``;
  one that grows with their count the same with the last offset, the number of all points.
* Any other ``n`` is the row's own: the difference of two offsets.
* Which row a point is of is in a table, which a first step computes.
* What a row combines of its points, sums or the largest ones, takes as many as the longest row
  has, and beyond a row's own size what changes nothing.
* Products of matrices of each row are computed on copies that are padded with zeros.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import sympy

from sofie.importer.errors import ModelError
from sofie.ir import dims, expr
from sofie.ir.dtype import DType
from sofie.ir.expr import Expr, Index, Load
from sofie.ir.program import (
    Buffer,
    BufferKind,
    Combine,
    DenseReduce,
    Gemm,
    Loop,
    Matrix,
    Output,
    Pointwise,
    Program,
    Read,
    Reduce,
    Region,
    Requirement,
    Step,
    Store,
    TopK,
)
from sofie.plan.ragged_places import Places
from sofie.plan.ragged_sizes import RaggedSizes, RefusalError


def ragged(program: Program, rows: sympy.Symbol, names: Sequence[str], elements: int) -> Program:
    """The program for rows with sizes of their own.

    Args:
      program: complete, its inputs with the points of a row outermost in memory but for the rows.
      rows: counts the rows.
      names: of the symbols that are sizes of a row.
      elements: how many data symbols there are already.

    Raises:
      ModelError: a step can't be; the first such one is named.
    """
    return _Ragged(program, rows, names, elements).run()


@contextlib.contextmanager
def _named(step: Step) -> Iterator[None]:
    """Tells users which nodes are refused."""
    try:
        yield
    except RefusalError as refusal:
        raise ModelError(f"ragged: {' + '.join(step.nodes)}: {refusal}") from None


class _Ragged:
    def __init__(
        self, program: Program, rows: sympy.Symbol, names: Sequence[str], elements: int
    ) -> None:
        self.program = program
        self.names = tuple(names)
        self.sizes = RaggedSizes(program.symbols, rows, names, elements)
        self.packed: dict[tuple[int, dims.Expr, dims.Expr], Buffer] = {}
        self.changed: set[int] = set()

    def run(self) -> Program:
        steps: list[Step] = []
        for step in self.program.steps:
            with _named(step):
                steps += self._step(step)
        inputs = [*self.program.inputs, *self.sizes.offsets]
        for buffer in self.program.inputs:
            self._flatten_input(buffer)
        outputs = tuple(map(self._output, self.program.outputs))
        for table in self.sizes.tables.values():
            self.changed |= {id(table.rows), id(table.starts)}
        for step in steps:
            with _named(step):
                for buffer in (*step.reads(), *step.writes()):
                    self._resize(buffer)
        own = zip(self.names, self.sizes.sizes, self.sizes.offsets, strict=True)
        reads = [
            Read((), offsets, (self.sizes.longest[size],), f"longest {name}", size)
            for name, size, offsets in own
        ]
        # Conditions on a row's sizes hold for each row; a row by itself is a batch of one.
        of_rows = [r for r in self.program.requirements if self.sizes.is_ragged(*r.symbols)]
        return dataclasses.replace(
            self.program,
            inputs=tuple(inputs),
            outputs=outputs,
            steps=(*self.sizes.steps, *steps),
            requirements=tuple(r for r in self.program.requirements if r not in of_rows),
            row_requirements=tuple(self._alone(r) for r in of_rows),
            reads=(*self.program.reads, *reads),
        )

    def _alone(self, requirement: Requirement) -> Requirement:
        one = {self.sizes.rows: dims.ONE}
        return dataclasses.replace(
            requirement,
            low=requirement.low.xreplace(one),
            high=requirement.high.xreplace(one),
            loops=tuple(Loop(x.var, x.extent.xreplace(one)) for x in requirement.loops),
        )

    # Buffers.

    def _flatten_input(self, buffer: Buffer) -> None:
        if not self.sizes.is_ragged(*buffer.shape):
            return
        shape = [buffer.shape[axis] for axis in buffer.order]
        fits = shape[0] == self.sizes.rows and shape[1] in self.sizes.sizes
        if not fits or self.sizes.is_ragged(*shape[2:]):
            raise ModelError(
                f"ragged: input {buffer.name!r} has to have the rows along its first axis, and one "
                "of the sizes that are ragged along another one"
            )
        buffer.shape = tuple(shape[1:])
        buffer.order = tuple(range(len(buffer.shape)))
        self.changed.add(id(buffer))

    def _output(self, output: Output) -> Output:
        if not self.sizes.is_ragged(*output.shape):
            return output
        first, inner = output.shape[:2], output.shape[2:]
        fits = len(first) == 2 and first[0] == self.sizes.rows and first[1] in self.sizes.sizes
        if not fits or self.sizes.is_ragged(*inner):
            raise ModelError(
                f"ragged: output {output.buffer.name!r} has to have the rows along its first axis, "
                "and one of the sizes that are ragged along its second one"
            )
        shape = (first[1], *inner)
        output.buffer.shape, output.buffer.order = shape, tuple(range(len(shape)))
        self.changed.add(id(output.buffer))
        return Output(output.buffer, shape)

    def _resize(self, buffer: Buffer) -> None:
        """Gives a buffer the size that it has for all rows."""
        if id(buffer) in self.changed or buffer.kind is not BufferKind.TEMPORARY:
            return
        self.changed.add(id(buffer))
        if not self.sizes.is_ragged(*buffer.shape):
            return
        each = self.sizes.each(buffer.elements)
        if id(buffer) in self.sizes.padded:
            m, n = self.sizes.padded[id(buffer)]
            buffer.shape = (self.sizes.rows * self.sizes.most(m) * self.sizes.most(n),)
        else:
            buffer.shape = (self.sizes.total(each),)
        buffer.order = (0,)

    # Steps.

    def _step(self, step: Step) -> list[Step]:
        if isinstance(step, Gemm):
            return self._gemm(step)
        if not self.sizes.is_ragged(*_sizes(step)):
            return [step]
        if isinstance(step, Pointwise):
            places = Places(self.sizes, step.loops)
            stores = [places.store(store) for store in step.stores]
            return [Pointwise(step.nodes, places.loops, stores[0], tuple(stores[1:]))]
        if isinstance(step, Reduce):
            return [self._reduce(step)]
        if isinstance(step, DenseReduce):
            places = Places(self.sizes, step.kept)
            stores = [places.store(store) for store in step.stores]
            load = places.value(step.load)
            return [
                dataclasses.replace(
                    step, kept=places.loops, load=load, store=stores[0], also=tuple(stores[1:])
                )
            ]
        if isinstance(step, TopK):
            return [self._topk(step)]
        raise RefusalError(f"{type(step).__name__} can't take rows with sizes of their own")

    def _reduce(self, step: Reduce) -> Reduce:
        places = Places(self.sizes, step.kept)
        load, reduced = places.value(step.load), []
        for loop in step.reduced:
            if self.sizes.is_ragged(loop.extent):
                if step.per_element:
                    raise RefusalError("it normalises what rows have in different numbers")
                nothing = _nothing(step.combine, step.load.dtype)
                load = places.guarded(loop, load, nothing)
                loop = Loop(loop.var, self.sizes.most(loop.extent))
            reduced.append(loop)
        return dataclasses.replace(
            step,
            kept=places.loops,
            reduced=tuple(reduced),
            load=load,
            store=places.store(step.store),
        )

    def _topk(self, step: TopK) -> TopK:
        places = Places(self.sizes, step.kept)
        outermost = step.kept[:1] if places.batch is None else step.kept[1:]
        if (
            step.inner != 1
            or len(places.loops) > 1
            or len(outermost) != 1
            or (places.batch is not None and step.kept[0].var != places.batch)
        ):
            raise RefusalError("it selects along another axis than the last one")
        load, along, k = places.value(step.load), step.along, step.k
        if self.sizes.is_ragged(k):
            raise RefusalError("how many are selected depends on a row's size")
        if self.sizes.is_ragged(along.extent):
            if not load.dtype.is_float:
                raise RefusalError("it selects integers")
            worst = expr.Literal(load.dtype, float("-inf" if step.largest else "inf"))
            load = places.guarded(along, load, worst)
            # At least as many as are selected: there may be no rows at all.
            along = Loop(along.var, dims.largest(self.sizes.most(along.extent), k))
        return dataclasses.replace(step, kept=places.loops, along=along, load=load)

    def _gemm(self, step: Gemm) -> list[Step]:
        sizes = (step.batch, step.m, step.n, step.k)
        if not self.sizes.is_ragged(*sizes):
            return [step]
        if not self.sizes.is_ragged(step.batch, step.n, step.k) and self.sizes.has_rows(step.m):
            each = self.sizes.each(step.m)
            for matrix in (step.a, step.d):
                whole = sympy.expand(matrix.region.buffer.elements)
                if matrix.transposed or not dims.same(each * matrix.ld * self.sizes.rows, whole):
                    raise RefusalError("rows are not outermost in the memory of its matrices")
            return [dataclasses.replace(step, m=self.sizes.total(each))]
        d = step.d
        if step.batch == self.sizes.rows and self._is_flat(step):
            return [
                dataclasses.replace(
                    step,
                    batch=dims.ONE,
                    m=self.sizes.total(step.m),
                    a=dataclasses.replace(step.a, batch_stride=dims.ZERO),
                    d=dataclasses.replace(step.d, batch_stride=dims.ZERO),
                )
            ]
        dense = dims.same(d.ld, step.n) and dims.same(d.batch_stride, step.m * step.n)
        dense = dense and d.region.offset == 0 and not d.transposed and step.beta == 0.0
        both = self.sizes.is_ragged(step.m) and self.sizes.is_ragged(step.n)
        kept = not self.sizes.is_ragged(step.m, step.n)
        if step.batch != self.sizes.rows or not dense or not (both or kept):
            raise RefusalError("the layout of its matrices is not known for rows of other sizes")
        packs: list[Step] = []
        operands = []
        for matrix, major, minor in ((step.a, step.m, step.k), (step.b, step.k, step.n)):
            if matrix.transposed:
                major, minor = minor, major
            operands.append(self._padded_copy(step, matrix, major, minor, packs))
        m, n, k = (self.sizes.most(size) for size in (step.m, step.n, step.k))
        if both:
            self.sizes.padded[id(d.region.buffer)] = (step.m, step.n)
            d = Matrix(d.region, n, m * n)
        product = dataclasses.replace(step, m=m, n=n, k=k, a=operands[0], b=operands[1], d=d)
        return [*packs, product]

    def _is_flat(self, step: Gemm) -> bool:
        """True where all rows' points are multiplied with one matrix."""
        outermost = all(
            dims.same(matrix.batch_stride, step.m * matrix.ld)
            and dims.same(matrix.batch_stride * self.sizes.rows, matrix.region.buffer.elements)
            and not matrix.transposed
            for matrix in (step.a, step.d)
        )
        return outermost and step.b.batch_stride == 0 and not self.sizes.is_ragged(step.n, step.k)

    def _padded_copy(
        self, step: Gemm, matrix: Matrix, major: dims.Expr, minor: dims.Expr, packs: list[Step]
    ) -> Matrix:
        """A copy of an operand as it lies in memory, with zeros up to the longest row."""
        source = matrix.region
        if not self.sizes.is_ragged(major, minor, matrix.batch_stride, source.offset):
            return matrix
        ld, stride = self.sizes.most(minor), self.sizes.most(major) * self.sizes.most(minor)
        key = (id(source.buffer), source.offset, stride)
        if key not in self.packed:
            batch, outer, inner = (
                sympy.Symbol(f"i{axis}", integer=True, nonnegative=True) for axis in range(3)
            )
            places = Places(self.sizes, (Loop(batch, self.sizes.rows),))
            offset = source.offset + batch * matrix.batch_stride + outer * matrix.ld + inner
            value = places.value(Load(step.dtype, source.buffer, offset))
            for var, extent in ((inner, minor), (outer, major)):
                if self.sizes.is_ragged(extent):
                    value = places.guarded(Loop(var, extent), value, _zero(step.dtype))
            shape = (self.sizes.rows * stride,)
            name = f"{source.buffer.name} padded"
            copy = Buffer(name, step.dtype, shape, (0,), BufferKind.TEMPORARY)
            self.changed.add(id(copy))
            self.packed[key] = copy
            loops = (
                Loop(batch, self.sizes.rows),
                Loop(outer, self.sizes.most(major)),
                Loop(inner, self.sizes.most(minor)),
            )
            store = Store(copy, batch * stride + outer * ld + inner, value)
            packs.append(Pointwise(step.nodes, loops, store))
        return Matrix(Region(self.packed[key]), ld, stride, matrix.transposed)


def _zero(dtype: DType) -> Expr:
    return expr.Literal(dtype, 0.0 if dtype.is_float else 0)


def _nothing(combine: Combine, dtype: DType) -> Expr:
    """What changes nothing when it is combined."""
    if combine.cpp == "Sum":
        return _zero(dtype)
    if combine.cpp in ("Max", "Min") and dtype.is_float:
        return expr.Literal(dtype, float("-inf") if combine.cpp == "Max" else float("inf"))
    raise RefusalError(f"{combine.cpp} over rows with sizes of their own")


def _sizes(step: Step) -> Iterable[dims.Expr]:
    """Every size and index in a step."""
    if isinstance(step, Pointwise):
        loops, values, stores = step.loops, [], step.stores
    elif isinstance(step, Reduce):
        loops, values, stores = (*step.kept, *step.reduced), [step.load], (step.store,)
    elif isinstance(step, DenseReduce):
        loops, values, stores = step.kept, [step.load], step.stores
    elif isinstance(step, TopK):
        loops, values, stores = (*step.kept, step.along), [step.load], ()
        yield step.k
    else:
        for buffer in (*step.reads(), *step.writes()):
            yield from buffer.shape
        return
    yield from (loop.extent for loop in loops)
    for value in (*values, *(store.value for store in stores)):
        for node in expr.walk(value):
            if isinstance(node, Load):
                yield node.offset
            elif isinstance(node, Index):
                yield node.value
    yield from (store.offset for store in stores)
