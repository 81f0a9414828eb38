"""ArgMin: https://onnx.ai/onnx/operators/onnx__ArgMin.html"""

from sofie.ops import arg_reduction

arg_reduction.arg_reduction("ArgMin")
