"""LogSoftmax: https://onnx.ai/onnx/operators/onnx__LogSoftmax.html"""

from sofie.ops import softmax_rows

softmax_rows.exponentials("LogSoftmax", "{0} - {1} - sofie::kernels::Log({2})")
