"""What `compare_gpu.py` times: models, their sizes, inputs and what float64 arithmetic gives."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
import torch
from torch import nn

from benchmarks import particle_net_torch, torch_models
from models import padded_jets, particle_net, reference_case

Arrays = Mapping[str, np.ndarray]

# Of a network's results from ONNX Runtime's in float32: much more than rounding, much less than
# what another network would give.
_LARGEST_DIFFERENCE = 1e-4


@dataclasses.dataclass(frozen=True)
class Model:
    """A model of this repository.

    Attributes:
      network: the same in PyTorch, with random weights.
      cases: sizes, as `models.reference_case.parse_case` reads them; the smallest first.
      precisions: those that it is compiled with.
    """

    network: Callable[[], nn.Module]
    cases: Sequence[str]
    precisions: Sequence[str] = ("fp32",)


MODELS = {
    "particle_net": Model(
        particle_net_torch.ParticleNet,
        (
            "N=1,n_pf=50,n_sv=5",
            "N=1,n_pf=100,n_sv=10",
            "N=1,n_pf=128,n_sv=16",
            "N=8,n_pf=100,n_sv=10",
            "N=64,n_pf=100,n_sv=10",
            "N=256,n_pf=100,n_sv=10",
            "N=1024,n_pf=100,n_sv=10",
        ),
        ("fp32", "tf32", "bf16", "fp16"),
    ),
    "particle_transformer": Model(
        torch_models.ParticleTransformer,
        ("N=1,P=50", "N=1,P=100", "N=1,P=128", "N=8,P=100", "N=64,P=100", "N=512,P=100"),
    ),
    "mlp": Model(torch_models.Mlp, ("N=1", "N=64", "N=1024", "N=65536")),
    "cnn": Model(torch_models.Cnn, ("N=1", "N=16", "N=256", "N=4096")),
    "transformer": Model(
        torch_models.Transformer,
        ("N=1,L=10", "N=1,L=128", "N=1,L=512", "N=1,L=2048", "N=16,L=128", "N=256,L=128"),
    ),
    "interaction_network": Model(
        torch_models.InteractionNetwork,
        ("V=100,E=500", "V=1000,E=5000", "V=10000,E=50000", "V=100000,E=500000"),
    ),
    "mlpf": Model(
        torch_models.Mlpf,
        ("N=1,E=128", "N=1,E=512", "N=1,E=1024", "N=1,E=4096", "N=16,E=512"),
    ),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """Inputs of a model at one size, and the outputs of its network in float64."""

    model: str
    sizes: Mapping[str, int]
    inputs: Arrays
    expected: Arrays

    @property
    def text(self) -> str:
        """The sizes, as the flags name them."""
        return ",".join(f"{symbol}={extent}" for symbol, extent in self.sizes.items())


def stem(name: str, sizes: Mapping[str, int]) -> str:
    """The name, without suffix, of a file for a model or library at these sizes."""
    return f"{name}_{'x'.join(map(str, sizes.values()))}"


def error(actual: Arrays, expected: Arrays) -> float:
    """The largest ‖actual − expected‖ / ‖expected‖ of any output."""
    errors = [
        np.linalg.norm(actual[name] - value) / np.linalg.norm(value)
        for name, value in expected.items()
    ]
    return float(np.max(errors))  # NaN if one is


def outputs(model: onnx.ModelProto, result: torch.Tensor | Sequence[torch.Tensor]) -> Arrays:
    """What a network returns, by the names of the ONNX file's outputs."""
    tensors = [result] if isinstance(result, torch.Tensor) else result
    arrays = (t.float() if t.dtype.itemsize < 4 else t for t in tensors)
    pairs = zip(model.graph.output, arrays, strict=True)
    return {value.name: array.cpu().numpy() for value, array in pairs}


def exact(model: onnx.ModelProto, network: nn.Module, inputs: Arrays) -> Arrays:
    """What the network, which is in float64, makes of the inputs."""

    def run(part: slice) -> Arrays:
        tensors = [torch.from_numpy(x[part]).cuda() for x in inputs.values()]
        return outputs(
            model, network(*(t.double() if t.is_floating_point() else t for t in tensors))
        )

    with torch.inference_mode():
        if not _has_batch(model):
            return run(slice(None))
        rows = len(next(iter(inputs.values())))
        parts = [run(slice(at, at + 64)) for at in range(0, rows, 64)]  # float64 takes much memory
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _has_batch(model: onnx.ModelProto) -> bool:
    """True if the first axis of every input counts independent examples."""
    first = {value.type.tensor_type.shape.dim[0].dim_param for value in model.graph.input}
    return first == {"N"}


def make(name: str, model: onnx.ModelProto, network: nn.Module, sizes: Mapping[str, int]) -> Case:
    """Random inputs without padding; the network is in float64."""
    shapes = reference_case.input_shapes(model, sizes)
    drawn = reference_case.random_inputs(model, shapes, seed=20_261_130)
    inputs = {k: np.ones_like(x) if k.endswith("mask") else x for k, x in drawn.items()}
    return Case(name, sizes, inputs, exact(model, network, inputs))


def check(model: onnx.ModelProto, network: nn.Module, sizes: Mapping[str, int]) -> None:
    """Holds a network in float64 to ONNX Runtime, with padding where the model knows that.

    Raises:
      ValueError: they differ by more than rounding; rows that hang on near ties do not count.
    """
    sizes = {symbol: 3 if symbol == "N" else extent for symbol, extent in sizes.items()}
    reference = reference_case.make_reference(model, sizes)
    result = exact(model, network, reference.inputs)
    for (name, expected), loose in zip(
        reference.outputs.items(), reference.loose_rows, strict=True
    ):
        kept = {name: np.delete(expected, loose, axis=0)}
        difference = error({name: np.delete(result[name], loose, axis=0)}, kept)
        if not difference < _LARGEST_DIFFERENCE:
            raise ValueError(
                f"{model.graph.name}: PyTorch's {name} differs by {difference:.1e} from "
                f"that of {reference.oracle}"
            )


def jets(
    model: onnx.ModelProto, network: nn.Module, path: pathlib.Path
) -> tuple[Case, dict[str, np.ndarray]]:
    """The jets of a file for ParticleNet, padded to the longest; and one after the other."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file}
    counts = {kind: np.diff(arrays[f"{kind}_offsets"]) for kind in ("pf", "sv")}
    chosen = np.flatnonzero(counts["pf"] + counts["sv"] > particle_net.NEIGHBOURS)
    joined: dict[str, np.ndarray] = {}
    offsets: dict[str, np.ndarray] = {}
    for kind in ("pf", "sv"):
        sizes, begins = counts[kind][chosen], arrays[f"{kind}_offsets"][chosen]
        spans = list(zip(begins, begins + sizes, strict=True))
        for part in ("points", "features"):
            name = f"{kind}_{part}"
            joined[name] = np.concatenate([arrays[name][begin:end] for begin, end in spans])
        joined[f"{kind}_mask"] = np.ones((sizes.sum(), 1), np.float32)
        offsets[f"n_{kind}_offsets"] = np.concatenate([[0], np.cumsum(sizes)])
    padded = padded_jets.padded(arrays, chosen)
    longest = {"N": len(chosen)}
    longest |= {f"n_{kind}": int(counts[kind][chosen].max()) for kind in ("pf", "sv")}
    case = Case("particle_net", longest, padded, exact(model, network, padded))
    return case, {**joined, **offsets}
