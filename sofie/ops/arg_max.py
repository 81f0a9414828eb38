"""ArgMax: https://onnx.ai/onnx/operators/onnx__ArgMax.html"""

from sofie.ops import arg_reduction

arg_reduction.arg_reduction("ArgMax")
