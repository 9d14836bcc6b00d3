"""The settings in effect while a run trained, and whether the script overrode the recipe or set something too late."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from msgspec.structs import replace

from detaudit.config.flags import RUN_FOLDER, Flag, holds
from detaudit.model import Cause, Override, ScriptCall, Setting, SourceKind, Warning
from detaudit.model.warnings import SettingsDiffer, SetTooLate
from detaudit.runs.log import Process, display_path
from detaudit.runs.log_records import Environ, SettingsLine, SourceLine

_READ_AT_IMPORT = {
    "OMP_NUM_THREADS": ("numpy", "torch"),
    "OPENBLAS_NUM_THREADS": ("numpy",),
    "KERAS_BACKEND": ("keras",),
}
"""Variables that these modules read at import, and never again."""

_SHOWN = 3
"""Settings that a warning names."""

_SAME_EFFECT = {"torch.manual_seed": ("torch.seed",)}


@dataclass(frozen=True)
class EffectiveSettings:
    """The settings of one process that trained; files are named as people name them."""

    settings: SettingsLine
    changes: tuple[Environ, ...]
    calls: tuple[SourceLine, ...]
    files: tuple[str, ...]

    @property
    def start(self) -> dict[str, str]:
        """The variables with which the process started."""
        return self.settings.environ.get("start", {})

    @property
    def all(self) -> dict[str, bool | int | str | None]:
        """The switches and the variables at the end."""
        return {**self.settings.values, **self.settings.environ.get("end", {})}

    @property
    def hash_seed_fixed(self) -> bool:
        """Whether hash(str) is the same in every run."""
        return self.start.get("PYTHONHASHSEED", "random") != "random"


def in_force(
    processes: Iterable[Process], cwd: Path, shared: Callable[[str], str] = str
) -> tuple[EffectiveSettings, ...]:
    """Return the settings of the processes that trained, of all if none did, in the order of the processes.

    ``shared`` returns a text without the paths that only one of several runs at once has.
    """
    effective_settings, known = [], [*processes]
    trained = any(process.trained for process in known)
    for process in known:
        if (process.trained or not trained) and process.settings is not None:
            changes = tuple(replace(line, file=display_path(line.file, cwd)) for line in process.environ)
            calls = tuple(replace(line, file=display_path(line.file, cwd)) for line in process.sources)
            files = tuple(display_path(file, cwd) for file in process.settings.files)
            values = process.settings.values
            settings = replace(
                process.settings,
                values={name: shared(value) if isinstance(value, str) else value for name, value in values.items()},
                environ={
                    at: {name: shared(value) for name, value in variables.items()}
                    for at, variables in process.settings.environ.items()
                },
            )
            effective_settings.append(EffectiveSettings(settings, changes, calls, files))
    return tuple(effective_settings)


def held_once(
    run_settings: tuple[EffectiveSettings, ...], first: tuple[EffectiveSettings, ...]
) -> tuple[EffectiveSettings, ...]:
    """Return the settings of a run, those equal to the first run's as the same objects: a run may have many ranks."""
    pairs = zip_longest(run_settings, first[: len(run_settings)])
    return first if run_settings == first else tuple(old if old == new else new for new, old in pairs)


def described(process: EffectiveSettings) -> tuple[Setting, ...]:
    """Return the settings of one process for audit.json."""
    environ = process.settings.environ
    names = sorted({name for variables in environ.values() for name in variables})
    settings = [Setting(name=name, value=value) for name, value in process.settings.values.items()]
    for name in names:
        end = environ.get("end", {}).get(name)
        before = {at: variables.get(name) for at, variables in environ.items() if variables.get(name) != end}
        settings.append(Setting(name=name, value=end, before=before))
    return tuple(settings)


Runs = Sequence[tuple[int, tuple[EffectiveSettings, ...]]]
"""The number of each run that finished, and the settings of its processes."""


def warnings(runs: Runs, varied: Container[str] = ()) -> tuple[Warning, ...]:
    """Return what the script set too late, and what differed between runs except for what ``varied``."""
    too_late = [warning for _, processes in runs for process in processes for warning in _set_too_late(process)]
    return tuple(dict.fromkeys([*too_late, *_differences(runs, varied)]))


def _set_too_late(process: EffectiveSettings) -> Iterator[Warning]:
    for change in process.changes:
        late = SetTooLate(variable=change.name, file=change.file, line=change.line)
        if change.name == "PYTHONHASHSEED" and change.value not in (None, process.start.get(change.name)):
            yield late
        for module in _READ_AT_IMPORT.get(change.name, ()):
            had = process.settings.environ.get(module, {}).get(change.name)
            if module in change.after and change.value != had:
                yield replace(late, module=module)


def _differences(runs: Runs, varied: Container[str]) -> Iterator[Warning]:
    if not runs:
        return
    first, base = runs[0]
    for number, processes in runs[1:]:
        for ours, theirs in zip(base, processes, strict=False):
            a, b = ours.all, theirs.all
            names = [name for name in sorted({*a, *b}) if a.get(name) != b.get(name) and name not in varied]
            if names:
                shown = tuple((name, str(b.get(name)), str(a.get(name))) for name in names[:_SHOWN])
                yield SettingsDiffer(run=number, first=first, settings=shown, more=len(names) - len(shown))


def overridden(flag: Flag, seed: int, runs: Runs) -> tuple[Override | None, bool]:
    """Return how the script undid a flag, None if it did not, and whether that casts doubt on the recipe.

    A script that sets a seed of its own, the same one in every run, is as repeatable as with the recipe's.
    """
    processes = [process for _, run_processes in runs for process in run_processes]
    for process in processes:
        for name, value in flag.environment(seed).items():
            if not holds(name, process.start.get(name), value) and not value.startswith(RUN_FOLDER):
                return Override(at="start", name=name, value=process.start.get(name, "")), True
        for name, value in flag.expect.items():
            end = process.settings.values.get(name, value)
            if end != value:
                calls = _calls(flag, process)
                return Override(at="end", name=name, value=str(end), call=_call(calls[-1]) if calls else None), True
    if Cause.SEED in flag.causes:
        return _reseeded(flag, seed, runs)
    return None, False


def _calls(flag: Flag, process: EffectiveSettings) -> list[SourceLine]:
    names = {name for call in flag.call for name in (call, *_SAME_EFFECT.get(call, ()))}
    return [source for source in process.calls if source.what in names]


def _call(line: SourceLine) -> ScriptCall:
    return ScriptCall(file=line.file, line=line.line, call=line.what, value=line.value)


def _reseeded(flag: Flag, seed: int, runs: Runs) -> tuple[Override | None, bool]:
    calls_by_run = [
        {(c.file, c.line, c.what, c.value, c.kind) for p in processes for c in _calls(flag, p)} for _, processes in runs
    ]
    others = sorted(call for run in calls_by_run for call in run if call[3] != repr(seed))
    if not others:
        return None, False
    file, line, what, value, kind = others[-1]
    override = Override(at="seed", call=ScriptCall(file=file, line=line, call=what, value=value))
    if not value:
        return replace(override, differs=SourceKind.UNSEEDED), True
    calls = [{call[:4] for call in run} for run in calls_by_run]  # a constant may have the value of a clock by chance
    if any(not (a <= b or b <= a) for a in calls for b in calls):
        return replace(override, differs=SourceKind.CLOCK if kind == SourceKind.CLOCK.value else SourceKind.SEED), True
    return override, False
