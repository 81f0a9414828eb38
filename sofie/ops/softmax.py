"""Softmax: https://onnx.ai/onnx/operators/onnx__Softmax.html"""

from sofie.ops import softmax_rows

softmax_rows.exponentials("Softmax", "sofie::kernels::Exp({0} - {1}) / {2}")
