"""A callback for Lightning, under either of its package names: ``Trainer(callbacks=[Determinism()])``."""

import sys
from typing import Any

import detaudit

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback
else:
    from lightning.pytorch import Callback


class Determinism(Callback):  # type: ignore[misc]  # Callback is Any if Lightning is not installed
    """Records the model and the logged metrics after each epoch and its validation.

    ``loss`` names the metric that is compared as a result of the training. The other metrics are recorded as probes,
    which help to explain a difference.
    """

    def __init__(self, loss: str = "val_loss") -> None:
        super().__init__()
        self._loss = loss

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """See Lightning's Callback. For a sharded model, each rank records its own part; nothing is gathered."""
        metrics = dict(trainer.callback_metrics)
        detaudit.monitor(metrics, "metrics")
        weights = {**dict(pl_module.named_parameters()), **dict(pl_module.named_buffers())}
        detaudit.record(loss=metrics.get(self._loss), weights=weights)
