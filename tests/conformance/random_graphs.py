"""Random small graphs, and what ONNX Runtime makes of them.

A graph is drawn from a ``random.Random``: seeded, so that a number names a graph, or Hypothesis's
own, so that it can shrink one that shows a difference.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
from onnx import helper, numpy_helper

from tests.conformance.suite import Case

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

OPSET = 21

# Values of the symbols N and M in the runs of a graph. No two extents are the same in all of them,
# unless they are the same expression: so what broadcasts in all of them always does.
_SIZES = ({"N": 3, "M": 5}, {"N": 7, "M": 2}, {"N": 1, "M": 4}, {"N": 0, "M": 3})

_FLOATS = ("float32", "float32", "float32", "float32", "float64")
_INTS = ("int64", "int32")

# Element-wise operators that keep numbers of ordinary size at that.
_UNARY = (
    "Abs Neg Relu Sigmoid Tanh Erf Identity Softsign HardSigmoid LeakyRelu Elu Selu Softplus Sin "
    "Cos Gelu Mish Celu ThresholdedRelu"
).split()
_SUMS = ("ReduceSum", "ReduceL1", "ReduceSumSquare")
_REDUCTIONS = (*_SUMS, "ReduceMean", "ReduceMax", "ReduceMin")


class UnusableError(Exception):
    """ONNX Runtime can't run the graph."""


@dataclasses.dataclass(frozen=True)
class Value:
    """A tensor while a graph grows.

    Attributes:
      name: in the graph.
      dtype: NumPy's name.
      shapes: one for each of ``_SIZES``.
      exact: False where rounding has changed it, so that comparing or rounding it again could fall
        on either side.
    """

    name: str
    dtype: str
    shapes: tuple[Shape, ...]
    exact: bool

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shapes[0])

    def extents(self, axis: int) -> tuple[int, ...]:
        """The extent of an axis in every run."""
        return tuple(shape[axis] for shape in self.shapes)

    def static(self, axis: int) -> bool:
        """True where the extent is a number."""
        return len(set(self.extents(axis))) == 1

    def filled(self, axis: int) -> bool:
        """True where the extent is never 0."""
        return 0 not in self.extents(axis)

    @property
    def is_float(self) -> bool:
        """True for a floating-point type."""
        return self.dtype.startswith("float")


def build(rng: random.Random, name: str = "fuzz", rows: bool = False) -> Case:
    """A graph with inputs and expected outputs at several sizes.

    Args:
      rng: decides.
      name: of the case.
      rows: whether the inputs are a batch: N rows, of M points in most of them.

    Raises:
      UnusableError: see there; draw another.
    """
    graph = _Graph(rng, rows)
    for _ in range(rng.randint(1, 8)):
        rng.choice(_TEMPLATES)(graph)
    return graph.case(name)


def numbered(seed: int, rows: bool = False) -> Case:
    """The graph of a number: the first that is usable of those that it seeds; see ``build``."""
    rng = random.Random(seed)
    while True:
        try:
            return build(rng, f"fuzz_{seed}", rows)
        except UnusableError:
            continue


class _Graph:
    def __init__(self, rng: random.Random, rows: bool) -> None:
        self.rng = rng
        self.rows = rows
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[tuple[Value, list[int | str]]] = []
        self.constants: dict[str, Array] = {}
        self.values: list[Value] = []
        self.numpy = np.random.default_rng(rng.getrandbits(32))
        for _ in range(rng.randint(1, 2)):
            self.input(rng.choice(_FLOATS))

    def input(self, dtype: str, shape: Sequence[int | str] | None = None) -> Value:
        """A new input; by default of random extents."""
        drawn: list[int | str]
        if shape is None and self.rows:
            drawn = [self.rng.choice((2, 3, 4)) for _ in range(self.rng.randint(0, 2))]
            if self.rng.random() < 0.8:
                drawn.insert(self.rng.randint(0, len(drawn)), "M")
            shape = ["N", *drawn]
        elif shape is None:
            extents: tuple[int | str, ...] = ("N", "M", "N", 1, 2, 3, 4)
            shape = [self.rng.choice(extents) for _ in range(self.rng.randint(0, 4))]
        shapes = tuple(tuple(s[d] if isinstance(d, str) else d for d in shape) for s in _SIZES)
        value = Value(f"x{len(self.inputs)}", dtype, shapes, exact=True)
        self.inputs.append((value, list(shape)))
        self.values.append(value)
        return value

    def constant(self, array: Array) -> str:
        """A new initializer."""
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def pick(self, wanted: Callable[[Value], bool] = lambda value: True) -> Value:
        """A tensor that is wanted; a new input if there is none."""
        found = [value for value in self.values if wanted(value)]
        if found:
            return self.rng.choice(found)
        for _ in range(20):
            value = self.input("float32")
            if wanted(value):
                return value
        raise UnusableError("no tensor fits")

    def floats(self, rank: int = 0) -> Value:
        """A floating-point tensor of at least that rank."""
        return self.pick(lambda value: value.is_float and value.rank >= rank)

    def random(self, dtype: str, shape: Sequence[int]) -> Array:
        """Numbers between -2 and 2."""
        if dtype == "bool":
            return self.numpy.integers(0, 2, shape).astype(bool)
        if dtype.startswith("float"):
            return self.numpy.uniform(-2, 2, shape).astype(dtype)
        return self.numpy.integers(-9, 10, shape).astype(dtype)

    def node(
        self,
        op_type: str,
        inputs: Sequence[str],
        results: Sequence[tuple[str, Sequence[Shape]]],
        exact: bool,
        **attributes: Any,
    ) -> list[Value]:
        """A new node and its outputs.

        Args:
          op_type: the operator.
          inputs: names.
          results: element type and shapes of each output.
          exact: see Value.
          **attributes: of the node.
        """
        count = len(self.nodes)
        outputs = [
            Value(f"y{count}_{i}", dtype, tuple(shapes), exact)
            for i, (dtype, shapes) in enumerate(results)
        ]
        names = [value.name for value in outputs]
        self.nodes.append(helper.make_node(op_type, list(inputs), names, **attributes))
        self.values += outputs
        return outputs

    def map(
        self, op_type: str, x: Value, f: Callable[[Shape], Shape], *more: str, **kw: Any
    ) -> None:
        """A node that moves the elements of one tensor about."""
        self.node(op_type, [x.name, *more], [(x.dtype, [f(s) for s in x.shapes])], x.exact, **kw)

    def case(self, name: str) -> Case:
        """The whole, with the outputs that ONNX Runtime computes."""
        used = {name for node in self.nodes for name in node.input}
        made = {name for node in self.nodes for name in node.output}
        ends = [v for v in self.values if v.name in made and v.name not in used]
        middle = [v for v in self.values if v.name in made and v.name in used]
        outputs = ends + (self.rng.sample(middle, 1) if middle and self.rng.random() < 0.3 else [])
        if not outputs:
            raise UnusableError("nothing was computed")

        def info(value: Value, shape: Sequence[int | str | None]) -> onnx.ValueInfoProto:
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
            return helper.make_tensor_value_info(value.name, kind, shape)

        model = helper.make_model(
            helper.make_graph(
                self.nodes,
                name,
                [info(value, shape) for value, shape in self.inputs],
                [info(value, [None] * value.rank) for value in outputs],
                [numpy_helper.from_array(array, n) for n, array in self.constants.items()],
            ),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=10,
        )
        return Case(name, "fuzz", model, tuple(self._runs(model)), rtol=2e-3, atol=2e-4)

    def _runs(self, model: onnx.ModelProto) -> list[tuple[list[Array | None], list[Array | None]]]:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        try:
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise UnusableError(str(error)) from error
        symbolic = any(isinstance(d, str) for _, shape in self.inputs for d in shape)
        runs: list[tuple[list[Array | None], list[Array | None]]] = []
        for i in range(len(_SIZES) if symbolic else 1):
            arrays = [self.random(v.dtype, v.shapes[i]) for v, _ in self.inputs]
            feeds = {v.name: a for (v, _), a in zip(self.inputs, arrays, strict=True)}
            try:
                results = session.run(None, feeds)
            except Exception as error:
                # Such as a maximum over nothing, of which ONNX does not say what it is.
                if i == 0:
                    raise UnusableError(str(error)) from error
                continue
            runs.append((list(arrays), list(results)))
        return runs


def _broadcast(a: Value, b: Value) -> list[Shape] | None:
    """The shapes of an element-wise result, None if there is none in every run."""
    for axis in range(1, min(a.rank, b.rank) + 1):
        x, y = a.extents(-axis), b.extents(-axis)
        if x != y and set(x) != {1} and set(y) != {1}:
            return None
    return [np.broadcast_shapes(s, t) for s, t in zip(a.shapes, b.shapes, strict=True)]


def _partner(graph: _Graph, x: Value) -> tuple[str, list[Shape]]:
    """Another operand for an element-wise operator, with the result's shapes."""
    for _ in range(4):
        y = graph.pick(lambda value: value.dtype == x.dtype)
        shapes = _broadcast(x, y)
        if shapes is not None and y.exact >= x.exact:
            return y.name, shapes
    extents = [x.shapes[0][i] if x.static(i) else 1 for i in range(x.rank)]
    extents = [1 if graph.rng.random() < 0.4 else e for e in extents]
    shape = extents[graph.rng.randint(0, x.rank) :]
    return graph.constant(graph.random(x.dtype, shape)), list(x.shapes)


def _unary(graph: _Graph) -> None:
    x = graph.floats()
    op_type = graph.rng.choice(_UNARY)
    if op_type == "ThresholdedRelu" and not x.exact:
        op_type = "Relu"  # it jumps
    exact = x.exact and op_type in ("Abs", "Neg", "Relu", "Identity")
    graph.node(op_type, [x.name], [(x.dtype, x.shapes)], exact)


def _chain(graph: _Graph) -> None:
    """Operators that become one kernel, and a diamond at the end."""
    x = y = graph.floats()
    for _ in range(graph.rng.randint(2, 4)):
        (y,) = graph.node(graph.rng.choice(_UNARY[:6]), [y.name], [(x.dtype, x.shapes)], False)
    graph.node(graph.rng.choice(["Add", "Mul"]), [x.name, y.name], [(x.dtype, x.shapes)], False)


def _binary(graph: _Graph) -> None:
    x = graph.pick(lambda value: value.dtype != "bool")
    y, shapes = _partner(graph, x)
    op_type = graph.rng.choice(["Add", "Sub", "Mul", "Max", "Min"])
    names = [x.name, y] if graph.rng.random() < 0.5 else [y, x.name]
    graph.node(op_type, names, [(x.dtype, shapes)], x.exact and op_type in ("Max", "Min"))


def _divide(graph: _Graph) -> None:
    x = graph.floats()
    (y,) = graph.node("Abs", [x.name], [(x.dtype, x.shapes)], False)
    half = graph.constant(np.array(0.5, x.dtype))
    (y,) = graph.node("Add", [y.name, half], [(x.dtype, x.shapes)], False)
    graph.node("Div", [x.name, y.name], [(x.dtype, x.shapes)], False)


def _compare(graph: _Graph) -> None:
    x = graph.pick(lambda value: value.exact and value.dtype != "bool")
    y, shapes = _partner(graph, x)
    op_type = graph.rng.choice(["Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"])
    graph.node(op_type, [x.name, y], [("bool", shapes)], True)


def _where(graph: _Graph) -> None:
    if not _has_bool(graph):
        _compare(graph)
    condition = graph.pick(lambda value: value.dtype == "bool")
    x = graph.pick(lambda value: value.dtype != "bool")
    shapes = _broadcast(condition, x)
    if shapes is not None:
        zero = graph.constant(np.zeros((), x.dtype))
        graph.node("Where", [condition.name, x.name, zero], [(x.dtype, shapes)], x.exact)


def _logic(graph: _Graph) -> None:
    if _has_bool(graph):
        x = graph.pick(lambda value: value.dtype == "bool")
        graph.node("Not", [x.name], [("bool", x.shapes)], True)


def _has_bool(graph: _Graph) -> bool:
    return any(value.dtype == "bool" for value in graph.values)


def _cast(graph: _Graph) -> None:
    x = graph.pick(lambda value: value.exact)
    to = graph.rng.choice([*_FLOATS, *_INTS])
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    graph.node("Cast", [x.name], [(to, x.shapes)], True, to=kind)


def _reduce(graph: _Graph) -> None:
    op_type = graph.rng.choice(_REDUCTIONS)
    x = graph.floats(1)
    # ONNX does not say what the maximum or the mean of nothing is.
    allowed = range(x.rank) if op_type in _SUMS else [i for i in range(x.rank) if x.filled(i)]
    if not allowed:
        return
    axes = sorted(graph.rng.sample(allowed, graph.rng.randint(1, len(allowed))))
    keep = graph.rng.random() < 0.5

    def shape(s: Shape) -> Shape:
        kept = [(1 if i in axes else e) for i, e in enumerate(s) if keep or i not in axes]
        return tuple(kept)

    signed = [a - x.rank if graph.rng.random() < 0.5 else a for a in axes]
    exact = x.exact and op_type in ("ReduceMax", "ReduceMin")
    names = [x.name, graph.constant(np.array(signed, np.int64))]
    results = [(x.dtype, [shape(s) for s in x.shapes])]
    graph.node(op_type, names, results, exact, keepdims=int(keep))


def _arg(graph: _Graph) -> None:
    """Of an input, whose elements differ."""
    inputs = {value.name for value, _ in graph.inputs}
    x = graph.pick(lambda v: v.name in inputs and v.is_float and any(map(v.filled, range(v.rank))))
    axis = graph.rng.choice([i for i in range(x.rank) if x.filled(i)])
    results = [("int64", [s[:axis] + (1,) + s[axis + 1 :] for s in x.shapes])]
    graph.node(graph.rng.choice(["ArgMax", "ArgMin"]), [x.name], results, True, axis=axis)


def _softmax(graph: _Graph) -> None:
    x = graph.floats(1)
    axis = graph.rng.randrange(-x.rank, x.rank)
    op_type = graph.rng.choice(["Softmax", "LogSoftmax"])
    graph.node(op_type, [x.name], [(x.dtype, x.shapes)], False, axis=axis)


def _transpose(graph: _Graph) -> None:
    x = graph.pick(lambda value: value.rank > 0)
    order = graph.rng.sample(range(x.rank), x.rank)
    graph.map("Transpose", x, lambda s: tuple(s[i] for i in order), perm=order)


def _unsqueeze(graph: _Graph) -> None:
    x = graph.pick(lambda value: value.rank < 5)
    axis = graph.rng.randint(0, x.rank)
    axes = graph.constant(np.array([axis], np.int64))
    graph.map("Unsqueeze", x, lambda s: s[:axis] + (1,) + s[axis:], axes)


def _squeeze(graph: _Graph) -> None:
    x = graph.pick()
    ones = [axis for axis in range(x.rank) if set(x.extents(axis)) == {1}]
    if ones:
        axis = graph.rng.choice(ones)
        axes = graph.constant(np.array([axis], np.int64))
        graph.map("Squeeze", x, lambda s: s[:axis] + s[axis + 1 :], axes)


def _reshape(graph: _Graph) -> None:
    """Two neighbouring axes become one, or the shape is computed from another tensor's."""
    x = graph.pick(lambda value: value.rank >= 2)
    axis = graph.rng.randrange(x.rank - 1)

    def merged(s: Shape) -> Shape:
        return (*s[:axis], s[axis] * s[axis + 1], *s[axis + 2 :])

    others = [i for i in range(x.rank) if i not in (axis, axis + 1)]
    if all(0 not in x.extents(i) for i in range(x.rank)) and graph.rng.random() < 0.5:
        target = [0] * axis + [-1]
        if all(x.static(i) for i in others if i > axis):
            target += [x.shapes[0][i] for i in others if i > axis]
            graph.map("Reshape", x, merged, graph.constant(np.array(target, np.int64)))
            return
    (shape,) = graph.node("Shape", [x.name], [("int64", [(x.rank,)] * len(_SIZES))], True)
    pieces = []
    for i in range(x.rank):
        index = graph.constant(np.array([i], np.int64))
        (piece,) = graph.node("Gather", [shape.name, index], [("int64", [(1,)] * 4)], True)
        pieces.append(piece.name)
    joined = [("int64", [(1,)] * 4)]
    (pieces[axis],) = (v.name for v in graph.node("Mul", pieces[axis : axis + 2], joined, True))
    del pieces[axis + 1]
    (target_value,) = graph.node("Concat", pieces, [("int64", [(len(pieces),)] * 4)], True, axis=0)
    graph.map("Reshape", x, merged, target_value.name, allowzero=1)


def _concat(graph: _Graph) -> None:
    x = graph.pick(lambda value: value.rank > 0)
    axis = graph.rng.randrange(x.rank)
    same = [
        v
        for v in graph.values
        if v.dtype == x.dtype
        and v.rank == x.rank
        and all(v.extents(i) == x.extents(i) for i in range(x.rank) if i != axis)
    ]
    parts = [x, *(graph.rng.choice(same) for _ in range(graph.rng.randint(0, 2)))]
    graph.rng.shuffle(parts)
    shapes = [
        s[:axis] + (sum(p.shapes[i][axis] for p in parts),) + s[axis + 1 :]
        for i, s in enumerate(x.shapes)
    ]
    exact = all(part.exact for part in parts)
    names = [part.name for part in parts]
    signed = axis - x.rank if graph.rng.random() < 0.5 else axis
    graph.node("Concat", names, [(x.dtype, shapes)], exact, axis=signed)


def _slice(graph: _Graph) -> None:
    x = graph.pick(lambda value: value.rank > 0)
    axis = graph.rng.randrange(x.rank)
    start, end = graph.rng.randint(-3, 3), graph.rng.choice([-2, -1, 1, 2, 3, 2**31, -(2**31)])
    step = graph.rng.choice([1, 1, 2, -1, -2])
    words = [np.array([word], np.int64) for word in (start, end, axis, step)]

    def shape(s: Shape) -> Shape:
        return np.empty(s, np.int8)[
            (slice(None),) * axis + (slice(*_numpy(start, end, step)),)
        ].shape

    graph.map("Slice", x, shape, *(graph.constant(word) for word in words))


def _numpy(start: int, end: int, step: int) -> tuple[int, int | None, int]:
    """ONNX's end -2^31 means up to and with the first element, which NumPy calls None."""
    return start, None if end == -(2**31) and step < 0 else end, step


def _gather(graph: _Graph) -> None:
    x = graph.pick(lambda v: any(v.static(i) for i in range(v.rank)))
    axis = graph.rng.choice([i for i in range(x.rank) if x.static(i)])
    extent = x.shapes[0][axis]
    if extent == 0:
        return
    count = graph.rng.choice([(), (1,), (2, 3)])
    indices = graph.constant(graph.numpy.integers(-extent, extent, count))
    graph.map("Gather", x, lambda s: (*s[:axis], *count, *s[axis + 1 :]), indices, axis=axis)


def _split(graph: _Graph) -> None:
    x = graph.pick(lambda v: any(v.static(i) and v.shapes[0][i] >= 2 for i in range(v.rank)))
    axis = graph.rng.choice([i for i in range(x.rank) if x.static(i) and x.shapes[0][i] >= 2])
    first = graph.rng.randint(1, x.shapes[0][axis] - 1)
    sizes = [first, x.shapes[0][axis] - first]
    results = [(x.dtype, [s[:axis] + (n,) + s[axis + 1 :] for s in x.shapes]) for n in sizes]
    names = [x.name, graph.constant(np.array(sizes, np.int64))]
    graph.node("Split", names, results, x.exact, axis=axis)


def _pad(graph: _Graph) -> None:
    x = graph.pick(lambda value: value.is_float and value.rank > 0)
    pads = [graph.rng.randint(0, 2) for _ in range(2 * x.rank)]

    def shape(s: Shape) -> Shape:
        return tuple(e + pads[i] + pads[i + x.rank] for i, e in enumerate(s))

    value = graph.constant(np.array(1.5, x.dtype))
    graph.map("Pad", x, shape, graph.constant(np.array(pads, np.int64)), value)


def _tile(graph: _Graph) -> None:
    x = graph.pick(lambda value: value.rank > 0)
    repeats = [graph.rng.choice([1, 1, 2]) for _ in range(x.rank)]

    def shape(s: Shape) -> Shape:
        return tuple(e * r for e, r in zip(s, repeats, strict=True))

    graph.map("Tile", x, shape, graph.constant(np.array(repeats, np.int64)))


def _matmul(graph: _Graph) -> None:
    x = graph.pick(lambda v: v.is_float and v.rank >= 2 and v.static(v.rank - 1))
    columns = graph.rng.randint(1, 5)
    weight = graph.constant(graph.random(x.dtype, (x.shapes[0][-1], columns)))
    (y,) = graph.node(
        "MatMul", [x.name, weight], [(x.dtype, [(*s[:-1], columns) for s in x.shapes])], False
    )
    if graph.rng.random() < 0.5:
        bias = graph.constant(graph.random(x.dtype, (columns,)))
        (y,) = graph.node("Add", [y.name, bias], [(x.dtype, y.shapes)], False)
        graph.node("Relu", [y.name], [(x.dtype, y.shapes)], False)


def _matmul_two(graph: _Graph) -> None:
    """Of a tensor with itself, transposed: both operands have symbolic extents."""
    x = graph.floats(2)
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    shapes = [(*s[:-2], s[-1], s[-2]) for s in x.shapes]
    (t,) = graph.node("Transpose", [x.name], [(x.dtype, shapes)], x.exact, perm=order)
    square = [(*s[:-1], s[-2]) for s in x.shapes]
    graph.node("MatMul", [x.name, t.name], [(x.dtype, square)], False)


def _gemm(graph: _Graph) -> None:
    x = graph.pick(lambda v: v.is_float and v.rank == 2 and (v.static(0) or v.static(1)))
    trans_a = not x.static(1)
    inner = x.shapes[0][0 if trans_a else 1]
    columns, trans_b = graph.rng.randint(1, 5), graph.rng.random() < 0.5
    shape = (columns, inner) if trans_b else (inner, columns)
    names = [x.name, graph.constant(graph.random(x.dtype, shape))]
    if graph.rng.random() < 0.7:
        bias: Shape = graph.rng.choice([(columns,), (1, columns), (1, 1), ()])
        names.append(graph.constant(graph.random(x.dtype, bias)))
    results = [(x.dtype, [(s[1 if trans_a else 0], columns) for s in x.shapes])]
    graph.node(
        "Gemm",
        names,
        results,
        False,
        alpha=graph.rng.choice([1.0, 0.5]),
        beta=graph.rng.choice([1.0, 2.0]),
        transA=int(trans_a),
        transB=int(trans_b),
    )


def _conv(graph: _Graph) -> None:
    """With a normalisation and an activation behind it, some of the time."""
    channels, filters = graph.rng.choice([(2, 3), (4, 4), (1, 2)]), graph.rng.choice([1, 3])
    group = channels[0] if channels[1] % channels[0] == 0 and graph.rng.random() < 0.3 else 1
    rank = graph.rng.choice([1, 2])
    spatial: list[int | str] = [graph.rng.choice([5, 6]) for _ in range(rank)]
    x = graph.input("float32", ["N", channels[0], *spatial])
    pad, stride = graph.rng.randint(0, 1), graph.rng.randint(1, 2)
    weight = graph.random("float32", (channels[1], channels[0] // group, *[filters] * rank))
    names = [x.name, graph.constant(weight)]
    if graph.rng.random() < 0.5:
        names.append(graph.constant(graph.random("float32", (channels[1],))))

    def shape(s: Shape) -> Shape:
        return (s[0], channels[1], *((e + 2 * pad - filters) // stride + 1 for e in s[2:]))

    results = [("float32", [shape(s) for s in x.shapes])]
    (y,) = graph.node(
        "Conv", names, results, False, group=group, pads=[pad] * 2 * rank, strides=[stride] * rank
    )
    if graph.rng.random() < 0.5:
        moments = [graph.random("float32", (channels[1],)) for _ in range(3)]
        moments.append(np.abs(graph.random("float32", (channels[1],))) + np.float32(0.5))
        constants = [graph.constant(moment) for moment in moments]
        (y,) = graph.node("BatchNormalization", [y.name, *constants], results, False)
    if graph.rng.random() < 0.5:
        graph.node("Relu", [y.name], results, False)


def _normalize(graph: _Graph) -> None:
    x = graph.pick(lambda v: v.is_float and v.rank >= 1 and v.static(v.rank - 1))
    scale = [graph.constant(graph.random(x.dtype, (x.shapes[0][-1],))) for _ in range(2)]
    results = [(x.dtype, x.shapes)]
    graph.node("LayerNormalization", [x.name, *scale], results, False, axis=-1, epsilon=1e-2)


def _clip(graph: _Graph) -> None:
    x = graph.floats()
    bounds = [graph.constant(np.array(bound, x.dtype)) for bound in (-0.5, 0.75)]
    graph.node("Clip", [x.name, *bounds], [(x.dtype, x.shapes)], x.exact)


_TEMPLATES: tuple[Callable[[_Graph], None], ...] = (
    _unary,
    _unary,
    _chain,
    _binary,
    _binary,
    _divide,
    _compare,
    _where,
    _logic,
    _cast,
    _reduce,
    _reduce,
    _arg,
    _softmax,
    _transpose,
    _unsqueeze,
    _squeeze,
    _reshape,
    _concat,
    _slice,
    _gather,
    _split,
    _pad,
    _tile,
    _matmul,
    _matmul_two,
    _gemm,
    _conv,
    _normalize,
    _clip,
)
