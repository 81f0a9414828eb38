"""Functors: a kernel's body in C++, and the one list of its parameters.

Both the functor's members and the launch's initialisers are written from that list.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import sympy

from sofie.emit.names import Names
from sofie.ir import dim_text, dims, expr
from sofie.ir.dtype import BFLOAT16, FLOAT16
from sofie.ir.program import (
    Attention,
    Buffer,
    DenseReduce,
    Loop,
    Pointwise,
    Reduce,
    Scatter,
    Store,
    TopK,
)


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A member of a functor.

    Attributes:
      cpp_type: its type; ``I`` is the functor's index type.
      name: its name in the functor.
      value: what the launch initialises it with.
    """

    cpp_type: str
    name: str
    value: str


@dataclasses.dataclass(frozen=True)
class Method:
    """A member function: signature after the name, and statements."""

    signature: str
    body: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Functor:
    """What a template needs to print a functor and its launch."""

    name: str
    constants: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    methods: tuple[Method, ...]


class _Parameters:
    """Collects the parameters that a body turns out to need."""

    def __init__(
        self,
        pointer: Callable[[Buffer], str],
        host: Callable[[dims.Expr], str],
        written: Iterable[Buffer],
    ) -> None:
        self._pointer = pointer
        self._host = host
        self._written = {id(buffer) for buffer in written}
        self._names = Names(("I", "acc"))
        self._list: list[Parameter] = []
        self._buffers: dict[int, str] = {}
        self._sizes: dict[tuple[dims.Expr, str], str] = {}

    def buffer(self, buffer: Buffer) -> str:
        """The member that points to a buffer."""
        if id(buffer) not in self._buffers:
            name = self._names.new(self._pointer(buffer))
            constant = "" if id(buffer) in self._written else "const "
            self._list.append(
                Parameter(f"{constant}{buffer.storage}*", name, self._pointer(buffer))
            )
            self._buffers[id(buffer)] = name
        return self._buffers[id(buffer)]

    def size(self, value: dims.Expr, cpp_type: str = "I") -> str:
        """The member for a size (numbers stay numbers)."""
        if value.is_Integer:
            return str(int(value))
        key = (value, cpp_type)
        if key not in self._sizes:
            text = _spelled(value)
            for symbol, word in ((" + ", "_plus_"), (" - ", "_minus_"), (" * ", "_by_")):
                text = text.replace(symbol, word)
            readable = text.replace("_", "").isalnum() and len(text) <= 24
            name = self._names.new(text if readable else "size")
            self._sizes[key] = name
            initial = f"static_cast<{cpp_type}>({self._host(value)})"
            self._list.append(Parameter(cpp_type, name, initial))
        return self._sizes[key]

    def all(self) -> tuple[Parameter, ...]:
        """The parameters, in order of first use."""
        return tuple(self._list)


class _Body:
    """Statements of one member function."""

    def __init__(self, parameters: _Parameters) -> None:
        self.parameters = parameters
        self.statements: list[str] = []
        self.used: set[str] = set()
        self._values: dict[int, str] = {}
        self._indirect: dict[expr.Indirect, str] = {}
        self._folds: dict[sympy.Symbol, str] = {}
        self._count = 0
        self._indent = ""
        self._wide = False

    def index(self, value: dims.Expr) -> str:
        """An index expression; parts made of sizes alone become parameters."""
        value = sympy.expand(value)
        for found in expr.indirect_symbols(value):
            if found not in self._indirect:
                inner = self.value(found.value)
                name = f"g{len(self._indirect)}"
                self._line(f"const I {name} = static_cast<I>({inner});")
                self._indirect[found] = name
        return self._index(value)

    def _wide_index(self, value: dims.Expr) -> str:
        """An index as data: 64-bit arithmetic, whatever the index type."""
        outer, self._wide = self._wide, True
        text = self.index(value)
        self._wide = outer
        return f"({text})"

    def _size(self, value: dims.Expr) -> str:
        return self.parameters.size(value, "int64_t" if self._wide else "I")

    def _index(self, value: dims.Expr) -> str:
        if not _varies(value):
            return self._size(value)
        if value.is_Symbol:
            return self._variable(value)
        if value.is_Add:
            return self._sum(value)
        if value.is_Mul:
            varying = [f for f in value.args if _varies(f)]
            fixed = dims.product([f for f in value.args if f not in varying])
            factors = [self._factor(f) for f in sorted(varying, key=sympy.default_sort_key)]
            if fixed == -1:
                return "-" + " * ".join(factors)
            return " * ".join([*factors, self._size(fixed)])
        if isinstance(value, dims.FloorDiv | dims.FloorMod):
            a, b = value.args
            if a.is_nonnegative:
                operation = "/" if isinstance(value, dims.FloorDiv) else "%"
                return f"{self._factor(a)} {operation} {self._factor(b)}"
            return self._function(type(value).__name__, value.args)
        if isinstance(value, sympy.Max | sympy.Min):
            name = "Maximum" if isinstance(value, sympy.Max) else "Minimum"
            return self._function(name, sorted(value.args, key=sympy.default_sort_key))
        raise ValueError(f"no C++ for the index expression {value}")

    def _function(self, name: str, arguments: Sequence[dims.Expr]) -> str:
        """A function of two integers, applied from the left."""
        cpp_type = "int64_t" if self._wide else "I"
        text = self._index(arguments[0])
        for argument in arguments[1:]:
            text = f"sofie::kernels::{name}<{cpp_type}>({text}, {self._index(argument)})"
        return text

    def _sum(self, value: dims.Expr) -> str:
        # Terms with a common set of loop variables share one coefficient, which is a parameter.
        coefficients: dict[dims.Expr, dims.Expr] = {}
        for term in value.as_ordered_terms():
            varying = dims.product([f for f in sympy.Mul.make_args(term) if _varies(f)])
            coefficients[varying] = coefficients.get(varying, dims.ZERO) + term / varying
        text = ""
        order = sorted(coefficients, key=lambda v: (v == 1, sympy.default_sort_key(v)))
        for varying in order:
            coefficient = sympy.expand(coefficients[varying])
            negative = bool(coefficient.is_Integer and coefficient < 0)
            if negative:
                coefficient = -coefficient
            if varying == 1:
                part = self._size(coefficient)
            elif coefficient == 1:
                part = self._factor(varying)
            else:
                part = f"{self._factor(varying)} * {self._size(coefficient)}"
            if text:
                text += f" - {part}" if negative else f" + {part}"
            else:
                text = f"-{part}" if negative else part
        return text

    def _factor(self, value: dims.Expr) -> str:
        text = self._index(value)
        simple = value.is_Symbol or not _varies(value)
        return text if simple else f"({text})"

    def _variable(self, symbol: sympy.Symbol) -> str:
        if isinstance(symbol, expr.Indirect):
            name = self._indirect[symbol]
            return f"int64_t{{{name}}}" if self._wide else name
        if symbol in self._folds:
            name = self._folds[symbol]
            return f"int64_t{{{name}}}" if self._wide else name
        self.used.add(symbol.name)
        return f"int64_t{{{symbol.name}}}" if self._wide else str(symbol.name)

    def value(self, node: expr.Expr) -> str:
        """C++ for a value as it is in memory.

        Anything but a name or a literal becomes a local constant first.
        """
        if id(node) in self._values:
            return self._values[id(node)]
        text = self._text(node)
        if isinstance(node, expr.Load | expr.Call):
            self._count += 1
            name = f"v{self._count}"
            if isinstance(node, expr.Call) and not node.dtype.is_native:
                self._line(f"const {node.dtype.storage} {name}{{{text}}};")
            else:
                self._line(f"const {node.dtype.storage} {name} = {text};")
            text = name
        elif isinstance(node, expr.Literal | expr.Accumulator) and not node.dtype.is_native:
            text = f"{node.dtype.storage}{{{text}}}"
        self._values[id(node)] = text
        return text

    def operand(self, node: expr.Expr) -> str:
        """C++ for a value as it is computed with."""
        if isinstance(node, expr.Literal | expr.Accumulator):
            return self._text(node)
        text = self.value(node)
        native = isinstance(node, expr.Index) or node.dtype.is_native
        return text if native else f"{node.dtype.cpp}{{{text}}}"

    def _text(self, node: expr.Expr) -> str:
        if isinstance(node, expr.Load):
            return f"{self.parameters.buffer(node.buffer)}[{self.index(node.offset)}]"
        if isinstance(node, expr.Literal):
            return literal(node)
        if isinstance(node, expr.Index):
            if node.dtype is None:
                return self.index(node.value)
            if _varies(node.value):
                return self._wide_index(node.value)
            # A size as data: it may exceed the index type.
            size = self.parameters.size(sympy.expand(node.value), "int64_t")
            return f"int64_t{{{size}}}" if node.value.is_Integer else size
        if isinstance(node, expr.Accumulator):
            self.used.add("acc")
            return f"acc.{node.member}" if node.member else "acc"
        if isinstance(node, expr.Call):
            operand = self.value if node.stored else self.operand
            return node.template.format(*(operand(a) for a in node.args))
        if isinstance(node, expr.Select):
            return self._select(node)
        if isinstance(node, expr.Fold):
            return self._fold(node)
        raise AssertionError(f"{type(node).__name__} can't reach a kernel")

    def _select(self, node: expr.Select) -> str:
        """A branch: what lies on the other side may not be evaluated, or not exist."""
        condition = self.value(node.condition)
        self._count += 1
        name = f"v{self._count}"
        self._line(f"{node.dtype.storage} {name};")
        self._line(f"if ({condition}) {{")
        self._branch(name, node.then)
        self._line("} else {")
        self._branch(name, node.other)
        self._line("}")
        return name

    def _fold(self, node: expr.Fold) -> str:
        """A loop that changes one variable."""
        first, count = self.value(node.first), self.value(node.count)
        self._count += 1
        name, i = f"v{self._count}", f"i_{self._count}"
        self._folds[node.variable] = i
        self._line(f"{node.dtype.cpp} {name} = {first};")
        self._line(f"for (I {i} = 0; {i} < {count}; ++{i}) {{")
        self._branch(name, node.body, node.template)
        self._line("}")
        return name

    def _branch(self, name: str, node: expr.Expr, template: str = "{1}") -> None:
        outer = dict(self._values), dict(self._indirect)
        self._indent += "  "
        value = self.value(node)
        self._line(f"{name} = {template.format(name, value)};")
        self._indent = self._indent[:-2]
        self._values, self._indirect = outer

    def _line(self, text: str) -> None:
        self.statements.append(self._indent + text)

    def store(self, store: Store) -> None:
        """The final assignment."""
        value = self.value(store.value)
        target = self.parameters.buffer(store.buffer)
        self._line(f"{target}[{self.index(store.offset)}] = {value};")

    def arguments(self, loops: Sequence[Loop], extra: str = "") -> str:
        """The parameter list; what the body does not use has no name."""
        parts = [f"I {loop.var.name}" if loop.var.name in self.used else "I" for loop in loops]
        if extra:
            parts.append(f"{extra} acc" if "acc" in self.used else extra)
        return f"({', '.join(parts)})"


@functools.lru_cache(maxsize=100_000)
def _varies(index: dims.Expr) -> bool:
    """True where loop variables or indirect indices are among the symbols: not for sizes alone."""
    return any(isinstance(s, expr.Indirect) or s.name[0] in "ir" for s in index.free_symbols)


@functools.lru_cache(maxsize=100_000)
def _spelled(size: dims.Expr) -> str:
    return dim_text.to_cpp(size, lambda symbol: str(symbol.name))


def literal(node: expr.Literal) -> str:
    """A number in C++ with all its bits, of the type that is computed in."""
    if node.dtype.name == "bool":
        return "true" if node.value else "false"
    if not node.dtype.is_float:
        return f"{node.dtype.cpp}{{{int(node.value)}}}"
    suffix = "f" if node.dtype.cpp == "float" else ""
    with np.errstate(over="ignore"):
        number = float(node.dtype.numpy.type(node.value))
    limits = f"std::numeric_limits<{node.dtype.cpp}>"
    if math.isnan(number):
        return f"{limits}::quiet_NaN()"
    if math.isinf(number):
        return f"(-{limits}::infinity())" if number < 0 else f"{limits}::infinity()"
    short = number == int(number) and abs(number) < 1e6
    text = f"{number:.1f}{suffix}" if short else f"{number.hex()}{suffix}"
    # A minus in front of another one would be a decrement.
    return f"({text})" if text.startswith("-") else text


def pointwise(
    step: Pointwise,
    name: str,
    pointer: Callable[[Buffer], str],
    host: Callable[[dims.Expr], str],
) -> Functor:
    """The functor of an element-wise kernel.

    Loading and storing are apart, so that a GPU can have the loads of several points in flight.
    """
    parameters = _Parameters(pointer, host, step.writes())
    load = _Body(parameters)
    values = [load.value(s.value) for s in step.stores]
    parts = [f"value.e{i}" for i in range(len(values))] if step.also else ["value"]
    store = _Body(parameters)
    for part, one in zip(parts, step.stores, strict=True):
        target = parameters.buffer(one.buffer)
        store.statements.append(f"{target}[{store.index(one.offset)}] = {part};")
    if step.also:
        load.statements.append(f"return {{{', '.join(values)}}};")
        members = " ".join(f"{s.buffer.storage} e{i};" for i, s in enumerate(step.stores))
        constant = f"struct Value {{ {members} }};"
    else:
        load.statements.append(f"return {values[0]};")
        constant = f"using Value = {step.store.buffer.storage};"
    names = [loop.var.name for loop in step.loops]
    everything = ", ".join(f"I {name}" for name in names)
    stored = store.arguments(step.loops)[1:-1]
    loaded = f"Load({', '.join(names)})"
    methods = (
        Method(f"Value Load{load.arguments(step.loops)} const", tuple(load.statements)),
        Method(
            f"void Store({f'{stored}, ' if stored else ''}Value value) const",
            tuple(store.statements),
        ),
        Method(
            f"void operator()({everything}) const",
            (f"Store({', '.join([*names, loaded])});",),
        ),
    )
    return Functor(name, (constant,), parameters.all(), methods)


def reduction(
    step: Reduce,
    name: str,
    pointer: Callable[[Buffer], str],
    host: Callable[[dims.Expr], str],
) -> Functor:
    """The functor of a reduction: what is combined, and what is stored."""
    every = (*step.kept, *step.reduced)
    stored = every if step.per_element else step.kept
    accumulator = "const typename Combine::Accumulator&"
    parameters = _Parameters(pointer, host, step.writes())
    return _rows(step, name, every, stored, accumulator, parameters)


def scatter(
    step: Scatter,
    name: str,
    pointer: Callable[[Buffer], str],
    host: Callable[[dims.Expr], str],
) -> Functor:
    """The functor of updates: where each goes, and what it is."""
    parameters = _Parameters(pointer, host, step.writes())
    body = _Body(parameters)
    value, target = body.value(step.store.value), parameters.buffer(step.store.buffer)
    body.statements.append(f"return {{{target} + {body.index(step.store.offset)}, {value}}};")
    dtype = step.store.buffer.dtype
    signature = f"sofie::kernels::Update<{dtype.storage}> At"
    arguments = body.arguments((*step.lines, *step.updates))
    method = Method(f"{signature}{arguments} const", tuple(body.statements))
    combine = f"using Combine = sofie::kernels::{step.combine.cpp}<{dtype.cpp}>;"
    return Functor(name, (combine,), parameters.all(), (method,))


def dense_reduction(
    step: DenseReduce,
    name: str,
    pointer: Callable[[Buffer], str],
    host: Callable[[dims.Expr], str],
) -> Functor:
    """The functor of dense layers with a reduction: the first inputs, and what is stored."""
    loaded = (*step.kept, step.row, *step.channels)
    stored = (*step.kept, step.output)
    parameters = _Parameters(pointer, host, step.writes())
    rows = _rows(step, name, loaded, stored, "float", parameters)
    if len(step.channels) == 1:
        return rows
    extents = ", ".join(str(loop.extent) for loop in step.channels)
    channels = f"using Channels = sofie::kernels::Extents<{extents}>;"
    return dataclasses.replace(rows, constants=(*rows.constants, channels))


def selection(
    step: TopK,
    name: str,
    pointer: Callable[[Buffer], str],
    host: Callable[[dims.Expr], str],
) -> Functor:
    """The functor of TopK: an element of a row."""
    parameters = _Parameters(pointer, host, step.writes())
    body = _Body(parameters)
    value = body.value(step.load)
    body.statements.append(f"return {value};")
    signature = f"{step.load.dtype.storage} Load{body.arguments((*step.kept, step.along))} const"
    return Functor(name, (), parameters.all(), (Method(signature, tuple(body.statements)),))


def attention(
    step: Attention,
    name: str,
    pointer: Callable[[Buffer], str],
    host: Callable[[dims.Expr], str],
) -> Functor:
    """The functor of attention: operands, biases, which rows meet, and what is stored."""
    cpp = step.dtype.cpp
    parameters = _Parameters(pointer, lambda size: host(size.xreplace(step.sizes)), step.writes())
    methods: list[Method] = []

    def returns(cpp_type: str, called: str, loops: Sequence[Loop], value: expr.Expr) -> None:
        body = _Body(parameters)
        body.statements.append(f"return {body.operand(value)};")
        signature = f"{cpp_type} {called}{body.arguments(loops)} const"
        methods.append(Method(signature, tuple(body.statements)))

    def stores(called: str, loops: Sequence[Loop], store: Store) -> None:
        body = _Body(parameters)
        body.store(store)
        signature = f"void {called}{body.arguments(loops, cpp)} const"
        methods.append(Method(signature, tuple(body.statements)))

    loaded = (step.batch, step.key_head, step.key)
    returns(cpp, "Query", (step.batch, step.head, step.row, step.channel), step.query)
    returns(cpp, "Key", (*loaded, step.channel), step.keys)
    returns(cpp, "Value", (*loaded, step.value_channel), step.values)
    if step.bias is not None:
        returns(cpp, "Bias", (step.batch, step.head, step.row, step.key), step.bias)
    if step.rows is not None:
        returns("I", "FirstRow", (step.batch,), expr.Index(None, step.rows.begin))
        returns("I", "EndRow", (step.batch,), expr.Index(None, step.rows.end))
    returns("I", "FirstKey", (step.batch, step.row), expr.Index(None, step.seen.begin))
    returns("I", "EndKey", (step.batch, step.row), expr.Index(None, step.seen.end))
    stores("Store", (step.batch, step.head, step.row, step.value_channel), step.store)
    if step.sums is not None:
        stores("StoreSum", (step.batch, step.head, step.row), step.sums)

    def addresses(called: str, loops: Sequence[Loop], row: expr.Load, constant: str) -> None:
        body = _Body(parameters)
        start = body.index(row.offset)
        body.statements.append(f"return {parameters.buffer(row.buffer)} + {start};")
        signature = f"{constant}{row.buffer.storage}* {called}{body.arguments(loops)} const"
        methods.append(Method(signature, tuple(body.statements)))

    query = _row(step.query, step.channel)
    keys, values = _row(step.keys, step.channel), _row(step.values, step.value_channel)
    if query and keys and values and query.dtype == keys.dtype == values.dtype:
        addresses("QueryRow", (step.batch, step.head, step.row), query, "const ")
        addresses("KeyRow", loaded, keys, "const ")
        addresses("ValueRow", loaded, values, "const ")
        out = _row(expr.Load(query.dtype, step.store.buffer, step.store.offset), step.value_channel)
        mean = step.store.value
        is_rounded = isinstance(mean, expr.Call) and mean.template == "{0}"
        if out and is_rounded and mean.dtype == step.store.buffer.dtype == query.dtype:
            addresses("OutRow", (step.batch, step.head, step.row), out, "")
    constants = {
        "int kDepth": str(int(step.channel.extent)),
        "int kValueDepth": str(int(step.value_channel.extent)),
        "bool kPacked": str(step.rows is not None).lower(),
        "bool kHasBias": str(step.bias is not None).lower(),
        "bool kHasSoftCap": str(step.soft_cap != 0).lower(),
        "bool kHasSums": str(step.sums is not None).lower(),
        "bool kMasks": str(step.masks).lower(),
    }
    lines = [f"static constexpr {what} = {value};" for what, value in constants.items()]
    # The value's type in computations; memory may have another one.
    return Functor(name, (f"using Number = {cpp};", *lines), parameters.all(), tuple(methods))


def _row(element: expr.Expr, channel: Loop) -> expr.Load | None:
    """A row's first element, if the row has 16 bits each, read as they are, as neighbours."""
    if not isinstance(element, expr.Load) or element.dtype not in (FLOAT16, BFLOAT16):
        return None
    start = expr.substitute_index(element.offset, {channel.var: dims.ZERO})
    if sympy.expand(element.offset - start) != channel.var:
        return None
    return expr.Load(element.dtype, element.buffer, start)


def _rows(
    step: Reduce | DenseReduce,
    name: str,
    loaded: Sequence[Loop],
    stored: Sequence[Loop],
    accumulator: str,
    parameters: _Parameters,
) -> Functor:
    """Load and Store of a reduction; ``accumulator`` is the type that Store gets the result as."""
    load = _Body(parameters)
    value = load.operand(step.load)
    load.statements.append(f"return {value};")
    signature = f"{step.load.dtype.cpp} Load{load.arguments(loaded)} const"
    loading = Method(signature, tuple(load.statements))
    store = _Body(parameters)
    for one in step.stores if isinstance(step, DenseReduce) else (step.store,):
        store.store(one)
    signature = f"void Store{store.arguments(stored, accumulator)} const"
    storing = Method(signature, tuple(store.statements))
    combine = f"using Combine = sofie::kernels::{step.combine.cpp}<{step.combine.dtype.cpp}>;"
    return Functor(name, (combine,), parameters.all(), (loading, storing))
