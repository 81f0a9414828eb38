"""ReduceProd: https://onnx.ai/onnx/operators/onnx__ReduceProd.html"""

from sofie.ir import dtype
from sofie.ops import reduction
from sofie.ops.reduction import Rule

reduction.reduction("ReduceProd", Rule("Product"), dtypes=dtype.NUMBERS)
