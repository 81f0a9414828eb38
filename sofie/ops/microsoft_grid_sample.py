"""GridSample of com.microsoft: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.GridSample"""

from collections.abc import Iterator

from sofie.ir import dtype
from sofie.ir.node import Node
from sofie.ops import grid_sample
from sofie.ops.inference import shape_rule
from sofie.ops.registry import operator

_DOMAIN = "com.microsoft"


def _check(node: Node) -> Iterator[str]:
    yield from grid_sample.check(node)
    mode, padding = node.attr_string("mode", ""), node.attr_string("padding_mode", "")
    if mode == "bicubic" and padding == "border":
        yield "bicubic samples of a border, which ONNX Runtime takes elsewhere than ONNX"


shape_rule("GridSample", domain=_DOMAIN)(grid_sample.shapes)
operator("GridSample", since=1, domain=_DOMAIN, dtypes={dtype.FLOAT32}, check=_check)(
    grid_sample.lower
)
