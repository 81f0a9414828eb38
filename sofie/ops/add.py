"""Add: https://onnx.ai/onnx/operators/onnx__Add.html"""

from sofie.ir import dtype
from sofie.ops import elementwise

elementwise.binary("Add", "{0} + {1}", since=7, dtypes=dtype.NUMBERS)
