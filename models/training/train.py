"""Trains a tagger on jets of `make_jets`, and writes the parameters of its graph.

    jets/bin/python -m models.training.train --network=particle_net --train=/data/train.npz \\
        --test=/data/test.npz --output=/data/particle_net --steps=8000
    jets/bin/python -m models.particle_net --output=models/particle_net.onnx

The first command makes in the folder /data/particle_net: `particle_net.npz`, the parameters, which
go to `models/`; `log.txt`; `test.npz`, what the network says of the test jets (jets' numbers in
their file, labels, probabilities). If it is stopped, the same command goes on from
`checkpoint.pt`; with --stop_after it stops by itself.

AdamW with a learning rate that rises for 5 % of the steps and falls as a cosine to 0; cross entropy
in which all classes weigh the same; jets are mirrored at random in η and φ. Matrix products are in
bfloat16 on a GPU, distances between neighbours and everything else that decides in float32. A
twentieth of the training jets is kept for validation.
"""

from __future__ import annotations

import math
import pathlib
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
import tqdm
from absl import app, flags
from torch.nn import functional

from models import jet_inputs, particle_net
from models.training import batches, networks
from models.training.batches import Jets

_NETWORK = flags.DEFINE_enum("network", "particle_net", list(networks.NETWORKS), "What to train.")
_TRAIN = flags.DEFINE_string("train", None, "The jets to train on.", required=True)
_TEST = flags.DEFINE_string("test", None, "The jets to test on.", required=True)
_OUTPUT = flags.DEFINE_string("output", None, "The folder to write to.", required=True)
_STEPS = flags.DEFINE_integer("steps", 8000, "Steps in all.", lower_bound=1)
_SECONDS = flags.DEFINE_float("seconds", None, "Choose the steps so that they take so long.")
_STOP_AFTER = flags.DEFINE_float("stop_after", math.inf, "Stop, to go on later, after this time.")
_BATCH = flags.DEFINE_integer("batch", 1024, "Jets in a step.", lower_bound=2)
_RATE = flags.DEFINE_float("rate", 3e-3, "The largest learning rate.", lower_bound=0)
_SEED = flags.DEFINE_integer("seed", 1, "Seed of parameters, order and mirroring.", lower_bound=0)
_DEVICE = flags.DEFINE_string("device", "cuda", "Where to train.")

_WARM_UP = 0.05
_WEIGHT_DECAY = 1e-2
_LARGEST_GRADIENT = 1.0
_VALIDATION_PART = 20
# Steps whose time says how many fit into --seconds, after as many that are not timed.
_TIMED_STEPS = 40
_CHECKPOINT_SECONDS = 30.0

_COLUMNS = {
    kind: {feature.name: i for i, feature in enumerate(features)}
    for kind, features in (
        ("particles", jet_inputs.PARTICLE_FEATURES),
        ("vertices", jet_inputs.VERTEX_FEATURES),
    )
}


class Trainer:
    """A network, its optimiser, and how far they are."""

    def __init__(self, jets: Jets, folder: pathlib.Path) -> None:
        torch.manual_seed(_SEED.value)
        self._device = torch.device(_DEVICE.value)
        self._jets = jets
        self._folder = folder
        shuffled = jets.numbers[
            torch.from_numpy(np.random.default_rng(_SEED.value).permutation(len(jets.numbers))).to(
                self._device
            )
        ]
        held = len(shuffled) // _VALIDATION_PART
        self._validation, self._training = shuffled[:held], shuffled[held:]
        counts = torch.bincount(jets.label[self._training], minlength=networks.CLASSES)
        self._weights = counts.sum() / (networks.CLASSES * counts.clamp(min=1))
        self.network = networks.NETWORKS[_NETWORK.value]().to(self._device)
        self._optimizer = torch.optim.AdamW(
            self.network.parameters(), lr=_RATE.value, weight_decay=_WEIGHT_DECAY
        )
        self.step = 0
        self.steps = _STEPS.value
        self._losses: list[torch.Tensor] = []
        if self._checkpoint.exists():
            state = torch.load(self._checkpoint, map_location=self._device, weights_only=True)
            self.network.load_state_dict(state["network"])
            self._optimizer.load_state_dict(state["optimizer"])
            self.step, self.steps = state["step"], state["steps"]

    @property
    def _checkpoint(self) -> pathlib.Path:
        return self._folder / "checkpoint.pt"

    def save(self) -> None:
        """Writes what a later run goes on from."""
        state = {
            "network": self.network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "step": self.step,
            "steps": self.steps,
        }
        temporary = self._checkpoint.with_suffix(".tmp")
        torch.save(state, temporary)
        temporary.replace(self._checkpoint)

    def log(self, text: str) -> None:
        """Adds a line to the log."""
        with (self._folder / "log.txt").open("a") as file:
            file.write(text + "\n")
        tqdm.tqdm.write(text)

    def _order(self) -> Iterator[torch.Tensor]:
        """Batches of jets from the present step on: every epoch in an order of its own."""
        per_epoch = len(self._training) // _BATCH.value
        step = self.step
        while True:
            epoch, first = divmod(step, per_epoch)
            generator = np.random.default_rng([_SEED.value, epoch])
            order = torch.from_numpy(generator.permutation(len(self._training)))
            shuffled = self._training[order.to(self._device)]
            for batch in range(first, per_epoch):
                yield shuffled[batch * _BATCH.value : (batch + 1) * _BATCH.value]
                step += 1

    def _rate(self) -> float:
        progress = self.step / self.steps
        if progress < _WARM_UP:
            return float(_RATE.value * (progress + 1 / self.steps) / _WARM_UP)
        done = (progress - _WARM_UP) / (1 - _WARM_UP)
        return float(_RATE.value * 0.5 * (1 + math.cos(math.pi * min(done, 1.0))))

    def _autocast(self) -> torch.autocast:
        return torch.autocast(
            self._device.type, torch.bfloat16, enabled=self._device.type == "cuda"
        )

    def train(self, stop: Callable[[], bool], seconds: float | None) -> None:
        """Goes on to the last step, or until `stop` says so."""
        self.network.train()
        begin = saved = time.monotonic()
        first = self.step
        per_epoch = len(self._training) // _BATCH.value
        progress = tqdm.tqdm(total=self.steps, initial=self.step, unit="step", mininterval=20)
        for numbers in self._order():
            if self.step >= self.steps or stop():
                break
            sign = torch.randint(0, 2, (len(numbers), 2), device=self._device) * 2.0 - 1
            batch = batches.mirrored(self._jets.batch(numbers), sign, _COLUMNS)
            for group in self._optimizer.param_groups:
                group["lr"] = self._rate()
            with self._autocast():
                scores = self.network(batch)
            loss = functional.cross_entropy(scores.float(), batch.label, self._weights)
            self._optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), _LARGEST_GRADIENT)
            self._optimizer.step()
            self._losses.append(loss.detach())
            self.step += 1
            progress.update()
            if seconds is not None and self.step in (_TIMED_STEPS, 2 * _TIMED_STEPS):
                self._synchronize()
                now = time.monotonic()
                if self.step == _TIMED_STEPS:
                    timed = now
                else:
                    left = seconds - (now - begin)
                    self.steps = self.step + int(left * _TIMED_STEPS / (now - timed))
                    progress.total = self.steps
                    self.log(f"{self.steps} steps of {(now - timed) / _TIMED_STEPS:.4f} s")
            if self.step % per_epoch == 0 or self.step == self.steps:
                self._report(time.monotonic() - begin, self.step - first)
                self.network.train()
            if time.monotonic() - saved > _CHECKPOINT_SECONDS:
                self.save()
                saved = time.monotonic()
        progress.close()
        self.save()

    def _synchronize(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize()

    def _report(self, seconds: float, steps: int) -> None:
        loss = torch.stack(self._losses).mean().item()
        self._losses.clear()
        scores = self.scores(self._jets, self._validation)
        label = self._jets.label[self._validation]
        held = functional.cross_entropy(scores, label, self._weights).item()
        accuracy = (scores.argmax(1) == label).float().mean().item()
        epoch = self.step / (len(self._training) // _BATCH.value)
        self.log(
            f"step {self.step}, epoch {epoch:.2f}: loss {loss:.4f}, validation {held:.4f}, "
            f"accuracy {accuracy:.4f}, rate {self._rate():.2e}, "
            f"{steps * _BATCH.value / seconds:.0f} jets/s"
        )

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def scores(self, jets: Jets, numbers: torch.Tensor) -> torch.Tensor:
        """The class scores of these jets, in float32."""
        self.network.eval()
        chunks = numbers.split(2 * _BATCH.value)
        return torch.cat([self.network(jets.batch(chunk)).float() for chunk in chunks])


def main(argv: Sequence[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unexpected arguments: {' '.join(argv[1:])}.")
    begin = time.monotonic()
    folder = pathlib.Path(_OUTPUT.value)
    folder.mkdir(parents=True, exist_ok=True)
    neighbours = particle_net.NEIGHBOURS
    jets = Jets(pathlib.Path(_TRAIN.value), neighbours, _DEVICE.value)
    trainer = Trainer(jets, folder)
    options = " ".join(
        f"--{name.name}={name.value}" for name in (_NETWORK, _BATCH, _RATE, _SEED, _SECONDS)
    )
    trainer.log(f"{options}: {len(jets.numbers)} jets, from step {trainer.step}")
    trainer.train(lambda: time.monotonic() - begin > _STOP_AFTER.value, _SECONDS.value)

    parameters = trainer.network.parameters_of_graph()
    np.savez(folder / f"{_NETWORK.value}.npz", allow_pickle=False, **parameters)
    test = Jets(pathlib.Path(_TEST.value), neighbours, _DEVICE.value)
    scores = trainer.scores(test, test.numbers)
    label = test.label[test.numbers]
    trainer.log(f"test accuracy {(scores.argmax(1) == label).float().mean().item():.4f}")
    np.savez(
        folder / "test.npz",
        allow_pickle=False,
        numbers=test.numbers.cpu().numpy(),
        label=label.cpu().numpy().astype(np.int32),
        probabilities=torch.softmax(scores, 1).cpu().numpy(),
    )


if __name__ == "__main__":
    app.run(main)
