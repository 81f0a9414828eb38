"""Says how well ParticleNet tags, as this project runs it and as ONNX Runtime does.

    tools/bazel run //models/training:evaluate -- --jets=/data/test.npz --output=/tmp

The jets are a file of `make_jets`, by default the sample of the examples. Prints, with errors from
a bootstrap over the jets,

* for each class the area under the ROC curve (AUC) and the background rejection, 1 / (efficiency of
  the background), at 50 % efficiency of the signal: against all other jets, and for W, Z, Higgs and
  top against QCD, by p(class) / (p(class) + p(QCD));
* the part of the jets whose most likely class is theirs (accuracy);

both of this project's library and of ONNX Runtime on the CPU; and how far the two are apart. Draws
the ROC curves against QCD: `roc.png`.

    tools/bazel run --config=cuda //models/training:evaluate_precisions -- --device=cuda

evaluates, on a GPU, all values of `precision` too, with rounded distances between neighbours and
without, and prints speed beside the change of all these.

Jets with fewer than 17 particles and vertices, which the network can't take, are left out.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
import onnxruntime  # type: ignore[import-untyped]
import tqdm
from absl import app, flags

from models import jet_inputs, padded_jets
from models.training import metrics
from models.training.metrics import Array, Discriminant

matplotlib.use("Agg")
from matplotlib import pyplot as plt

_JETS = flags.DEFINE_string("jets", None, "The file of jets; by default examples/data/jets.npz.")
_DEVICE = flags.DEFINE_enum("device", "openmp", ["cpu", "openmp", "cuda"], "Where to run.")
_OUTPUT = flags.DEFINE_string("output", ".", "Folder for the plot.")
_BESIDE = flags.DEFINE_string(
    "beside", None, "What `train` said of the same jets, its test.npz: one more column."
)
_REPLICAS = flags.DEFINE_integer("replicas", 100, "Bootstrap replicas.", lower_bound=2)
_SEED = flags.DEFINE_integer("seed", 1, "Seed of the bootstrap.", lower_bound=0)
_PROGRAMS = flags.DEFINE_string(
    "programs", None, "Folder with score_fp32 and others; by default beside this program."
)
_MODEL = flags.DEFINE_string("model", None, "The ONNX file; by default models/particle_net.onnx.")

_QCD = [i for i, name in enumerate(jet_inputs.CLASSES) if name.startswith("qcd")]
_EFFICIENCY = 0.5
_NEIGHBOURS = 17  # a jet's own point included
_BATCH = 128

AnyArray = npt.NDArray[Any]


def onnx_runtime(model: pathlib.Path, arrays: Mapping[str, AnyArray], jets: AnyArray) -> Array:
    """The probabilities [jets, classes] of jets with these numbers, according to ONNX Runtime."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    particles, vertices = (np.diff(arrays[f"{kind}_offsets"])[jets] for kind in ("pf", "sv"))
    order = np.argsort(particles + vertices, kind="stable")
    result = np.zeros((len(jets), len(jet_inputs.CLASSES)))
    with tqdm.tqdm(total=len(jets), unit="jet", desc="ONNX Runtime") as progress:
        for begin in range(0, len(jets), _BATCH):
            chosen = order[begin : begin + _BATCH]
            (result[chosen],) = session.run(None, padded_jets.padded(arrays, jets[chosen]))
            progress.update(len(chosen))
    return result


def sofie(program: pathlib.Path, jets: pathlib.Path, device: str) -> tuple[Array, float]:
    """The probabilities [jets, classes], NaN for jets that are too small, and jets a second."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "probabilities"
        command = [str(program), str(jets), device, str(output)]
        speed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        values = np.fromfile(output, "<f4").astype(np.float64)
    return values.reshape(-1, len(jet_inputs.CLASSES)), float(speed)


@dataclasses.dataclass(frozen=True)
class Task:
    """One class to tell from a background, whose jets are those of some classes."""

    signal: list[int]
    background: list[int]

    def jets(self, label: AnyArray) -> npt.NDArray[np.bool_]:
        """Which jets take part."""
        return np.isin(label, self.signal + self.background)

    def discriminant(self, probabilities: Array, label: AnyArray) -> Discriminant:
        """The scores of those that take part."""
        part = self.jets(label)
        score = metrics.ratio(probabilities[part], self.signal, self.background)
        return Discriminant(score, np.isin(label[part], self.signal))


def tasks() -> dict[tuple[str, str], Task]:
    """By the names of the signal and of the background."""
    every = range(len(jet_inputs.CLASSES))
    found = {
        (name, "rest"): Task([i], [j for j in every if j != i])
        for i, name in enumerate(jet_inputs.CLASSES)
    }
    found |= {
        (name, "qcd"): Task([i], _QCD) for i, name in enumerate(jet_inputs.CLASSES) if i not in _QCD
    }
    top = [i for i, name in enumerate(jet_inputs.CLASSES) if name.startswith("t_")]
    return found | {("top", "qcd"): Task(top, _QCD)}


def accurate(probabilities: Array, label: AnyArray) -> npt.NDArray[np.bool_]:
    """Whether the most likely class of each jet is its own."""
    return np.asarray(probabilities.argmax(axis=1) == label)


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of merit and its error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ± {self.error:.4f}"


@dataclasses.dataclass(frozen=True)
class MistagRate(Figure):
    """An efficiency of the background, from so many jets of it; shown as a rejection."""

    jets: int

    def __str__(self) -> str:
        if self.value == 0:  # at 95 % confidence: three jets are expected where none is seen
            return f"> {self.jets / 3:.0f}"
        rejection = 1 / self.value
        return f"{rejection:.0f} ± {rejection * self.error / self.value:.0f}"


def figures(
    probabilities: Array, label: AnyArray, weights: Array
) -> tuple[Figure, dict[tuple[str, str], tuple[Figure, MistagRate]]]:
    """Accuracy; AUC and mistag rate of every task. Errors are from weights[replicas, jets]."""
    found = {}
    for name, task in tasks().items():
        discriminant, part = task.discriminant(probabilities, label), task.jets(label)
        roc = discriminant.roc()
        replicas = [discriminant.roc(own[part]) for own in weights]
        found[name] = (
            Figure(roc.area, float(np.std([other.area for other in replicas]))),
            MistagRate(
                roc.mistag_rate(_EFFICIENCY),
                float(np.std([other.mistag_rate(_EFFICIENCY) for other in replicas])),
                int(np.isin(label, task.background).sum()),
            ),
        )
    right = accurate(probabilities, label)
    accuracy = Figure(
        float(right.mean()), float(np.std([np.average(right, weights=own) for own in weights]))
    )
    return accuracy, found


def print_figures(results: Mapping[str, Array], label: AnyArray, weights: Array) -> None:
    """Prints a Markdown table of what several programs' probabilities are worth."""
    found = {program: figures(p, label, weights) for program, p in results.items()}
    columns = [f"{kind}, {program}" for kind in ("AUC", "rejection") for program in results]
    print(f"| signal | background | {' | '.join(columns)} |")
    print("| --- " * (len(columns) + 2) + "|")
    for name in tasks():
        cells = [str(figure[name][kind]) for kind in (0, 1) for _, figure in found.values()]
        print(f"| {' | '.join((*name, *cells))} |")
    print()
    for program, (accuracy, _) in found.items():
        print(f"accuracy, {program}: {accuracy}")


@dataclasses.dataclass(frozen=True)
class Change:
    """How far probabilities[jets, classes] are from others of the same jets.

    Attributes:
      moved: of each jet, the largest change of a probability.
      area: the largest change of an AUC, with its sign.
      others: how many jets have another class.
    """

    moved: Array
    area: float
    others: int

    @property
    def typical(self) -> float:
        """99 % of the jets moved at most so far."""
        return float(np.quantile(self.moved, 0.99))


def change(reference: Array, probabilities: Array, label: AnyArray) -> Change:
    """What became of the reference."""
    areas = [
        task.discriminant(probabilities, label).roc().area
        - task.discriminant(reference, label).roc().area
        for task in tasks().values()
    ]
    return Change(
        np.abs(probabilities - reference).max(axis=1),
        max(areas, key=abs),
        int(np.sum(probabilities.argmax(axis=1) != reference.argmax(axis=1))),
    )


def print_differences(reference: Array, probabilities: Array, label: AnyArray) -> None:
    """Says how far ours are from those of ONNX Runtime."""
    found = change(reference, probabilities, label)
    print(
        f"difference: of a probability at most {found.moved.max():.1e}, in 99 % of the jets at "
        f"most {found.typical:.1e}; of an AUC at most {abs(found.area):.1e}; "
        f"{found.others} jets have another class"
    )


def print_precisions(
    reference: Array, results: Mapping[str, tuple[Array, float | None]], label: AnyArray
) -> None:
    """Prints a Markdown table of speed against changes, by precision."""
    print(
        "| factors | distances | jets/s | largest AUC change | change of accuracy "
        "| largest change of a probability | of 99 % of the jets at most | other class |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for title, (probabilities, measured) in results.items():
        speed = "–" if measured is None else f"{measured:.0f}"
        precision, _, neighbours = title.partition("_")
        found = change(reference, probabilities, label)
        accuracy = accurate(probabilities, label).mean() - accurate(reference, label).mean()
        print(
            f"| {precision} | {precision if neighbours else 'fp32'} | {speed} | {found.area:+.1e} "
            f"| {accuracy:+.1e} | {found.moved.max():.1e} | {found.typical:.1e} "
            f"| {found.others / len(label):.2%} |"
        )


def draw(probabilities: Array, label: AnyArray, path: pathlib.Path) -> None:
    """Draws the ROC curves against QCD."""
    figure, axes = plt.subplots(figsize=(6.5, 5.5), layout="constrained")
    for (name, background), task in tasks().items():
        if background == "qcd":
            roc = task.discriminant(probabilities, label).roc()
            seen = roc.background > 0
            title = f"{name}, AUC {roc.area:.4f}"
            axes.plot(roc.signal[seen], 1 / roc.background[seen], label=title)
    axes.set(
        xlim=(0, 1),
        yscale="log",
        xlabel="efficiency of the signal",
        ylabel="1 / efficiency of QCD jets",
        title=f"ParticleNet, {len(label)} simulated jets, pT > 400 GeV",
    )
    axes.grid(which="both", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _user_path(path: str) -> pathlib.Path:
    """A path of the command line; `bazel run` starts programs in another folder, and names that."""
    return pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), path)


def main(argv: Sequence[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unexpected arguments: {' '.join(argv[1:])}.")
    # Where Bazel puts what this program needs.
    root = pathlib.Path(__file__).parents[2]
    programs = _user_path(_PROGRAMS.value) if _PROGRAMS.value else root / "models/training"
    model = _user_path(_MODEL.value) if _MODEL.value else root / "models/particle_net.onnx"
    path = _user_path(_JETS.value) if _JETS.value else root / "examples/data/jets.npz"
    with np.load(path) as file:
        arrays = {name: file[name] for name in file}
    results = {}
    for precision in ("fp32", "tf32", "bf16", "fp16", "bf16_neighbours", "fp16_neighbours"):
        program = programs / f"score_{precision}"
        if program.exists():
            results[precision] = sofie(program, path, _DEVICE.value)
    large = np.flatnonzero(~np.isnan(results["fp32"][0][:, 0]))
    label = arrays["label"][large]
    results = {name: (values[large], speed) for name, (values, speed) in results.items()}
    ours, speed = results["fp32"]
    theirs = onnx_runtime(model, arrays, large)

    print(f"{len(label)} jets of {path.name}; {len(arrays['label']) - len(label)} were too small.")
    print(f"sofie on {_DEVICE.value}: {speed:.0f} jets/s.\n")
    weights = metrics.bootstrap_weights(len(label), _REPLICAS.value, _SEED.value)
    columns = {"sofie": ours, "ONNX Runtime": theirs}
    if _BESIDE.value:
        with np.load(_user_path(_BESIDE.value)) as file:
            if not np.array_equal(file["numbers"], large):
                raise app.UsageError(f"{_BESIDE.value} is about other jets than {path}.")
            columns["PyTorch"] = file["probabilities"].astype(np.float64)
    print_figures(columns, label, weights)
    print_differences(theirs, ours, label)
    if len(results) > 1:
        print()
        print_precisions(ours, results, label)
    output = _user_path(_OUTPUT.value)
    output.mkdir(parents=True, exist_ok=True)
    draw(ours, label, output / "roc.png")
    print(f"\n{output / 'roc.png'}")


if __name__ == "__main__":
    app.run(main)
