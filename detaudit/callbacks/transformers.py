"""A callback for the Trainer of transformers: ``Trainer(…, callbacks=[Determinism()])``."""

from typing import Any

from transformers import TrainerCallback

import detaudit

_TIMES = ("_runtime", "_per_second")
"""Suffixes of logged values that measure time, and so differ in every run."""


class Determinism(TrainerCallback):  # type: ignore[misc]  # Any if transformers is not installed
    """Records the model after each epoch, the model and the loss at each evaluation, and all logged metrics."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """See TrainerCallback."""
        metrics = {name: value for name, value in (logs or {}).items() if not name.endswith(_TIMES)}
        detaudit.monitor(metrics, "logs")

    def on_epoch_end(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        """See TrainerCallback."""
        detaudit.record(weights=_weights(model))

    def on_evaluate(
        self, args: Any, state: Any, control: Any, model: Any = None, metrics: Any = None, **kwargs: Any
    ) -> None:
        """See TrainerCallback."""
        detaudit.record(loss=(metrics or {}).get("eval_loss"), weights=_weights(model))


def _weights(model: Any) -> dict[str, Any]:
    """Return the parameters and buffers of a model by name; of a sharded model, those of this rank."""
    return {} if model is None else {**dict(model.named_parameters()), **dict(model.named_buffers())}
