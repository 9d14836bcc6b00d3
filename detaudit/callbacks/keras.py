"""For Keras 3, or Keras 2 where TF_USE_LEGACY_KERAS asks for it: ``model.fit(…, callbacks=[Determinism()])``."""

import os
from typing import Any

import detaudit

if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):  # as TensorFlow reads it
    from tf_keras.callbacks import Callback
else:
    from keras.callbacks import Callback


class Determinism(Callback):  # type: ignore[misc]  # it is Any where Keras is not installed
    """Gives an audit the model and the logs after each epoch and its validation.

    ``loss`` is the name in the logs of what is a result of the training, and ``"loss"`` where that is not there; the
    others only explain.
    """

    def __init__(self, loss: str = "val_loss") -> None:
        super().__init__()
        self._loss = loss

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """See Keras' Callback."""
        metrics = dict(logs or {})
        detaudit.monitor(metrics, "logs")
        detaudit.record(loss=metrics.get(self._loss, metrics.get("loss")), weights=list(self.model.weights))
