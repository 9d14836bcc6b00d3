"""What a training lost when it was stopped and resumed, and the layout of what ``detaudit resume`` found."""

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.audit import Audit, Difference, RankRecord
from detaudit.model.fact import both, count, shortened
from detaudit.model.problems import AnyRunError, errors

# What was lost, and what is known of it.


class LostKind(StrEnum):
    """What a resumed training did not have as an uninterrupted one did; ``STATE`` is what nothing else explains."""

    WEIGHTS = "weights"
    GENERATOR = "generator"
    COUNTER = "counter"
    DATA_ORDER = "data-order"
    LEARNING_RATE = "learning-rate"
    SCHEDULER = "scheduler"
    OPTIMIZER = "optimizer"
    SCALER = "scaler"
    BUFFERS = "buffers"
    OTHER_MODEL = "other-model"
    STATE = "state"


LOST = {
    LostKind.WEIGHTS: "the weights",
    LostKind.GENERATOR: "the state of a random generator",
    LostKind.COUNTER: "how many steps or epochs were done",
    LostKind.DATA_ORDER: "the position in the data",
    LostKind.LEARNING_RATE: "the learning rate",
    LostKind.SCHEDULER: "the state of the learning rate scheduler",
    LostKind.OPTIMIZER: "the state of the optimizer",
    LostKind.SCALER: "the state of the gradient scaler",
    LostKind.BUFFERS: "the buffers of the model",
    LostKind.OTHER_MODEL: "a model that the optimizer does not train, such as an average of the weights",
    LostKind.STATE: "a state that was not recorded by name",
}
"""What each is called."""

_MOST_NAMES = 3


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a resumed run began without, at ``step`` of an uninterrupted one.

    ``names`` has the first of ``total`` values that differ, none if they have no names. ``uninterrupted`` and
    ``resumed`` are what the first of them is on each side, ``""`` if it is no number or text. ``like`` is the step of
    the uninterrupted run whose state or batch the resumed one has instead, null if it has none of its. ``missing`` are
    files it was resumed from that have nothing of this kind, ``present`` those that do.
    """

    what: LostKind
    step: int
    names: tuple[str, ...] = ()
    total: int = 0
    uninterrupted: str = ""
    resumed: str = ""
    like: int | None = None
    missing: tuple[str, ...] = ()
    present: tuple[str, ...] = ()

    def text(self) -> str:
        """Return what was lost, how that is known, and whether it is in the checkpoint."""
        return f"{LOST[self.what]}{self._named()}{self._shown()}{self._like()}{self._saved()}"

    def _named(self) -> str:
        shown = self.names[:_MOST_NAMES]
        return f" ({shortened(shown, more=self.total - len(shown))})" if shown else ""

    def _shown(self) -> str:
        if self.what is LostKind.COUNTER:
            return f": {self.uninterrupted} were left, and it trained {self.resumed}"
        if not self.uninterrupted:
            return ""
        return f": {self.uninterrupted} at step {self.step:,}, and {self.resumed or 'nothing'} after the resume"

    def _like(self) -> str:
        if self.like is None or self.what is LostKind.COUNTER:
            return ""
        if self.what is LostKind.DATA_ORDER:
            return f": step {self.step:,} has the batch of step {self.like:,}"
        return f": it is as it was at step {self.like:,}"

    def _saved(self) -> str:
        if self.missing and not self.present:
            return f"; {both(self.missing)} {'has' if len(self.missing) == 1 else 'have'} nothing of the kind"
        return f"; {both(self.present)} may have it, but it was not restored" if self.present else ""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the stopped run wrote and the resumed one read: at this line, 0 if that is not known.

    ``names`` are those of the first level in it.
    """

    path: str
    by: str
    names: tuple[str, ...] = ()
    file: str = ""
    line: int = 0

    def text(self) -> str:
        """Return what is in it and where it is read."""
        read = f", read at {self.file}:{self.line}" if self.line else ""
        return f"{self.path} ({self.by}) has {shortened(self.names, most=12) or 'no names'}{read}"


# Where a run was stopped, and what came of it.


class Place(StrEnum):
    """Where a run was stopped, as its checkpoints show.

    ``WHEN_STOPPED``: it caught the signal and saved. ``BY_ITSELF``: by the command that stops early.
    """

    BETWEEN = "between-checkpoints"
    AT = "at-a-checkpoint"
    WHEN_STOPPED = "when-stopped"
    BEFORE = "before-the-first"
    BY_ITSELF = "by-itself"


PLACES = {
    Place.BETWEEN: "between two checkpoints",
    Place.AT: "right after a checkpoint",
    Place.WHEN_STOPPED: "saved when it was stopped",
    Place.BEFORE: "before the first checkpoint",
    Place.BY_ITSELF: "where the script stopped by itself",
}
"""The words for them."""


class ResumeStatus(StrEnum):
    """What came of one stop; ``ANEW``: the resumed run began from the start, and so nothing was resumed."""

    MATCHES = "matches"
    DIFFERS = "differs"
    ANEW = "anew"
    UNUSABLE = "unusable"


class ResumedPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was stopped after step ``stopped_after`` and resumed after step ``resumed_after``.

    The latter is earlier if steps since the checkpoint were repeated, and null if it is not known. ``errors`` say why
    a run was unusable, ``stopping`` that it was the one to be stopped.
    """

    place: Place
    status: ResumeStatus
    stopped_after: int
    steps: int
    resumed_after: int | None = None
    resumed_steps: int = 0
    uninterrupted: tuple[RankRecord, ...] = ()
    resumed: tuple[RankRecord, ...] = ()
    first_difference: Difference | None = None
    lost: tuple[Lost, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    errors: tuple[AnyRunError, ...] = ()
    stopping: bool = False
    too_late: bool = False

    def text(self) -> str:
        """Return where the run was stopped and what came of it, in one sentence."""
        where = f"stopped after step {self.stopped_after:,} of {self.steps:,}, {PLACES[self.place]}"
        if self.too_late:
            return f"the run finished all {count(self.steps, 'step')} before it could be stopped"
        if self.status is ResumeStatus.UNUSABLE and not self.errors:
            return f"{where}: no weights were recorded"
        if self.status is ResumeStatus.UNUSABLE:
            run = "the run to be stopped" if self.stopping else "the resumed run"
            return f"{where}: {run} was unusable: {errors(self.errors)}"
        again = f", resumed after step {self.resumed_after:,}" if self.resumed_after is not None else ", resumed"
        outcome = f"{where}{again} for {count(self.resumed_steps, 'step')}"
        if self.status is ResumeStatus.ANEW:
            same = self.uninterrupted == self.resumed
            return f"{where}: the resumed run began anew{', with the same result' if same else ''}"
        if self.status is ResumeStatus.MATCHES:
            return f"{outcome}: bit-identical to an uninterrupted run"
        first = self.first_difference
        return f"{outcome}: the result differs{f', first {first.where()}' if first is not None else ''}"


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """A change that saves and restores ``what`` was lost, as it was tried in a copy at each stop that differed.

    ``diff`` has it. ``matching`` of ``stops`` match with it; ``first_difference`` is where the first of the others
    differs, later than without it, null if all match.
    """

    what: tuple[LostKind, ...]
    diff: str
    stops: int
    matching: int
    first_difference: Difference | None = None

    def text(self) -> str:
        """Return what the change does, in one sentence."""
        change = f"with this change, which saves and restores {both(LOST[kind] for kind in self.what)}, "
        if self.first_difference is None:
            return f"{change}{count(self.stops, 'resumed run')} {'matches' if self.stops == 1 else 'match'}"
        return (
            f"{change}{self.matching} of {count(self.stops, 'resumed run')} match, "
            f"and the first of the others differs later, {self.first_difference.where()}"
        )


class Resumption(Audit, frozen=True, kw_only=True, tag="resume"):
    """Stops and resumptions of one training, compared with uninterrupted runs, as it is kept in audit.json.

    Its group has the uninterrupted runs. ``resume`` and ``stop`` are the commands, without the interpreter; without
    ``stop``, each point is a step after which the run was ended. ``restored`` is null if no change was found.
    """

    resume: tuple[str, ...]
    stop: tuple[str, ...] = ()
    points: tuple[ResumedPoint, ...] = ()
    restored: Restored | None = None
    total_runs: int = 0
