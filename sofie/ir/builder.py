"""Turns tensors into kernel calls: what operators' lowerings call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx_ir
import sympy

from sofie.ir import dims, expr, loops, packing
from sofie.ir.dtype import INT64, UINT8, UINT64, DType
from sofie.ir.program import (
    Buffer,
    BufferKind,
    Combine,
    DenseLayer,
    Epilogue,
    Gemm,
    Loop,
    Matrix,
    Option,
    Pointwise,
    Read,
    Region,
    Repeat,
    Requirement,
    Routine,
    Step,
    Store,
    TopK,
)
from sofie.ir.tensor import Computed, Dense, Index, Lazy, Reduction, Strided, Tensor

# Lowers a graph inside of a node, for tensors that it takes, to those that it gives.
Subgraph = Callable[[onnx_ir.Graph, Sequence[Tensor]], list[Tensor]]
# The most results that TopK keeps while it walks a row once; see ``topk_gpu.h``.
_FEW = 32


class Builder:
    """Collects the steps of one program.

    Attributes:
      steps: launches so far, in order.
      requirements: conditions on the sizes so far.
      node: label of the ONNX node that is being lowered.
      ranges: how many values each loop variable takes in the kernel that is being made.
      level: how many repetitions the steps that are made now are inside of.
    """

    def __init__(self, subgraph: Subgraph | None = None, iterations: int = 0) -> None:
        """Starts a program.

        Args:
          subgraph: lowers a graph inside of a node.
          iterations: how many loop variables the graph itself speaks of.
        """
        self._subgraph = subgraph
        self.level = 0
        self._levels: list[list[Step]] = [[]]
        self._around: list[Loop] = []
        self._random_state: Buffer | None = None
        self._repetitions = iterations
        self.requirements: list[Requirement] = []
        self.node = ""
        self.ranges: dict[sympy.Symbol, dims.Expr] = {}
        self._order: dict[str, int] = {}

    @property
    def steps(self) -> list[Step]:
        """The steps so far at the current level."""
        return self._levels[self.level]

    def random_state(self) -> Buffer:
        """What unseeded random numbers start from: the session's seed and the number of the run."""
        if self._random_state is None:
            shape = (sympy.Integer(2),)
            self._random_state = Buffer("random_state", UINT64, shape, (0,), BufferKind.STATE)
        return self._random_state

    def finish(self) -> None:
        """Launches what must come last: it counts the runs if random numbers depend on that."""
        state = self._random_state
        if state is not None:
            self.enter("random_state")
            count = expr.Load(UINT64, state, dims.ONE)
            next_run = Store(state, dims.ONE, expr.Call(UINT64, "{0} + 1", (count,)))
            self.steps.append(Pointwise((self.node,), (), next_run))

    def subgraph(self, graph: onnx_ir.Graph, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Lowers a graph inside of the current node; gives its outputs."""
        assert self._subgraph is not None
        node = self.node
        outputs = self._subgraph(graph, inputs)
        self.enter(node)
        return outputs

    @contextlib.contextmanager
    def repeat(
        self, extent: dims.Expr, variable: sympy.Symbol | None = None
    ) -> Iterator[sympy.Symbol]:
        """What is launched within it is launched once for every value of the variable it gives.

        Tensors made within it hold nothing outside of it: what is needed later must be in memory
        that was made before. Tensors from before that get memory within it get it ahead of it.

        Args:
          extent: how many times.
          variable: counts the iterations; a new one by default.

        Raises:
          ValueError: a buffer's extent depends on the variable.
        """
        if variable is None:
            variable = dims.iteration(self._repetitions)
            self._repetitions += 1
        loop = Loop(variable, extent)
        self._levels.append([])
        self._around.append(loop)
        self.level += 1
        yield loop.var
        self.level -= 1
        self._around.pop()
        steps = tuple(self._levels.pop())
        for step in steps:
            for buffer in (*step.reads(), *step.writes()):
                if loop.var in buffer.elements.free_symbols:
                    raise ValueError("a tensor has other sizes in every iteration")
        if steps:
            names = frozenset(name for step in steps for name in step.nodes)
            self.steps.append(Repeat(self.nodes((), *names), loop, steps))

    @contextlib.contextmanager
    def at(self, level: int) -> Iterator[None]:
        """Within it, steps are launched at an outer level, ahead of the repetition there."""
        inner = self.level
        self.level = min(level, inner)
        yield
        self.level = inner

    def enter(self, node: str) -> None:
        """Says which ONNX node is lowered from here on."""
        self.node = node
        self._order.setdefault(node, len(self._order))

    # Tensors.

    def lazy(
        self,
        dtype: DType,
        shape: Sequence[dims.Expr],
        inputs: Iterable[Tensor],
        element: Callable[[Index], expr.Expr],
    ) -> Lazy:
        """A value computed element by element from ``inputs``."""
        return Lazy(self, dtype, shape, inputs, element)

    def constant(self, name: str, dtype: DType, data: np.ndarray) -> Strided:
        """A weight; its elements go into the weights file, never into code."""
        shape = tuple(sympy.Integer(d) for d in data.shape)
        buffer = Buffer(name, dtype, shape, tuple(range(data.ndim)), BufferKind.WEIGHT, data)
        return Strided.whole(self, buffer)

    def weight(self, name: str, dtype: DType, data: np.ndarray) -> Tensor:
        """A weight of the model, several elements in a byte where its type allows it."""
        if dtype.per_byte == 1:
            return self.constant(name, dtype, data)
        shape = tuple(sympy.Integer(d) for d in data.shape)
        order = tuple(range(data.ndim))
        packed = packing.pack(data, dtype)
        return self.unpacked(
            Buffer(name, dtype, shape, order, BufferKind.WEIGHT, packed, packed=True)
        )

    def unpacked(self, buffer: Buffer) -> Tensor:
        """The elements of memory in which several share a byte."""
        dtype, per_byte = buffer.dtype, sympy.Integer(buffer.dtype.per_byte)
        strides = dims.packed_strides(buffer.shape, range(len(buffer.shape)))

        def element(index: Index) -> expr.Expr:
            place = sum((i * s for i, s in zip(index, strides, strict=True)), dims.ZERO)
            byte = expr.Load(UINT8, buffer, dims.FloorDiv(place, per_byte))
            within = expr.Index(INT64, dims.FloorMod(place, per_byte))
            return expr.Call(dtype, f"{dtype.packed}::Unpack({{0}}, {{1}})", (byte, within))

        return self.lazy(dtype, buffer.shape, (), element)

    def pack(self, tensor: Tensor, name: str, kind: BufferKind) -> Buffer:
        """Puts a tensor into memory in which several elements share a byte."""
        dtype, per_byte = tensor.dtype, tensor.dtype.per_byte
        source = self.packed(tensor)
        buffer = Buffer(name, dtype, tensor.shape, tuple(range(tensor.rank)), kind, packed=True)
        (byte,) = self.loop_variables(1)

        def part(position: int) -> expr.Expr:
            place = byte * per_byte + position
            value = expr.Load(dtype, source.buffer, place)
            if position == 0:
                return value
            inside = expr.compare("<", place, buffer.elements)
            return expr.Select(dtype, inside, value, expr.Literal(dtype, 0))

        places = ", ".join(f"{{{i}}}" for i in range(per_byte))
        parts = tuple(part(i) for i in range(per_byte))
        value = expr.Call(UINT8, f"{dtype.packed}::Pack({places})", parts, stored=True)
        store = Store(buffer, byte, value)
        loops = (Loop(byte, buffer.bytes),)
        self.steps.append(Pointwise(self.nodes([tensor], self.node), loops, store))
        return buffer

    def known(self, shape: Sequence[dims.Expr], values: Sequence[dims.Expr]) -> Tensor:
        """A small integer tensor (a scalar or a vector) whose elements the host computes."""

        def element(index: Index) -> expr.Expr:
            result: expr.Expr = expr.Index(INT64, values[-1] if values else dims.ZERO)
            for position in reversed(range(len(values) - 1)):
                here = expr.compare("==", index[0], sympy.Integer(position))
                result = expr.Select(INT64, here, expr.Index(INT64, values[position]), result)
            return result

        return self.lazy(INT64, shape, (), element)

    def require(self, low: dims.Expr, high: dims.Expr, message: str) -> None:
        """Demands ``low <= high`` of the sizes of every run that gets to the current step.

        Raises:
          ValueError: the sizes are known now and do not fulfil it.
        """
        difference = sympy.expand(high - low)
        if difference.is_Integer and int(difference) < 0:
            known = message.replace("{low}", str(low)).replace("{high}", str(high))
            raise ValueError(known)
        if not difference.is_nonnegative:
            self.requirements.append(Requirement(low, high, message, self._iterated(difference)))

    def _iterated(self, size: dims.Expr) -> tuple[Loop, ...]:
        """The repetitions around the current step, as far as a size has to do with them."""
        needed, found = set(size.free_symbols), []
        for loop in reversed(self._around[: self.level]):
            # Whether there is an iteration at all matters always.
            extent = loop.extent if loop.var in needed else dims.smallest(loop.extent, dims.ONE)
            if extent != 1:
                found.append(Loop(loop.var, extent))
                needed |= extent.free_symbols
        return tuple(reversed(found))

    def require_equal(self, a: dims.Expr, b: dims.Expr, what: str) -> None:
        """Demands that two sizes are equal in every run; ``what`` names them in the message.

        Raises:
          ValueError: they are known to differ.
        """
        if not dims.same(a, b):
            label = f"{self.node}: {what}"
            self.require(a, b, f"{label} must be equal, but are {{low}} and {{high}}")
            self.require(b, a, f"{label} must be equal, but are {{high}} and {{low}}")

    def require_broadcast(self, shape: dims.Shape, result: dims.Shape) -> None:
        """Demands that a shape stretches to another one, as ONNX's broadcasting allows.

        Raises:
          ValueError: it never does.
        """
        for extent, wanted in zip(reversed(shape), reversed(result), strict=False):
            if extent != 1 and not dims.same(extent, wanted):
                gap = dims.NotOne(extent) * (wanted - extent)
                for low, high in ((dims.ZERO, gap), (gap, dims.ZERO)):
                    self.require(
                        low, high, f"{self.node}: an input does not broadcast to the others"
                    )

    @staticmethod
    def loop_variables(rank: int, prefix: str = "i") -> list[sympy.Symbol]:
        """Index variables for ``rank`` axes."""
        return [
            sympy.Symbol(f"{prefix}{axis}", integer=True, nonnegative=True) for axis in range(rank)
        ]

    @contextlib.contextmanager
    def iterating(
        self, variables: Sequence[dims.Expr], shape: Sequence[dims.Expr]
    ) -> Iterator[None]:
        """Within it, loads are made for a kernel with these loop variables and extents."""
        outer = self.ranges
        pairs = zip(variables, shape, strict=True)
        self.ranges = {v: extent for v, extent in pairs if isinstance(v, sympy.Symbol)}
        try:
            yield
        finally:
            self.ranges = outer

    # Kernels.

    def materialize(self, tensor: Tensor, order: Sequence[int] | None = None) -> Strided:
        """Computes a tensor into a buffer, axes in ``order`` or as its inputs suggest."""
        with self.at(tensor.level):
            return self._materialize(tensor, order)

    def _materialize(self, tensor: Tensor, order: Sequence[int] | None) -> Strided:
        if isinstance(tensor, Dense):
            return self._products(tensor)
        if isinstance(tensor, Reduction):
            return self._reduce(tensor, tensor, self.loop_variables(tensor.rank), None, order)
        variables = self.loop_variables(tensor.rank)
        element = tensor.element if isinstance(tensor, Lazy) else tensor.load
        with self.iterating(variables, tensor.shape):
            value = element(tuple(variables))
            value, fused = self._settle(value, variables, tensor.shape)
        if fused is not None:
            return self._reduce(fused, tensor, variables, value, order)
        axes = loops.choose_order([value], variables, tensor.shape) if order is None else order
        buffer = self._buffer(tensor, axes)
        nest = loops.Nest(variables, tensor.shape, axes)
        store = Store(buffer, _offset(buffer, variables), value)
        around, (store,) = nest.collapse_pointwise([store])
        self.steps.append(Pointwise(self.nodes([tensor]), around, store))
        return Strided.whole(self, buffer)

    def store(
        self,
        shape: dims.Shape,
        element: Callable[[Index], Sequence[expr.Expr]],
        targets: Sequence[Strided],
        at: Sequence[Callable[[Index], Index] | None] = (),
    ) -> None:
        """Launches one kernel that stores several values at every index of ``shape``.

        Args:
          shape: the iteration space.
          element: the values at an index; all of them are computed before one is stored.
          targets: where they go, each at the same index unless ``at`` says otherwise. What an
            index loads from a target must be what it stores to.
          at: the index in the target; None for the same one.
        """
        variables = tuple(self.loop_variables(len(shape)))
        stores = []
        with self.iterating(variables, shape):
            for position, (value, target) in enumerate(
                zip(element(variables), targets, strict=True)
            ):
                move = at[position] if at else None
                place = target.load(variables if move is None else move(variables))
                assert isinstance(place, expr.Load)
                stores.append(Store(place.buffer, place.offset, self.settled(value)))
        nest = loops.Nest(variables, shape, range(len(shape)))
        around, (first, *rest) = nest.collapse_pointwise(stores)
        self.steps.append(Pointwise((self.node,), around, first, tuple(rest)))

    def copy(self, tensor: Tensor, order: Sequence[int]) -> Strided:
        """A packed copy of a tensor, axes in ``order``."""
        with self.at(tensor.level):
            same = self.lazy(tensor.dtype, tensor.shape, [tensor], tensor.load)
            return same.strided(tuple(order))

    def in_memory(self, tensor: Tensor, order: Sequence[int] | None = None) -> Strided:
        """The tensor in memory with any strides; ``order`` is wished for."""
        memory = tensor.strided(order)
        if memory is None:
            axes = range(tensor.rank) if order is None else order
            memory = self.copy(tensor, tuple(axes))
        return memory

    def packed(self, tensor: Tensor, order: Sequence[int] | None = None) -> Strided:
        """The tensor in memory without gaps, axes in ``order`` (row-major by default)."""
        axes = tuple(range(tensor.rank) if order is None else order)
        memory = self.in_memory(tensor, axes)
        return memory if memory.is_packed(axes) else self.copy(memory, axes)

    def normalize(
        self,
        shape: Sequence[dims.Expr],
        axes: Sequence[int],
        combine: Combine,
        source: Tensor,
        finish: Callable[[expr.Expr, Index], expr.Expr],
        dtype: DType,
        prepare: Callable[[expr.Expr], expr.Expr] = lambda element: element,
    ) -> Strided:
        """Reduces every row over ``axes``, then stores ``finish(element, index)`` for each element.

        ``finish`` finds the row's accumulator in ``expr.Accumulator`` nodes that it makes itself.
        What is combined is ``prepare(element)``.
        """
        variables = self.loop_variables(len(shape))
        with self.iterating(variables, shape):
            load, _ = self._settle(source.load(tuple(variables)), variables, None)
        order = loops.choose_order([load], variables, shape)
        result = self.lazy(dtype, shape, [source], source.load)
        buffer = self._buffer(result, order)
        kept = [a for a in order if a not in axes]
        reduced = [a for a in order if a in axes]
        with self.iterating(variables, shape):
            value = self.settled(finish(load, tuple(variables)))
        store = Store(buffer, _offset(buffer, variables), value)
        nest = loops.Nest(variables, tuple(shape), kept)
        rows = loops.Nest(variables, tuple(shape), reduced)
        step = loops.reduction(nest, rows, combine, prepare(load), store, per_element=True)
        step.nodes = self.nodes([source], self.node)
        self.steps.append(step)
        return Strided.whole(self, buffer)

    def matmul(
        self,
        a: Strided,
        b: Strided,
        out: Strided,
        bias: Strided | None = None,
        epilogue: Epilogue = Epilogue.NONE,
        alpha: float = 1.0,
        sources: Sequence[Tensor] = (),
        node: str | None = None,
    ) -> None:
        """Launches ``out = epilogue(alpha * a @ b + bias)`` on [batch, rows, columns] operands.

        Args:
          a: [batch, m, k]; stride 0 along the batch repeats it.
          b: [batch, k, n], likewise.
          out: [batch, m, n] with unit column stride.
          bias: [n], contiguous.
          epilogue: applied last.
          alpha: factor on the product.
          sources: tensors whose nodes the step also stands for.
          node: the ONNX node it computes, if not the current one.
        """
        left, right = self._matrix(a), self._matrix(b)
        result = _as_matrix(out)
        assert result is not None and not result.transposed
        self.steps.append(
            Gemm(
                nodes=self.nodes(sources, self.node if node is None else node),
                dtype=a.dtype,
                batch=out.shape[0],
                m=out.shape[1],
                n=out.shape[2],
                k=a.shape[2],
                a=left,
                b=right,
                d=result,
                bias=None if bias is None else Region(bias.buffer, bias.offset),
                epilogue=epilogue,
                alpha=alpha,
            )
        )

    def topk(
        self,
        x: Tensor,
        axis: int,
        k: dims.Expr,
        largest: bool,
        is_sorted: bool,
        used: Sequence[bool],
    ) -> tuple[Strided | None, Strided | None]:
        """Launches a TopK along ``axis``; ``used`` says which of values and indices are wanted.

        Few elements are selected from rows that are computed on the way. Where each element is
        compared with all others, it has to be in memory.
        """
        source = x if k.is_Integer and int(k) <= _FEW else self.packed(x)
        shape = tuple(k if a == axis else d for a, d in enumerate(x.shape))
        nodes = self.nodes([x], self.node)
        variables = self.loop_variables(x.rank)
        with self.iterating(variables, x.shape):
            load = self.settled(source.load(tuple(variables)))
        along = Loop(variables[axis], x.shape[axis])
        others = [a for a in range(x.rank) if a != axis]
        kept, load = loops.selection(loops.Nest(variables, x.shape, others), along, load)
        order = tuple(range(x.rank))

        def make(dtype: DType, suffix: str, wanted: bool) -> Buffer | None:
            name = f"{self.node}_{suffix}"
            return Buffer(name, dtype, shape, order, BufferKind.TEMPORARY) if wanted else None

        values, indices = make(x.dtype, "values", used[0]), make(INT64, "indices", used[1])
        self.steps.append(
            TopK(
                nodes=nodes,
                kept=kept,
                along=along,
                load=load,
                values=values,
                indices=indices,
                inner=dims.product(x.shape[axis + 1 :]),
                k=k,
                largest=largest,
                is_sorted=is_sorted,
            )
        )
        return (
            None if values is None else Strided.whole(self, values),
            None if indices is None else Strided.whole(self, indices),
        )

    def routine(
        self,
        name: str,
        types: Sequence[DType],
        inputs: Mapping[str, Tensor | None],
        outputs: Mapping[str, Strided | None],
        sizes: Mapping[str, dims.Expr],
        options: Mapping[str, Option],
    ) -> None:
        """Launches a kernel that is not generated; see ``Routine``.

        Args:
          name: the launcher's member function.
          types: its template arguments.
          inputs: tensors, which are packed row-major first.
          outputs: what ``output`` made.
          sizes: by member.
          options: by member.
        """
        sources = [t for t in inputs.values() if t is not None]
        packed = {key: None if t is None else self.packed(t).buffer for key, t in inputs.items()}
        written = {key: None if t is None else t.buffer for key, t in outputs.items()}
        nodes = self.nodes(sources, self.node)
        self.steps.append(Routine(nodes, name, tuple(types), packed, written, sizes, options))

    def scatter(
        self,
        data: Tensor,
        updates: Tensor,
        updated: Sequence[int],
        position: Callable[[Index], Index],
        combine: str,
        inputs: Iterable[Tensor],
    ) -> Strided:
        """A copy of ``data`` with elements of it replaced by or joined with updates.

        Args:
          data: what is updated.
          updates: each of its elements is one update.
          updated: axes of ``updates`` along which updates may meet at one element.
          position: the element of ``data`` that an element of ``updates`` goes to.
          combine: name of the ``Combine``.
          inputs: tensors that ``position`` reads.
        """
        order = tuple(range(data.rank))
        # Memory that nothing else will read is updated in place.
        own = isinstance(data, Computed) and data.is_pending and data.level == self.level
        target = self.packed(data, order) if own else self.copy(data, order)
        variables = self.loop_variables(updates.rank)
        with self.iterating(variables, updates.shape):
            index = tuple(variables)
            value = self.settled(updates.load(index))
            offset = sum(
                (i * s for i, s in zip(position(index), target.strides, strict=True)), dims.ZERO
            )
            settled = self.settled(expr.Index(None, target.offset + offset))
            assert isinstance(settled, expr.Index)
        lines = [a for a in range(updates.rank) if a not in updated]
        store = Store(target.buffer, settled.value, value)
        self.steps.append(
            loops.scatter(
                loops.Nest(variables, updates.shape, lines),
                loops.Nest(variables, updates.shape, tuple(updated)),
                Combine(combine, data.dtype),
                store,
                self.nodes([updates, *inputs], self.node),
            )
        )
        return target

    def output(
        self,
        dtype: DType,
        shape: Sequence[dims.Expr],
        order: Sequence[int] | None = None,
        node: str | None = None,
    ) -> Strided:
        """An empty packed tensor for a library call to write."""
        axes = tuple(range(len(shape)) if order is None else order)
        name = self.node if node is None else node
        buffer = Buffer(name, dtype, tuple(shape), axes, BufferKind.TEMPORARY)
        return Strided.whole(self, buffer)

    def read(self, tensors: Iterable[tuple[str, Tensor, Sequence[sympy.Symbol]]]) -> None:
        """Has the host wait, once, for small tensors and take their elements as symbols' values.

        Args:
          tensors: name, tensor, and one symbol for each element, row-major.
        """
        reads = []
        for name, tensor, symbols in tensors:
            nodes = self.nodes([tensor])
            memory = self.packed(tensor)
            if memory.buffer.kind is BufferKind.WEIGHT:
                memory = self.copy(memory, range(memory.rank))
            reads.append(Read(nodes, memory.buffer, tuple(symbols), name))
        self.steps.extend(reads)

    # Below: how a kernel comes about.

    def nodes(self, inputs: Iterable[Tensor], *also: str) -> tuple[str, ...]:
        """The ONNX nodes that a kernel over ``inputs`` computes, in graph order."""
        names = frozenset[str]().union(*(t.nodes for t in inputs))
        return tuple(sorted(names | set(also), key=lambda name: self._order[name]))

    def _buffer(self, tensor: Tensor, order: Sequence[int]) -> Buffer:
        return Buffer(tensor.node, tensor.dtype, tensor.shape, tuple(order), BufferKind.TEMPORARY)

    def settled(self, value: expr.Expr) -> expr.Expr:
        """``value`` with every reduction in it put into memory."""
        return self._settle(value, (), None)[0]

    def _settle(
        self,
        value: expr.Expr,
        variables: Sequence[sympy.Symbol],
        shape: dims.Shape | None,
    ) -> tuple[expr.Expr, Reduction | None]:
        """Puts pending reductions into memory, but for one that can take ``value`` as epilogue."""
        pending = [n for n in expr.walk(value) if isinstance(n, expr.PendingLoad)]
        distinct: dict[int, Reduction] = {id(p.reduction): p.reduction for p in pending}
        fused = None
        if shape is not None:
            for reduction in distinct.values():
                uses = [p for p in pending if p.reduction is reduction]
                if all(_is_identity(p.indices, variables, shape, reduction.shape) for p in uses):
                    fused = reduction
                    break
        for reduction in distinct.values():
            if reduction is not fused:
                reduction.strided()

        def replace(node: expr.Expr) -> expr.Expr | None:
            if not isinstance(node, expr.PendingLoad):
                return None
            if node.reduction is fused:
                return _finished(fused)
            return node.reduction.load(node.indices)

        # What a load is indexed by may be pending too.
        while any(isinstance(node, expr.PendingLoad) for node in expr.walk(value)):
            value = expr.substitute(value, replace)
        return value, fused

    def _reduce(
        self,
        reduction: Reduction,
        result: Tensor,
        variables: Sequence[sympy.Symbol],
        value: expr.Expr | None,
        order: Sequence[int] | None,
    ) -> Strided:
        """A reduction's kernel; ``value`` is the epilogue, in terms of ``variables``."""
        # The reduction's own axes are those of the result that have more than one element; both
        # appear in the same order, so that matching extents pairs them.
        kept = _pair(reduction.shape, result.shape, variables)
        if reduction.dense is not None and reduction.dense.is_pending:
            return self._dense(reduction, reduction.dense, result, variables, kept, value, order)
        rows = self.loop_variables(len(reduction.reduced), "r")
        with self.iterating((*variables, *rows), (*result.shape, *reduction.reduced)):
            load, _ = self._settle(reduction.element(tuple(kept), tuple(rows)), (), None)
        if value is None:
            value = _finished(reduction)
        axes = loops.choose_order([load], variables, result.shape) if order is None else order
        buffer = self._buffer(result, axes)
        store = Store(buffer, _offset(buffer, variables), value)
        nest = loops.Nest(variables, result.shape, axes)
        inner = loops.choose_order([load], rows, reduction.reduced)
        row_nest = loops.Nest(rows, reduction.reduced, inner)
        step = loops.reduction(nest, row_nest, reduction.combine, load, store)
        step.nodes = self.nodes([result, reduction])
        self.steps.append(step)
        return Strided.whole(self, buffer)

    def _products(self, dense: Dense) -> Strided:
        """Dense layers as one product each, channels innermost in memory."""
        order = (0, *range(2, dense.rank), 1)
        source: Tensor = dense.source
        for layer in dense.layers:
            inputs, outputs = source.shape[1], layer.outputs
            points = dims.product((source.shape[0], *source.shape[2:]))
            shape = (source.shape[0], outputs, *source.shape[2:])
            out = self.output(source.dtype, shape, order, layer.node)
            packed = self.packed(source, order)
            self.matmul(
                Strided(
                    self, packed.buffer, (dims.ONE, points, inputs), (dims.ZERO, inputs, dims.ONE)
                ),
                Strided(
                    self,
                    layer.weight.buffer,
                    (dims.ONE, inputs, outputs),
                    (dims.ZERO, dims.ONE, inputs),
                    layer.weight.offset,
                ),
                Strided(
                    self, out.buffer, (dims.ONE, points, outputs), (dims.ZERO, outputs, dims.ONE)
                ),
                bias=layer.bias,
                epilogue=Epilogue.RELU if layer.relu else Epilogue.NONE,
                node=layer.node,
            )
            source = out
        assert isinstance(source, Strided)
        return source

    def _dense(
        self,
        reduction: Reduction,
        dense: Dense,
        result: Tensor,
        variables: Sequence[sympy.Symbol],
        kept: Sequence[dims.Expr],
        value: expr.Expr | None,
        order: Sequence[int] | None,
    ) -> Strided:
        """Dense layers and the reduction of their rows as one kernel."""
        row, channel = self.loop_variables(2, "r")
        index = [*kept, row]
        output = index[1]
        index[1] = channel
        inner = (reduction.reduced[0], dense.source.shape[1])
        with self.iterating((*variables, row, channel), (*result.shape, *inner)):
            load, _ = self._settle(dense.source.load(tuple(index)), (), None)
        if value is None:
            value = _finished(reduction)
        position = list(variables).index(output)
        groups = [a for a in range(result.rank) if a != position]
        axes = (*groups, position) if order is None else tuple(order)
        buffer = self._buffer(result, axes)
        store = Store(buffer, _offset(buffer, variables), value)
        nest = loops.Nest(variables, result.shape, groups)
        self.steps.append(
            loops.dense_reduction(
                nest,
                Loop(row, reduction.reduced[0]),
                Loop(channel, dense.source.shape[1]),
                load,
                tuple(
                    DenseLayer(
                        Region(layer.weight.buffer, layer.weight.offset),
                        None
                        if layer.bias is None
                        else Region(layer.bias.buffer, layer.bias.offset),
                        layer.relu,
                        int(layer.outputs),
                    )
                    for layer in dense.layers
                ),
                reduction.combine,
                store,
                Loop(output, dense.layers[-1].outputs),
                self.nodes([result, reduction, dense]),
            )
        )
        return Strided.whole(self, buffer)

    def _matrix(self, operand: Strided) -> Matrix:
        """A GEMM operand in place where a library can read it, else a packed copy."""
        matrix = _as_matrix(operand)
        if matrix is None:
            matrix = _as_matrix(self.copy(operand, range(3)))
            assert matrix is not None
        return matrix


def _finished(reduction: Reduction) -> expr.Expr:
    """A reduction's result, rounded to its type like that of any other node."""
    value = reduction.finish(expr.Accumulator(reduction.combine.dtype))
    if isinstance(value, expr.Accumulator) and not value.dtype.is_native:
        return expr.Call(value.dtype, "{0}", (value,))
    return value


def outer_axis_inner(x: Tensor, axis: int) -> dict[str, dims.Expr]:
    """A packed tensor as [outer, axis, inner], the way routines see it."""
    return {
        "outer": dims.product(x.shape[:axis]),
        "axis": x.shape[axis],
        "inner": dims.product(x.shape[axis + 1 :]),
    }


def _offset(buffer: Buffer, variables: Sequence[sympy.Symbol]) -> dims.Expr:
    return sum((v * s for v, s in zip(variables, buffer.strides, strict=True)), dims.ZERO)


def _is_identity(
    indices: Sequence[dims.Expr],
    variables: Sequence[sympy.Symbol],
    shape: dims.Shape,
    reduced_shape: dims.Shape,
) -> bool:
    """True where element and index are paired one to one, extents of 1 aside."""
    position = 0
    for index, extent in zip(indices, reduced_shape, strict=True):
        if extent == 1 and index not in variables:
            continue
        while position < len(variables) and variables[position] != index:
            if shape[position] != 1:
                return False
            position += 1
        if position == len(variables) or not dims.same(shape[position], extent):
            return False
        position += 1
    return all(extent == 1 for extent in shape[position:])


def _pair(
    inner: dims.Shape, outer: dims.Shape, variables: Sequence[sympy.Symbol]
) -> list[dims.Expr]:
    """The variable of ``outer`` for each axis of ``inner``; both differ by axes of 1 only."""
    wide = [v for v, extent in zip(variables, outer, strict=True) if extent != 1]
    remaining = iter(wide)
    return [dims.ZERO if extent == 1 else next(remaining) for extent in inner]


def _as_matrix(operand: Strided) -> Matrix | None:
    """``operand[batch, rows, columns]`` as a library takes it; None where it can't."""
    batch, rows, columns = operand.strides
    _, height, width = operand.shape
    region = Region(operand.buffer, operand.offset)
    batch = dims.ZERO if operand.shape[0] == 1 else batch
    # Extents that depend on data have no known sign, but are not negative.
    if not batch.is_nonnegative and not operand.is_packed(range(3)):
        return None
    if columns == 1 or width == 1:
        ld = width if height == 1 else rows
        if height == 1 or _is_pitch(rows, width):
            return Matrix(region, ld, batch)
    if rows == 1 or height == 1:
        ld = height if width == 1 else columns
        if width == 1 or _is_pitch(columns, height):
            return Matrix(region, ld, batch, transposed=True)
    return None


def _is_pitch(stride: dims.Expr, length: dims.Expr) -> bool:
    """True where lines of ``length`` elements, ``stride`` apart, do not overlap at any size."""
    if dims.same(stride, length):
        return True
    quotient = sympy.cancel(stride / length)
    if quotient.is_Integer:
        return bool(quotient >= 1)
    # A stride of 0 is a product with an extent of 0: there are no lines then.
    difference = dims.if_positive(stride - dims.at_most(length))
    quotient = dims.if_positive(quotient)
    return bool(difference.is_nonnegative) or bool(quotient.is_integer and quotient.is_positive)
