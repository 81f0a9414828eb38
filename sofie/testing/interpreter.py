"""Runs a program in NumPy, step by step, without C++.

It follows what generated code does (the same loops, offsets, loads and stores), so that a lowering
can be tested in milliseconds. Every load and store is held to its buffer's bounds, and every
element of a buffer that a step reads must have been written before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import sympy

from sofie.ir import dim_values, dims, dtype, expr, packing
from sofie.ir.program import (
    Attention,
    Buffer,
    BufferKind,
    Combine,
    DenseReduce,
    Epilogue,
    Gemm,
    Matrix,
    Pointwise,
    Program,
    Reduce,
    Repeat,
    Requirement,
    Routine,
    Scatter,
    Step,
    Store,
    TopK,
    launches,
)
from sofie.plan.lifetimes import Lifetime, lifetimes
from sofie.testing.math_functions import FUNCTIONS
from sofie.testing.routines import ROUTINES

Array = np.ndarray[Any, Any]


class RequirementError(Exception):
    """The sizes do not fulfil a requirement of the program."""


def run(program: Program, inputs: Mapping[str, Array]) -> list[Array]:
    """The program's outputs for some inputs, by input name.

    Raises:
      RequirementError: as generated code throws ShapeError.
    """
    sizes: dict[str, int] = {}
    for buffer in program.inputs:
        for extent, actual in zip(buffer.shape, inputs[buffer.name].shape, strict=True):
            constant, rest = extent.as_coeff_Add()
            if rest.is_Symbol:
                assert sizes.setdefault(rest.name, actual - int(constant)) == actual - constant
            else:
                assert int(extent) == actual
        for stride, actual in zip(buffer.given_strides, inputs[buffer.name].strides, strict=False):
            sizes[stride.name] = actual // buffer.dtype.size
    temporaries = [x for x in lifetimes(program) if x.buffer.kind is BufferKind.TEMPORARY]
    machine = _Machine(sizes, temporaries)
    for buffer in program.inputs:
        view = inputs[buffer.name]
        data = _memory(view, machine.size(buffer.elements), bool(buffer.given_strides))
        data = packing.pack(data, buffer.dtype) if buffer.packed else data
        machine.memory[id(buffer)] = data
        machine.written[id(buffer)] = np.ones(data.size, bool)
    open_requirements = list(program.requirements)
    for segment in program.segments():
        for read in segment.reads:
            elements = machine.read_all(read.buffer).tolist()
            if read.total is not None:
                assert elements[0] == 0 and elements[-1] == sizes[read.total.name]
                elements = [int(np.diff(elements).max(initial=0))]
            sizes.update(zip((s.name for s in read.symbols), elements, strict=True))
        for requirement in list(open_requirements):
            if {s.name for s in requirement.symbols} <= sizes.keys():
                open_requirements.remove(requirement)
                machine.require(requirement)
        machine.run(segment.steps, segment.first)
    assert not open_requirements
    return [
        machine.elements(o.buffer).reshape([machine.size(d) for d in o.shape])
        for o in program.outputs
    ]


def _memory(view: Array, elements: int, is_strided: bool) -> Array:
    """What a session finds at the view's address, up to its last element if it has strides."""
    if not is_strided:
        return np.ascontiguousarray(view).reshape(-1).copy()
    bits = view.view(f"u{view.itemsize}")  # NumPy does this with types of its own only.
    memory = np.lib.stride_tricks.as_strided(bits, (elements,), (view.itemsize,))
    return memory.copy().view(view.dtype)


class _Machine:
    def __init__(self, sizes: dict[str, int], temporaries: Sequence[Lifetime]) -> None:
        self.sizes = sizes
        self.temporaries = temporaries
        self.memory: dict[int, Array] = {}
        self.written: dict[int, Array] = {}

    def size(self, value: dims.Expr) -> int:
        result = dim_values.evaluate(value, lambda s: self.sizes[s.name])
        return int(result)

    def require(self, requirement: Requirement, outer: int = 0) -> None:
        if outer < len(requirement.loops):
            loop = requirement.loops[outer]
            for value in range(self.size(loop.extent)):
                self.sizes[loop.var.name] = value
                self.require(requirement, outer + 1)
            return
        low, high = self.size(requirement.low), self.size(requirement.high)
        if low > high:
            raise RequirementError(requirement.message.format(low=low, high=high))

    def buffer(self, buffer: Buffer) -> Array:
        if id(buffer) not in self.memory:
            count = self.size(buffer.bytes if buffer.packed else buffer.elements)
            kind = np.dtype(np.uint8) if buffer.packed else buffer.dtype.numpy
            if buffer.kind is BufferKind.STATE:
                self.memory[id(buffer)] = np.zeros(count, kind)
                self.written[id(buffer)] = np.ones(count, bool)
            elif buffer.kind is BufferKind.WEIGHT:
                assert buffer.data is not None
                self.memory[id(buffer)] = np.ascontiguousarray(buffer.data).reshape(-1)
                self.written[id(buffer)] = np.ones(count, bool)
            else:
                self.memory[id(buffer)] = np.zeros(count, kind)
                self.written[id(buffer)] = np.zeros(count, bool)
        return self.memory[id(buffer)]

    def read_all(self, buffer: Buffer) -> Array:
        memory = self.buffer(buffer)
        assert self.written[id(buffer)].all(), f"{buffer.name}: elements never written"
        return memory

    def elements(self, buffer: Buffer) -> Array:
        """A buffer's elements, each on its own."""
        memory = self.read_all(buffer)
        if not buffer.packed:
            return memory
        place = np.arange(self.size(buffer.elements))
        per_byte = buffer.dtype.per_byte
        return packing.unpack(memory[place // per_byte], place % per_byte, buffer.dtype)

    def run(self, steps: Sequence[Step], begin: int, around: tuple[int, int] | None = None) -> None:
        """Runs steps, the first one of which is launch number ``begin``.

        A buffer is forgotten when its lifetime ends: who reads it later reads what nobody wrote.

        Args:
          steps: what to run.
          begin: see above.
          around: first and last launch of the repetition that the steps are inside of.
        """
        for step in steps:
            end = begin + sum(1 for _ in launches([step])) - 1
            if isinstance(step, Repeat):
                for value in range(self.size(step.loop.extent)):
                    self.sizes[step.loop.var.name] = value
                    self.run(step.steps, begin, (begin, end))
            else:
                self.step(step)
            for life in self.temporaries:
                lasts = around is not None and life.first <= around[0] and life.last >= around[1]
                if begin <= life.last <= end and not lasts:
                    self.memory.pop(id(life.buffer), None)
                    self.written.pop(id(life.buffer), None)
            begin = end + 1

    def step(self, step: Step) -> None:
        with np.errstate(all="ignore"):
            if isinstance(step, Pointwise):
                _Point(self, self._grid(step.loops)).store(*step.stores)
            elif isinstance(step, Reduce):
                self._reduce(step)
            elif isinstance(step, Scatter):
                point = _Point(self, self._grid((*step.lines, *step.updates)))
                point.join(step.store, step.combine.cpp)
            elif isinstance(step, Gemm):
                self._gemm(step)
            elif isinstance(step, DenseReduce):
                self._dense(step)
            elif isinstance(step, TopK):
                self._topk(step)
            elif isinstance(step, Attention):
                self._attention(step)
            elif isinstance(step, Routine):
                self._routine(step)
            else:
                raise AssertionError(type(step).__name__)

    def _grid(self, loops: Sequence[Any]) -> dict[str, Array]:
        extents = [self.size(loop.extent) for loop in loops]
        grid = np.indices(extents, dtype=np.int64) if extents else np.zeros((0,), np.int64)
        return {loop.var.name: grid[axis].reshape(-1) for axis, loop in enumerate(loops)}

    def _reduce(self, step: Reduce) -> None:
        every = (*step.kept, *step.reduced)
        grid = self._grid(every)
        rows = math.prod(self.size(loop.extent) for loop in step.kept)
        columns = math.prod(self.size(loop.extent) for loop in step.reduced)
        values = np.broadcast_to(
            _Point(self, grid, rows * columns).operand(step.load), rows * columns
        )
        parts = _combine(step.combine, values.reshape(rows, columns))
        if step.per_element:
            spread = {k: np.repeat(v, columns) for k, v in parts.items()}
            _Point(self, grid, rows * columns, spread).store(step.store)
        else:
            _Point(self, self._grid(step.kept), rows, parts).store(step.store)

    def _matrix(self, matrix: Matrix, batch: int, rows: int, columns: int) -> tuple[Array, Array]:
        """Offsets of [batch, rows, columns] of the operand as multiplied."""
        ld, stride = self.size(matrix.ld), self.size(matrix.batch_stride)
        b, r, c = np.ogrid[:batch, :rows, :columns]
        inner = c * ld + r if matrix.transposed else r * ld + c
        assert ld >= (rows if matrix.transposed else columns) or 0 in (batch, rows, columns)
        offsets = self.size(matrix.region.offset) + b * stride + inner
        return self.buffer(matrix.region.buffer), offsets

    def _gemm(self, step: Gemm) -> None:
        batch, m, n, k = (self.size(x) for x in (step.batch, step.m, step.n, step.k))
        a, at = self._matrix(step.a, batch, m, k)
        b, bt = self._matrix(step.b, batch, k, n)
        d, dt = self._matrix(step.d, batch, m, n)
        for operand, offsets in ((step.a, at), (step.b, bt)):
            assert self.written[id(operand.region.buffer)][offsets].all(), "operand not written"
        product = step.alpha * np.matmul(a[at].astype(np.float64), b[bt].astype(np.float64))
        if step.bias is not None:
            start = self.size(step.bias.offset)
            product = product + self.buffer(step.bias.buffer)[start : start + n]
        if step.epilogue is Epilogue.RELU:
            product = np.maximum(product, 0)
        d[dt] = product
        self.written[id(step.d.region.buffer)][dt] = True

    def _dense(self, step: DenseReduce) -> None:
        groups = math.prod(self.size(loop.extent) for loop in step.kept)
        rows, width = self.size(step.row.extent), step.width
        grid = self._grid((*step.kept, step.row, *step.channels))
        values = _Point(self, grid, groups * rows * width).operand(step.load)
        values = values.reshape(groups * rows, width).astype(np.float64)
        for layer in step.layers:
            weight = self.read_all(layer.weight.buffer).reshape(layer.outputs, -1)
            values = values @ weight.T.astype(np.float64)
            if layer.bias is not None:
                values = values + self.read_all(layer.bias.buffer)
            if layer.relu:
                values = np.maximum(values, 0)
        outputs = values.shape[1]
        grouped = values.reshape(groups, rows, outputs).transpose(0, 2, 1).reshape(-1, rows)
        parts = _combine(step.combine, grouped.astype(np.float32))
        grid = self._grid((*step.kept, step.output))
        for store in step.stores:
            _Point(self, grid, groups * outputs, parts).store(store)

    def _attention(self, step: Attention) -> None:
        self.sizes.update({s.name: self.size(value) for s, value in step.sizes.items()})
        batch, heads = self.size(step.batch.extent), self.size(step.head.extent)
        rows, keys = self.size(step.row.extent), self.size(step.key.extent)
        shared = heads // max(self.size(step.key_head.extent), 1)
        done = 0
        for sequence in range(batch):
            first, end = 0, rows
            if step.rows is not None:
                point = _Point(self, {step.batch.var.name: np.asarray([sequence])})
                first, end = (int(point.index(e)[0]) for e in (step.rows.begin, step.rows.end))
                assert first == done, "cumulative lengths begin at 0 and do not fall"
                done = max(end, first)
            for head in range(heads):
                self._attend(step, sequence, (head, head // shared), range(first, end), keys)
        for head in range(heads if step.rows is not None else 0):
            self._attend(step, batch, (head, 0), range(done, rows), 0)

    def _attend(
        self, step: Attention, sequence: int, heads: tuple[int, int], rows: range, keys: int
    ) -> None:
        """Rows of one head, in float64; ``keys`` is 0 where the rows are in no sequence."""
        count, depth = len(rows), self.size(step.value_channel.extent)
        if not count:
            return

        def grid(head: int, *axes: tuple[Any, Sequence[int]]) -> dict[str, Array]:
            spread = np.meshgrid(*(np.asarray(places) for _, places in axes), indexing="ij")
            named = {x.var.name: a.reshape(-1) for (x, _), a in zip(axes, spread, strict=True)}
            fixed = ((step.batch, sequence), (step.head, head), (step.key_head, head))
            size = next(iter(named.values())).size
            return named | {x.var.name: np.full(size, value) for x, value in fixed}

        head, key_head = heads
        seen = _Point(self, grid(head, (step.row, rows)))
        begin = seen.index(step.seen.begin) if keys else np.zeros(count, int)
        end = seen.index(step.seen.end) if keys else np.zeros(count, int)
        assert (np.diff(begin) >= 0).all() and (np.diff(end) >= 0).all()
        low, high = int(begin.min()), int(max(end.max(), begin.min()))
        assert low >= 0 and high <= keys
        span = range(low, high)

        def operand(
            value: expr.Expr, place: int, along: Any, places: Sequence[int], loop: Any
        ) -> Array:
            channels = range(self.size(loop.extent))
            point = _Point(self, grid(place, (along, places), (loop, channels)))
            result = point.operand(value).astype(np.float64)
            return np.broadcast_to(result, point.points).reshape(len(places), -1)

        outputs = np.full((count, depth), 0.0 if step.masks else np.nan)
        sums = np.full(count, -np.inf)
        if span:
            query = operand(step.query, head, step.row, rows, step.channel)
            key = operand(step.keys, key_head, step.key, span, step.channel)
            value = operand(step.values, key_head, step.key, span, step.value_channel)
            scores = step.scale * (query @ key.T)
            if step.soft_cap:
                scores = step.soft_cap * np.tanh(scores / step.soft_cap)
            if step.bias is not None:
                point = _Point(self, grid(head, (step.row, rows), (step.key, span)))
                added = np.broadcast_to(point.operand(step.bias), point.points)
                added = added.reshape(scores.shape)
                scores = np.where(step.masks & np.isneginf(added), -np.inf, scores + added)
            places = np.arange(low, high)
            inside = (places >= begin[:, None]) & (places < end[:, None])
            scores = np.where(inside, scores, -np.inf)
            largest = scores.max(axis=1)
            present = largest != -np.inf
            weights = np.exp(scores[present] - largest[present, None])
            total = weights.sum(axis=1)
            outputs[present] = (weights @ value) / total[:, None]
            sums[present] = largest[present] + np.log(total)
        number = step.dtype.numpy
        store_grid = grid(head, (step.row, rows), (step.value_channel, range(depth)))
        parts = {"": outputs.reshape(-1).astype(number)}
        _Point(self, store_grid, count * depth, parts).store(step.store)
        if step.sums is not None and sequence < self.size(step.batch.extent):
            parts = {"": sums.astype(number)}
            _Point(self, grid(head, (step.row, rows)), count, parts).store(step.sums)

    def _routine(self, step: Routine) -> None:
        inputs = {k: None if b is None else self.read_all(b) for k, b in step.inputs.items()}
        sizes = {key: self.size(size) for key, size in step.sizes.items()}
        results = ROUTINES[step.name](inputs, sizes, step.options)
        for key, buffer in step.outputs.items():
            if buffer is not None:
                self._write(buffer, results[key])

    def _topk(self, step: TopK) -> None:
        count = math.prod(self.size(loop.extent) for loop in step.kept)
        axis, inner, k = (self.size(x) for x in (step.along.extent, step.inner, step.k))
        points = _Point(self, self._grid((*step.kept, step.along)), count * axis)
        shape = (count // inner if inner else 0, inner, axis)
        rows = points.value(step.load).reshape(shape) if count else np.zeros(shape)
        rows = rows.transpose(0, 2, 1)
        # The complement of an integer has the opposite order; its negative may overflow.
        keys = np.invert(rows) if rows.dtype.kind in "iu" else -rows
        order = np.argsort(keys if step.largest else rows, axis=1, kind="stable")[:, :k]
        if step.values is not None:
            self._write(step.values, np.take_along_axis(rows, order, axis=1))
        if step.indices is not None:
            self._write(step.indices, order)

    def _write(self, buffer: Buffer, data: Array) -> None:
        self.buffer(buffer)[:] = data.reshape(-1)
        self.written[id(buffer)][:] = True


class _Point:
    """All points of an iteration space at once."""

    def __init__(
        self,
        machine: _Machine,
        grid: Mapping[str, Array],
        points: int | None = None,
        accumulator: Mapping[str, Array] | None = None,
    ) -> None:
        self.machine = machine
        self.grid = grid
        count = next(iter(grid.values())).size if grid else 1
        self.points = count if points is None else points
        self.accumulator = accumulator or {}
        self.known: dict[expr.Indirect, tuple[Array, Array]] = {}
        self.active = np.ones(self.points, bool)

    def index(self, value: dims.Expr) -> Array:
        def lookup(symbol: sympy.Symbol) -> Any:
            if isinstance(symbol, expr.Indirect):
                return self._indirect(symbol)
            if symbol.name in self.grid:
                return self.grid[symbol.name]
            return self.machine.sizes[symbol.name]

        return np.broadcast_to(np.asarray(dim_values.evaluate(value, lookup)), (self.points,))

    def _indirect(self, symbol: expr.Indirect) -> Array:
        """Its value, once for all points that were active when it was first asked for."""
        active, value = self.known.get(symbol, (None, None))
        if active is None or value is None or (self.active & ~active).any():
            value = self.value(symbol.value)
            self.known[symbol] = self.active, value
        return value

    def operand(self, node: expr.Expr) -> Array:
        """A value as it is computed with: narrow floating-point types are widened."""
        if isinstance(node, expr.Accumulator):
            return self.accumulator[node.member]
        value = self.value(node)
        if isinstance(node, expr.Index) or node.dtype.is_native:
            return value
        return value.astype(_CPP_TYPES.get(node.dtype.cpp, node.dtype.cpp.removesuffix("_t")))

    def value(self, node: expr.Expr) -> Array:
        """A value as it is in memory."""
        if isinstance(node, expr.Load):
            memory = self.machine.buffer(node.buffer)
            offset = self.index(node.offset)
            live = offset[self.active]
            if live.size:
                assert live.min() >= 0, f"{node.buffer.name}: load before its start"
                assert live.max() < memory.size, f"{node.buffer.name}: load past its end"
                written = self.machine.written[id(node.buffer)]
                assert written[live].all(), f"{node.buffer.name}: load before any store"
            if not memory.size:
                return np.zeros(self.points, memory.dtype)
            loaded: Array = memory[np.clip(offset, 0, memory.size - 1)]
            return loaded
        if isinstance(node, expr.Literal):
            return np.full(self.points, node.value, node.dtype.numpy)
        if isinstance(node, expr.Index):
            return self.index(node.value)
        if isinstance(node, expr.Accumulator):
            reduced: Array = self.accumulator[node.member]
            return reduced if node.dtype.is_native else reduced.astype(node.dtype.numpy)
        if isinstance(node, expr.Select):
            condition = np.broadcast_to(self.value(node.condition), (self.points,))
            outer = self.active
            self.active = outer & condition
            then = self.value(node.then)
            self.active = outer & ~condition
            other = self.value(node.other)
            self.active = outer
            return np.where(condition, then, other)
        if isinstance(node, expr.Fold):
            return self._fold(node)
        assert isinstance(node, expr.Call), type(node).__name__
        if node.stored:
            return self._stored(node)
        arguments = [self.operand(a) for a in node.args]
        if not node.dtype.is_native and "::" in node.template.replace("sofie::kernels::", ""):
            return _small(node, arguments)
        result = np.broadcast_to(_call(node.template, arguments), (self.points,))
        return _converted(np.asarray(result), node.dtype)

    def _stored(self, node: expr.Call) -> Array:
        """A call on values as they are in memory."""
        values = [np.ascontiguousarray(self.value(a)) for a in node.args]
        if node.template == f"std::bit_cast<{node.dtype.storage}>({{0}})":
            return values[0].view(node.dtype.numpy)
        source = node.args[0].dtype
        assert node.template.startswith(f"{source.packed}::Pack("), node.template
        return packing.pack(np.stack(values, axis=1), source)

    def _fold(self, node: expr.Fold) -> Array:
        result, count = self.value(node.first), self.value(node.count)
        outer, around, known = self.active, self.grid, self.known
        for step in range(max(count[outer].max(initial=0), 0)):
            self.active = outer & (step < count)
            self.known = dict(known)  # What depends on the variable is known for this step alone.
            self.grid = {**around, node.variable.name: np.full(self.points, step)}
            joined = _call(node.template, [result, self.value(node.body)])
            joined = np.asarray(joined, np.dtype(node.dtype.name))
            result = np.where(self.active, joined, result)
        self.active, self.grid, self.known = outer, around, known
        return result

    def store(self, *stores: Store) -> None:
        values = [self.value(store.value) for store in stores]
        for store, value in zip(stores, values, strict=True):
            memory = self.machine.buffer(store.buffer)
            offset = self.index(store.offset)
            assert np.unique(offset).size == offset.size, "two points store the same element"
            if offset.size:
                assert offset.min() >= 0 and offset.max() < memory.size, "store out of bounds"
            memory[offset] = value
            self.machine.written[id(store.buffer)][offset] = True

    def join(self, store: Store, combine: str) -> None:
        """Updates, one after the other; several may go to one element."""
        value = self.value(store.value)
        memory = self.machine.read_all(store.buffer)
        offset = self.index(store.offset)
        if offset.size:
            assert offset.min() >= 0 and offset.max() < memory.size, "update out of bounds"
        if combine == "Replace":
            memory[offset] = value
        else:
            _UPDATES[combine].at(memory, offset, value)


def _converted(values: Array, to: dtype.DType, saturate: bool = True) -> Array:
    """A conversion as C++'s types have it."""
    if to in dtype.FLOAT8 and saturate:
        return onnx.numpy_helper.saturate_cast(values, to.numpy)
    if to is dtype.FLOAT8E8M0:
        return onnx.numpy_helper.to_float8e8m0(values, saturate, "up").astype(to.numpy)
    return values.astype(to.numpy)


def _small(node: expr.Call, arguments: list[Array]) -> Array:
    """Calls of static functions of the small types."""
    if node.template == f"{node.dtype.packed}::Unpack({{0}}, {{1}})":
        return packing.unpack(arguments[0], arguments[1], node.dtype)
    storage = re.escape(node.dtype.storage)
    found = re.fullmatch(
        storage + r"::From\(\{0\}, (true|false)(?:, sofie::Rounding::k(\w+))?\)", node.template
    )
    assert found, node.template
    saturate = found[1] == "true"
    if found[2] is None:
        return _converted(arguments[0], node.dtype, saturate)
    mode = found[2].lower()
    return onnx.numpy_helper.to_float8e8m0(arguments[0], saturate, mode).astype(node.dtype.numpy)


def _combine(combine: Combine, values: Array) -> dict[str, Array]:
    """The accumulators of all rows, by member."""
    wide = values.astype(np.float64) if values.dtype.kind == "f" else values
    if combine.cpp == "Sum":
        return {"": wide.sum(axis=1).astype(values.dtype)}
    if combine.cpp == "Product":
        return {"": wide.prod(axis=1).astype(values.dtype)}
    if combine.cpp == "Max":
        return {"": values.max(axis=1, initial=_lowest(values.dtype))}
    if combine.cpp == "Min":
        return {"": values.min(axis=1, initial=_highest(values.dtype))}
    if combine.cpp == "MaxSumExp":
        largest = wide.max(axis=1, initial=-np.inf)
        total = np.exp(wide - largest[:, None]).sum(axis=1)
        return {"max": largest.astype(values.dtype), "sum": total.astype(values.dtype)}
    if combine.cpp == "MeanVariance":
        count = np.full(len(values), values.shape[1])
        mean, variance = wide.mean(axis=1), wide.var(axis=1)
        parts = {"count": count, "mean": mean, "variance()": variance}
        return {name: part.astype(values.dtype) for name, part in parts.items()}
    if combine.cpp in ("ArgMax", "ArgMin"):
        largest = combine.cpp == "ArgMax"
        numbers, places = values["f0"], values["f1"]
        best = numbers.max(axis=1) if largest else numbers.min(axis=1)
        place = np.where(numbers == best[:, None], places, np.iinfo(np.int64).max)
        return {"value": best, "index": place.min(axis=1)}
    raise AssertionError(f"no rule for the combine {combine.cpp}")


def _lowest(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return False
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return True
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


_UPDATES = {"Sum": np.add, "Product": np.multiply, "Max": np.maximum, "Min": np.minimum}
_CPP_TYPES = {"float": "float32", "double": "float64", "bool": "bool_"}


def _call(template: str, arguments: list[Array]) -> Any:
    """A C++ template, evaluated as the NumPy expression that means the same."""
    names = {f"a{i}": value for i, value in enumerate(arguments)}
    text = template.format(*names)
    ternary = re.fullmatch(r"(\w+) \? (\w+) : (\w+)", text)
    if ternary:
        return np.where(*(names[g] for g in ternary.groups()))
    text = re.sub(r"sofie::kernels::(\w+)(<\w+>)?\(", r"\1(", text)
    text = re.sub(r"std::numeric_limits<\w+>::infinity\(\)", "inf", text)
    text = re.sub(r"static_cast<(\w+)>\(", lambda m: f"cast_{m[1]}(", text)
    text = (
        text.replace("&&", "&").replace("||", "|").replace("!", "~") if "!=" not in text else text
    )
    scope: dict[str, Any] = {**FUNCTIONS, **names, "inf": np.inf}
    for cpp in (
        "float",
        "double",
        "bool",
        *(f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)),
    ):
        target = np.dtype(_CPP_TYPES.get(cpp, cpp.removesuffix("_t")))
        scope[f"cast_{cpp}"] = lambda x, t=target: np.asarray(x).astype(t)
    return eval(text, {"__builtins__": {}}, scope)
