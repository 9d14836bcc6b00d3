"""The options that say how runs are started and what of them is compared, each declared once.

A declaration has its flag, its help, its key in a project's configuration, how its text is read and written, and which
commands that detaudit suggests inherit it. The command line (``cli/options.py``), the audits of a project
(``config/project.py``), suggested commands (``advice.py``) and plans for other machines (``remote/plan.py``) are made
of these.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

from msgspec import Meta

from detaudit import wire
from detaudit.config.yamlfile import unknown
from detaudit.errors import UsageError
from detaudit.model.outputs import Compare, Declared, FileBudget, OutputRules

# How the texts of options are read.


@dataclass(frozen=True)
class Until:
    """Where to end each run: after a ``step``, or after the one that the first run does in so many ``seconds``.

    They count from the start of the run, or, ``in_training``, from its first step on; then it does two at least.
    """

    step: int | None = None
    seconds: float | None = None
    in_training: bool = False

    def __str__(self) -> str:
        return f"{self.seconds:g}s" if self.step is None else str(self.step)

    @classmethod
    def parse(cls, text: object) -> "Until":
        """Return what ``400``, ``90s``, ``15m`` or ``2h`` means. Raises ValueError for anything else."""
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smh]?)", str(text).strip())
        if match is None or float(match[1]) <= 0 or (not match[2] and "." in match[1]):
            raise ValueError(f"{text!r} is neither a step, such as 400, nor a time, such as 90s, 15m or 2h")
        if not match[2]:
            return cls(step=int(match[1]))
        return cls(seconds=float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]])


LOSS, STEP = "loss", "step"
"""The groups of --loss-pattern."""


def compiled(text: str) -> re.Pattern[str]:
    """Return the pattern of --loss-pattern. Raises UsageError if it is broken or has no group for the loss."""
    example = r"for example --loss-pattern 'loss[ :=]+(\S+)'."
    try:
        pattern = re.compile(text)
    except re.error as error:
        excerpt = f"\n  {error.pattern!s}\n  {' ' * (error.pos or 0)}^" if "\n" not in text else ""
        raise UsageError(f"--loss-pattern is not a valid regex: {error}{excerpt}", f"Fix it; {example}") from error
    if loss_group(pattern) is None:
        raise UsageError(
            f"--loss-pattern {text!r} has no capture group for the loss",
            f"Put parentheses around the number: {example}",
        )
    return pattern


def loss_group(pattern: re.Pattern[str]) -> int | None:
    """Return the group of the loss: the one called so, or the first that is not the step; None if there is none."""
    step = pattern.groupindex.get(STEP)
    others = (number for number in range(1, pattern.groups + 1) if number != step)
    return pattern.groupindex.get(LOSS) or next(others, None)


def _stages(text: str) -> tuple[str, ...]:
    names = wire.STAGES if text == "all" else tuple(filter(None, (name.strip() for name in text.split(","))))
    wrong = [name for name in names if name not in wire.STAGES]
    if wrong or not names:
        raise unknown("stage", ", ".join(wrong), (*wire.STAGES, "all"))
    return tuple(stage for stage in wire.STAGES if stage in names)


def _stages_text(stages: Iterable[str]) -> str:
    return "all" if stages == wire.STAGES else ",".join(stages)


def _file(path: str) -> str:
    if not path:
        raise UsageError("--artifact takes the path of a file", "Name a file that the script writes.")
    return path


def _name(text: str) -> str:
    if not text.strip():
        raise UsageError(
            "--measured and --result take the name of a value", "Give the one that the report shows, or a glob of it."
        )
    return text


def archive_path(text: str) -> Path:
    """Return the file of --evidence. Raises UsageError for one that is no zip file, or in no folder."""
    path = Path(text).absolute()
    if path.suffix != ".zip" or path.is_dir():
        raise UsageError(f"{text!r} is not the name of a zip file", "Name a file that ends in .zip.")
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is not a folder, so {path.name} cannot be written there", "Make it first.")
    return path


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise UsageError(f"--ignore-text {text!r} is not a valid regex: {error}", "Fix the regex.") from error
    return text


# The declarations.


RUNS, COMPARED, OUTPUT = "Runs", "What is compared", "Output"
"""The groups in which --help lists these options."""

EVERY = ("run", "bisect", "trace", "fix")
"""The commands that are suggested."""

_YEAR_S = 366 * 24 * 3600

_T = TypeVar("_T")


@dataclass(frozen=True)
class Option:
    """One option, declared once.

    ``parse`` makes its value, or each of several, of a text, and raises ValueError or UsageError; ``write`` makes a
    text of the value again. ``key`` is its type in the configuration of a project, None if it cannot be set there, and
    ``example`` what could be set. ``kept`` are the commands that inherit it, if detaudit suggests one. A plan for
    other machines has it if it is ``planned``.
    """

    flag: str
    group: str
    help: str
    metavar: str | None = None
    parse: Callable[[Any], Any] | None = None
    write: Callable[[Any], Any] | None = None
    key: Any = None
    example: str = ""
    choices: tuple[str, ...] = ()
    show_default: bool = False
    complete: str = ""
    kept: tuple[str, ...] = EVERY
    planned: bool = True


def _option(default: _T, flag: str, group: str, about: str, **attributes: Any) -> _T:
    option = Option(flag, group, about, **attributes)
    return field(default=default, metadata={"option": option})


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How the runs of an audit are started, and what of them is compared.

    ``timeout`` is in seconds, ``artifacts`` are relative to where a run starts, ``files`` says whether all others that
    a run writes are compared too.
    """

    timeout: float | None = _option(
        None, "--timeout", RUNS, "Kill a run after S seconds.",
        metavar="S", key=Annotated[float, Meta(gt=0, le=_YEAR_S)] | None,
    )  # fmt: skip
    until: Until | None = _option(
        None, "--until", RUNS,
        "End each run after this step, or after the last step that the first run does in a time such as 90s.",
        metavar="STEP|TIME", parse=Until.parse, write=str, kept=("run", "bisect"),
        key=Annotated[int, Meta(ge=1)] | Annotated[str, Meta(min_length=1)] | None, example='400, or until = "90s"',
    )  # fmt: skip
    fail_fast: bool = _option(
        False, "--fail-fast", RUNS, "Stop running a recipe as soon as two runs differ.", kept=("run",), planned=False
    )
    vary: tuple[str, ...] = _option(
        (), "--vary", RUNS,
        "Vary all, or a variation such as hash-seed, from run to run. Run 1 uses the control value. Repeatable.",
        metavar="NAME", complete="variations", planned=False,
    )  # fmt: skip
    stages: tuple[str, ...] = _option(
        wire.DEFAULT_STAGES, "--stages", COMPARED,
        f"Stages to record at each step, separated by commas: {', '.join(wire.STAGES)}, or all. "
        "[default: all but backward, reduce]",
        metavar="NAMES", parse=_stages, write=_stages_text, complete="stages", kept=("run", "bisect"),
    )  # fmt: skip
    loss_pattern: re.Pattern[str] | None = _option(
        None, "--loss-pattern", COMPARED,
        "Read losses from stdout with this regex. Group `loss`, or the first group, is the loss; group `step`, if "
        "present, is the step.",
        metavar="REGEX", parse=compiled, write=lambda pattern: pattern.pattern, key=str | None,
    )  # fmt: skip
    artifacts: tuple[str, ...] = _option(
        (), "--artifact", COMPARED, "Compare a file the script writes. Globs allowed. Repeatable.",
        metavar="PATH", parse=_file, complete="files", key=tuple[str, ...],
    )  # fmt: skip
    files: bool = _option(
        True, "--no-files", COMPARED, "Do not compare the files the script writes, except named ones.", key=bool
    )
    compare: Compare = _option(
        Compare.RESULT, "--compare", COMPARED,
        "What decides: the training, the files, the printed text and the exit status, the training and the tensors in "
        "files alone, or all, also what may be a result or not.",
        metavar="result|training|all", choices=tuple(one.value for one in Compare), show_default=True, parse=Compare,
        write=lambda one: one.value, key=Literal["result", "training", "all"],
    )  # fmt: skip
    ignore: tuple[str, ...] = _option(
        (), "--ignore", COMPARED, "Leave files out, named ones too. Repeatable.", metavar="GLOB", key=tuple[str, ...]
    )
    ignore_text: tuple[str, ...] = _option(
        (), "--ignore-text", COMPARED, "Leave out what matches in printed lines. Repeatable.",
        metavar="REGEX", parse=_regex, key=tuple[str, ...],
    )  # fmt: skip
    measured: tuple[str, ...] = _option(
        (), "--measured", COMPARED,
        "Values with this name, in files and printed lines, are measurements and do not decide. Globs allowed. "
        "Repeatable.",
        metavar="NAME", parse=_name, key=tuple[str, ...],
    )  # fmt: skip
    results: tuple[str, ...] = _option(
        (), "--result", COMPARED, "Values with this name are results, whatever it says. Globs allowed. Repeatable.",
        metavar="NAME", parse=_name, key=tuple[str, ...],
    )  # fmt: skip
    redact: tuple[str, ...] = _option(
        (), "--redact", COMPARED,
        "Neither store nor show values whose name contains this, beside those that look secret. Repeatable.",
        metavar="NAME", key=tuple[str, ...],
    )  # fmt: skip
    file_budget: FileBudget = _option(
        FileBudget(), "--file-budget", COMPARED,
        "Time and bytes for reading the files of one run. [default: 60s,8GiB]",
        metavar="TIME,SIZE", parse=FileBudget.parse, write=str, key=str | None, example='"120s,20GiB"',
    )  # fmt: skip
    history: bool = _option(
        True, "--no-history", COMPARED, "Leave out what earlier audits of the same training found, in .detaudit.",
        key=bool, planned=False,
    )  # fmt: skip
    isolate: bool = _option(
        False, "--isolate", RUNS, "Run each run in its own copy of the repository, always at the same path.", key=bool
    )
    isolate_root: str | None = _option(
        None, "--isolate-root", RUNS, "Copy this folder instead of the repository. Implies --isolate.",
        metavar="DIR", planned=False,
    )  # fmt: skip
    evidence: Path | None = _option(
        None, "--evidence", OUTPUT,
        "Write an archive of the report, the logs and the hashes of what the runs used; `detaudit verify` checks it.",
        metavar="FILE.zip", parse=archive_path, write=str, kept=(), planned=False,
    )  # fmt: skip

    @property
    def outputs(self) -> OutputRules:
        """What of what leaves a run counts."""
        return OutputRules(
            compare=self.compare,
            ignore=self.ignore,
            ignore_text=self.ignore_text,
            declared=Declared(self.measured, self.results),
            redact=self.redact,
            file_budget=self.file_budget,
        )


DECLARED: Mapping[str, Field[Any]] = {one.name: one for one in fields(RunOptions)}
"""All of these options by the names of their fields."""


def declaration(name: str) -> Option:
    """Return the declaration of the option with this field."""
    return cast("Option", DECLARED[name].metadata["option"])


def values_of(options: RunOptions) -> dict[str, Any]:
    """Return the values of all options by the names of their fields, also of what has other fields beside them."""
    return {name: getattr(options, name) for name in DECLARED}


def written(options: RunOptions) -> dict[str, Any]:
    """Return what is not as by default, as texts, numbers and lists, which ``read`` reads again."""
    texts = {}
    for name, value in values_of(options).items():
        if value != DECLARED[name].default:
            write = declaration(name).write
            texts[name] = write(value) if write is not None else value
    return texts


def read(texts: Mapping[str, Any]) -> RunOptions:
    """Return the options with these texts, numbers and lists. Raises UsageError for what an option does not take."""
    return RunOptions(**{name: _parsed(name, value) for name, value in texts.items()})


def _parsed(name: str, value: Any) -> Any:
    option = declaration(name)
    if value is None:
        return DECLARED[name].default
    if isinstance(value, list | tuple):
        value = tuple(dict.fromkeys(value))
    if option.parse is None:
        return value
    try:
        return tuple(map(option.parse, value)) if isinstance(value, tuple) else option.parse(value)
    except ValueError as error:
        key = name.replace("_", "-")
        raise UsageError(f"{key}: {error}", f"Write {key} = {option.example}.") from error


def words(options: RunOptions, command: str) -> Iterator[str]:
    """Yield the words of the options that a suggested ``command`` inherits."""
    for name, value in written(options).items():
        option = declaration(name)
        if command not in option.kept or (name == "isolate" and options.isolate_root is not None):
            continue
        if isinstance(value, bool):
            yield option.flag
        elif isinstance(value, tuple):
            yield from (word for one in value for word in (option.flag, one))
        else:
            yield from (option.flag, f"{value:g}" if isinstance(value, float) else str(value))
