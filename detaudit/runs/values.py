"""Read a file that a run wrote: what it holds, value by value, and what each value is."""

import functools
import hashlib
import math
import os
import re
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

import msgspec

from detaudit import redact
from detaudit.model.outputs import FURTHER, File, Role, RunFacts, Value
from detaudit.outputs import measurements
from detaudit.outputs.compare import LOG
from detaudit.outputs.lines import FileLine, FileLines
from detaudit.runs import formats
from detaudit.runs.formats import BROKEN, NUMBER, PIXELS, TEXT, Format, Part, Rows, UnusableError, apart, check_unpacked
from detaudit.runs.formats.floats import Extremes, Total

MOST_VALUES = 20_000
"""Values of a file that are kept; further ones are folded into one digest for each series of them."""

MOST_JSON = 2 * 2**20
"""Bytes that the values of a file take in JSON, about."""

MOST_SERIES = 2000

_LONGEST_WORD = 4096
"""Characters of a text without blanks in which what only stands for a run is looked for."""

MOST_SHOWN = 200
"""Characters of a number or a text that is shown."""

_MOST_NAME = 400
_MOST_PROBLEM = 300
_SIZE_OF_VALUE = 64
"""Bytes of a value in JSON beside its name and what is shown."""


# The states of torch's and NumPy's Mersenne Twister, whatever they are called; Python's, if it is an array of integers.
_STATES = {("u1", (5056,)), ("u4", (624,))}
_PYTHON_STATE = ("i8", (625,))
_OF_RANDOM = re.compile(r"random|state|rng|seed|generator", re.IGNORECASE)
_GENERATOR = re.compile(r"(^|[._])(p?rng|random_state|bit_generator|generator_state|seed_seq)", re.IGNORECASE)
_LISTENER = "._listener_handle."
"""Where scikit-learn's ``ScoringMonitor`` keeps the socket that it listened at, and its key."""

_PLACE = re.compile(r"(?:^|(?<=: )|(?<=, ))(?:line|row) \d+(?:, |$)|#\d+$| at step -?\d+(?=$|\[|,|#\d+$)")
"""What says where a value is and not what it is."""

LINE = re.compile(r"line \d+")
LINK = "link"
"""How a symbolic link is read: by what it leads to."""

_LINES = re.compile(r"(?:^|: )(?:line \d+|lines [\d,]+ to [\d,]+)$")
_SEVERAL = re.compile(r"\S\s\S")
_NO_RESULT = (Role.MEASUREMENT, Role.IDENTIFIER)
_SUFFIXES_OF_LOGS = frozenset((".log", ".err"))
_OUTPUT_OF_JOBS = frozenset(
    ("nohup", "slurm", "stdout", "stderr", "output", "console", "train", "training", "run", "job")
)
"""What is in the name of a file.out that a shell or a scheduler wrote; other programs write their results so."""

_SAY_NOTHING = frozenset(
    ["out", "output", "outputs", "stdout", "stderr", "log", "logs", "tmp", "temp", "file", "text", "printed", "print"]
)
_OF_PROCESS = re.compile(r"(?:\b|_)(?:pids?|tids?|threads?(?:_ids?)?|ports?)$", re.IGNORECASE)
_MOST_PROCESSES = 8
_DIGITS_OF_ROWS = 7
"""Of a number that rows are known by, at most: longer ones are made up by runs."""

_MOST_MOMENTS = 10_000
_BLOCK = re.compile(r": values [\d,]+ to [\d,]+$")
_DIGITS = re.compile(r"\d+")
_ORDER = {role: index for index, role in enumerate(Role)}


class BudgetSpentError(Exception):
    """No bytes or seconds are left to read the files of a run; the message says which."""


@dataclass
class Budget:
    """What reading the files of one run may take: so many ``bytes``, packed or not, and ``seconds``."""

    bytes: float = math.inf
    seconds: float = math.inf
    _since: float = 0.0

    def begin(self) -> None:
        """Note that a file is opened. Raises BudgetSpentError if nothing is left."""
        self._since = time.monotonic()
        self.spend(0)

    def spend(self, count: int) -> None:
        """Note that so many bytes were read. Raises BudgetSpentError if there were fewer left, or the time is over."""
        now = time.monotonic()
        self.bytes -= count
        self.seconds -= now - self._since
        self._since = now
        if self.bytes < 0 or self.seconds < 0:
            raise BudgetSpentError("bytes" if self.bytes < 0 else "time")


def read(
    path: Path,
    shown: str,
    facts: RunFacts,
    *,
    budget: Budget | None = None,
    secret_names: Collection[str] = (),
    python: str = "",
    known: Mapping[tuple[str, str], File] | None = None,
    without: Rows | None = None,
) -> File:
    """Return what is in a file, which is called ``shown``.

    Values below a key that is the name of a secret, or one of ``secret_names``, are not shown. ``python`` is an
    interpreter that may have a library that is missing here. ``known`` are files that were read before, by what
    ``known_as`` returns: one with the same bytes and such a name is not read again. Of a database, these rows are left
    out: ``without``. Raises OSError if the file cannot be opened, BudgetSpentError if the budget does not suffice for
    its bytes.
    """
    budget = budget or Budget()
    budget.begin()
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        for piece in formats.pieces(file):
            budget.spend(len(piece))
            digest.update(piece)
            size += len(piece)
    sha256 = "" if formats.journals(path) else digest.hexdigest()
    same = known.get(known_as(shown, sha256)) if known and not without else None
    if same is not None:
        return msgspec.structs.replace(same, path=shown, name=shown)
    by, problem, values = formats.BYTES, "", _Values(PurePath(shown), facts, frozenset(secret_names))
    token = apart.interpreter.set(python)
    try:
        file_format = formats.format_of(path)
        by = file_format.name if file_format is not None else formats.BYTES
        if file_format is not None and without is not None and file_format.name == formats.SQLITE:
            file_format = replace(file_format, without=without)
        if file_format is not None and file_format.guess:
            file_format, values = _guessed(file_format, path, size, budget, values)
            by = file_format.name
        else:
            _take(file_format, path, size, budget, values)
    except BudgetSpentError:  # its bytes are known, and may be equal
        problem = "the budget was spent while it was read (--file-budget)"
    except ModuleNotFoundError as error:
        problem = f"needs {error.name} to be read"
    except UnusableError as error:
        problem = str(error)
    except BROKEN as error:
        problem = f"cannot be read as {by}: {type(error).__name__}: {error}"
    finally:
        apart.interpreter.reset(token)
    if by == formats.PLAIN.name and values.is_log:
        by = LOG
    kept = values.kept() if not problem else ()
    return File(path=shown, name=shown, sha256=sha256, size=size, by=by, values=kept, problem=problem[:_MOST_PROBLEM])


def of_link(shown: str, target: str, facts: RunFacts) -> File:
    """Return what a symbolic link says, which is called ``shown`` and leads to ``target``."""
    text = measurements.masked(target, facts).replace(measurements.MASK, "…")
    value = Value("target", _digest(text), Role.RESULT, redact.text(target[:MOST_SHOWN]))
    return File(path=shown, name=shown, sha256=_digest(target), size=len(target), by=LINK, values=(value,))


def known_as(shown: str, sha256: str) -> tuple[str, str]:
    """Return what two files of the same values have in common: their names, on which roles rest, but for numbers."""
    return _series(PurePath(shown).name), sha256


def _guessed(file_format: Format, path: Path, size: int, budget: Budget, values: "_Values") -> tuple[Format, "_Values"]:
    """Read a text that seems to be of a format; one that is not is plain text."""
    try:
        _take(file_format, path, size, budget, values)
    except BROKEN:
        file_format, values = formats.PLAIN, values.empty()
        _take(file_format, path, size, budget, values)
    return file_format, values


def _take(file_format: Format | None, path: Path, size: int, budget: Budget, values: "_Values") -> None:
    for part, data in digested(file_format, path, size, values.may_be_measured, budget.spend):
        values.add(part, data)


@dataclass(frozen=True)
class Digested:
    """What is known of a part whose pieces were read: a digest of its type, shape and bytes.

    ``extremes`` are the least and the largest element of an array, None if they were not looked for or are not known.
    """

    digest: str
    extremes: tuple[float, float] | None = None


def digested(
    file_format: Format | None,
    path: Path,
    size: int,
    may_be_measured: Callable[[Part], bool] = lambda part: False,
    spend: Callable[[int], None] = lambda count: None,
    total: Total | None = None,
) -> Iterator[tuple[Part, Digested]]:
    """Yield the parts of a file of ``size`` bytes after their pieces were read.

    ``spend`` is called with the bytes that it unpacks to beyond its size. Raises what Format.parts raises.
    """
    with warnings.catch_warnings():  # such as of escapes in a text
        warnings.simplefilter("ignore")
        unpacked = 0
        for part in file_format.parts(path) if file_format is not None else formats.whole_file(path):
            digest, extremes = hashlib.sha256(), Extremes() if may_be_measured(part) else None
            digest.update(repr((part.dtype, part.shape)).encode())
            for piece in part.pieces:
                digest.update(piece)
                unpacked += len(piece)
                check_unpacked(unpacked, size)
                spend(min(len(piece), max(0, unpacked - size)))
                if extremes is not None:
                    extremes.add(part.dtype, piece)
                if total is not None:
                    total.add(part.dtype, piece)
            yield part, Digested(digest.hexdigest()[:32], extremes.of(part.shape) if extremes is not None else None)


def is_generator(part: Part) -> bool:
    """Return whether a part belongs to the state of a random generator, by its type or by its name."""
    kind = part.dtype.partition(" ")[0][1:]
    if part.generator or (kind, part.shape) in _STATES:
        return True
    if (kind, part.shape) == _PYTHON_STATE and _OF_RANDOM.search(part.name):
        return True
    named = _GENERATOR.search(part.name)
    if named is None:
        return False
    if part.dtype == NUMBER:  # random_state=1 is a setting
        return "." in part.name[named.end() :] and part.text.lstrip("-").isdigit()
    return kind[:1] in ("u", "i") and part.dtype != TEXT


class _Values:
    """The values of one file."""

    def __init__(self, path: PurePath, facts: RunFacts, secret_names: frozenset[str]) -> None:
        self._path, self._facts, self._secret_names = path, facts, secret_names
        # The host in the name of an event file says nothing of what is in it.
        self._stem = "events" if path.name.startswith("events.out.tfevents.") else path.stem
        says_nothing = set(measurements.words(self._stem)) <= _SAY_NOTHING
        self._lines = FileLines(facts, "" if says_nothing else self._stem)
        self._count = self._with_time = 0
        self._masked: Counter[str] = Counter()
        self._values: list[Value] = []
        self._size = 0
        self._series: dict[str, Role | None] = {}
        self._rest: dict[tuple[str, Role | None], _Rest] = {}

    def empty(self) -> "_Values":
        """Return the same without values."""
        return _Values(self._path, self._facts, self._secret_names)

    @property
    def is_log(self) -> bool:
        """Whether it is a log by its name, or because most lines begin with a time of the run."""
        words = measurements.words(self._stem)
        of_job = self._path.suffix == ".out" and not _OUTPUT_OF_JOBS.isdisjoint(words)
        named = self._path.suffix in _SUFFIXES_OF_LOGS or of_job or words[-1:] in (["log"], ["logs"])  # not log_odds
        return self._count > 0 and (named or 2 * self._with_time >= self._count)

    def kept(self) -> tuple[Value, ...]:
        """Return the values, those that decide first. Of a log, the words of lines are open."""
        if self.is_log:
            self._values = [
                msgspec.structs.replace(value, role=Role.OPEN) if LINE.fullmatch(value.name) else value
                for value in self._values
            ]
        if unlike := self._too_long() | self._too_many():
            self._values = [
                msgspec.structs.replace(one, role=Role.OPEN) if one.name in unlike else one for one in self._values
            ]
        rest = [
            Value(f"{name} {FURTHER}".strip(), one.digest.hexdigest()[:32], one.role(self._of(name), self._facts, role))
            for (name, role), one in self._rest.items()
        ]
        return tuple(sorted([*self._values, *rest], key=lambda value: _ORDER[value.role]))

    def _too_long(self) -> frozenset[str]:
        """Return the names of durations that together are longer than all cores had, and so are of something else.

        Those that only grow are times since a start.
        """
        columns: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
        for value in self._values:
            if value.role is Role.MEASUREMENT and measurements.meaning_of(self._of(value.name)).alone:
                with suppress(ValueError):
                    columns[_series(value.name)].append((value.name, float(value.shown)))
        most = measurements.longest(self._facts) * (os.cpu_count() or 1)
        return frozenset(
            name
            for column in columns.values()
            if sum(number for _, number in column) > most and column != sorted(column, key=lambda one: one[1])
            for name, _ in column
        )

    def _too_many(self) -> frozenset[str]:
        """Return the names of identifiers that are more than a run has, and none of its own: of rows of the data.

        A run may have few processes, as data has participants; and few others, such as workers, which are numbered.
        """
        columns: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for value in self._values:
            if value.role is Role.IDENTIFIER and value.shown.isdecimal() and len(value.shown) <= _DIGITS_OF_ROWS:
                columns[_series(value.name)][value.name] = int(value.shown)
        own = {*self._facts.pids, *self._facts.ports}
        return frozenset(
            name
            for column in columns.values()
            if _are_of_data(next(iter(column)), [*column.values()]) and own.isdisjoint(column.values())
            for name in column
        )

    def add(self, part: Part, data: Digested) -> None:
        """Take the next part, after its pieces were read."""
        if part.dtype == TEXT and part.text and (_LINES.search(part.name) or _SEVERAL.search(part.text)):
            self._add_text(part)
            return
        if part.dtype == TEXT and not part.text and LINE.fullmatch(part.name):
            self._lines.begin()  # an empty line ends a table
        role = self._role(part, data)
        named = part.dtype == TEXT and 0 < len(part.text) <= _LONGEST_WORD and not measurements.is_digest(part.name)
        if named and role in (Role.RESULT, Role.IDENTIFIER):
            text = measurements.masked(part.text, self._facts)
            of_key = role is Role.IDENTIFIER and measurements.meaning_of(self._of(part.name)).is_name
            if role is Role.RESULT or (not of_key and text != part.text and text.strip(measurements.MASK)):
                role, data = Role.RESULT, Digested(_digest(text))
        self._keep(part, data, role)

    def _add_text(self, part: Part) -> None:
        """Take lines of a text, or a text of several words: its words as one value, then each value in it."""
        lines = part.text.split("\n")
        if part.shape:
            words, results, unknown = self._lines.sums(lines, not self.is_log)
            self._keep(replace(part, text=""), Digested(_digest(f"{words} {results}")), Role.RESULT)
            self._keep(replace(part, name=f"{part.name}, values", text=""), Digested(_digest(unknown)), Role.OPEN)
            return
        if not _LINES.search(part.name):  # a text of its own, such as one of a map without an order
            self._lines.begin()
        read = [self._lines.read(line) for line in lines]
        if LINE.fullmatch(part.name) and part.text.strip():
            self._count += 1
            self._with_time += read[0].has_time
        elif len(lines) == 1 and (role := measurements.role(self._of(part.name), part.text, self._facts)) in _NO_RESULT:
            self._keep(part, Digested(_digest(part.text)), role)
            return
        self._keep(part, Digested(_digest("\n".join(line.words for line in read))), Role.RESULT)
        for label, role, text in _labeled(read):
            name = f"{part.name}, {label}" if part.name else label
            self._keep(replace(part, name=name, text=text), Digested(_digest(text)), role)

    def _keep(self, part: Part, data: Digested, role: Role) -> None:
        role = self._facts.declared.role(part.name) or role
        name = _shortened(self._own_name(part.name))
        if len(self._values) >= MOST_VALUES or self._size > MOST_JSON:
            self._fold(name, part, data, role)
            return
        shown = self._shown(part)
        tensor = part.dtype not in ("", NUMBER, TEXT)
        self._values.append(Value(name, data.digest, role, shown, tensor))
        self._size += len(name) + len(shown) + _SIZE_OF_VALUE

    def _own_name(self, name: str) -> str:
        """Return a name in which a path or a date of the run may be, as that of any run."""
        if "/" not in name or (shown := measurements.masked(name, self._facts)) == name:
            return name
        self._masked[shown] += 1
        again = self._masked[shown]
        return shown.replace(measurements.MASK, "…") + (f"#{again}" if again > 1 else "")

    def may_be_measured(self, part: Part) -> bool:
        """Return whether the elements of an array may be a measurement, by its name or because they may be moments."""
        if part.dtype in ("", NUMBER, TEXT) or is_generator(part):
            return False
        return (part.dtype[1:3] == "f8" and math.prod(part.shape) <= _MOST_MOMENTS) or self._is_named_so(part)

    def _is_named_so(self, part: Part) -> bool:
        """Return whether the name of an array lets its elements be a measurement."""
        name = self._of(part.name)
        samples = (0.0, 1.0, float(math.floor(self._facts.started)))
        return any(measurements.array_role(name, one, one, self._facts) is not Role.RESULT for one in samples)

    def _of(self, name: str) -> str:
        """Return the name by which a value is known: the file's, and the path inside without places and numbers."""
        inside = _series(_PLACE.sub("", name))
        return f"{self._stem}.{inside}" if inside else self._stem

    def _role(self, part: Part, data: Digested) -> Role:
        if is_generator(part):
            return Role.GENERATOR
        if _LISTENER in part.name:
            return Role.IDENTIFIER
        if part.dtype in (NUMBER, TEXT):
            if part.text:
                return self._noted(part.name, measurements.role(self._of(part.name), part.text, self._facts))
            # Many values in one, of which only the name and those before them are known.
            return self._series.get(_series(_BLOCK.sub("", part.name))) or Role.RESULT
        if part.name == PIXELS and measurements.meaning_of(self._stem).is_measured:
            return Role.OPEN  # step_time.png
        if not self.may_be_measured(part):
            return Role.RESULT
        if data.extremes is None:
            return Role.OPEN if self._is_named_so(part) else Role.RESULT
        return measurements.array_role(self._of(part.name), *data.extremes, self._facts)

    def _noted(self, name: str, role: Role) -> Role:
        """Return the role, and note it as that of all values of this series, if they have the same."""
        series = _series(name)
        if len(self._series) < MOST_SERIES or series in self._series:
            self._series[series] = role if self._series.get(series, role) is role else Role.RESULT
        return role

    def _shown(self, part: Part) -> str:
        if not part.text or len(part.text) > MOST_SHOWN:
            return ""
        keys = re.split(r"[.,/:\[\]@ ]+", part.name)
        if any(key in self._secret_names or _is_secret(key) for key in keys):
            return redact.HIDDEN
        return redact.text(part.text)

    def _fold(self, name: str, part: Part, data: Digested, of_one: Role) -> None:
        """Take a value that is not kept: into a digest of its series, numbers of one series together."""
        declared = self._facts.declared.role(part.name)
        number = part.dtype == NUMBER and bool(part.text) and not is_generator(part) and declared is None
        role = None if number else Role.OPEN if LINE.fullmatch(name) and self.is_log else of_one
        key = _series(name), role
        if key not in self._rest and len(self._rest) >= MOST_SERIES:
            key = "", role
        rest = self._rest.setdefault(key, _Rest())
        rest.digest.update(f"{name!r} {data.digest}\n".encode(errors="surrogatepass"))
        if number:
            rest.take(part.text)


@dataclass
class _Rest:
    """Values of one series that are folded into one digest, and the least and the largest number of them."""

    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    least: float = math.inf
    most: float = -math.inf
    finite: bool = True

    def take(self, text: str) -> None:
        try:
            value = float(text)
        except (ValueError, OverflowError):
            self.finite = False
            return
        self.finite &= math.isfinite(value)
        self.least, self.most = min(self.least, value), max(self.most, value)

    def role(self, name: str, facts: RunFacts, role: Role | None) -> Role:
        """Return the role of all: the one that they have, or that of their numbers."""
        if role is not None:
            return role
        return measurements.array_role(name, self.least, self.most, facts) if self.finite else Role.RESULT


def _are_of_data(name: str, numbers: list[int]) -> bool:
    """Return whether numbers that a column is known by, such as those of jobs, are hardly those of a run."""
    known = {*numbers}
    if _OF_PROCESS.search(name):
        return len(known) > _MOST_PROCESSES
    gaps = len(known) <= max(known) - min(known)
    return len(known) > 1 and (gaps or (len(known) > _MOST_PROCESSES and numbers != sorted(numbers)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def _labeled(lines: list[FileLine]) -> Iterator[tuple[str, Role, str]]:
    """Yield the values of lines, each with a label that no other one has."""
    seen: Counter[str] = Counter()
    for line in lines:
        for label, role, text in line.values:
            label = label or "value"
            seen[label] += 1
            yield label if seen[label] == 1 else f"{label} {seen[label]}", role, text


_is_secret = functools.lru_cache(maxsize=2**12)(redact.is_secret)  # many values have the same keys


def _series(name: str) -> str:
    return _DIGITS.sub("*", name)


def _shortened(name: str) -> str:
    if len(name) <= _MOST_NAME:
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{name[: _MOST_NAME // 2]}…{digest}"
