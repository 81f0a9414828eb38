"""Every operator takes all element types that ONNX gives its first input, but for those here."""

import onnx
import pytest

from sofie.ir import dtype
from sofie.ops import registry
from sofie.ops.registry import Operator

_OURS = {onnx.helper.np_dtype_to_tensor_dtype(kind.numpy): kind.name for kind in dtype.EVERY}
_FLOAT8 = {kind.name for kind in dtype.FLOAT8}
_SMALL = {kind.name for kind in dtype.EVERY - dtype.ALL}

# Element types that ONNX allows and this project refuses.
_REFUSED = {
    # A sum of truth values has no meaning.
    "Col2Im": {"bool"},
    # Small types are to store and to convert; products and sums of them are not computed.
    "Dropout": _FLOAT8,
    "QLinearMatMul": _FLOAT8,
    "Pad": _SMALL,
    "TensorScatter": _SMALL - {"int2", "uint2"},
    # It sorts with TopK, which orders numbers.
    "Unique": {"bool"},
}


def _allowed(operator: Operator) -> set[str]:
    """The types of the first input in the newest definition that the operator follows."""
    version = onnx.defs.onnx_opset_version() if operator.until is None else operator.until
    schema = onnx.defs.get_schema(operator.name, version)
    names = {str(kind) for kind in schema.inputs[0].types}
    strings = {
        onnx.helper.tensor_dtype_to_string(kind).lower().removeprefix("tensorproto."): name
        for kind, name in _OURS.items()
    }
    return {name for kind, name in strings.items() if f"tensor({kind})" in names}


@pytest.mark.parametrize(
    "operator",
    [o for o in registry.every() if not o.domain and o.dtypes is not None],
    ids=lambda o: f"{o.name}-{o.since}",
)
def test_types_are_those_of_onnx(operator: Operator) -> None:
    assert operator.dtypes is not None
    allowed = _allowed(operator)
    missing = allowed - {kind.name for kind in operator.dtypes}
    assert missing == _REFUSED.get(operator.name, set()) & allowed
