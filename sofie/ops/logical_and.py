"""And: https://onnx.ai/onnx/operators/onnx__And.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.binary("And", "{0} && {1}", since=7, dtypes={dtype.BOOL})
