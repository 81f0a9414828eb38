"""CumSum: https://onnx.ai/onnx/operators/onnx__CumSum.html"""

from sofie.ops import running

running.running("CumSum", is_product=False, since=11)
