"""For Lightning, under either of its names: ``Trainer(callbacks=[Determinism()])``."""

import sys
from typing import Any

import detaudit

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback
else:
    from lightning.pytorch import Callback


class Determinism(Callback):  # type: ignore[misc]  # it is Any where Lightning is not installed
    """Gives an audit the model and the logged metrics after each epoch and its validation.

    ``loss`` is the name of the logged metric that is a result of the training; the others only explain.
    """

    def __init__(self, loss: str = "val_loss") -> None:
        super().__init__()
        self._loss = loss

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """See Lightning's Callback. Of a sharded model each rank gives its own part: nothing is gathered."""
        metrics = dict(trainer.callback_metrics)
        detaudit.monitor(metrics, "metrics")
        weights = {**dict(pl_module.named_parameters()), **dict(pl_module.named_buffers())}
        detaudit.record(loss=metrics.get(self._loss), weights=weights)
