"""Kernel calls: what a model has become when nothing but launches is left of it."""

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np
import sympy

from sofie.ir import dims, expr
from sofie.ir.dtype import DType


class BufferKind(enum.Enum):
    """Who owns a buffer's memory. A state is a session's, and lasts from run to run."""

    INPUT = "input"
    OUTPUT = "output"
    TEMPORARY = "temporary"
    WEIGHT = "weight"
    STATE = "state"


@dataclasses.dataclass(eq=False)
class Buffer:
    """Packed memory for one tensor.

    Attributes:
      name: the ONNX value's name, or one derived from it; unique after planning only.
      dtype: element type.
      shape: logical extents, as ONNX sees them.
      order: the axes as they lie in memory, outermost first.
      kind: owner of the memory.
      data: a weight's elements.
      packed: whether several elements share a byte, as far as their type allows it.
      given_strides: of an input that is a view with strides of its own, a symbol for each axis;
        else none.
    """

    name: str
    dtype: DType
    shape: dims.Shape
    order: tuple[int, ...]
    kind: BufferKind
    data: np.ndarray | None = None
    packed: bool = False
    given_strides: dims.Shape = ()

    @property
    def elements(self) -> dims.Expr:
        """Number of elements of the memory, those between the ones of a view included."""
        count = dims.product(self.shape)
        if not self.given_strides:
            return count
        steps = zip(self.shape, self.given_strides, strict=True)
        return dims.Where(count, sum(((d - 1) * s for d, s in steps), dims.ONE), dims.ZERO)

    @property
    def bytes(self) -> dims.Expr:
        """Bytes of the memory."""
        if self.packed:
            per_byte = sympy.Integer(self.dtype.per_byte)
            return dims.FloorDiv(self.elements + per_byte - 1, per_byte)
        return self.elements * self.dtype.size

    @property
    def storage(self) -> str:
        """The C++ type that kernels see of the memory."""
        return "uint8_t" if self.packed else self.dtype.storage

    @property
    def strides(self) -> dims.Shape:
        """Element strides of the logical axes."""
        return self.given_strides or dims.packed_strides(self.shape, self.order)

    @property
    def row_major(self) -> bool:
        """True where the axes lie in their logical order (axes of extent 1 lie anywhere)."""
        axes = [a for a in self.order if self.shape[a] != 1]
        return axes == sorted(axes)


def is_among(buffer: Buffer, others: Iterable[Buffer]) -> bool:
    """True if this very buffer is one of the others: equal ones are not the same."""
    return any(other is buffer for other in others)


@dataclasses.dataclass(frozen=True)
class Loop:
    """One axis of an iteration space."""

    var: sympy.Symbol
    extent: dims.Expr


@dataclasses.dataclass(frozen=True, eq=False)
class Store:
    """``buffer[offset] = value``."""

    buffer: Buffer
    offset: dims.Expr
    value: expr.Expr


@dataclasses.dataclass(frozen=True, eq=False)
class Region:
    """A library operand: ``buffer`` from element ``offset`` on."""

    buffer: Buffer
    offset: dims.Expr = dims.ZERO


@dataclasses.dataclass(eq=False)
class Step(abc.ABC):
    """One launch. What it reads and writes does not change.

    Attributes:
      nodes: the ONNX nodes it computes, in graph order.
    """

    nodes: tuple[str, ...]

    @abc.abstractmethod
    def reads(self) -> Iterator[Buffer]:
        """Buffers that the step reads."""

    @abc.abstractmethod
    def writes(self) -> Iterator[Buffer]:
        """Buffers that the step writes."""

    def reads_from(self, buffer: Buffer) -> bool:
        """True if the step reads this very buffer."""
        return id(buffer) in self._sources

    @functools.cached_property
    def _sources(self) -> frozenset[int]:
        """Identities of the buffers read: passes ask every step about many a buffer."""
        return frozenset(map(id, self.reads()))


def _loads(*values: expr.Expr) -> Iterator[Buffer]:
    for value in values:
        for node in expr.walk(value):
            if isinstance(node, expr.Load):
                yield node.buffer


def _stores(store: Store) -> Iterator[Buffer]:
    """What a store loads: for its value and for its offset."""
    return _loads(store.value, expr.Index(None, store.offset))


@dataclasses.dataclass(eq=False)
class Pointwise(Step):
    """``store`` for every point of ``loops``, outermost loop first.

    A point may load an element that it stores, and no element that another point stores.

    Attributes:
      loops: the iteration space.
      store: what a point stores.
      also: what else it stores; all values are computed before anything is stored.
    """

    loops: tuple[Loop, ...]
    store: Store
    also: tuple[Store, ...] = ()

    @property
    def stores(self) -> tuple[Store, ...]:
        """Everything that a point stores."""
        return (self.store, *self.also)

    def reads(self) -> Iterator[Buffer]:
        """Every buffer loaded."""
        for store in self.stores:
            yield from _stores(store)

    def writes(self) -> Iterator[Buffer]:
        """The buffers stored."""
        for store in self.stores:
            yield store.buffer


@dataclasses.dataclass(frozen=True)
class Combine:
    """How a reduction joins two elements.

    Attributes:
      cpp: template of ``sofie::kernels``, e.g. ``Sum``.
      dtype: its element type.
    """

    cpp: str
    dtype: DType


@dataclasses.dataclass(frozen=True)
class Policy:
    """How threads share a reduction; part of the layout class, see ``ReducePolicy`` in C++."""

    along_reduced: bool
    lanes: int


@dataclasses.dataclass(eq=False)
class Reduce(Step):
    """Combines ``load`` over ``reduced`` for every point of ``kept``, then stores.

    Attributes:
      per_element: False: one ``store`` a row. True: one for every element of the row (softmax).
    """

    kept: tuple[Loop, ...]
    reduced: tuple[Loop, ...]
    combine: Combine
    load: expr.Expr
    store: Store
    policy: Policy
    per_element: bool = False

    def reads(self) -> Iterator[Buffer]:
        """Buffers loaded by the reduction and by its epilogue."""
        yield from _loads(self.load)
        yield from _stores(self.store)

    def writes(self) -> Iterator[Buffer]:
        """The buffer stored."""
        yield self.store.buffer


class Precision(enum.Enum):
    """How a GPU computes products of float32 matrices; see ``sofie/runtime/precision.h``."""

    FP32 = "kFloat32"
    TF32 = "kTf32"
    BF16 = "kBfloat16"
    FP16 = "kFloat16"


class Epilogue(enum.Enum):
    """What a GEMM does to its result before it stores it."""

    NONE = "kNone"
    RELU = "kRelu"


@dataclasses.dataclass(frozen=True)
class Matrix:
    """A GEMM operand: rows ``ld`` elements apart, batches ``batch_stride`` apart."""

    region: Region
    ld: dims.Expr
    batch_stride: dims.Expr
    transposed: bool = False


@dataclasses.dataclass(eq=False)
class Gemm(Step):
    """Row-major ``d[m, n] = epilogue(alpha * a[m, k] * b[k, n] + beta * d + bias[n])``, batched."""

    dtype: DType
    batch: dims.Expr
    m: dims.Expr
    n: dims.Expr
    k: dims.Expr
    a: Matrix
    b: Matrix
    d: Matrix
    bias: Region | None = None
    epilogue: Epilogue = Epilogue.NONE
    alpha: float = 1.0
    beta: float = 0.0
    precision: Precision = Precision.FP32

    def reads(self) -> Iterator[Buffer]:
        """Both operands, the bias, and the result where it is accumulated into."""
        yield self.a.region.buffer
        yield self.b.region.buffer
        if self.bias is not None:
            yield self.bias.buffer
        if self.beta != 0.0:
            yield self.d.region.buffer

    def writes(self) -> Iterator[Buffer]:
        """The result."""
        yield self.d.region.buffer


@dataclasses.dataclass(frozen=True, eq=False)
class DenseLayer:
    """``relu(weight[outputs, inputs] @ x + bias[outputs])``.

    Attributes:
      parts: the weight once more, as some GPUs read it.
    """

    weight: Region
    bias: Region | None
    relu: bool
    outputs: int
    parts: Region | None = None


@dataclasses.dataclass(eq=False)
class DenseReduce(Step):
    """Dense layers over the rows of groups, and each group's rows combined to one.

    Attributes:
      kept: the groups.
      row: walks the rows of a group; its extent is a number.
      channels: walk the inputs of the first layer, row-major; likewise.
      load: an input, in terms of the variables above.
      layers: in order.
      combine: joins the rows' results.
      store: of one output of one group, in terms of ``kept`` and ``output``.
      output: walks the last layer's outputs.
      precision: of the products.
      also: what else is stored of it.
    """

    kept: tuple[Loop, ...]
    row: Loop
    channels: tuple[Loop, ...]
    load: expr.Expr
    layers: tuple[DenseLayer, ...]
    combine: Combine
    store: Store
    output: Loop
    precision: Precision = Precision.FP32
    also: tuple[Store, ...] = ()

    @property
    def stores(self) -> tuple[Store, ...]:
        """Everything that is stored of one output of one group."""
        return (self.store, *self.also)

    @property
    def width(self) -> int:
        """Inputs of the first layer."""
        return int(dims.product([loop.extent for loop in self.channels]))

    def reads(self) -> Iterator[Buffer]:
        """Inputs, weights, and what the epilogue loads."""
        yield from _loads(self.load)
        for layer in self.layers:
            yield layer.weight.buffer
            for region in (layer.bias, layer.parts):
                if region is not None:
                    yield region.buffer
        for store in self.stores:
            yield from _stores(store)

    def writes(self) -> Iterator[Buffer]:
        """The buffers stored."""
        for store in self.stores:
            yield store.buffer


@dataclasses.dataclass(eq=False)
class TopK(Step):
    """The ``k`` largest or smallest of each row of ``load[outer, axis, inner]``, packed.

    Attributes:
      kept: the outer axes, then the inner ones, row-major.
      along: walks the axis.
      load: an element, in terms of the variables above.
      values: the elements [outer, k, inner], where wanted.
      indices: where they are in their rows, likewise.
      inner: the product of the inner axes' extents.
      k: how many of each row.
      largest: which ones.
      is_sorted: whether their order matters.
    """

    kept: tuple[Loop, ...]
    along: Loop
    load: expr.Expr
    values: Buffer | None
    indices: Buffer | None
    inner: dims.Expr
    k: dims.Expr
    largest: bool
    is_sorted: bool

    def reads(self) -> Iterator[Buffer]:
        """What the rows are computed from."""
        return _loads(self.load)

    def writes(self) -> Iterator[Buffer]:
        """Values and indices, where wanted."""
        for buffer in (self.values, self.indices):
            if buffer is not None:
                yield buffer


@dataclasses.dataclass(frozen=True)
class Span:
    """Rows from ``begin`` up to and without ``end``."""

    begin: dims.Expr
    end: dims.Expr


@dataclasses.dataclass(eq=False)
class Attention(Step):
    """Means of values, weighted by how keys answer a query; nothing of the scores is in memory.

    For every sequence, head, and query row of the sequence::

        score[j] = cap(scale * sum(query[row] * key[j] over channels)) + bias[row, j]
        store = sum(softmax(score)[j] * value[j] over the keys j that the row sees)

    where ``cap(x)`` is ``soft_cap * tanh(x / soft_cap)``. Rows are counted over all sequences where
    a batch is packed, else within their sequence. A row that sees no key gives -inf for the
    logarithm of its sum.

    Attributes:
      dtype: what is computed in: float32 or float64.
      batch: walks the sequences.
      head: walks the heads of queries.
      key_head: walks the heads of keys and values; its extent divides the number of heads, and as
        many neighbouring heads share one.
      row: walks the query rows; its extent is the most that a sequence can have, or the rows of all
        sequences where the batch is packed.
      key: walks the rows of keys and values, likewise.
      channel: walks the channels of queries and keys; its extent is a number.
      value_channel: walks the channels of values and of the result, likewise.
      query: an element, in terms of sequence, head, row and channel.
      keys: an element, in terms of sequence, key head, key and channel.
      values: likewise, with the channel of values.
      bias: what is added to a score, in terms of sequence, head, row and key; None for nothing.
      rows: the query rows of a sequence; None where each has all of them.
      seen: the keys that a row sees, in terms of sequence and row; neither end may fall from a row
        to the next.
      scale: see above.
      soft_cap: see above; 0 for none.
      store: the result, in terms of sequence, head, row, channel of values, and the mean.
      sums: where the logarithms of the sums of exponentials go, in terms of sequence, head and row.
      masks: whether a bias of -inf hides a key, whatever its score is, and a row that sees no key
        gives 0. Else it is added, and such a row gives NaN, as Softmax of the sums has it.
      sizes: what symbols of its own stand for: kernels that differ in these alone are the same.
    """

    dtype: DType
    batch: Loop
    head: Loop
    key_head: Loop
    row: Loop
    key: Loop
    channel: Loop
    value_channel: Loop
    query: expr.Expr
    keys: expr.Expr
    values: expr.Expr
    bias: expr.Expr | None
    rows: Span | None
    seen: Span
    scale: float
    soft_cap: float
    store: Store
    sums: Store | None
    masks: bool
    sizes: Mapping[sympy.Symbol, dims.Expr]

    @property
    def spans(self) -> tuple[Span, ...]:
        """All spans of rows."""
        return (self.seen,) if self.rows is None else (self.rows, self.seen)

    def reads(self) -> Iterator[Buffer]:
        """Operands, and what says which rows belong together."""
        yield from _loads(self.query, self.keys, self.values)
        if self.bias is not None:
            yield from _loads(self.bias)
        for span in self.spans:
            yield from _loads(expr.Index(None, span.begin), expr.Index(None, span.end))
        for store in (self.store, self.sums):
            if store is not None:
                yield from _stores(store)

    def writes(self) -> Iterator[Buffer]:
        """The result, and the sums where they are wanted."""
        yield self.store.buffer
        if self.sums is not None:
            yield self.sums.buffer


# What a routine is told besides sizes: text is an enumerator.
Option: TypeAlias = bool | int | float | str


@dataclasses.dataclass(eq=False)
class Routine(Step):
    """A kernel of the runtime that is not generated, on packed buffers.

    Its launch is ``launch.<name><types>({.<member> = <value>, ...})``.

    Attributes:
      name: the launcher's member function.
      types: its template arguments.
      inputs: buffers that it reads, by member; absent ones are null.
      outputs: buffers that it writes, likewise.
      sizes: by member.
      options: by member.
    """

    name: str
    types: tuple[DType, ...]
    inputs: Mapping[str, Buffer | None]
    outputs: Mapping[str, Buffer | None]
    sizes: Mapping[str, dims.Expr]
    options: Mapping[str, Option]

    def reads(self) -> Iterator[Buffer]:
        """The inputs that are given."""
        return (b for b in self.inputs.values() if b is not None)

    def writes(self) -> Iterator[Buffer]:
        """The outputs that are wanted."""
        return (b for b in self.outputs.values() if b is not None)


@dataclasses.dataclass(eq=False)
class Scatter(Step):
    """Joins ``store.value`` to the element at ``store.offset``, for every point of both nests.

    The offset depends on data. Points that differ in ``lines`` never meet at one element; those of
    one line do so in the order of ``updates`` on a CPU, and in any order on a GPU.

    Attributes:
      lines: outermost loop first.
      updates: likewise.
      combine: how an element and an update are joined; ``Replace`` takes the update.
      store: the update; its buffer has been written before.
    """

    lines: tuple[Loop, ...]
    updates: tuple[Loop, ...]
    combine: Combine
    store: Store

    def reads(self) -> Iterator[Buffer]:
        """Updates, indices, and the elements that are updated."""
        yield from _loads(self.store.value)
        yield from _loads(expr.Index(None, self.store.offset))
        yield self.store.buffer

    def writes(self) -> Iterator[Buffer]:
        """The buffer updated."""
        yield self.store.buffer


@dataclasses.dataclass(eq=False)
class Repeat(Step):
    """``steps``, once for every value of ``loop.var`` from 0 on, one after the other.

    The variable is a number on the host: sizes and offsets of the steps may contain it, extents of
    buffers may not.
    """

    loop: Loop
    steps: tuple[Step, ...]

    def reads(self) -> Iterator[Buffer]:
        """What any of the steps reads."""
        for step in self.steps:
            yield from step.reads()

    def writes(self) -> Iterator[Buffer]:
        """What any of the steps writes."""
        for step in self.steps:
            yield from step.writes()


def launches(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps that launch something, in order; their positions are what they are numbered by."""
    for step in steps:
        if isinstance(step, Repeat):
            yield from launches(step.steps)
        elif not isinstance(step, Read):
            yield step


@dataclasses.dataclass(eq=False)
class Read(Step):
    """The host waits for a small tensor and takes its elements as values of data symbols.

    Attributes:
      buffer: the tensor, row-major.
      symbols: one for each element.
      name: the ONNX value's.
      total: of the offsets of rows that have sizes of their own, how many points there are: then
        the only symbol is the size of the longest row.
    """

    buffer: Buffer
    symbols: tuple[sympy.Symbol, ...]
    name: str
    total: sympy.Symbol | None = None

    def reads(self) -> Iterator[Buffer]:
        """The tensor."""
        yield self.buffer

    def writes(self) -> Iterator[Buffer]:
        """Nothing on the device."""
        return iter(())

    def names(self) -> list[str]:
        """What messages call the symbols: ``K``, or ``shape[0]``, ``shape[1]``, ..."""
        if not self.buffer.shape or self.total is not None:
            return [self.name]
        return [f"{self.name}[{i}]" for i in range(len(self.symbols))]


@dataclasses.dataclass(frozen=True, eq=False)
class Segment:
    """Launches between two moments at which the host waits.

    Attributes:
      reads: what the host reads before it launches the steps.
      first: number of the first launch.
      steps: the launches.
    """

    reads: tuple[Read, ...]
    first: int
    steps: tuple[Step, ...]


@dataclasses.dataclass(frozen=True)
class Requirement:
    """``low <= high`` must hold at run time; otherwise the message, sizes filled in, is thrown.

    Attributes:
      low: see above.
      high: see above.
      message: ``{low}`` and ``{high}`` in it stand for the two.
      loops: it must hold for all values of their variables, outermost first.
    """

    low: dims.Expr
    high: dims.Expr
    message: str
    loops: tuple[Loop, ...] = ()

    @property
    def symbols(self) -> set[sympy.Symbol]:
        """What must be known to tell."""
        sizes = (self.low, self.high, *(loop.extent for loop in self.loops))
        every = {s for size in sizes for s in size.free_symbols}
        return every - {loop.var for loop in self.loops}


@dataclasses.dataclass(frozen=True, eq=False)
class Output:
    """A graph output: a buffer whose elements lie row-major under ``shape``."""

    buffer: Buffer
    shape: dims.Shape


@dataclasses.dataclass
class Program:
    """A model as launches over buffers.

    Attributes:
      symbols: names of the symbolic dimensions; ``s<i>`` in expressions is ``symbols[i]``.
      inputs: the graph's inputs, in order, whether or not a step reads them.
      outputs: the graph's outputs, in order.
      steps: the launches, in order, and between them the reads of what they computed.
      requirements: conditions on the sizes.
      reads: of inputs, before the first step.
      row_requirements: conditions on the sizes of each row, where rows have sizes of their own.
    """

    symbols: tuple[str, ...]
    inputs: tuple[Buffer, ...]
    outputs: tuple[Output, ...]
    steps: tuple[Step, ...]
    requirements: tuple[Requirement, ...]
    reads: tuple[Read, ...] = ()
    row_requirements: tuple[Requirement, ...] = ()

    def segments(self) -> list[Segment]:
        """The steps, cut where the host waits; never empty."""
        segments: list[Segment] = []
        reads, steps, first = list(self.reads), list[Step](), 0
        for step in self.steps:
            if isinstance(step, Read):
                if steps or not segments:
                    segments.append(Segment(tuple(reads), first, tuple(steps)))
                    first += sum(1 for _ in launches(steps))
                    reads, steps = [], []
                reads.append(step)
            else:
                steps.append(step)
        return [*segments, Segment(tuple(reads), first, tuple(steps))]

    def symbol_names(self) -> dict[str, str]:
        """What every symbol is called, in the order in which a run learns them."""
        names = {f"s{position}": name for position, name in enumerate(self.symbols)}
        for buffer in self.inputs:
            for axis, stride in enumerate(buffer.given_strides):
                names[stride.name] = f"{buffer.name}.strides[{axis}]"
        for segment in self.segments():
            for read in segment.reads:
                names.update(zip((s.name for s in read.symbols), read.names(), strict=True))
        return names

    def weights(self) -> list[Buffer]:
        """Weights that steps read, in order of first use."""
        return self._collect(BufferKind.WEIGHT)

    def states(self) -> list[Buffer]:
        """What lasts from run to run: for random numbers, where there are any without a seed."""
        return self._collect(BufferKind.STATE)

    def temporaries(self) -> list[Buffer]:
        """Intermediate buffers, in order of first use."""
        return self._collect(BufferKind.TEMPORARY)

    def _collect(self, kind: BufferKind) -> list[Buffer]:
        found: dict[int, Buffer] = {}
        for step in self.steps:
            for buffer in (*step.reads(), *step.writes()):
                if buffer.kind is kind:
                    found.setdefault(id(buffer), buffer)
        return list(found.values())
