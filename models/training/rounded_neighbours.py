"""Writes ParticleNet with the coordinates of its nearest-neighbour searches rounded.

    rounded_neighbours.py fp16|bf16 MODEL.onnx OUTPUT.onnx

Distances are then what a matrix product with factors of that type gives. `precision` leaves these
products in float32; this shows why.
"""

from __future__ import annotations

import sys

import onnx
from onnx import helper

_TYPES = {"fp16": onnx.TensorProto.FLOAT16, "bf16": onnx.TensorProto.BFLOAT16}


def rounded(model: onnx.ModelProto, kind: str) -> onnx.ModelProto:
    """A copy of the model in which both factors of every MatMul are rounded to a type."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.node[:]
    for node in model.graph.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if node.op_type == "MatMul":  # ParticleNet has no others
            for place, name in enumerate(node.input):
                narrow, wide = (f"{node.name}/{place}/{part}" for part in ("narrow", "wide"))
                copy.input[place] = wide
                changed.graph.node.extend(
                    [
                        helper.make_node("Cast", [name], [narrow], narrow, to=_TYPES[kind]),
                        helper.make_node("Cast", [narrow], [wide], wide, to=onnx.TensorProto.FLOAT),
                    ]
                )
        changed.graph.node.append(copy)
    onnx.checker.check_model(changed)
    return changed


def main() -> None:
    kind, source, output = sys.argv[1:]
    onnx.save(rounded(onnx.load(source), kind), output)


if __name__ == "__main__":
    main()
