"""What a training holds beside the model that it trains: optimizers, schedulers, scalers, and all other models."""

from __future__ import annotations

import sys

from .... import wire
from ...training.held import objects, plain, variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .modules import ModuleStates
    from .reader import TorchReader

    Value = tuple[str, str, str, str]


def held(torch: Any, modules: ModuleStates, reader: TorchReader) -> Iterator[Value]:
    """Yield what a training holds: of what it is, its name, a short text, and its digest."""
    names: dict[int, str] = {}
    optimizers = [*objects(torch.optim.Optimizer)]
    trained = {id(one) for optimizer in optimizers for group in optimizer.param_groups for one in group["params"]}
    for model in _outermost(torch, modules):
        outer = variable(model, type(model).__name__)
        other = bool(trained) and not any([id(one) in trained for one in modules.weights(model)])
        for path, part in modules.parts(model):
            for own in modules.own_tensors(part):
                name = ".".join([one for one in (outer, path, own.name) if one])
                names.setdefault(id(own.tensor), name.partition(".")[2])
                of = wire.HELD_OTHER if other else wire.HELD_BUFFER if own.buffer else wire.HELD_WEIGHT
                yield of, name, "", _digest(reader, own.tensor)
    for optimizer in optimizers:
        outer = variable(optimizer, type(optimizer).__name__)
        places = [one for group in optimizer.param_groups for one in group["params"]]
        for index, parameter in enumerate(places):
            of = names.get(id(parameter), str(index))
            for key, value in optimizer.state.get(parameter, {}).items():
                name = "%s: %s of %s" % (outer, key, of)
                if isinstance(value, torch.Tensor):
                    yield wire.HELD_OPTIMIZER, name, "", _digest(reader, value)
                else:
                    yield from plain(wire.HELD_OPTIMIZER, name, value)
        for index, group in enumerate(optimizer.param_groups):
            of = outer if len(optimizer.param_groups) == 1 else "%s, group %d" % (outer, index)
            values = {key: _number(value) for key, value in group.items() if key != "params"}
            yield from plain(wire.HELD_RATE, "%s: lr" % of, values.pop("lr", None))
            for key, value in values.items():
                yield from plain(wire.HELD_OPTIMIZER, "%s: %s" % (of, key), value)
    schedulers: Any = sys.modules.get("torch.optim.lr_scheduler")
    kinds = [getattr(schedulers, name, None) for name in ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau")]
    for scheduler in objects(*[kind for kind in kinds if kind is not None]):
        state = {key: value for key, value in vars(scheduler).items() if not key.startswith("_")}
        yield from plain(wire.HELD_SCHEDULER, variable(scheduler, type(scheduler).__name__), state)
    scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
    for one in objects(scaler) if scaler is not None else ():
        yield from plain(wire.HELD_SCALER, variable(one, type(one).__name__), one.state_dict())


def _outermost(torch: Any, modules: ModuleStates) -> list[Any]:
    models = [*objects(torch.nn.Module)]
    inner = {id(part) for model in models for path, part in modules.parts(model) if path}
    return [model for model in models if id(model) not in inner]


def _digest(reader: TorchReader, tensor: Any) -> str:
    (part,) = reader.parts([tensor])
    return "%s%s:%016x" % (part[1], part[2], part[3])


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and value.numel() == 1 else value
