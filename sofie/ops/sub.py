"""Sub: https://onnx.ai/onnx/operators/onnx__Sub.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.binary("Sub", "{0} - {1}", since=7, dtypes=dtype.NUMBERS)
