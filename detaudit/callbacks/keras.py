"""A callback for Keras 3, or Keras 2 if TF_USE_LEGACY_KERAS is set: ``model.fit(…, callbacks=[Determinism()])``."""

import os
from typing import Any

import detaudit

if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):  # as TensorFlow reads it
    from tf_keras.callbacks import Callback
else:
    from keras.callbacks import Callback


class Determinism(Callback):  # type: ignore[misc]  # Callback is Any if Keras is not installed
    """Records the model and the logs after each epoch and its validation.

    ``loss`` names the entry of the logs that is compared as a result of the training, or ``"loss"`` if there is no
    such entry. The other entries are recorded as probes, which help to explain a difference.
    """

    def __init__(self, loss: str = "val_loss") -> None:
        super().__init__()
        self._loss = loss

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """See Keras' Callback."""
        metrics = dict(logs or {})
        detaudit.monitor(metrics, "logs")
        detaudit.record(loss=metrics.get(self._loss, metrics.get("loss")), weights=list(self.model.weights))
