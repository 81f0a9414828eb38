"""Or: https://onnx.ai/onnx/operators/onnx__Or.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.binary("Or", "{0} || {1}", since=7, dtypes={dtype.BOOL})
