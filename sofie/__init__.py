"""Compiles ONNX models to alpaka C++ at build time."""

VERSION = "0.1.0"
