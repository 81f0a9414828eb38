"""Tree ensembles against ONNX Runtime and the reference."""

from typing import Any

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
import pytest
from onnx import helper, numpy_helper

from sofie.importer.errors import ModelError
from sofie.testing.operators import compile_graph, graph, hold

_DOMAIN = "ai.onnx.ml"
_CASES = [{"N": 7}, {"N": 1}, {"N": 0}, {"N": 33}]
_MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def _forest(
    votes: str, targets: int, per_leaf: int, trees: int = 5, mode: str | None = None
) -> dict[str, Any]:
    """Random trees of three levels; leaves have votes for ``per_leaf`` targets."""
    rng = np.random.default_rng(12)
    attributes: dict[str, list[Any]] = {
        f"nodes_{n}": []
        for n in (
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
    found: dict[str, list[Any]] = {f"{votes}_{n}": [] for n in ("treeids", "nodeids", "ids")}
    found[f"{votes}_weights"] = []
    for tree in range(trees):
        for own in range(7):
            leaf = own >= 3
            row = {
                "treeids": tree,
                "nodeids": own,
                "featureids": 0 if leaf else int(rng.integers(0, 4)),
                "values": 0.0 if leaf else float(np.round(rng.standard_normal(), 1)),
                "modes": "LEAF" if leaf else mode or str(rng.choice(_MODES)),
                "truenodeids": 0 if leaf else 2 * own + 1,
                "falsenodeids": 0 if leaf else 2 * own + 2,
                "missing_value_tracks_true": int(rng.integers(0, 2)),
            }
            for name, value in row.items():
                attributes[f"nodes_{name}"].append(value)
            if leaf:
                for target in rng.permutation(targets)[:per_leaf]:
                    found[f"{votes}_treeids"].append(tree)
                    found[f"{votes}_nodeids"].append(own)
                    found[f"{votes}_ids"].append(int(target))
                    found[f"{votes}_weights"].append(float(rng.standard_normal()))
    return {**attributes, **found}


def _with_missing(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) > 2, np.nan, np.round(x, 1)) if x.dtype.kind == "f" else x


def _regressor(dtype: str, attributes: dict[str, Any]) -> onnx.ModelProto:
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=_DOMAIN, **attributes)
    targets = attributes.get("n_targets", 1)
    outputs = {"y": ("float32", ["N", targets])}
    return graph([node], {"x": (dtype, ["N", 4])}, outputs, domains={_DOMAIN: 3})


@pytest.mark.parametrize("mode", [*_MODES, None])
@pytest.mark.parametrize("targets", [1, 3])
def test_modes(mode: str | None, targets: int) -> None:
    attributes = _forest("target", targets, 1, mode=mode)
    model = _regressor("float32", {**attributes, "n_targets": targets})
    hold(model, _CASES, values=_with_missing, against_runtime=True)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 2])
def test_aggregates(aggregate: str, targets: int) -> None:
    attributes = _forest("target", targets, targets)
    base = {"base_values": [0.5, -1.0][:targets], "aggregate_function": aggregate}
    model = _regressor("float32", {**attributes, **base, "n_targets": targets})
    hold(model, _CASES, against_runtime=True)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_types(dtype: str) -> None:
    attributes = {**_forest("target", 1, 1), "n_targets": 1}
    single = onnxruntime.InferenceSession(
        _regressor("float32", attributes).SerializeToString(), providers=["CPUExecutionProvider"]
    )

    def reference(inputs: Any) -> Any:
        return single.run(None, {"x": inputs["x"].astype(np.float32)})

    hold(_regressor(dtype, attributes), _CASES, reference=reference)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("labels", [[0, 1, 2], [5, -3, 7]])
def test_classes(transform: str, labels: list[int]) -> None:
    attributes = _forest("class", 3, 2)
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain=_DOMAIN,
        classlabels_int64s=labels,
        post_transform=transform,
        **attributes,
    )
    model = graph(
        [node],
        {"x": ("float32", ["N", 4])},
        {"label": ("int64", ["N"]), "scores": ("float32", ["N", 3])},
        domains={_DOMAIN: 3},
    )
    hold(model, _CASES, values=_with_missing, against_runtime=True)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("positive", [False, True])
def test_one_score_for_two_classes(transform: str, positive: bool) -> None:
    attributes = _forest("class", 1, 1)
    if positive:
        attributes["class_weights"] = [abs(w) / 5 for w in attributes["class_weights"]]
    hold(_two_classes(attributes, transform), _CASES, against_runtime=True)


def _two_classes(attributes: dict[str, Any], transform: str) -> onnx.ModelProto:
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain=_DOMAIN,
        classlabels_int64s=[3, 8],
        post_transform=transform,
        **attributes,
    )
    return graph(
        [node],
        {"x": ("float32", ["N", 4])},
        {"label": ("int64", ["N"]), "scores": ("float32", ["N", 2])},
        domains={_DOMAIN: 3},
    )


def test_a_base_value_moves_the_score() -> None:
    attributes = _forest("class", 1, 1)
    plain = onnxruntime.InferenceSession(
        _two_classes(attributes, "NONE").SerializeToString(), providers=["CPUExecutionProvider"]
    )

    def reference(inputs: Any) -> list[np.ndarray]:
        score = plain.run(None, dict(inputs))[1][:, 1] + np.float32(0.25)
        label = np.where(score > 0, 8, 3).astype(np.int64)
        return [label, 1 / (1 + np.exp(-np.stack([-score, score], axis=1)))]

    model = _two_classes({**attributes, "base_values": [0.25]}, "LOGISTIC")
    hold(model, _CASES, reference=reference)


def _aggregates(votes: list[float]) -> list[float]:
    """Of the votes of two trees."""
    return [sum(votes) / 2, sum(votes), min(votes), max(votes)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
def test_trees_of_version_5(dtype: str, aggregate: int) -> None:
    def tensor(values: list[float], kind: str = dtype) -> onnx.TensorProto:
        return numpy_helper.from_array(np.array(values, kind))

    node = helper.make_node(
        "TreeEnsemble",
        ["x"],
        ["y"],
        domain=_DOMAIN,
        n_targets=2,
        aggregate_function=aggregate,
        post_transform=0,
        tree_roots=[0, 2],
        nodes_modes=tensor([0, 6, 3], "uint8"),
        nodes_featureids=[0, 1, 3],
        nodes_splits=tensor([0.25, 0.0, -0.5]),
        nodes_truenodeids=[1, 0, 3],
        nodes_trueleafs=[0, 1, 1],
        nodes_falsenodeids=[2, 1, 2],
        nodes_falseleafs=[1, 1, 1],
        membership_values=tensor([1.0, -1.0, 2.0, np.nan]),
        leaf_targetids=[0, 1, 0, 1],
        leaf_weights=tensor([1.5, -0.5, 2.0, 0.75]),
    )
    model = graph([node], {"x": (dtype, ["N", 4])}, {"y": (dtype, ["N", 2])}, domains={_DOMAIN: 5})

    def reference(inputs: Any) -> list[np.ndarray]:
        out = []
        for row in inputs["x"]:
            inside = row[1] in (1.0, -1.0, 2.0)
            first = ((0, 1.5) if inside else (1, -0.5)) if row[0] <= 0.25 else (0, 2.0)
            second = (1, 0.75) if row[3] > -0.5 else (0, 2.0)
            sums: list[list[float]] = [[], []]
            for target, weight in (first, second):
                sums[target].append(weight)
            out.append([_aggregates(v)[aggregate] if v else 0.0 for v in sums])
        return [np.array(out, inputs["x"].dtype).reshape(-1, 2)]

    hold(model, _CASES, values=np.round, reference=reference)


def test_too_few_features_are_an_error() -> None:
    model = _regressor("float32", _forest("target", 1, 1))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 2
    assert max(_forest("target", 1, 1)["nodes_featureids"]) == 3
    with pytest.raises(ModelError, match="trees look at 4 features, but the input has 2"):
        compile_graph(model)


def test_string_labels_are_refused() -> None:
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain=_DOMAIN,
        classlabels_strings=["a", "b", "c"],
        **_forest("class", 3, 1),
    )
    model = graph(
        [node],
        {"x": ("float32", ["N", 4])},
        {"scores": ("float32", ["N", 3])},
        domains={_DOMAIN: 3},
    )
    with pytest.raises(ModelError, match="labels that are strings"):
        compile_graph(model)
