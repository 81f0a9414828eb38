"""TfIdfVectorizer: https://onnx.ai/onnx/operators/onnx__TfIdfVectorizer.html"""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir
import sympy

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Call, Expr, Indirect, Literal, Select, compare
from sofie.ir.node import Node
from sofie.ir.program import Combine
from sofie.ir.tensor import Index as At
from sofie.ir.tensor import Reduction, Reshape, Tensor
from sofie.ops.elementwise import given
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

# C++ of an output from the count {0} of its n-gram and the weight {1}.
_MODES = {
    "TF": "{0}",
    "IDF": "static_cast<float>({0} > 0) * {1}",
    "TFIDF": "{0} * {1}",
}


def _places(node: Node) -> tuple[int, ...]:
    return node.attr_ints("ngram_indexes") or ()


def _outputs(node: Node) -> int:
    return max(_places(node), default=-1) + 1


def _grams(node: Node) -> list[tuple[int, int]]:
    """Where each n-gram begins in the pool, and its length."""
    starts = node.attr_ints("ngram_counts") or ()
    pool = len(node.attr_ints("pool_int64s") or ())
    result = []
    for length, (start, end) in enumerate(zip(starts, (*starts[1:], pool), strict=True), 1):
        if not 0 <= start <= end <= pool or (end - start) % length:
            raise ValueError(f"ngram_counts {list(starts)} of a pool of {pool} elements")
        result += [(at, length) for at in range(start, end, length)]
    return result


@shape_rule("TfIdfVectorizer", since=9, types=(onnx_ir.DataType.FLOAT,))
def _shapes(node: Node) -> list[dims.Shape]:
    return [(*node.shape(0)[:-1], sympy.Integer(_outputs(node)))]


def _check(node: Node) -> Iterator[str]:
    places, mode = _places(node), node.attr_string("mode", "")
    if len(node.shape(0)) not in (1, 2):
        yield "an input that is neither one list nor one for each row"
    if mode not in _MODES:
        yield f"the mode {mode!r}"
    if node.attr_strings("pool_strings"):
        yield "n-grams of strings"
    elif not places or len(_grams(node)) != len(places):
        yield f"{len(places)} ngram_indexes for the n-grams in the pool"
    if len(set(places)) != len(places) or min(places, default=0) < 0:
        yield "ngram_indexes that are negative or the same"
    if len(node.attr_floats("weights") or places) != len(places):
        yield "weights that are not one for each n-gram"
    if node.attr_int("max_skip_count", 0) < 0:
        yield "a negative max_skip_count"


@operator("TfIdfVectorizer", since=9, dtypes={dtype.INT32, dtype.INT64}, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Every output counts its n-gram at all places and with all distances of its elements."""
    (x,) = given(inputs)
    *lead, length = x.shape
    rows = Reshape(x, (dims.product(lead), length))
    low, high = node.attr_int("min_gram_length", 1), node.attr_int("max_gram_length", 1)
    counted = [size for _, size in _grams(node) if low <= size <= high]
    longest = max(counted, default=1)
    # By output: where its n-gram begins and how long it is, 0 for none; and its weight.
    spans = np.zeros((_outputs(node), 2), np.int64)
    factors = np.zeros(_outputs(node), np.float32)
    weights = node.attr_floats("weights") or (1.0,) * len(_places(node))
    for place, (start, size), weight in zip(_places(node), _grams(node), weights, strict=True):
        spans[place] = (start, size if low <= size <= high else 0)
        factors[place] = weight
    pool = np.array(node.attr_ints("pool_int64s"), np.int64)
    grams = b.constant(f"{node.label}.pool", dtype.INT64, pool)
    table = b.constant(f"{node.label}.grams", dtype.INT64, spans)
    scale = b.constant(f"{node.label}.weights", dtype.FLOAT32, factors)

    def found(outer: At, inner: At) -> Expr:
        """1 where the output's n-gram begins at a place, its elements a distance apart."""
        (row, output), (place, skipped) = outer, inner
        start = Indirect(table.load((output, dims.ZERO)))
        size = Indirect(table.load((output, dims.ONE)))
        # A single element has no distances: it counts once.
        once = Call(
            dtype.BOOL,
            "{0} && ({1} || {2})",
            (
                compare(">", size, dims.ZERO),
                compare(">", size, dims.ONE),
                compare("==", skipped, dims.ZERO),
            ),
        )
        result: Expr = Literal(dtype.BOOL, True)
        for position in reversed(range(longest)):
            at = place + position * (skipped + 1)
            here = Call(
                dtype.BOOL,
                "{0} == {1}",
                (rows.load((row, at)), grams.load((start + position,))),
            )
            no = Literal(dtype.BOOL, False)
            inside = Select(dtype.BOOL, compare("<", at, length), here, no)
            matches = Select(dtype.BOOL, inside, result, no)
            beyond = compare("<=", size, sympy.Integer(position))
            result = Select(dtype.BOOL, beyond, Literal(dtype.BOOL, True), matches)
        counts = Select(dtype.BOOL, once, result, Literal(dtype.BOOL, False))
        return Call(dtype.FLOAT32, "static_cast<float>({0})", (counts,))

    distances = sympy.Integer(node.attr_int("max_skip_count", 0) + 1)
    shape = (rows.shape[0], sympy.Integer(_outputs(node)))
    total = Reduction(
        b,
        shape,
        (length, distances),
        Combine("Sum", dtype.FLOAT32),
        found,
        lambda value: value,
        dtype.FLOAT32,
        [rows],
    )
    mode = node.attr_string("mode", "")
    if mode == "TF":
        return [Reshape(total, node.out_shape())]

    def weighted(index: At) -> Expr:
        return Call(dtype.FLOAT32, _MODES[mode], (total.load(index), scale.load(index[1:])))

    result = b.lazy(dtype.FLOAT32, shape, [total], weighted)
    return [Reshape(result, node.out_shape())]
