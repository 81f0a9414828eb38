"""Not: https://onnx.ai/onnx/operators/onnx__Not.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.unary("Not", "!{0}", since=1, dtypes={dtype.BOOL})
