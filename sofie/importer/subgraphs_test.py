"""What is known of branches and loops at build time leaves plain nodes."""

import onnx
import onnx.parser
import pytest

from sofie.testing.operators import hold, import_model

_MODEL = """
<ir_version: 10, opset_import: ["": 21]>
main (float[N, 3] x) => (float[N, 3] y, float[N, 3] z)
<bool outer = {%d}>
{
    y, z = If (outer) <
        then_branch = taken () => (float[N, 3] a, float[N, 3] b) <bool inner = {%d}> {
            a = If (inner) <
                then_branch = deep () => (float[N, 3] c) <float k = {2.0}> { c = Mul(x, k) },
                else_branch = deeper () => (float[N, 3] c) <float k = {3.0}> { c = Add(x, k) }
            >
            b = Identity(x)
        },
        else_branch = other () => (float[N, 3] a, float[N, 3] b) <float k = {4.0}> {
            a = Sub(x, k)
            b = Neg(a)
        }
    >
}
"""


@pytest.mark.parametrize("outer", [0, 1])
@pytest.mark.parametrize("inner", [0, 1])
def test_the_branch_that_is_taken_remains(outer: int, inner: int) -> None:
    model = onnx.parser.parse_model(_MODEL % (outer, inner))
    assert all(node.op_type != "If" for node in import_model(model).graph)
    hold(model, [{"N": 2}, {"N": 0}, {"N": 5}])


def test_what_is_in_the_way_in_the_other_branch_is_no_matter() -> None:
    text = (_MODEL % (1, 1)).replace("a = Sub(x, k)", "n = NonZero(x) a = Sub(x, k)")
    hold(onnx.parser.parse_model(text), [{"N": 2}])
