"""CumProd: https://onnx.ai/onnx/operators/onnx__CumProd.html"""

from sofie.ops import running

running.running("CumProd", is_product=True, since=26)
