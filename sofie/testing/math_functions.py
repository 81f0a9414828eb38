"""The functions of ``sofie::kernels`` in NumPy, by name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _elementwise(function: Any) -> Any:
    """A function of one number, applied to each element, in the elements' type."""

    def apply(x: Array) -> Any:
        if not x.size:
            return x
        return np.vectorize(function, otypes=[x.dtype])(x)

    return apply


_erf = _elementwise(math.erf)


def _divide(a: Array, b: Array) -> Any:
    if a.dtype.kind == "f":
        return a / b
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -quotient, quotient)


def _wrap(index: Array, extent: Array) -> Array:
    return np.clip(np.where(index < 0, index + extent, index), 0, np.maximum(extent - 1, 0))


def _at_least(x: Array, low: Array) -> Array:
    return np.where(x < low, low, x)


def _at_most(x: Array, high: Array) -> Array:
    return np.where(high < x, high, x)


def _clip(x: Array, low: Array, high: Array) -> Array:
    return _at_most(_at_least(x, low), high)


def _sigmoid(x: Array) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def _elu(x: Array, alpha: Array) -> Array:
    return np.where(x < 0, alpha * np.expm1(x), x)


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, np.zeros_like(x))


def _hard_sigmoid(x: Array, alpha: Array, beta: Array) -> Any:
    return np.clip(alpha * x + beta, 0, 1)


def _gelu_tanh(x: Array) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi).astype(x.dtype) * (x + 0.044715 * x**3)))


def _shrink(x: Array, threshold: Array, bias: Array) -> Array:
    low, high = x < -threshold, x > threshold
    return np.where(low, x + bias, np.where(high, x - bias, x * 0))


def _is_inf(x: Array, negative: Array, positive: Array) -> Array:
    return np.isinf(x) & np.where(x < 0, negative, positive)


def _exp_unless_zero(x: Array, maximum: Array, bound: Array) -> Any:
    return np.where(np.abs(x) > bound, np.exp(x - maximum), x * np.exp(-maximum))


def _probit(p: Array) -> Any:
    x = 2 * p - 1
    product = (1 - x) * (1 + x)
    logarithm = np.log(product)
    v = 2 / (np.pi * 0.147) + 0.5 * logarithm
    root = np.sqrt(np.sqrt(v * v - logarithm / 0.147) - v)
    return np.where(product == 0, 0, np.sqrt(2) * np.where(x < 0, -root, root))


def _pow(base: Array, exponent: Array) -> Any:
    if base.dtype.kind == "i" and exponent.dtype.kind == "i":
        inverse = np.where(np.abs(base) == 1, np.where(exponent % 2 == 0, 1, base), 0)
        return np.where(exponent < 0, inverse, np.power(base, np.maximum(exponent, 0)))
    return np.power(base, exponent)


def _quantized(x: Array, zero_point: Array, low: Array, high: Array) -> Array:
    return _clip(np.where(np.isnan(x), 0, np.round(x)) + zero_point, low, high)


def _shift_left(x: Array, bits: Array) -> Array:
    return np.where(bits < 8 * x.itemsize, np.left_shift(x, bits), 0)


def _shift_right(x: Array, bits: Array) -> Array:
    return np.right_shift(x, np.minimum(bits, 8 * x.itemsize - 1)) * np.where(
        (bits < 8 * x.itemsize) | (x < 0), np.ones_like(x), np.zeros_like(x)
    )


def _value_at(value: Array, index: Array) -> Array:
    pair = np.dtype([("f0", value.dtype), ("f1", np.int64)])
    result = np.empty(value.shape, pair)
    result["f0"], result["f1"] = value, index
    return result


def philox(seed: Array, run: Array, stream: Array, index: Array) -> list[Array]:
    """Philox4x32-10, as in ``sofie/runtime/kernels/random.h``: four words for every index."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    places = np.broadcast_arrays(seed, run, stream, index)
    seed, run, stream, index = (np.asarray(place).astype(np.uint64) for place in places)
    key = [seed & low, seed >> half]
    x = [index & low, index >> half, stream, run & low]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * x[0], np.uint64(0xCD9E8D57) * x[2]
        x = [(b >> half) ^ x[1] ^ key[0], b & low, (a >> half) ^ x[3] ^ key[1], a & low]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    return x


def _unit_float(bits: Array) -> Array:
    return (bits >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)


def _unit_double(high: Array, low: Array) -> Any:
    whole = (high >> np.uint64(5)).astype(float) * 2**26 + (low >> np.uint64(6)).astype(float)
    return whole * 2.0**-53


def _uniform_double(*place: Array) -> Any:
    high, low, *_ = philox(*place)
    return _unit_double(high, low)


def _normal_float(*place: Array) -> Any:
    bits = philox(*place)
    radius = np.sqrt(-2 * np.log(_unit_float(bits[0]) + np.float32(2**-24)))
    return radius * np.cos(np.float32(2 * np.pi) * _unit_float(bits[1]))


def _normal_double(*place: Array) -> Any:
    a, b, c, d = philox(*place)
    radius = np.sqrt(-2 * np.log(_unit_double(a, b) + 2.0**-53))
    return radius * np.cos(2 * np.pi * _unit_double(c, d))


def _clamp_index(place: Array, extent: Array) -> Array:
    kept = np.where(np.isnan(place), 0, np.clip(place, 0, np.maximum(extent - 1, 0)))
    return kept.astype(np.int64)


def _reflect(x: Array, low: Array, high: Array) -> Array:
    length = high - low
    distance = np.abs(x - low)
    rest = np.fmod(distance, np.where(length > 0, length, 1))
    odd = np.floor(distance / np.where(length > 0, length, 1)) % 2 == 1
    there = np.where(odd, high - rest, low + rest)
    return np.where((x >= low) & (x <= high), x, np.where(length > 0, there, low))


FUNCTIONS: dict[str, Any] = {
    "Abs": np.abs,
    "NormalDouble": _normal_double,
    "NormalFloat": _normal_float,
    "UniformDouble": _uniform_double,
    "UniformFloat": lambda *place: _unit_float(philox(*place)[0]),
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "AtLeast": _at_least,
    "AtMost": _at_most,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "Ceil": np.ceil,
    "Celu": lambda x, alpha: np.where(x < 0, alpha * np.expm1(x / alpha), x),
    "ClampIndex": _clamp_index,
    "Clip": _clip,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Divide": _divide,
    "DivideOr": lambda a, b, otherwise: np.where(b == 0, otherwise, a / b),
    "Elu": _elu,
    "Erf": _erf,
    "Exp": np.exp,
    "ExpUnlessZero": _exp_unless_zero,
    "Floor": np.floor,
    "FloorMod": np.mod,
    "Gelu": lambda x: 0.5 * x * (1 + _erf(x / np.sqrt(x.dtype.type(2)))),
    "GeluTanh": _gelu_tanh,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": lambda x: x * _hard_sigmoid(x, x.dtype.type(1 / 6), x.dtype.type(0.5)),
    "InverseSqrt": lambda x: 1 / np.sqrt(x),
    "IsInf": _is_inf,
    "IsNaN": np.isnan,
    "LeakyRelu": lambda x, slope: np.where(x < 0, slope * x, x),
    "Log": np.log,
    "Log1p": np.log1p,
    "LogSumExp": lambda m, total: np.where(np.isinf(m), m, m + np.log(total)),
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mish": lambda x: x * np.tanh(_softplus(x)),
    "Pow": _pow,
    "Probit": _probit,
    "Quantized": _quantized,
    "Reciprocal": lambda x: 1 / x,
    "Reflect": _reflect,
    "Relu": lambda x: np.maximum(x, 0),
    "Round": np.round,
    "SameKey": lambda a, b: (a == b) | ((a != a) & (b != b)),
    "Selu": lambda x, alpha, gamma: gamma * _elu(x, alpha),
    "ShiftLeft": _shift_left,
    "ShiftRight": _shift_right,
    "Shrink": _shrink,
    "Sigmoid": _sigmoid,
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Softplus": _softplus,
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Sqrt": np.sqrt,
    "Swish": lambda x, alpha: x * _sigmoid(alpha * x),
    "Tan": np.tan,
    "Tanh": np.tanh,
    "ThresholdedRelu": lambda x, threshold: np.where(x <= threshold, 0, x),
    "TruncMod": np.fmod,
    "ValueAt": _value_at,
    "WrapIndex": _wrap,
}
