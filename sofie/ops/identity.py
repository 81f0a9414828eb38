"""Identity: https://onnx.ai/onnx/operators/onnx__Identity.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary("Identity", "{0}", since=1, dtypes=dtype.EVERY)
