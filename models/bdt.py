"""Makes `bdt.onnx`: boosted decision trees on high-level variables.

    python -m models.bdt --output=models/bdt.onnx

Input variables[N, 12], output probability[N, 1], fp32: an `ai.onnx.ml` Scaler, a
TreeEnsembleRegressor of 100 trees of depth up to 5 as XGBoost's converter writes them, a sigmoid.
"""

from __future__ import annotations

import numpy as np
import onnx

from models import graph_builder

SEED = 12
VARIABLES = 12
TREES = 100
DEPTH = 5
# Of the inner nodes below the root, those that are leaves already.
_EARLY_LEAVES = 0.15


class _Ensemble:
    """The attributes of a TreeEnsembleRegressor, tree by tree."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.nodes: dict[str, list[int | float | str]] = {
            name: []
            for name in (
                "treeids",
                "nodeids",
                "featureids",
                "values",
                "modes",
                "truenodeids",
                "falsenodeids",
                "missing_value_tracks_true",
            )
        }
        self.targets: dict[str, list[int | float]] = {
            name: [] for name in ("treeids", "nodeids", "ids", "weights")
        }

    def add(self, tree: int) -> None:
        """Grows a tree of random cuts, breadth first."""
        growing = [(0, 0)]
        count = 1
        while growing:
            node, depth = growing.pop(0)
            leaf = depth == DEPTH or (depth > 1 and self.random.random() < _EARLY_LEAVES)
            row: dict[str, int | float | str] = {
                "treeids": tree,
                "nodeids": node,
                "featureids": 0 if leaf else int(self.random.integers(VARIABLES)),
                "values": 0.0 if leaf else float(np.float32(self.random.standard_normal())),
                "modes": "LEAF" if leaf else "BRANCH_LT",
                "truenodeids": 0 if leaf else count,
                "falsenodeids": 0 if leaf else count + 1,
                "missing_value_tracks_true": 0 if leaf else int(self.random.integers(2)),
            }
            for name, value in row.items():
                self.nodes[name].append(value)
            if leaf:
                weight = float(np.float32(0.2 * self.random.standard_normal()))
                for name, target in (
                    ("treeids", tree),
                    ("nodeids", node),
                    ("ids", 0),
                    ("weights", weight),
                ):
                    self.targets[name].append(target)
            else:
                growing += [(count, depth + 1), (count + 1, depth + 1)]
                count += 2

    def attributes(self) -> dict[str, graph_builder.Attribute]:
        """For the node."""
        named = {f"nodes_{name}": values for name, values in self.nodes.items()}
        named |= {f"target_{name}": list(values) for name, values in self.targets.items()}
        return named  # type: ignore[return-value]


def make() -> onnx.ModelProto:
    """Returns the model of `bdt.onnx`."""
    random = np.random.default_rng(SEED)
    ensemble = _Ensemble(random)
    for tree in range(TREES):
        ensemble.add(tree)
    builder = graph_builder.GraphBuilder("bdt", {})
    variables = builder.input("variables", ["N", VARIABLES])
    scaled = builder.op(
        "Scaler",
        [variables],
        "",
        domain=graph_builder.ML,
        offset=[float(np.float32(x)) for x in random.uniform(-0.5, 0.5, VARIABLES)],
        scale=[float(np.float32(x)) for x in random.uniform(0.5, 2, VARIABLES)],
    )
    score = builder.op(
        "TreeEnsembleRegressor",
        [scaled],
        "",
        domain=graph_builder.ML,
        n_targets=1,
        base_values=[0.1],
        **ensemble.attributes(),  # type: ignore[arg-type]
    )
    builder.output("probability", builder.op("Sigmoid", [score], ""), ["N", 1])
    return builder.model("Boosted decision trees.")


if __name__ == "__main__":
    graph_builder.run(make)
