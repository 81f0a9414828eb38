"""Sequences are lists of tensors at build time, and plain tensors are left."""

import onnx
import onnx.parser
import pytest

from sofie.importer.errors import ModelError
from sofie.importer.sequences import OPERATORS
from sofie.testing.operators import compile_graph, hold, import_model

_HEADER = '<ir_version: 10, opset_import: ["": 21]>'
_CASES = [{"N": 3}, {"N": 1}, {"N": 0}]


def _hold(text: str, cases: list[dict[str, int]] = _CASES, against_runtime: bool = False) -> None:
    model = onnx.parser.parse_model(_HEADER + text)
    assert not {node.op_type for node in import_model(model).graph} & set(OPERATORS)
    hold(model, cases, against_runtime=against_runtime)


@pytest.mark.parametrize(
    ("split", "axis", "parts"),
    [("{2}", 1, 3), ("{4}", 1, 2), ("{1, 3, 1}", -1, 3), ("{5}", 1, 1)],
)
def test_split(split: str, axis: int, parts: int) -> None:
    shape = "int64 sizes" if "," not in split and split != "{5}" else "int64[K] sizes"
    shape = shape.replace("K", str(split.count(",") + 1))
    _hold(
        f"""
    main (float[N, 5] x) => (float[N, K] first, float[N, L] last, int64 length, float[N, 5] again)
    <{shape} = {split}, int64 zero = {{0}}, int64 end = {{{parts - 1}}}>
    {{
        parts = SplitToSequence<axis = {axis}>(x, sizes)
        same = Identity(parts)
        first = SequenceAt(parts, zero)
        last = SequenceAt(same, end)
        length = SequenceLength(parts)
        again = ConcatFromSequence<axis = -1>(same)
    }}
    """
    )


@pytest.mark.parametrize("keep", [0, 1])
def test_split_into_ones(keep: int) -> None:
    extents = "N, 1" if keep else "N"
    _hold(
        f"""
    main (float[N, 4] x) => (float[{extents}] second)
    <int64 minus_three = {{-3}}>
    {{
        parts = SplitToSequence<axis = 1, keepdims = {keep}>(x)
        second = SequenceAt(parts, minus_three)
    }}
    """
    )


def test_insertions_and_erasures() -> None:
    _hold(
        """
    main (float[N, 2] a, float[N, 2] b, float[N, 2] c) => (float[K, N, 2] y, float[L, 2] z)
    <int64 zero = {0}, int64 minus_one = {-1}, int64 one = {1}>
    {
        empty = SequenceEmpty<dtype = 1>()
        of_a = SequenceInsert(empty, a)
        of_ba = SequenceInsert(of_a, b, zero)
        of_bca = SequenceInsert(of_ba, c, minus_one)
        of_bcab = SequenceInsert(of_bca, b)
        of_bcb = SequenceErase(of_bcab, minus_two)
        minus_two = Constant<value_int = -2>()
        of_cb = SequenceErase(of_bcab, zero)
        of_c = SequenceErase(of_cb)
        y = ConcatFromSequence<axis = 0, new_axis = 1>(of_bcb)
        z = ConcatFromSequence<axis = 0>(of_c)
    }
    """.replace("        minus_two = Constant<value_int = -2>()\n", "").replace(
            "int64 one = {1}", "int64 minus_two = {-2}"
        )
    )


def test_a_loop_that_collects_is_written_out() -> None:
    _hold(
        """
    main (float[N, 2] x) => (float[M, 2] y, int64[3] counts)
    <int64 three = {3}, bool true = {1}>
    {
        empty = SequenceEmpty<dtype = 1>()
        parts, counts = Loop <
            body = step (int64 i, bool go, seq(float[K, L]) parts)
                => (bool on, seq(float[K, L]) more, int64 length)
            {
                on = Identity(go)
                number = Cast<to = 1>(i)
                moved = Add(x, number)
                more = SequenceInsert(parts, moved)
                length = SequenceLength(more)
            }
        > (three, true, empty)
        y = ConcatFromSequence<axis = 0>(parts)
    }
    """,
        against_runtime=True,
    )


def test_a_loop_whose_value_grows_is_written_out() -> None:
    _hold(
        """
    main (float[N, 2] x) => (float[M, 2] y)
    <int64 three = {3}, bool true = {1}>
    {
        y = Loop <
            body = step (int64 i, bool go, float[K, L] s) => (bool on, float[M, L] t)
            {
                on = Identity(go)
                t = Concat<axis = 0>(s, x)
            }
        > (three, true, x)
    }
    """
    )


def test_a_map() -> None:
    _hold(
        """
    main (float[N, 2] a, float[M, 2] b) => (float[K, 2] y)
    {
        pair = SequenceConstruct(a, b)
        mapped = SequenceMap <body = one (float[P, 2] p) => (float[P, 2] q) { q = Neg(p) }> (pair)
        y = ConcatFromSequence<axis = 0>(mapped)
    }
    """,
        [{"N": 2, "M": 3}, {"N": 1, "M": 0}],
    )


def test_a_position_from_data_is_refused() -> None:
    model = onnx.parser.parse_model(
        _HEADER
        + """
    main (float[N, 2] a, int64 i) => (float[N, 2] y)
    {
        pair = SequenceConstruct(a, a)
        y = SequenceAt(pair, i)
    }
    """
    )
    with pytest.raises(ModelError, match=r"\(SequenceAt\): .*not known at build time"):
        compile_graph(model)
