"""Cut what a run recorded at the step after which it was ended (--until)."""

from collections.abc import Iterable, Sequence

from detaudit.auditor.evidence.event_logs import Process
from detaudit.model import FITTED, Stage, Training, blocks
from detaudit.model.cut import digests_through


def reached(processes: Iterable[Process], step: int) -> bool:
    """Return whether any training got to this step. Fits and calls of models have no steps of this kind."""
    return any(training.steps >= step for training in _trained(processes))


def common_step(processes: Sequence[Process]) -> int:
    """Return the last step that all trainings did and after which their weights were recorded, 0 if there is none."""
    last = min((training.steps for training in _trained(processes)), default=0)
    return min((_recorded(training, last) for training in _trained(processes)), default=0)


def training_processes(processes: Iterable[Process]) -> int:
    """Return how many processes trained with steps of this kind."""
    return sum(bool(_trained([process])) for process in processes)


def cut(processes: Iterable[Process], step: int) -> None:
    """Leave nothing in these processes of what they did after a step.

    Of the probes of that step some may have been written and some not, so those before it are kept.
    """
    for process in processes:
        process.trainings = tuple(training.through(step) for training in process.trainings)
        process.probes = [probe for probe in process.probes if probe.step is not None and probe.step < step]


def _trained(processes: Iterable[Process]) -> list[Training]:
    found = [training for process in processes for training in process.trained]
    return [training for training in found if not training.is_inference and training.framework not in FITTED]


def _recorded(training: Training, step: int) -> int:
    """Return the last step up to ``step`` at which the weights were recorded; ``step`` if they never were."""
    updates = digests_through(step, training.digests.get(Stage.UPDATE, {}))
    return blocks.last(updates) if updates else step
