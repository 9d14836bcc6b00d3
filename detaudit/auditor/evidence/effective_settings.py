"""What was in force while a run trained, and what that says about the recipe and the script's own settings."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from detaudit.auditor.evidence.event_logs import Process, told_from
from detaudit.auditor.evidence.event_records import Environ, Settings, Source
from detaudit.model import Setting
from detaudit.recipe.flags import RUN_FOLDER, Flag, holds

_READ_AT_IMPORT = {
    "OMP_NUM_THREADS": ("numpy", "torch"),
    "OPENBLAS_NUM_THREADS": ("numpy",),
    "KERAS_BACKEND": ("keras",),
}
"""Variables that these modules read as they load, and never again."""

_SAME_EFFECT = {"torch.manual_seed": ("torch.seed",)}


@dataclass(frozen=True)
class InForce:
    """What one process that trained had set; files are named as people would."""

    settings: Settings
    changes: tuple[Environ, ...]
    calls: tuple[Source, ...]
    files: tuple[str, ...]

    @property
    def start(self) -> dict[str, str]:
        """The variables with which the process started."""
        return self.settings.environ.get("start", {})

    @property
    def all(self) -> dict[str, bool | int | str | None]:
        """The switches and the variables as they stood at the end."""
        return {**self.settings.values, **self.settings.environ.get("end", {})}

    @property
    def hash_seed_fixed(self) -> bool:
        """Whether hash(str) is the same in every such process."""
        return self.start.get("PYTHONHASHSEED", "random") != "random"


def in_force(processes: Iterable[Process], cwd: Path) -> tuple[InForce, ...]:
    """Return what the processes that trained had set, in the order of the processes."""
    found = []
    for process in processes:
        if process.trained and process.settings is not None:
            tell = msgspec.structs.replace
            changes = tuple(tell(line, file=told_from(line.file, cwd)) for line in process.environ)
            calls = tuple(tell(line, file=told_from(line.file, cwd)) for line in process.sources)
            files = tuple(told_from(file, cwd) for file in process.settings.files)
            found.append(InForce(process.settings, changes, calls, files))
    return tuple(found)


def described(process: InForce) -> tuple[Setting, ...]:
    """Return the settings of one process for audit.json."""
    environ = process.settings.environ
    names = sorted({name for variables in environ.values() for name in variables})
    settings = [Setting(name=name, value=value) for name, value in process.settings.values.items()]
    for name in names:
        end = environ.get("end", {}).get(name)
        before = {at: variables.get(name) for at, variables in environ.items() if variables.get(name) != end}
        settings.append(Setting(name=name, value=end, before=before))
    return tuple(settings)


Runs = Sequence[tuple[int, tuple[InForce, ...]]]
"""The number of each run that finished, and what its processes had set."""


def warnings(runs: Runs, varied: Container[str] = ()) -> tuple[str, ...]:
    """Return what the script set without effect, and what was not the same in every run but for what ``varied``."""
    found = [text for _, processes in runs for process in processes for text in _without_effect(process)]
    return tuple(dict.fromkeys([*found, *_unlike(runs, varied)]))


def _without_effect(process: InForce) -> Iterator[str]:
    for change in process.changes:
        where = f"{change.file}:{change.line} sets {change.name}"
        if change.name == "PYTHONHASHSEED" and change.value not in (None, process.start.get(change.name)):
            yield (
                f"{where} inside the process, which has no effect on it: it must be set before Python starts "
                "(detaudit run --flag python-hash-seed)"
            )
        for module in _READ_AT_IMPORT.get(change.name, ()):
            had = process.settings.environ.get(module, {}).get(change.name)
            if module in change.after and change.value != had:
                yield f"{where} after {module} was imported, which reads it only as it loads: no effect on {module}"


def _unlike(runs: Runs, varied: Container[str]) -> Iterator[str]:
    if not runs:
        return
    first, base = runs[0]
    for number, processes in runs[1:]:
        for ours, theirs in zip(base, processes, strict=False):
            a, b = ours.all, theirs.all
            names = [name for name in sorted({*a, *b}) if a.get(name) != b.get(name) and name not in varied]
            if names:
                shown = ", ".join(f"{name} {b.get(name)} (was {a.get(name)})" for name in names[:3])
                more = f" and {len(names) - 3} more" if len(names) > 3 else ""
                yield f"run {number} did not have the settings of run {first}: {shown}{more}"


def overridden(flag: Flag, seed: int, runs: Runs) -> tuple[str, bool]:
    """Return how the script undid a flag, ``""`` if it did not, and whether that throws doubt on the recipe.

    A script that sets a seed of its own, the same one in every run, is as repeatable as with the recipe's.
    """
    processes = [process for _, found in runs for process in found]
    for process in processes:
        for name, value in flag.environment(seed).items():
            if not holds(name, process.start.get(name), value) and not value.startswith(RUN_FOLDER):
                return f"{name} was {process.start.get(name)!r} when the process started", True
        for name, value in flag.in_force.items():
            end = process.settings.values.get(name, value)
            if end != value:
                return f"{name} was {end} at the end{_by(flag, process)}", True
    if "seed" in flag.causes:
        return _reseeded(flag, seed, runs)
    return "", False


def _calls(flag: Flag, process: InForce) -> list[Source]:
    names = {name for call in flag.call for name in (call, *_SAME_EFFECT.get(call, ()))}
    return [source for source in process.calls if source.what in names]


def _by(flag: Flag, process: InForce) -> str:
    calls = _calls(flag, process)
    return f": {calls[-1].file}:{calls[-1].line} calls {calls[-1].what}({calls[-1].value})" if calls else ""


def _reseeded(flag: Flag, seed: int, runs: Runs) -> tuple[str, bool]:
    given = [{(c.file, c.line, c.what, c.value, c.kind) for p in found for c in _calls(flag, p)} for _, found in runs]
    others = sorted(call for calls in given for call in calls if call[3] != repr(seed))
    if not others:
        return "", False
    file, line, what, value, kind = others[-1]
    if not value:
        return f"{file}:{line} calls {what}() without a seed", True
    if any(not (a <= b or b <= a) for a in given for b in given):
        how = "follows the clock" if kind == "clock" else "differs between runs"
        return f"{file}:{line} calls {what}() with a seed that {how}", True
    return f"{file}:{line} calls {what}({value})", False
