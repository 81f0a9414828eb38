"""Xor: https://onnx.ai/onnx/operators/onnx__Xor.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.binary("Xor", "{0} != {1}", since=7, dtypes={dtype.BOOL})
