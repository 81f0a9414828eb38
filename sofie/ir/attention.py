"""Attention: from tensors to its launch.

Operands that are in memory are read through strides that are symbols of the launch's own, as are
all extents: kernels of equal code are equal texts, whatever the sizes and the order of the axes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import sympy

from sofie.ir import dims, expr
from sofie.ir.builder import Builder
from sofie.ir.dtype import DType, wide
from sofie.ir.program import Attention, Buffer, BufferKind, Loop, Span, Store
from sofie.ir.tensor import Computed, Index, Strided, Tensor, View


@dataclasses.dataclass(frozen=True)
class Packed:
    """A batch of sequences that lie one after another, each as long as it is.

    Attributes:
      rows: [batch + 1] the first query row of each sequence, then the end of the last; on the
        device, where nobody checks that they begin at 0 and do not fall.
      keys: the same for the rows of keys and values; None where these are no packed batch but
        [batch, key heads, keys, channels], of which ``Seen.lengths`` says how many there are.
    """

    rows: Tensor
    keys: Tensor | None


@dataclasses.dataclass(frozen=True)
class Seen:
    """Which keys of its sequence a query sees: those near its own position.

    Query ``i`` of a sequence is at position ``i + shift``, and sees keys from ``left`` before to
    ``right`` behind it.

    Attributes:
      left: see above; None for all that come before.
      right: likewise; 0 for a causal mask.
      shift: see above; None: the last query is where the last key is.
      starts: [batch] what is added to the shift of each sequence; integers.
      lengths: [batch] how many keys there are, of which the others are padding; integers.
    """

    left: dims.Expr | None = None
    right: dims.Expr | None = None
    shift: dims.Expr | None = dims.ZERO
    starts: Tensor | None = None
    lengths: Tensor | None = None


@dataclasses.dataclass(frozen=True)
class Sums:
    """Where the logarithms of the sums of exponentials go.

    Attributes:
      memory: the tensor in memory.
      strides: of its memory, along sequences, heads, and rows.
      rows: how many rows it has; what further ones give goes where the last one's does.
      by_sequence: whether rows are counted within their sequence, in packed batches too.
    """

    memory: Strided
    strides: tuple[dims.Expr, dims.Expr, dims.Expr]
    rows: dims.Expr
    by_sequence: bool = False


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What attention is computed from.

    Attributes:
      query: [batch, heads, rows, channels]; [rows, heads, channels] if the batch is packed.
      key: [batch, key heads, keys, channels], or likewise.
      value: [batch, key heads, keys, value channels], or likewise.
      packed: which rows belong together; None where no batch is packed.
      bias: [batch, heads, rows, keys] what is added to scores; None for nothing.
      seen: which keys a query sees.
      scale: factor on scores.
      soft_cap: scores beyond it become it; 0 for none.
      masks: whether biases of -inf are masks, which leave 0 of a row without keys, or numbers.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    scale: float
    packed: Packed | None = None
    bias: Tensor | None = None
    seen: Seen = Seen()
    soft_cap: float = 0.0
    masks: bool = True

    @property
    def tensors(self) -> list[Tensor]:
        """All of them."""
        packed = (None, None) if self.packed is None else (self.packed.rows, self.packed.keys)
        seen = (self.seen.starts, self.seen.lengths)
        every = (self.query, self.key, self.value, self.bias, *seen, *packed)
        return [t for t in every if t is not None]


class Attended(Computed):
    """The result [batch, heads, rows, value channels], or [rows, heads, value channels].

    In memory a row's heads are neighbours, unless another order is asked for.
    """

    def __init__(self, b: Builder, inputs: Inputs) -> None:
        query, value = inputs.query, inputs.value
        shape = (*query.shape[:-1], value.shape[-1])
        super().__init__(b, query.dtype, shape, inputs.tensors)
        self._inputs = inputs
        # Rows of keys and values are read by many tiles of queries: what is not cheap to compute
        # is to be in memory.
        for tensor in (inputs.key, inputs.value, inputs.bias):
            if tensor is not None:
                tensor.share(1)

    def load(self, index: Index) -> expr.Expr:
        """A load: means exist in memory only."""
        return self.strided().load(index)

    def strided(self, order: Sequence[int] | None = None) -> Strided:
        """Launches the kernel, unless it has been."""
        if self.memory is None:
            with self.builder.at(self.level):
                self.memory = self.launch(None, order)
        return self.memory

    def launch(self, sums: Sums | None, order: Sequence[int] | None = None) -> Strided:
        """Launches the kernel."""
        if order is None:
            order = (0, 2, 1, 3) if self.rank == 4 else (0, 1, 2)
        buffer = Buffer(self.node, self.dtype, self.shape, tuple(order), BufferKind.TEMPORARY)
        self.builder.steps.append(_Launch(self.builder, self._inputs).step(self, buffer, sums))
        self.memory = Strided.whole(self.builder, buffer)
        return self.memory


class _Launch:
    """The making of one launch."""

    def __init__(self, b: Builder, inputs: Inputs) -> None:
        self.builder = b
        self.inputs = inputs
        self.sizes: dict[sympy.Symbol, dims.Expr] = {}
        self.row, self.batch, self.head, self.key_head = b.loop_variables(4)
        self.key, self.channel = b.loop_variables(2, "r")

    def size(self, name: str, value: dims.Expr, is_signed: bool = False) -> dims.Expr:
        """A symbol of this launch for a size, which its kernel is told; no variable's name."""
        found = sympy.Symbol(name, integer=True, nonnegative=None if is_signed else True)
        self.sizes[found] = value
        return found

    def step(self, result: Attended, buffer: Buffer, sums: Sums | None) -> Attention:
        """The launch."""
        b, inputs = self.builder, self.inputs
        query, key, value = inputs.query, inputs.key, inputs.value
        number = wide(query.dtype)
        is_packed = inputs.packed is not None
        batch = inputs.packed.rows.shape[0] - 1 if inputs.packed is not None else query.shape[0]
        at, key_at = (0 if x.rank == 3 else 2 for x in (query, key))
        loops = (
            Loop(self.batch, batch),
            Loop(self.head, query.shape[1]),
            Loop(self.key_head, key.shape[1]),
            Loop(self.row, query.shape[at]),
            Loop(self.key, key.shape[key_at]),
            Loop(self.channel, query.shape[-1]),
            Loop(self.channel, value.shape[-1]),
        )
        of_row = (self.batch, self.head, self.row, self.channel)
        of_key = (self.batch, self.key_head, self.key, self.channel)
        with b.iterating([loop.var for loop in loops], [loop.extent for loop in loops]):
            operands = (
                self.operand("query", query, of_row),
                self.operand("key", key, of_key),
                self.operand("value", value, of_key),
                self.bias(),
            )
            rows, keys = self.sequences(query.shape[at], key.shape[key_at])
            seen = self.seen(rows, keys)
        mean: expr.Expr = expr.Accumulator(number)
        if not result.dtype.is_native:
            mean = expr.Call(result.dtype, "{0}", (mean,))
        written = self.place("out", Strided.whole(b, buffer), of_row)
        return Attention(
            b.nodes(inputs.tensors, result.node),
            number,
            *loops,
            *operands,
            rows if is_packed else None,
            seen,
            inputs.scale,
            inputs.soft_cap,
            Store(buffer, written, mean),
            None if sums is None else self.sums(sums, rows, number),
            inputs.masks,
            self.sizes,
        )

    def place(self, name: str, memory: Strided, index: Index) -> dims.Expr:
        """Where an element of [batch, heads, rows, channels] or [rows, heads, channels] is."""
        batch, head, row, channel = index
        walked = (row, head) if memory.rank == 3 else (batch, head, row)
        names = ("row", "head") if memory.rank == 3 else ("batch", "head", "row")
        offset = dims.ZERO if memory.offset == 0 else self.size(f"{name}_start", memory.offset)
        for variable, axis, stride in zip(walked, names, memory.strides, strict=False):
            offset = offset + variable * self.size(f"{name}_{axis}", stride)
        last = memory.strides[-1]
        return offset + (channel if last == 1 else channel * self.size(f"{name}_channel", last))

    def operand(self, name: str, tensor: Tensor, index: Index) -> expr.Expr:
        """An element of an operand: from memory where it is there, else computed."""
        memory = _in_memory(tensor)
        if memory is not None:
            return expr.Load(tensor.dtype, memory.buffer, self.place(name, memory, index))
        batch, head, row, channel = index
        place = (row, head, channel) if tensor.rank == 3 else index
        return self.builder.settled(tensor.load(place))

    def bias(self) -> expr.Expr | None:
        """An element of the bias; memory without strides along an axis is read through none."""
        tensor = self.inputs.bias
        if tensor is None:
            return None
        index = (self.batch, self.head, self.row, self.key)
        memory = _in_memory(tensor)
        if memory is None:
            return self.builder.settled(tensor.load(index))
        names = ("bias_batch", "bias_head", "bias_row", "bias_key")
        offset = dims.ZERO if memory.offset == 0 else self.size("bias_start", memory.offset)
        for variable, name, stride in zip(index, names, memory.strides, strict=True):
            is_unit = variable is self.key and stride == 1
            offset = offset + variable * (dims.ONE if is_unit else self.size(name, stride))
        return expr.Load(tensor.dtype, memory.buffer, offset)

    def sequences(self, rows: dims.Expr, keys: dims.Expr) -> tuple[Span, Span]:
        """The query rows and the keys of a sequence."""
        row_end, key_end = self.size("queries", rows), self.size("keys", keys)
        packed, lengths = self.inputs.packed, self.inputs.seen.lengths
        if lengths is not None:
            key_end = dims.clamp(self.element(lengths, self.batch), dims.ZERO, key_end)
        own_rows, own_keys = Span(dims.ZERO, row_end), Span(dims.ZERO, key_end)
        if packed is None:
            return own_rows, own_keys

        def span(cumulative: Tensor, most: dims.Expr) -> Span:
            ends = (self.element(cumulative, self.batch + i) for i in range(2))
            return Span(*(dims.clamp(end, dims.ZERO, most) for end in ends))

        own_rows = span(packed.rows, row_end)
        return own_rows, own_keys if packed.keys is None else span(packed.keys, key_end)

    def element(self, tensor: Tensor, index: dims.Expr) -> dims.Expr:
        """An element of a vector of integers, as an index."""
        return expr.Indirect(self.builder.settled(self.builder.packed(tensor).load((index,))))

    def seen(self, rows: Span, keys: Span) -> Span:
        """The keys that a query row sees."""
        seen = self.inputs.seen
        shift = dims.ZERO if seen.shift is None else seen.shift
        place = self.row - rows.begin + keys.begin
        if seen.shift is None:
            place = self.row - rows.end + keys.end
        if seen.starts is not None:
            place = place + self.element(seen.starts, self.batch)
        begin, end = keys.begin, keys.end
        if seen.left is not None:
            first = place + self.size("first", shift - seen.left, is_signed=True)
            begin = sympy.Max(begin, first)
        if seen.right is not None:
            behind = place + self.size("behind", shift + seen.right + 1, is_signed=True)
            end = sympy.Min(end, behind)
        return Span(begin, end)

    def sums(self, target: Sums, rows: Span, number: DType) -> Store:
        """Where a row's sum goes: one formula for all the ways in which sums can lie."""
        batch, head, row = target.strides
        back = self.size("sum_back", sympy.Integer(target.by_sequence))
        last = self.size("sum_last", target.rows - 1, is_signed=True)
        offset = (
            self.batch * self.size("sum_batch", batch)
            + self.head * self.size("sum_head", head)
            + sympy.Min(self.row - rows.begin * back, last) * self.size("sum_row", row)
        )
        buffer = target.memory.buffer
        value: expr.Expr = expr.Accumulator(number)
        if number is not buffer.dtype:
            value = expr.Call(buffer.dtype, "{0}", (value,))
        return Store(buffer, offset, value)


def _in_memory(tensor: Tensor) -> Strided | None:
    """The tensor as a view of memory that exists already."""
    base = tensor
    while isinstance(base, View):
        base = base.base
    there = isinstance(base, Strided) or (isinstance(base, Computed) and base.memory is not None)
    return tensor.strided() if there else None


def attention(
    b: Builder, inputs: Inputs, sums: Callable[[], Sums] | None = None
) -> tuple[Tensor, Strided | None]:
    """Launches attention once its result is needed; at once where the sums are.

    Args:
      b: where it is launched.
      inputs: see ``Inputs``; numbers of channels are numbers.
      sums: makes the memory of the logarithms of the sums of exponentials; None if unwanted.

    Raises:
      ValueError: the heads of keys are known not to divide those of queries.
    """
    heads, key_heads = inputs.query.shape[1], inputs.key.shape[1]
    if key_heads == 0 or (heads % key_heads).is_positive:
        raise ValueError(f"{heads} heads can't share the keys of {key_heads}")
    result = Attended(b, inputs)
    if sums is None:
        return result, None
    target = sums()
    result.launch(target)
    return result, target.memory
