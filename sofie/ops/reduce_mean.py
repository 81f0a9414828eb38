"""ReduceMean: https://onnx.ai/onnx/operators/onnx__ReduceMean.html"""

from sofie.ir import dtype
from sofie.ops import reduction

reduction.reduction(
    "ReduceMean", "Sum", since=1, dtypes=dtype.FLOATS, finish=reduction.divide_by_count
)
