"""ONNX operators, one file each: capability check, shape rule where needed, lowering to kernels."""

from onnx_shape_inference import registry as _shape_rules

# Loads the library's rules first, so that a rule in an operator's file takes the place of theirs.
_shape_rules.collect()
