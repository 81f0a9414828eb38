"""Tensors while a model is lowered: memory, views of it, and values that are not computed yet.

An operator's lowering returns tensors. Nothing is launched for a view or an element-wise value
until something needs it in memory; what reads it before then computes it in its own kernel. That is
how chains of element-wise and layout operators become one kernel.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from sofie.ir import dim_values, dims, expr
from sofie.ir.dtype import DType
from sofie.ir.program import Buffer, Combine

if TYPE_CHECKING:
    from sofie.ir.builder import Builder

Index = tuple[dims.Expr, ...]

# An inlined value that more than one kernel computes anew may cost this much.
_CHEAP_LOADS = 1
_CHEAP_CALLS = 4


class Tensor(abc.ABC):
    """A value with a shape and a type.

    Attributes:
      builder: what computes it on demand.
      dtype: element type.
      shape: logical extents.
      node: the ONNX node whose lowering made it.
      level: how many repetitions it was made inside of.
    """

    def __init__(self, builder: Builder, dtype: DType, shape: Sequence[dims.Expr]) -> None:
        self.builder = builder
        self.dtype = dtype
        self.shape: dims.Shape = tuple(shape)
        self.node = builder.node
        self.level = builder.level

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    @abc.abstractmethod
    def nodes(self) -> frozenset[str]:
        """The ONNX nodes that computing an element anew would compute; none for memory."""

    @abc.abstractmethod
    def load(self, index: Index) -> expr.Expr:
        """The element at a logical index, as an expression."""

    @abc.abstractmethod
    def strided(self, order: Sequence[int] | None = None) -> Strided | None:
        """The tensor in memory, where it can be had without a copy.

        Args:
          order: the axes as they should lie in memory if the tensor has yet to be computed.
        """

    @abc.abstractmethod
    def share(self, readers: int) -> None:
        """Says that ``readers`` more than the first one will read the tensor."""


class Strided(Tensor):
    """Elements of a buffer at ``offset + sum(index * strides)``."""

    def __init__(
        self,
        builder: Builder,
        buffer: Buffer,
        shape: Sequence[dims.Expr],
        strides: Sequence[dims.Expr],
        offset: dims.Expr = dims.ZERO,
    ) -> None:
        super().__init__(builder, buffer.dtype, shape)
        self.buffer = buffer
        self.strides: dims.Shape = tuple(strides)
        self.offset = offset

    @property
    def nodes(self) -> frozenset[str]:
        """None: it is in memory."""
        return frozenset()

    @classmethod
    def whole(cls, builder: Builder, buffer: Buffer) -> Strided:
        """A buffer as a tensor."""
        return cls(builder, buffer, buffer.shape, buffer.strides)

    def load(self, index: Index) -> expr.Expr:
        """A load."""
        offset = self.offset
        for i, stride in zip(index, self.strides, strict=True):
            offset = offset + i * stride
        return expr.Load(self.dtype, self.buffer, offset)

    def strided(self, order: Sequence[int] | None = None) -> Strided | None:
        """Itself."""
        return self

    def share(self, readers: int) -> None:
        """Memory has any number of readers."""

    def is_packed(self, order: Sequence[int]) -> bool:
        """True where the elements lie without gaps, axes in ``order``, from the buffer's start."""
        packed = dims.packed_strides(self.shape, order)
        return self.offset == 0 and all(
            extent == 1 or dims.same(a, b)
            for a, b, extent in zip(self.strides, packed, self.shape, strict=True)
        )


class Computed(Tensor):
    """A tensor that gets a buffer on demand."""

    def __init__(
        self,
        builder: Builder,
        dtype: DType,
        shape: Sequence[dims.Expr],
        inputs: Iterable[Tensor],
    ) -> None:
        super().__init__(builder, dtype, shape)
        self.inputs = tuple(inputs)
        self.memory: Strided | None = None
        self.readers = 1

    @property
    def nodes(self) -> frozenset[str]:
        """Its own node and those of inputs that are not in memory."""
        if self.memory is not None:
            return frozenset()
        return frozenset({self.node}).union(*(t.nodes for t in self.inputs))

    def share(self, readers: int) -> None:
        """Counts the readers: what several would compute anew is computed once."""
        self.readers += readers

    @property
    def is_pending(self) -> bool:
        """True while the sole reader may still compute it in a kernel of its own."""
        return self.memory is None and self.readers == 1

    def strided(self, order: Sequence[int] | None = None) -> Strided:
        """Computes the tensor into memory, unless it is there already."""
        if self.memory is None:
            self.memory = self.builder.materialize(self, order)
        return self.memory


class Lazy(Computed):
    """An element-wise value: ``element(index)`` is its expression."""

    def __init__(
        self,
        builder: Builder,
        dtype: DType,
        shape: Sequence[dims.Expr],
        inputs: Iterable[Tensor],
        element: Callable[[Index], expr.Expr],
    ) -> None:
        super().__init__(builder, dtype, shape, inputs)
        self.element = element

    def load(self, index: Index) -> expr.Expr:
        """A load once it is in memory, else the expression."""
        if self.memory is None and self.readers > 1 and not self._is_cheap():
            self.strided()
        return self.element(index) if self.memory is None else self.memory.load(index)

    def _is_cheap(self) -> bool:
        variables = tuple(self.builder.loop_variables(self.rank))
        with self.builder.iterating(variables, self.shape):
            nodes = list(expr.walk(self.element(variables)))
        loads = sum(isinstance(n, expr.Load) and not n.is_weight for n in nodes)
        calls = sum(isinstance(n, expr.Call | expr.Select) for n in nodes)
        pending = any(isinstance(n, expr.PendingLoad) for n in nodes)
        return not pending and loads <= _CHEAP_LOADS and calls <= _CHEAP_CALLS


@dataclasses.dataclass(frozen=True)
class Layer:
    """A dense layer: ``relu(weight @ x + bias)``.

    Attributes:
      weight: [outputs, inputs], packed.
      bias: [outputs], packed, or None.
      relu: whether negative results become zero.
      node: the ONNX node that it is.
    """

    weight: Strided
    bias: Strided | None
    relu: bool
    node: str

    @property
    def outputs(self) -> dims.Expr:
        """Number of outputs."""
        return self.weight.shape[0]


class Dense(Computed):
    """Dense layers, one after the other, over the channels of ``source[N, C, ...]``.

    In memory it is a matrix product a layer. A reduction that is its sole reader keeps the layers'
    results on the chip.
    """

    def __init__(self, source: Tensor, layers: tuple[Layer, ...]) -> None:
        shape = (source.shape[0], layers[-1].outputs, *source.shape[2:])
        super().__init__(source.builder, source.dtype, shape, [source])
        self.source = source
        self.layers = layers

    @property
    def nodes(self) -> frozenset[str]:
        """The layers' nodes and the source's."""
        if self.memory is not None:
            return frozenset()
        return self.source.nodes | {layer.node for layer in self.layers}

    def then(self, layer: Layer) -> Dense:
        """This chain with one more layer."""
        return Dense(self.source, (*self.layers, layer))

    def load(self, index: Index) -> expr.Expr:
        """A load: a product's elements exist in memory only."""
        return self.strided().load(index)


class Reduction(Computed):
    """``finish(combine over reduced axes of load(kept index, reduced index))``.

    With ``dense``, the elements are those of dense layers, and the one reduced axis is their last.
    """

    def __init__(
        self,
        builder: Builder,
        shape: Sequence[dims.Expr],
        reduced: Sequence[dims.Expr],
        combine: Combine,
        element: Callable[[Index, Index], expr.Expr],
        finish: Callable[[expr.Expr], expr.Expr],
        dtype: DType,
        inputs: Iterable[Tensor],
        dense: Dense | None = None,
    ) -> None:
        super().__init__(builder, dtype, shape, inputs)
        self.dense = dense
        self.reduced: dims.Shape = tuple(reduced)
        self.combine = combine
        self.element = element
        self.finish = finish

    def load(self, index: Index) -> expr.Expr:
        """A load once it is in memory; before that, a mark that a sole reader may fuse with."""
        if self.memory is None and self.readers > 1:
            self.strided()
        if self.memory is None:
            return expr.PendingLoad(self.dtype, self, index)
        return self.memory.load(index)


class View(Tensor):
    """Another tensor's elements at other indices."""

    def __init__(self, base: Tensor, shape: Sequence[dims.Expr]) -> None:
        super().__init__(base.builder, base.dtype, shape)
        self.base = base

    @property
    def nodes(self) -> frozenset[str]:
        """Its own node and the base's, unless the base is in memory."""
        below = self.base.nodes
        return below | {self.node} if below else below

    def share(self, readers: int) -> None:
        """Passes the readers on."""
        self.base.share(readers)


class Permute(View):
    """Axis ``a`` of the view is axis ``perm[a]`` of the base."""

    def __init__(self, base: Tensor, perm: Sequence[int]) -> None:
        super().__init__(base, [base.shape[p] for p in perm])
        self.perm = tuple(perm)

    def load(self, index: Index) -> expr.Expr:
        """The base's element."""
        inner: list[dims.Expr] = [dims.ZERO] * self.rank
        for axis, source in enumerate(self.perm):
            inner[source] = index[axis]
        return self.base.load(tuple(inner))

    def strided(self, order: Sequence[int] | None = None) -> Strided | None:
        """The base with its strides permuted."""
        below = self.base.strided(None if order is None else [self.perm[a] for a in order])
        if below is None:
            return None
        strides = [below.strides[p] for p in self.perm]
        return Strided(self.builder, below.buffer, self.shape, strides, below.offset)


class Broadcast(View):
    """The base stretched to ``shape``: its axes of extent 1 repeat, missing ones lead."""

    def _aligned(self) -> list[tuple[int, dims.Expr]]:
        """For every axis of the base: the view's axis and the factor on its index (0, 1, ...)."""
        lead = self.rank - self.base.rank
        factors = []
        for axis, extent in enumerate(self.base.shape):
            wanted = self.shape[lead + axis]
            equal = dims.same(extent, wanted)
            factors.append((lead + axis, dims.ONE if equal else dims.NotOne(extent)))
        return factors

    def load(self, index: Index) -> expr.Expr:
        """The base's element."""
        return self.base.load(tuple(index[axis] * factor for axis, factor in self._aligned()))

    def strided(self, order: Sequence[int] | None = None) -> Strided | None:
        """The base with stride 0 where it repeats."""
        below = self.base.strided()
        if below is None:
            return None
        strides: list[dims.Expr] = [dims.ZERO] * self.rank
        for stride, (axis, factor) in zip(below.strides, self._aligned(), strict=True):
            strides[axis] = stride * factor
        return Strided(self.builder, below.buffer, self.shape, strides, below.offset)


class Slice(View):
    """Elements ``start + i * step`` along every axis."""

    def __init__(
        self,
        base: Tensor,
        shape: Sequence[dims.Expr],
        starts: Sequence[dims.Expr],
        steps: Sequence[dims.Expr],
    ) -> None:
        super().__init__(base, shape)
        self.starts = tuple(starts)
        self.steps = tuple(steps)

    def load(self, index: Index) -> expr.Expr:
        """The base's element."""
        parts = zip(index, self.starts, self.steps, strict=True)
        return self.base.load(tuple(start + i * step for i, start, step in parts))

    def strided(self, order: Sequence[int] | None = None) -> Strided | None:
        """The base at another offset with other strides."""
        below = self.base.strided(order)
        if below is None:
            return None
        offset = below.offset
        for start, stride in zip(self.starts, below.strides, strict=True):
            offset = offset + start * stride
        strides = [stride * step for stride, step in zip(below.strides, self.steps, strict=True)]
        return Strided(self.builder, below.buffer, self.shape, strides, offset)


class SplitAxes(View):
    """Every axis of the base as the sum of two: ``view[i..., j...] = base[i + j...]``.

    Of each two extents one is 1, which one the host knows at run time.
    """

    def __init__(
        self, base: Tensor, first: Sequence[dims.Expr], second: Sequence[dims.Expr]
    ) -> None:
        super().__init__(base, [*first, *second])

    def load(self, index: Index) -> expr.Expr:
        """The base's element."""
        rank = self.base.rank
        return self.base.load(tuple(i + j for i, j in zip(index[:rank], index[rank:], strict=True)))

    def strided(self, order: Sequence[int] | None = None) -> Strided | None:
        """The base with every stride twice."""
        below = self.base.strided()
        if below is None:
            return None
        strides = (*below.strides, *below.strides)
        return Strided(self.builder, below.buffer, self.shape, strides, below.offset)


class Reshape(View):
    """The base's elements in row-major order under another shape.

    Axes are matched in groups of equal product: one axis that splits costs nothing; axes that merge
    are read through one stride where memory allows it, and are copied row-major once where not.
    """

    def __init__(self, base: Tensor, shape: Sequence[dims.Expr]) -> None:
        super().__init__(base, shape)
        self._groups = _match(base.shape, self.shape)
        self._copy: Strided | None = None

    def load(self, index: Index) -> expr.Expr:
        """The base's element; a base whose axes merge is put into memory first."""
        if all(len(old) <= 1 for old, _ in self._groups):
            inner: list[dims.Expr] = [dims.ZERO] * self.base.rank
            for old, new in self._groups:
                if old:
                    strides = dims.packed_strides([self.shape[a] for a in new], range(len(new)))
                    inner[old[0]] = sum(
                        (index[a] * s for a, s in zip(new, strides, strict=True)), dims.ZERO
                    )
            return self.base.load(tuple(inner))
        if self._in_memory() is None and (unpacked := self._unpack(index)) is not None:
            return self.base.load(unpacked)
        memory = self.strided()
        if memory is None:
            memory = self._row_major_copy()
        return memory.load(index)

    def strided(self, order: Sequence[int] | None = None) -> Strided | None:
        """The base's memory with the strides of the new axes, where such strides exist."""
        below = self.base.strided() if self._copy is None else self._copy
        if below is None:
            return None
        strides: list[dims.Expr] = [dims.ZERO] * self.rank
        for old, new in self._groups:
            stride = _merged_stride([below.shape[a] for a in old], [below.strides[a] for a in old])
            if stride is None:
                return None
            packed = dims.packed_strides([self.shape[a] for a in new], range(len(new)))
            for axis, within in zip(new, packed, strict=True):
                strides[axis] = stride * within
        return Strided(self.builder, below.buffer, self.shape, strides, below.offset)

    def _in_memory(self) -> Strided | None:
        """The view of memory that exists already."""
        base = self.base
        while isinstance(base, View):
            base = base.base
        there = isinstance(base, Strided) or (
            isinstance(base, Computed) and base.memory is not None
        )
        return self.strided() if there else None

    def _unpack(self, index: Index) -> Index | None:
        """The base's index where merged axes can be told apart without a division."""
        inner: list[dims.Expr] = [dims.ZERO] * self.base.rank
        for old, new in self._groups:
            strides = dims.packed_strides([self.shape[a] for a in new], range(len(new)))
            flat = sum((index[a] * s for a, s in zip(new, strides, strict=True)), dims.ZERO)
            extents = [self.base.shape[a] for a in old]
            parts = dims.unpack(flat, extents, self.builder.ranges) if old else []
            if parts is None:
                return None
            for axis, part in zip(old, parts, strict=True):
                inner[axis] = part
        return tuple(inner)

    def _row_major_copy(self) -> Strided:
        """Memory under which every reshape is a view."""
        self._copy = self.builder.copy(self.base, range(self.base.rank))
        memory = self.strided()
        assert memory is not None
        return memory


def _match(old: dims.Shape, new: dims.Shape) -> list[tuple[list[int], list[int]]]:
    """Groups of neighbouring axes, old and new, that hold equally many elements."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and dims.same(old[i], new[j]):
            groups.append(([i], [j]))
            i, j = i + 1, j + 1
        elif j < len(new) and new[j] == 1:
            groups.append(([], [j]))
            j += 1
        elif i < len(old) and old[i] == 1:
            groups.append(([i], []))
            i += 1
        else:
            olds, news = _match_group(old[i:], new[j:])
            groups.append(([i + a for a in range(olds)], [j + a for a in range(news)]))
            i, j = i + olds, j + news
    return groups


def _match_group(old: dims.Shape, new: dims.Shape) -> tuple[int, int]:
    """How many leading axes of both are needed until their products are equal."""
    olds = news = 0
    left = right = dims.ONE
    while olds < len(old) or news < len(new):
        if olds and news and dims.same(left, right):
            break
        smaller = dim_values.nominal(left) <= dim_values.nominal(right)
        if news == len(new) or (smaller and olds < len(old)):
            left = left * old[olds]
            olds += 1
        else:
            right = right * new[news]
            news += 1
    return olds, news


def _merged_stride(extents: Sequence[dims.Expr], strides: Sequence[dims.Expr]) -> dims.Expr | None:
    """The one stride that walks all the axes in row-major order; None where there is none."""
    axes = [(e, s) for e, s in zip(extents, strides, strict=True) if e != 1]
    if not axes:
        return dims.ONE
    stride = axes[-1][1]
    running = stride * axes[-1][0]
    for extent, outer in reversed(axes[:-1]):
        if not dims.same(outer, running):
            return None
        running = running * extent
    return stride
