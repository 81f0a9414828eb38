"""ONNX files to graphs: reading, checking, symbolic sizes, element types and shapes."""
