"""Random numbers: distributions, seeds, and numbers that differ where they should."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from sofie.testing import interpreter
from sofie.testing.math_functions import philox
from sofie.testing.operators import compile_graph, hold

Array = np.ndarray[Any, Any]
_HEADER = '<ir_version: 10, opset_import: ["": 21]>'
_MANY = 20_000


def _run(text: str, feeds: Mapping[str, Array] | None = None) -> list[Array]:
    return interpreter.run(compile_graph(onnx.parser.parse_model(_HEADER + text)), feeds or {})


@pytest.mark.parametrize(
    ("place", "words"),
    [
        # The known answers of the generator's authors (Random123, kat_vectors).
        ((0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (
            (2**64 - 1, 2**32 - 1, 2**32 - 1, 2**64 - 1),
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            (0x299F31D0A4093822, 0x03707344, 0x13198A2E, 0x85A308D3243F6A88),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_known_answers(place: tuple[int, ...], words: tuple[int, ...]) -> None:
    found = philox(*(np.array([p], np.uint64) for p in place))
    assert tuple(int(word[0]) for word in found) == words


@pytest.mark.parametrize("dtype", [1, 11])
def test_distributions(dtype: int) -> None:
    kind = {1: "float", 11: "double"}[dtype]
    uniform, normal = _run(
        f"""
    main () => ({kind}[{_MANY}] u, {kind}[100, {_MANY // 100}] n)
    {{
        u = RandomUniform<shape = [{_MANY}], dtype = {dtype}, low = -1.0, high = 3.0>()
        n = RandomNormal<shape = [100, {_MANY // 100}], dtype = {dtype}, mean = 2.0, scale = 0.5>()
    }}
    """
    )
    assert uniform.min() >= -1 and uniform.max() < 3
    # Five standard errors.
    assert abs(uniform.mean() - 1) < 5 * np.sqrt(16 / 12 / _MANY)
    counts, _ = np.histogram(uniform, bins=8, range=(-1, 3))
    assert np.abs(counts - _MANY / 8).max() < 5 * np.sqrt(_MANY / 8)
    assert abs(normal.mean() - 2) < 5 * 0.5 / np.sqrt(_MANY)
    assert abs(normal.std() - 0.5) < 5 * 0.5 / np.sqrt(2 * _MANY)
    within = np.abs(normal - 2) < 0.5
    assert abs(within.mean() - 0.6827) < 5 * np.sqrt(0.6827 * 0.3173 / _MANY)


def test_equal_seeds_give_equal_numbers_and_others_do_not() -> None:
    a, b, c, d, e = _run(
        """
    main () => (float[50] a, float[50] b, float[50] c, float[50] d, float[50] e)
    {
        a = RandomNormal<shape = [50], seed = 3.5>()
        b = RandomNormal<shape = [50], seed = 3.5>()
        c = RandomNormal<shape = [50], seed = 4.0>()
        d = RandomNormal<shape = [50]>()
        e = RandomNormal<shape = [50]>()
    }
    """
    )
    np.testing.assert_array_equal(a, b)
    for one, other in ((a, c), (a, d), (d, e)):
        assert not np.any(one == other)


def test_every_reader_gets_the_same_numbers() -> None:
    (zero,) = _run(
        """
    main () => (float[50] z)
    {
        a = RandomUniform<shape = [50]>()
        b = Exp(a)
        c = Log(b)
        z = Sub(a, c)
    }
    """
    )
    np.testing.assert_allclose(zero, 0, atol=1e-6)


@pytest.mark.parametrize("op_type", ["RandomUniformLike", "RandomNormalLike"])
def test_shapes_and_types_of_another_tensor(op_type: str) -> None:
    program = compile_graph(
        onnx.parser.parse_model(
            _HEADER
            + f"""
    main (float[N, 3] x, int32[N] i) => (float[N, 3] y, double[N] z)
    {{
        y = {op_type}(x)
        z = {op_type}<dtype = 11>(i)
    }}
    """
        )
    )
    for n in (0, 1, 7):
        feeds = {"x": np.zeros((n, 3), np.float32), "i": np.zeros(n, np.int32)}
        y, z = interpreter.run(program, feeds)
        assert (y.shape, y.dtype, z.shape, z.dtype) == ((n, 3), np.float32, (n,), np.float64)
        assert np.unique(y).size == y.size


def test_bernoulli() -> None:
    text = f"""
    main (float[{_MANY}] p) => (float[{_MANY}] y, int64[{_MANY}] z)
    {{
        y = Bernoulli(p)
        z = Bernoulli<dtype = 7, seed = 1.0>(p)
    }}
    """
    for rate in (0.0, 0.3, 1.0):
        y, z = _run(text, {"p": np.full(_MANY, rate, np.float32)})
        for drawn in (y, z):
            assert set(np.unique(drawn)) <= {0, 1}
            assert abs(drawn.mean() - rate) <= 5 * np.sqrt(rate * (1 - rate) / _MANY)


def test_multinomial() -> None:
    weights = np.array([[1.0, 0, 3, 4], [2, 2, 0, 0]])
    (drawn,) = _run(
        f"""
    main (float[2, 4] x) => (int32[2, {_MANY}] y)
    {{
        y = Multinomial<sample_size = {_MANY}, dtype = 6>(x)
    }}
    """,
        {"x": np.log(weights, where=weights > 0, out=np.full((2, 4), -np.inf)).astype(np.float32)},
    )
    for row, weight in zip(drawn, weights, strict=True):
        rates = np.bincount(row, minlength=4) / _MANY
        wanted = weight / weight.sum()
        assert np.all(np.abs(rates - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / _MANY))


_DROPOUT = """
main (float[N] x, bool training) => (float[N] y, bool[N] kept)
<float ratio = {0.25}>
{
    y, kept = Dropout(x, ratio, training)
}
"""


def test_dropout_in_training() -> None:
    x = np.arange(1, _MANY + 1, dtype=np.float32)
    y, kept = _run(_DROPOUT, {"x": x, "training": np.array(True)})
    np.testing.assert_array_equal(kept, y != 0)
    np.testing.assert_allclose(y[kept], x[kept] / 0.75, rtol=1e-6)
    assert abs(kept.mean() - 0.75) < 5 * np.sqrt(0.25 * 0.75 / _MANY)


def test_dropout_for_inference() -> None:
    x = np.arange(1, 10, dtype=np.float32)
    y, kept = _run(_DROPOUT, {"x": x, "training": np.array(False)})
    np.testing.assert_array_equal(y, x)
    assert kept.all()


@pytest.mark.parametrize("opset", [7, 10, 12, 21])
def test_dropout_without_a_mode(opset: int) -> None:
    header = f'<ir_version: 10, opset_import: ["": {opset}]>'
    text = "main (float[N, 2] x) => (float[N, 2] y) { d = Dropout(x) y = Neg(d) }"
    model = onnx.parser.parse_model(header + text)
    hold(model, [{"N": 3}, {"N": 0}, {"N": 1}])
