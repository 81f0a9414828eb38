"""SVMRegressor: https://onnx.ai/onnx/operators/onnx_aionnxml_SVMRegressor.html"""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.node import Node
from sofie.ir.tensor import Tensor
from sofie.ops import elementwise, linear_scores, support_vectors
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


@shape_rule("SVMRegressor", domain="ai.onnx.ml", types=(onnx_ir.DataType.FLOAT,))
def _shapes(node: Node) -> list[dims.Shape]:
    return [(node.shape(0)[0], dims.ONE)]


def _check(node: Node) -> Iterator[str]:
    vectors = node.attr_int("n_supports", 0)
    yield from support_vectors.check(node, vectors)
    coefficients = support_vectors.floats(node, "coefficients").size
    if coefficients != vectors and (vectors or node.shape(0)[1:] != (coefficients,)):
        yield f"{coefficients} coefficients for {vectors} support vectors"
    if support_vectors.floats(node, "rho").size != 1:
        yield "a rho that is not one number"
    transform = node.attr_string("post_transform", "NONE")
    if transform != "NONE":
        yield f"the post_transform {transform!r}, which ONNX Runtime and the reference do not apply"


@operator("SVMRegressor", domain="ai.onnx.ml", since=1, dtypes=dtype.ML, check=_check)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """A sum over the support vectors, or over the features where there are none."""
    (x,) = elementwise.given(inputs)
    x = linear_scores.as_number(b, x, dtype.FLOAT32)
    vectors = node.attr_int("n_supports", 0)
    terms = support_vectors.similarities(node, b, x, vectors) if vectors else x
    coefficients = support_vectors.floats(node, "coefficients")[np.newaxis]
    rho = support_vectors.floats(node, "rho")
    result = linear_scores.product(b, node.label, terms, coefficients, rho)
    if node.attr_int("one_class", 0):
        # 1 on the inside, -1 on the outside and on the border.
        result = elementwise.call(b, dtype.FLOAT32, "static_cast<float>({0} > 0) * 2 - 1", result)
    return [result]
