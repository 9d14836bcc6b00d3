"""Record the hyperparameters of Keras' optimizers, and the lines that make them or set their learning rate."""

from __future__ import annotations

import functools
import sys
import weakref

from ...process import imports
from ..hyperparameters import STAGE, Hyperparameters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ...process.sink import Sink
    from ...training.steps import Training
    from .reader import TensorFlowReader

_NUMBERS = ("momentum", "nesterov", "beta_1", "beta_2", "rho", "epsilon", "weight_decay", "amsgrad")
_CLIPPING = ("clipnorm", "global_clipnorm", "clipvalue")
_MOST = 4
"""The first optimizers whose hyperparameters are recorded: they are read at each step."""


class Optimizers:
    """The first optimizers that this process made, in their order."""

    def __init__(self, sink: Sink, reader: TensorFlowReader) -> None:
        self._sink, self._reader = sink, reader
        self._hyperparameters = Hyperparameters(sink)
        self._made: list[weakref.ref[Any]] = []

    def watch(self) -> None:
        """Watch the optimizers of Keras once it is imported."""
        imports.when_imported("keras.src.optimizers.base_optimizer", self._sink, self._install)

    def forget(self) -> None:
        """Start over, as in a forked child, in which the optimizers exist too."""
        self._hyperparameters.forget()

    def _install(self, module: Any) -> None:
        base, hyperparameters, sink = module.BaseOptimizer, self._hyperparameters, self._sink
        construct, rate = base.__init__, base.learning_rate

        @functools.wraps(construct)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            construct(optimizer, *args, **kwargs)
            if len(self._made) < _MOST:
                frame = sys._getframe(1)
                sink.guarded("optimizer", lambda: self._add(optimizer, frame))

        def set_rate(optimizer: Any, value: Any) -> None:
            frame = sys._getframe(1)
            sink.guarded("optimizer", lambda: hyperparameters.set_by(id(optimizer), frame))
            rate.fset(optimizer, value)

        base.__init__ = __init__
        base.learning_rate = rate.setter(set_rate)

    def _add(self, optimizer: Any, frame: Any) -> None:
        self._made.append(weakref.ref(optimizer))
        self._hyperparameters.set_by(id(optimizer), frame)

    def at_step(self, training: Training) -> None:
        """Record what a step was made with that is about to be written."""
        if self._made and training.wants(STAGE):
            self._sink.guarded("hyperparameters", lambda: self._at_step(training))

    def _at_step(self, training: Training) -> None:
        for number, reference in enumerate(self._made, start=1):
            optimizer = reference()
            if optimizer is not None:
                group = dict(self._values(optimizer))
                self._hyperparameters.at_step(training, number, id(optimizer), [group], lambda one: type(one).__name__)

    def _values(self, optimizer: Any) -> Iterator[tuple[str, Any]]:
        rate = optimizer._learning_rate
        if hasattr(rate, "get_config"):  # a schedule
            yield "learning_rate", tuple([one for _, one in sorted(rate.get_config().items())])
        else:
            yield "learning_rate", self._reader.scalar(getattr(rate, "_value", rate)) if not callable(rate) else None
        for name in (*_NUMBERS, *_CLIPPING):
            value = getattr(optimizer, name, None)
            if value is not None:
                yield name, value
