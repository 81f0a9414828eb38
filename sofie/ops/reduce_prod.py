"""ReduceProd: https://onnx.ai/onnx/operators/onnx__ReduceProd.html"""

from sofie.ir import dtype
from sofie.ops import reduction

reduction.reduction("ReduceProd", "Product", since=1, dtypes=dtype.NUMBERS)
