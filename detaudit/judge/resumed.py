"""Where a resumed run goes on in an uninterrupted one, and what it was resumed without."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from msgspec.structs import replace

from detaudit import wire
from detaudit.judge import comparer
from detaudit.model import Difference, Run, RunRecord, Stage, Training, digits
from detaudit.model.fact import count
from detaudit.model.outputs import File
from detaudit.model.resume import Checkpoint, Lost, LostKind
from detaudit.model.series import Series, block_of
from detaudit.runs.log import Process, display_path
from detaudit.runs.log_records import Held

# Align the steps of a resumed run with those of an uninterrupted one.


class Steps:
    """The digests of one stage by step; of a long one, the last block that was asked for is held."""

    def __init__(self, steps: Mapping[int, tuple[str, ...]]) -> None:
        self._steps = steps
        self._block: tuple[int, Mapping[int, tuple[str, ...]]] = -1, {}

    def at(self, step: int) -> tuple[str, ...] | None:
        """Return the digests of a step, None if it has none."""
        if not isinstance(self._steps, Series):
            return self._steps.get(step)
        block = block_of(step)
        if self._block[0] != block:
            self._block = block, self._steps.texts(block)
        return self._block[1].get(step)

    def every(self) -> Iterator[int]:
        """Yield the steps, without what precedes the first one."""
        yield from (step for step in self._steps if step > 0)

    def like(self, digests: tuple[str, ...] | None) -> Iterator[int]:
        """Yield the steps that have these digests."""
        if digests is not None:
            yield from (step for step in self.every() if self.at(step) == digests)


def _begins_with(resumed: Training, digests: tuple[str, ...] | None) -> bool:
    """Whether a training began with these updated weights; several of its initial digests may be of the same ones."""
    initial = Steps(resumed.digests.get(Stage.INIT, {})).at(0) or ()
    return bool(digests) and {*(digests or ())} <= {*initial}


def steps_of(part: Training) -> list[int]:
    """Return the steps that a training recorded, whatever number it began with."""
    return sorted({step for steps in part.digests.values() for step in steps if step > 0})


def resumed_after(uninterrupted: Training, resumed: Training, stopped_after: int) -> int | None:
    """Return the step of the uninterrupted run after which a resumed one went on, None if nothing shows it.

    Its weights show it; if they match none, the number of its first step, how many steps were left, or its batch do.
    """
    trained = steps_of(resumed)
    if not trained:
        return None
    if trained[0] > 1:  # it goes on counting
        return trained[0] - 1
    left = uninterrupted.steps - len(trained)
    initial = Steps(resumed.digests.get(Stage.INIT, {})).at(0)
    updates = Steps(uninterrupted.digests.get(Stage.UPDATE, {}))
    by_weights = [step for step in updates.every() if _begins_with(resumed, updates.at(step))]
    if left in by_weights:
        return left
    if by_weights:
        return max([step for step in by_weights if step <= stopped_after] or by_weights)
    if 0 < left <= stopped_after:
        return left
    if initial is not None and initial == Steps(uninterrupted.digests.get(Stage.INIT, {})).at(0):
        return 0
    first = Steps(resumed.digests.get(Stage.BATCH, {})).at(trained[0])
    by_batch = [
        step - 1 for step in Steps(uninterrupted.digests.get(Stage.BATCH, {})).like(first) if step <= stopped_after + 1
    ]
    return max(by_batch, default=0 if left == 0 else None)


def same_end(uninterrupted: Run, resumed: Run, trainings: Iterable[tuple[Training, Training]]) -> bool:
    """Whether a resumed run ended with the same weights, losses and outputs, however many steps it trained.

    In ``trainings``, it may hold more models than the uninterrupted one, such as one that was built before a checkpoint
    was loaded. What it saved does not count: it did not save what the stopped one had saved.
    """
    ours, theirs = (
        [(rank.digest, rank.output_digest, digits(rank.final_loss)) for rank in run.ranks]
        for run in (uninterrupted, resumed)
    )
    return ours == theirs and not any(_state(one) - _state(other) for one, other in trainings)


def _state(part: Training) -> Counter[str]:
    return Counter(tensor.digest for tensor in part.final.state) if part.final is not None else Counter()


def first_difference(
    uninterrupted: Training, resumed: Training, after: int, rank: int = 0, *, without: Collection[Stage] = ()
) -> Difference | None:
    """Return the first step and stage at which aligned trainings differ, by the step of the uninterrupted one."""
    trained = steps_of(resumed)
    if not trained:
        return None
    shift = after + 1 - trained[0]
    stages = [stage for stage in Stage if stage in uninterrupted.digests and stage in resumed.digests]
    pairs = [(stage, Steps(uninterrupted.digests[stage]), Steps(resumed.digests[stage])) for stage in stages]
    for step in trained:
        if step + shift > uninterrupted.steps:
            return Difference(rank=rank, step=step + shift, stage=Stage.STEPS)
        for stage, ours, theirs in pairs:
            if stage in (Stage.INIT, Stage.HYPERPARAMETERS, *without):
                continue
            one, other = ours.at(step + shift), theirs.at(step)
            if one is not None and other is not None and one != other:
                return Difference(rank=rank, step=step + shift, stage=stage)
    if trained[-1] + shift < uninterrupted.steps:
        return Difference(rank=rank, step=trained[-1] + shift + 1, stage=Stage.STEPS)
    return None


# Name what was lost: what the two runs held when the step began, and else the first stage that differs.


_KINDS = {
    wire.HELD_GENERATOR: LostKind.GENERATOR,
    wire.HELD_RATE: LostKind.LEARNING_RATE,
    wire.HELD_SCHEDULER: LostKind.SCHEDULER,
    wire.HELD_OPTIMIZER: LostKind.OPTIMIZER,
    wire.HELD_SCALER: LostKind.SCALER,
    wire.HELD_BUFFER: LostKind.BUFFERS,
    wire.HELD_WEIGHT: LostKind.WEIGHTS,
    wire.HELD_OTHER: LostKind.OTHER_MODEL,
}
_MOST_NAMES = 20


@dataclass
class Resumed:
    """An uninterrupted training and a resumed one, which went on ``after`` a step.

    ``ours`` and ``theirs`` are what they held when the step after it began, None if that was not recorded.
    """

    uninterrupted: Training
    resumed: Training
    after: int
    ours: Held | None = None
    theirs: Held | None = None
    files: Sequence[File] = ()
    _lost: dict[LostKind, Lost] = field(default_factory=dict)

    def lost(self, first: Difference | None) -> tuple[Lost, ...]:
        """Return what was lost; ``first`` is where the aligned trainings first differ."""
        self._lost = {}
        self._counter()
        self._held()
        self._generator_like()
        self._rates()
        self._initial()
        if first is not None and first.stage is not Stage.STEPS and not self._lost:
            self._of_stage(first)
        elif first is not None and {*self._lost} == {LostKind.GENERATOR}:
            self._beside_the_generator()
        self._at_end()
        if LostKind.COUNTER in self._lost or LostKind.WEIGHTS in self._lost:
            self._drop(LostKind.DATA_ORDER)
        return tuple(_in_files(one, self.files) for one in sorted(self._lost.values(), key=_order))

    @property
    def _first(self) -> int:
        return self.after + 1

    def _step_of(self, step: int) -> int:
        """Return the step of the resumed run that is this one of the uninterrupted run."""
        return step - self._first + steps_of(self.resumed)[0]

    def _add(self, lost: Lost) -> None:
        self._lost.setdefault(lost.what, lost)

    def _drop(self, what: LostKind) -> None:
        self._lost.pop(what, None)

    def _counter(self) -> None:
        left, trained = self.uninterrupted.steps - self.after, len(steps_of(self.resumed))
        if left != trained:
            texts = count(left, "step"), count(trained, "step")
            self._add(Lost(what=LostKind.COUNTER, step=self._first, uninterrupted=texts[0], resumed=texts[1]))

    def _held(self) -> None:
        if self.ours is None or self.theirs is None:
            return
        theirs = {(of, name): (text, digest) for of, name, text, digest in self.theirs.values}
        differing: dict[LostKind, list[tuple[str, str, str]]] = {}
        for of, name, text, digest in self.ours.values:
            other, of_other = theirs.get((of, name), ("", None))
            if of in _KINDS and of_other != digest:
                differing.setdefault(_KINDS[of], []).append((name, text, other))
        for what, values in differing.items():
            names = tuple(name for name, _, _ in values)
            _, ours, other = values[0]
            self._add(
                Lost(
                    what=what,
                    step=self._first,
                    names=names[:_MOST_NAMES],
                    total=len(names),
                    uninterrupted=ours,
                    resumed=other,
                )
            )

    def _like(self, stage: Stage, step: int) -> int | None:
        """Return the step of the uninterrupted run that has what the resumed one has instead, None if none does."""
        digests = Steps(self.resumed.digests.get(stage, {})).at(self._step_of(step))
        same = Steps(self.uninterrupted.digests.get(stage, {})).like(digests)
        return next((one for one in same if one != step), None) if self._differs(stage, step) else None

    def _differs(self, stage: Stage, step: int) -> bool:
        one = Steps(self.uninterrupted.digests.get(stage, {})).at(step)
        other = Steps(self.resumed.digests.get(stage, {})).at(self._step_of(step))
        return one is not None and other is not None and one != other

    def _generator_like(self) -> None:
        if LostKind.GENERATOR in self._lost:
            self._generator(self._first)
        elif self._differs(Stage.BATCH, self._first) and not self._differs(Stage.RNG, self._first):
            self._data(self._first)

    def _generator(self, step: int) -> None:
        """Note that generators differ; where the position in the data was lost, they drew another number of times."""
        like = self._like(Stage.RNG, step)
        known = self._lost.get(LostKind.GENERATOR, Lost(what=LostKind.GENERATOR, step=step))
        saved = bool(_in_files(known, self.files).present)
        if like is None and saved and self._differs(Stage.BATCH, step):
            self._drop(LostKind.GENERATOR)
            self._data(step)
            return
        self._add(Lost(what=LostKind.GENERATOR, step=step))
        self._lost[LostKind.GENERATOR] = replace(self._lost[LostKind.GENERATOR], like=like)

    def _data(self, step: int) -> None:
        self._add(Lost(what=LostKind.DATA_ORDER, step=step, like=self._like(Stage.BATCH, step)))

    def _rates(self) -> None:
        """Note a learning rate that differs in the rows; other hyperparameters are part of the optimizer's state."""
        if LostKind.LEARNING_RATE in self._lost:
            return
        trained = steps_of(self.resumed)
        ours = _in_force(self.uninterrupted, self._first)
        theirs = _in_force(self.resumed, trained[0]) if trained else {}
        names = [name for name in ours if name in theirs and ours[name] != theirs[name]]
        rates = [name for name in names if name.rpartition(" ")[2] in ("lr", "learning_rate")]
        if rates:
            name = rates[0]
            self._add(
                Lost(
                    what=LostKind.LEARNING_RATE,
                    step=self._first,
                    names=tuple(rates),
                    total=len(rates),
                    uninterrupted=ours[name],
                    resumed=theirs[name],
                )
            )

    def _initial(self) -> None:
        initial = Steps(self.resumed.digests.get(Stage.INIT, {})).at(0)
        before = Steps(self.uninterrupted.digests.get(Stage.UPDATE, {})).at(self.after)
        if initial is None or before is None or self.after == 0:
            return
        if _begins_with(self.resumed, before):
            self._drop(LostKind.WEIGHTS)
        else:
            same = initial == Steps(self.uninterrupted.digests.get(Stage.INIT, {})).at(0)
            self._add(Lost(what=LostKind.WEIGHTS, step=self._first, like=0 if same else None))

    def _of_stage(self, first: Difference) -> None:
        """Note what the first stage that differs points to; nothing that was held does."""
        step = first.step
        match first.stage:
            case Stage.RNG:
                self._generator(step)
            case Stage.BATCH:
                self._data(step)
            case Stage.STATE:
                self._add(Lost(what=LostKind.BUFFERS, step=step))
            case Stage.UPDATE:
                self._add(self._rate_at(step) or Lost(what=LostKind.OPTIMIZER, step=step))
            case _:
                self._add(Lost(what=LostKind.STATE, step=step))

    def _beside_the_generator(self) -> None:
        """Note an optimizer if nothing that a generator may change differs before the weights do."""
        named = self.ours is not None and any(of == wire.HELD_OPTIMIZER for of, *_ in self.ours.values)
        result = first_difference(self.uninterrupted, self.resumed, self.after, without=[Stage.RNG])
        if result is not None and result.stage is Stage.UPDATE and not named:
            self._of_stage(result)

    def _rate_at(self, step: int) -> Lost | None:
        ours, theirs = _in_force(self.uninterrupted, step), _in_force(self.resumed, self._step_of(step))
        name = next((name for name in ours if name in theirs and ours[name] != theirs[name]), None)
        if name is None:
            return None
        what = LostKind.LEARNING_RATE
        return Lost(what=what, step=step, names=(name,), total=1, uninterrupted=ours[name], resumed=theirs[name])

    def _at_end(self) -> None:
        """Note models that differ at the end although every step matches."""
        if self._lost:
            return
        names = comparer.site(self.uninterrupted, self.resumed, self.uninterrupted.steps, Stage.STATE)
        if names is not None:
            self._add(Lost(what=LostKind.OTHER_MODEL, step=self._first, names=(names,), total=1))


def _in_force(part: Training, step: int) -> dict[str, str]:
    """Return the hyperparameters of a step; an only optimizer has no number, whichever were made before it."""
    values = comparer.in_force(part, step)
    numbers = {name.rpartition(" ")[0] for name in values}
    return {name.rpartition(" ")[2]: value for name, value in values.items()} if len(numbers) == 1 else values


def _order(lost: Lost) -> int:
    return list(LostKind).index(lost.what)


def held_by(processes: Iterable[Process], part: Training) -> Held | None:
    """Return what a training held, None if that was not recorded."""
    return next(
        (
            held
            for one in processes
            for key, held in one.held.items()
            if key.framework == part.framework and held.values
        ),
        None,
    )


# What is in the checkpoint, and what is not.


_OF_GENERATORS = {"torch": "torch|cuda", "random": "python", "numpy.random": "numpy"}
_HAS = {
    LostKind.WEIGHTS: re.compile(r"weight|bias|kernel|model|param|coef", re.IGNORECASE),
    LostKind.GENERATOR: re.compile(r"rng|generator|random|seed|bit_generator", re.IGNORECASE),
    LostKind.COUNTER: re.compile(r"epoch|step|iter|seen|done|start", re.IGNORECASE),
    LostKind.DATA_ORDER: re.compile(r"sampler|loader|position|order|batch|epoch|perm|cursor|offset", re.IGNORECASE),
    LostKind.LEARNING_RATE: re.compile(r"sched|(^|[._])lr($|[._])|learning_rate|last_epoch", re.IGNORECASE),
    LostKind.SCHEDULER: re.compile(r"sched|last_epoch", re.IGNORECASE),
    LostKind.OPTIMIZER: re.compile(
        r"optim|opt_state|exp_avg|momentum|moment|velocity|adam|sgd|\b[mn]u\b", re.IGNORECASE
    ),
    LostKind.SCALER: re.compile(r"scaler|growth_tracker|loss_scale|_scale$", re.IGNORECASE),
    LostKind.BUFFERS: re.compile(r"running_|moving_|num_batches|buffer", re.IGNORECASE),
    LostKind.OTHER_MODEL: re.compile(r"ema|averag|shadow|swa|target", re.IGNORECASE),
}
"""What a value of this kind is called in a checkpoint."""


def _in_files(lost: Lost, files: Sequence[File]) -> Lost:
    pattern = _HAS.get(lost.what)
    read = [file for file in files if file.values and file.by != "bytes"]
    if pattern is None or not read:
        return lost
    named = {file.path: [value.name for value in file.values if pattern.search(value.name)] for file in read}
    missing = tuple(path for path, names in named.items() if not names)
    if lost.what is LostKind.GENERATOR and lost.names:  # the others are states of others, as far as is known
        own = re.compile("|".join(_OF_GENERATORS.get(name, re.escape(name)) for name in lost.names), re.IGNORECASE)
        named = {path: [name for name in names if own.search(name)] for path, names in named.items()}
    return replace(lost, present=tuple(path for path, names in named.items() if names), missing=missing)


def checkpoints(stopped: RunRecord, resumed: Iterable[Process], cwd: Path) -> tuple[list[File], tuple[Checkpoint, ...]]:
    """Return what the stopped run wrote and the resumed one read; all that it wrote if no read was seen."""
    written = stopped.outputs.files if stopped.outputs is not None else ()
    lines = [line for process in resumed for line in process.read]
    by_path = {display_path(line.path, cwd): line for line in lines}
    read = [file for file in written if file.path in by_path] or [file for file in written if file.by in _CHECKPOINTS]
    read = _with_databases(read, written)
    shown = []
    for file in read:
        line = by_path.get(file.path)
        first = dict.fromkeys(re.split(r"[.: /\[]", value.name)[0] for value in file.values if value.name)
        names = tuple(name for name in first if (file.by, name) != ("torch", "types"))  # what it says of its objects
        shown.append(
            Checkpoint(
                path=file.path,
                by=file.by,
                names=names[:_MOST_NAMES],
                file=display_path(line.file, cwd) if line is not None and line.file else "",
                line=line.line if line is not None else 0,
            )
        )
    return read, tuple(shown)


_CHECKPOINTS = ("torch", "npz", "npy", "keras", "hdf5", "safetensors", "tensorflow", "pickle", "msgpack", "ocdbt")
"""The formats that checkpoints have."""


def _with_databases(read: Sequence[File], written: Iterable[File]) -> list[File]:
    """Return files with the manifest of a database in place of what is in its folder, where native code reads it."""
    databases = {PurePath(file.path).parent: file for file in written if file.by == "ocdbt"}
    shown: dict[str, File] = {}
    for file in read:
        folders = [folder for folder in PurePath(file.path).parents if folder in databases]
        one = databases[folders[-1]] if folders else file
        shown[one.path] = one
    return [*shown.values()]
