"""Provider of a compiled ONNX model."""

OnnxModelInfo = provider(
    doc = "An ONNX model and what the generator made of it.",
    fields = {
        "name": "string: the name of the C++ library; its header is <package>/<name>.h.",
        "cpp_namespace": "string: the C++ namespace of the model.",
        "model": "File: the ONNX file.",
        "manifest": "File: JSON with the model's interface, kernels, memory plan and versions.",
        "weights": "File: the weights, in the safetensors format.",
        "weights_mode": "string: `embedded` in the program, or read from a `file`.",
        "precision": "string: the precision of the model's arithmetic.",
    },
)
