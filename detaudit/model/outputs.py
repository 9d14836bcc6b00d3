"""What leaves a run beside its training: files and printed text, value by value, and where two runs differ in them."""

import glob
import re
import shlex
from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.fact import count, duration, shortened, size


class Role(StrEnum):
    """What a value is, decided by its name and by itself together.

    Values that are ``RESULT`` decide the verdict if they differ. ``OPEN`` may be a result or a measurement: a
    difference makes the verdict inconclusive. The others are listed only: what a clock or a meter says
    (``MEASUREMENT``), what the run is known by, such as its process ID or folder (``IDENTIFIER``), and the state of a
    random generator (``GENERATOR``).
    """

    RESULT = "result"
    OPEN = "open"
    MEASUREMENT = "measurement"
    IDENTIFIER = "identifier"
    GENERATOR = "generator"


class Compare(StrEnum):
    """What decides: the ``RESULT`` of a run, its training and all that leaves it, or its ``TRAINING`` alone.

    With ``TRAINING``, tensors in files that the run wrote decide too, and everything else is listed. With ``ALL``, what
    was read and may be a result or not decides like a result.
    """

    RESULT = "result"
    TRAINING = "training"
    ALL = "all"


class FileBudget(msgspec.Struct, frozen=True, array_like=True):
    """How many ``seconds`` and ``bytes`` reading the files of one run may take."""

    seconds: float = 60.0
    bytes: int = 8 * 2**30

    @classmethod
    def parse(cls, text: str) -> "FileBudget":
        """Return the budget that a text such as ``120s``, ``20GiB`` or ``120s,20GiB`` says. Raises ValueError."""
        seconds, size = cls().seconds, cls().bytes
        for word in text.split(","):
            match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h|[kMGT]i?B|B)", word.strip())
            if match is None:
                raise ValueError(f"{text!r} is neither a time such as 120s nor a size such as 20GiB")
            number, unit = float(match[1]), match[2]
            if unit in _SECONDS:
                seconds = number * _SECONDS[unit]
            else:
                base = 1024 if "i" in unit else 1000
                size = int(number * base ** " kMGT".index(unit[0] if unit != "B" else " "))
        return cls(seconds, size)

    def __str__(self) -> str:
        return f"{self.seconds:g}s,{self.bytes}B"


_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


class Declared(msgspec.Struct, frozen=True, array_like=True):
    """What values are, as their user says: globs of their names, in which capitals do not count."""

    measured: tuple[str, ...] = ()
    results: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.measured or self.results)

    def role(self, name: str) -> Role | None:
        """Return what a value is by its name, or by the last part of it; None if nothing was said of it."""
        last = last_part(name).lower() if self else ""
        names = {name.strip().lower(), last, last.rpartition("/")[2]} if self else ()
        for patterns, role in ((self.results, Role.RESULT), (self.measured, Role.MEASUREMENT)):
            if any(fnmatchcase(one, pattern.lower()) for pattern in patterns for one in names):
                return role
        return None


def last_part(name: str) -> str:
    """Return the name that a value has in its row, its line or its map: ``lr`` of ``row 3, lr`` and ``args.lr[0]``."""
    return _PARTS.split(_INDICES.sub("", name.strip()))[-1]


_PARTS = re.compile(r", |\.")
_INDICES = re.compile(r"(?<=\w)(?:\[\d+\]|\.\d+)+$")


class OutputRules(msgspec.Struct, frozen=True, kw_only=True):
    """What of what leaves a run counts: the options of ``detaudit run`` with these names.

    ``ignore`` are globs of files that are left out, ``ignore_text`` regexes of printed text that does not count,
    ``declared`` is what values are by their names. Those whose names contain one of ``redact`` are never stored or
    shown.
    """

    compare: Compare = Compare.RESULT
    ignore: tuple[str, ...] = ()
    ignore_text: tuple[str, ...] = ()
    declared: Declared = Declared()
    redact: tuple[str, ...] = ()
    file_budget: FileBudget = FileBudget()


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is known by. ``started`` and ``ended`` are in seconds since 1970, in UTC.

    ``names`` are texts that only stand for this run: its host, user, folders and temporary folders. ``shift_s`` is what
    was added to the clock of Python, and ``counted`` says that it counted its readings. ``numbered`` are folders that
    it made as the next of a series, each with the first. ``writers`` is how many processes and threads may have
    printed, 0 if it is not known. ``since_boot`` is the start in seconds since the machine was started, as its other
    clocks count, 0 if it is not known. ``declared`` is what its user says of values.
    """

    started: float
    ended: float
    pids: frozenset[int] = frozenset()
    ports: frozenset[int] = frozenset()
    names: tuple[str, ...] = ()
    shift_s: float = 0.0
    counted: bool = False
    numbered: tuple[tuple[str, str], ...] = ()
    writers: int = 0
    since_boot: float = 0.0
    declared: Declared = Declared()


class Value(msgspec.Struct, frozen=True, array_like=True):
    """One value of a file: its path inside (``row 3, target``; ``optimizer.state.0.exp_avg``; ``""`` for all of it).

    ``digest`` is of its type and bytes. ``shown`` is the value itself, without secrets, if it is short: a number or a
    text; ``""`` for arrays and long texts. ``tensor`` says that it is an array of a model or of data.
    """

    name: str
    digest: str
    role: Role = Role.RESULT
    shown: str = ""
    tensor: bool = False


FURTHER = "(further values)"
"""The end of the name of many values in one, of which nobody knows what each was called."""


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a run wrote.

    ``path`` is as people name it: relative to the working directory if it is below. ``name`` is the path in the first
    run that wrote it, by which runs are compared (they may put a date in it). ``sha256`` is of its bytes, ``""`` if
    they were not read, or do not hold all: a database may have a log. ``values`` is what it holds, the values that
    decide first; ``by`` says how it was read: a name of a format such as ``csv`` or ``torch``, or ``bytes``.
    ``problem`` says why it could not be read as that format.
    ``added_only`` means that it existed before and only what the run added to it is compared.
    """

    path: str
    name: str
    sha256: str
    size: int
    by: str = "bytes"
    values: tuple[Value, ...] = ()
    problem: str = ""
    added_only: bool = False


class OutputKind(StrEnum):
    """What differs, and so whether it decides."""

    VALUE = "value"  # a number or a value in a file, or in a printed line whose words agree
    WORDS = "words"  # the words of a printed line, or a whole line
    ONLY_ONE = "only-one"  # a file that only one of two runs wrote
    UNREADABLE = "unreadable"  # a file that could not be read, whose bytes differ
    AMBIGUOUS = "ambiguous"  # a value that may be a measurement
    UNREAD = "unread"  # what the budget of time and bytes left out
    MEASUREMENT = "measurement"
    IDENTIFIER = "identifier"
    GENERATOR = "generator"
    UNDECIDED = "undecided"  # whatever it is, --compare training leaves it out
    STDERR_LINES = "stderr-lines"  # lines on stderr that only some runs have


DECIDING = frozenset({OutputKind.VALUE, OutputKind.ONLY_ONE})
"""A difference of this kind is one of the result."""

OPEN = frozenset({OutputKind.WORDS, OutputKind.UNREADABLE, OutputKind.AMBIGUOUS, OutputKind.UNREAD})
"""A difference of this kind makes the verdict inconclusive. All others are listed."""


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """What was not read of what a run wrote, because the ``budget`` was spent, or so many files were opened.

    ``files`` are the first of ``count`` files of ``size`` bytes in all; ``count`` is 0 if a process opened more files
    than are recorded, so that nobody knows which.
    """

    budget: FileBudget
    count: int = 0
    size: int = 0
    files: tuple[str, ...] = ()

    def text(self) -> str:
        """Return what was not read of what a run wrote, and why."""
        if not self.count:
            return "a process opened more files than are recorded"
        files = shortened(self.files, self.count - len(self.files))
        budget = f"{duration(self.budget.seconds, 'g')} or {size(self.budget.bytes)}"
        return f"{count(self.count, 'file')} of {size(self.size)} after {budget} ({files})"


STDOUT, STDERR, EXIT_STATUS = "stdout", "stderr", "exit status"
"""What has no file of its own, as the path of a difference."""


MOST_SHOWN = 5

LISTED = {
    OutputKind.MEASUREMENT: "measurements",
    OutputKind.IDENTIFIER: "what a run is known by",
    OutputKind.GENERATOR: "states of random generators",
    OutputKind.STDERR_LINES: "lines on stderr that only some runs have",
    OutputKind.UNDECIDED: "left out by --compare training",
}
"""Differences that do not decide, and why."""


class OutputDifference(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between the outputs of two runs, in one file or stream.

    ``path`` is the name of the file, or ``stdout`` or ``stderr``. ``at`` is the path inside: ``row 3, target``,
    ``line 12``. ``values`` has what each of the two runs shows there, without secrets, ``("", "")`` if that is long or
    unknown. ``more`` counts further values of this kind in the same file. ``only_run`` is 1 or 2 if only the first or
    second of the two has the file or the line, 0 if both do. ``problem`` says why a file could not be read. ``tensor``
    says that what differs is an array. ``unread`` is what the budget left out. ``runs`` are the numbers of the two
    runs.
    """

    path: str
    kind: OutputKind
    at: str = ""
    values: tuple[str, str] = ("", "")
    more: int = 0
    only_run: int = 0
    problem: str = ""
    tensor: bool = False
    unread: Unread | None = None
    runs: tuple[int, int] = (0, 0)

    @property
    def name(self) -> str:
        """The file or stream, and the path inside."""
        return f"{self.path}: {self.at}" if self.at else self.path

    @property
    def decides(self) -> bool:
        """Whether the results of the two runs differ."""
        return self.kind in DECIDING

    @property
    def open(self) -> bool:
        """Whether nobody can say if the results of the two runs differ."""
        return self.kind in OPEN

    @property
    def may_decide(self) -> bool:
        """Whether it is open and can be counted as a result."""
        return self.open and self.kind is not OutputKind.UNREAD

    @property
    def may_be_measured(self) -> bool:
        """Whether it is a number that a clock may have measured."""
        number = self.kind in (OutputKind.VALUE, OutputKind.AMBIGUOUS) and not self.tensor and not self.only_run
        return number and all(any(map(str.isdigit, value)) for value in self.values)

    def text(self) -> str:
        """Return what differs: ``submission.csv (row 1, target: 3.41 and 3.39)``."""
        inside = ": ".join(part for part in (self.at, self._shown()) if part)
        more = f"{inside}, and {count(self.more, 'more value')}" if self.more else inside
        return f"{self.path} ({more})" if more else self.path

    def reservation(self) -> str:
        """Return why a difference does not decide, ``""`` if it does."""
        if self.decides:
            return ""
        why = f"does not decide: {LISTED[self.kind]}" if self.kind in LISTED else "may be a result or not"
        return f" ({why})"

    def in_file(self) -> str:
        """Return ``in submission.csv: row 1, target: 3.41 and 3.39``."""
        return ": ".join(part for part in (f"in {self.path}", self.at, self._shown()) if part)

    def cell(self) -> str:
        """Return it for a cell of a table: ``saved: submission.csv``."""
        if self.path == EXIT_STATUS:
            return f"{EXIT_STATUS} {self.values[1]}"
        if self.path in (STDOUT, STDERR):
            return f"printed: {self.path}, {self.at}" if self.at else f"printed: {self.path}"
        return f"saved: {self.path}"

    def _shown(self) -> str:
        if not self.only_run:
            return " and ".join(self.values) if all(self.values) else ""
        run, value = self.runs[self.only_run - 1], self.values[self.only_run - 1]
        said = f" {value!r}" if value else ""
        return f"only run {run} has it{said}" if run else f"only one of them has it{said}"

    @property
    def label(self) -> str:
        """The name of the value in its row or line, "" if it has none."""
        label = last_part(self.at)
        return "" if self.at == "name" or _PLACE.match(label) else glob.escape(label)

    def settling(self) -> str:
        """Return the option that settles whether a difference counts."""
        named = self.kind is OutputKind.AMBIGUOUS and self.label
        declared = f"--measured {shlex.quote(self.label)} says that it is a measurement" if named else ""
        match self.kind:
            case OutputKind.WORDS:
                return "--ignore-text REGEX leaves such text out"
            case OutputKind.AMBIGUOUS if self.path in (STDOUT, STDERR):
                return declared or "--ignore-text REGEX leaves it out if it is a measurement"
            case OutputKind.UNREAD:
                return "--file-budget TIME,SIZE reads more, --ignore GLOB leaves files out"
            case _:
                path = shlex.quote(self.path)
                of_file = f"--ignore {path} leaves the file out, --artifact {path} compares its bytes"
                return f"{declared}, {of_file}" if declared else of_file

    def open_reason(self, more: int, others_in: str = "") -> str:
        """Return why nobody can say whether the results of runs differ, and what settles it.

        ``others_in`` names where the others are.
        """
        match self.kind:
            case OutputKind.WORDS:
                said = f"the words on {self.text()} differ"
            case OutputKind.AMBIGUOUS:
                said = f"{self.text()} differs, which may be a measurement or a result"
            case OutputKind.UNREAD:
                said = f"not all that the runs wrote was read: {self.unread.text() if self.unread else ''}"
            case _:
                said = f"{self.path} differs and cannot be read: {self.problem}"
        others = f", and {count(more, 'more difference')} like this" if more else ""
        others += f" ({others_in})" if more and others_in else ""
        as_result = ", --compare all counts it as a result" if self.may_decide else ""
        return (
            f"the trainings match, but {said}{others}. {self.settling()}; --compare training compares the trainings "
            f"alone{as_result}"
        )

    def trainings_match(self, others_in: str = "") -> str:
        """Return the sentence of a verdict if only what left the runs differs, also in what ``others_in`` names."""
        also = f", and so do other outputs: {others_in}" if others_in else ""
        return f"the trainings match, {self.path} differs{f' ({self.at})' if self.at else ''}{also}"


def names(differences: Iterable[OutputDifference], first: OutputDifference) -> str:
    """Return the files and streams besides that of the first difference, ``""`` if there is no other."""
    return shortened(
        dict.fromkeys(one.path for one in differences if one.path not in ("", first.path)), most=MOST_SHOWN
    )


_PLACE = re.compile(r"\W*(?:(?:line|row|lines|order of lines) [\d,]|\d+\W*$|value(?: \d+)?$|$)")


class TextBlock(msgspec.Struct, frozen=True, array_like=True):
    """Some consecutive lines of a text as digests; see ``outputs/text.py``, which makes and compares them.

    ``words`` is the digest of their words, ``values`` of their results, and ``open`` of numbers that may be results.
    """

    first_line: int
    lines: int
    words: str
    values: str
    open: str = "0"


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """What a run printed to one stream, as a terminal would leave it: all of it as ``blocks``, the start as ``lines``.

    ``lines`` are the first lines, in the order in which they ended, as they are shown on a terminal (redacted when they
    are reported, not here), up to a limit of bytes. ``count`` is the number of all lines.
    """

    count: int = 0
    size: int = 0
    lines: tuple[str, ...] = ()
    blocks: tuple[TextBlock, ...] = ()


TEMPORARY = "temporary"
"""The id of the row of files below the folder of temporary files."""


class ListedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that a run wrote and that is only listed: ``row`` is the id of the row of configs/outputs.yaml."""

    path: str
    row: str


class Outputs(msgspec.Struct, frozen=True, kw_only=True):
    """All that left a run: what is compared of it beside its training.

    ``digests_only``: as a lock file keeps it, with digests of each file and one block for each stream; ``own_numbers``
    are then the processes of the run whose numbers are in none of these. ``unread`` says what the budget left out, None
    if nothing. ``rules`` say what of it counts. ``listed`` are the files that are not compared by what they are.
    """

    files: tuple[File, ...] = ()
    stdout: Text | None = None
    stderr: Text | None = None
    facts: RunFacts | None = None
    exit_code: int | None = None
    unread: Unread | None = None
    digests_only: bool = False
    own_numbers: tuple[int, ...] = ()
    rules: OutputRules = OutputRules()
    listed: tuple[ListedFile, ...] = ()
