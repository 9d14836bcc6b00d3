"""Small trainings that flip one bit: with an optimizer, by hand, in several processes, and with files that they save.

The script of a training calls ``train``; it knows nothing of detaudit but ``detaudit.record``.
"""

import multiprocessing
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
import torch.distributed

from tests.planted import plants
from tests.planted.noted import Values
from tests.planted.plants import END, STEPS, Plant
from tests.planted.with_tape import tape
from tests.planted.without_framework import record

nn: Any = torch.nn


def _perceptron() -> Any:
    return nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 3))


def _convolution() -> Any:
    parts = (nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.Tanh(), nn.Flatten(), nn.Linear(40, 3))
    return nn.Sequential(*parts).double()


def _without_buffers() -> Any:
    return nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 3))


def _batch(seed: int, dtype: Any, channels: bool) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(16, 1, 12, generator=generator) if channels else torch.randn(16, 12, generator=generator)
    return x.to(dtype), torch.randn(16, 3, generator=generator).to(dtype)


def _struck(optimizer: type[Any], strike: Callable[[], None]) -> type[Any]:
    """Return a class of optimizers that flip the bit before their step ends."""

    class Struck(optimizer):  # type: ignore[misc]
        def step(self, closure: Any = None) -> Any:
            result = super().step(closure)
            strike()
            return result

    return Struck


class _Trained:
    """A model and its data, and what is noted of them."""

    def __init__(self, model: Any, values: Values, rank: int) -> None:
        self.model, self.values, self._rank = model, values, rank
        self.weights, self.buffers = list(model.parameters()), list(model.buffers())
        self._channels = isinstance(model[0], nn.Conv1d)
        values.strike(plants.INITIAL, 1, self.weights)
        values.note(0, "init", self.weights)

    def batch(self, step: int) -> tuple[Any, Any]:
        return _batch(1000 * self._rank + step, self.weights[0].dtype, self._channels)

    def loss(self, step: int) -> Any:
        x, y = self.batch(step)
        self.values.strike(plants.BATCH, step, [x, y])
        self.values.note(step, "batch", [x, y])
        loss = nn.functional.mse_loss(self.model(x), y)
        self.values.strike(plants.LOSS, step, [loss])
        self.values.note(step, "forward", [loss])
        return loss

    def end(self) -> None:
        x, _ = self.batch(END)
        self.values.note(END, "state", [*self.weights, *self.buffers])
        self.values.strike(plants.EVALUATION, STEPS, [x])
        self.model.eval()
        with torch.no_grad():
            self.values.note(END, "output", [self.model(x)])
        self.values.write()


def with_optimizer(model: Any, optimizer: type[Any], values: Values, rank: int = 0, world: int = 1) -> None:
    """Train with an optimizer, of which several processes add up their gradients if ``world`` is above 1."""
    trained, step = _Trained(model, values, rank), 0

    def strike() -> None:
        values.strike(plants.IN_UPDATE, step, trained.weights)

    stepper = _struck(optimizer, strike)(trained.weights, lr=0.05)
    for step in range(1, STEPS + 1):
        loss = trained.loss(step)
        stepper.zero_grad()
        loss.backward()
        for weight in trained.weights if world > 1 else ():
            torch.distributed.all_reduce(weight.grad)
        values.strike(plants.IN_STEP, step, trained.buffers)
        stepper.step()
        values.note(step, "update", trained.weights)
        values.note(step, "state", trained.buffers)
        values.strike(plants.AFTER_UPDATE, step, trained.weights)
        values.strike(plants.AFTER_STEP, step, trained.buffers)
    trained.end()


def by_hand(values: Values) -> None:
    """Train without an optimizer: detaudit reads the weights of a step as they enter the next backward pass."""
    trained = _Trained(_without_buffers(), values, 0)
    for step in range(1, STEPS + 1):
        loss = trained.loss(step)
        loss.backward()
        with torch.no_grad():
            for weight in trained.weights:
                weight -= 0.05 * weight.grad
                weight.grad = None
        values.strike(plants.IN_UPDATE, step, trained.weights)
        values.strike(plants.AFTER_UPDATE, step, trained.weights)
        values.note(step, "update", trained.weights)
    trained.end()


def saving(values: Values) -> None:
    """Train, and save the weights after each step, each time in another format; the bit is flipped in a file."""
    model, formats = _perceptron(), (_torch_save, _numpy_save, _numpy_savez, _safetensors_save)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(1, STEPS + 1):
        x, y = _batch(step, torch.float32, False)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        saved = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        values.strike(plants.FILE, step, list(saved.values()))
        name = formats[step % len(formats)](f"step{step}", saved)
        values.note(step, "saved", list(saved.values()), file=name)
    values.write()


def _torch_save(name: str, saved: dict[str, Any]) -> str:
    torch.save({"model": saved, "time": 0.0}, f"{name}.pt")
    return f"{name}.pt"


def _numpy_save(name: str, saved: dict[str, Any]) -> str:
    everything = np.concatenate([np.frombuffer(tensor.numpy().tobytes(), "uint8") for tensor in saved.values()])
    np.save(f"{name}.npy", everything)
    return f"{name}.npy"


def _numpy_savez(name: str, saved: dict[str, Any]) -> str:
    np.savez(f"{name}.npz", **{key: tensor.numpy() for key, tensor in saved.items()})
    return f"{name}.npz"


def _safetensors_save(name: str, saved: dict[str, Any]) -> str:
    safetensors.torch.save_file(saved, f"{name}.safetensors")
    return f"{name}.safetensors"


def _in_processes(each: Callable[[int], None], world: int) -> None:
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=each, args=(rank,)) for rank in range(world)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    if any(child.exitcode for child in children):
        raise RuntimeError("a child failed")


def _children(folder: Path, plant: Plant | None, world: int) -> None:
    def each(rank: int) -> None:
        torch.manual_seed(rank)
        with_optimizer(_perceptron(), torch.optim.Adam, Values(folder, plant, rank), rank)

    _in_processes(each, world)


def _gloo(folder: Path, plant: Plant | None, world: int) -> None:
    with tempfile.TemporaryDirectory() as store:

        def each(rank: int) -> None:
            os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), str(world)
            torch.distributed.init_process_group(
                "gloo", init_method=f"file://{store}/store", rank=rank, world_size=world
            )
            torch.manual_seed(0)
            with_optimizer(_perceptron(), torch.optim.SGD, Values(folder, plant, rank), rank, world)
            torch.distributed.destroy_process_group()

        _in_processes(each, world)


def train(name: str, world: int, plant: Plant | None, folder: Path) -> None:
    """Do a training of this name; what it notes is written into ``folder``."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if world > 1:
        {"children": _children, "gloo": _gloo}[name](folder, plant, world)
        return
    values = Values(folder, plant)
    if name == "adam":
        with_optimizer(_perceptron(), torch.optim.Adam, values)
    elif name == "convolution":
        with_optimizer(_convolution(), torch.optim.SGD, values)
    else:
        {"by-hand": by_hand, "record": record, "tape": tape, "saving": saving}[name](values)
