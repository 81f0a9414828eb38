"""ArrayFeatureExtractor: https://onnx.ai/onnx/operators/onnx_aionnxml_ArrayFeatureExtractor.html"""

from collections.abc import Sequence

from sofie.ir import dims, dtype
from sofie.ir.builder import Builder
from sofie.ir.expr import Expr
from sofie.ir.node import Node
from sofie.ir.tensor import Index, Tensor
from sofie.ops import elementwise
from sofie.ops.indexing import indirect
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator


@shape_rule("ArrayFeatureExtractor", domain="ai.onnx.ml")
def _shapes(node: Node) -> list[dims.Shape]:
    """A vector becomes one row."""
    lead = node.shape(0)[:-1] or (dims.ONE,)
    return [(*lead, dims.product(node.shape(1)))]


@operator(
    "ArrayFeatureExtractor",
    domain="ai.onnx.ml",
    since=1,
    dtypes=dtype.ML,
)
def lower(node: Node, b: Builder, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """Columns through an index tensor."""
    x, places = elementwise.given(inputs)

    def element(index: Index) -> Expr:
        place = (dims.ZERO,) * (places.rank - 1) + index[-1:] if places.rank else ()
        found = indirect(places.load(place), x.shape[-1])
        return x.load((*index[:-1], found) if x.rank > 1 else (found,))

    return [b.lazy(x.dtype, node.out_shape(), [x, places], element)]
