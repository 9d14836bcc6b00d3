"""What leaves a run beside its training: files and printed text, value by value, and where two runs differ in them."""

import msgspec

from detaudit.compat import StrEnum


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


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is known by. ``started`` and ``ended`` are in seconds since 1970, in UTC.

    ``names`` are texts that only stand for this run: its host, user, folders and temporary folders. ``shift_s`` is what
    a variation added to its clock.
    """

    started: float
    ended: float
    pids: frozenset[int] = frozenset()
    ports: frozenset[int] = frozenset()
    names: tuple[str, ...] = ()
    shift_s: float = 0.0


class Value(msgspec.Struct, frozen=True, array_like=True):
    """One value of a file: its path inside (``row 3, target``; ``optimizer.state.0.exp_avg``; ``""`` for all of it).

    ``digest`` is of its type and bytes. ``shown`` is the value itself, without secrets, if it is short: a number or a
    text; ``""`` for arrays and long texts.
    """

    name: str
    digest: str
    role: Role = Role.RESULT
    shown: str = ""


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a run wrote.

    ``path`` is as people name it: relative to the working directory if it is below. ``name`` is the path in the first
    run that wrote it, by which runs are compared (they may put a date in it). ``sha256`` is of its bytes, ``""`` if
    they were not read. ``values`` is what it holds, the values that decide first; ``by`` says how it was read: a name
    of a format such as ``csv`` or ``torch``, or ``bytes``. ``problem`` says why it could not be read as that format.
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
    STDERR_LINES = "stderr-lines"  # lines on stderr that only some runs have


DECIDING = frozenset({OutputKind.VALUE, OutputKind.ONLY_ONE})
"""A difference of this kind is one of the result."""

OPEN = frozenset({OutputKind.WORDS, OutputKind.UNREADABLE, OutputKind.AMBIGUOUS, OutputKind.UNREAD})
"""A difference of this kind makes the verdict inconclusive. All others are listed."""

STDOUT, STDERR = "stdout", "stderr"


class OutputDifference(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between the outputs of two runs, in one file or stream.

    ``path`` is the name of the file, or ``stdout`` or ``stderr``. ``at`` is the path inside: ``row 3, target``,
    ``line 12``. ``values`` has what each of the two runs shows there, without secrets, ``("", "")`` if that is long or
    unknown. ``more`` counts further values of this kind in the same file. ``only_run`` is 1 or 2 if only the first or
    second of the two has the file or the line, 0 if both do. ``problem`` says why a file could not be read. ``runs``
    are the numbers of the two runs.
    """

    path: str
    kind: OutputKind
    at: str = ""
    values: tuple[str, str] = ("", "")
    more: int = 0
    only_run: int = 0
    problem: str = ""
    runs: tuple[int, int] = (0, 0)

    @property
    def decides(self) -> bool:
        """Whether the results of the two runs differ."""
        return self.kind in DECIDING

    @property
    def open(self) -> bool:
        """Whether nobody can say if the results of the two runs differ."""
        return self.kind in OPEN


class TextBlock(msgspec.Struct, frozen=True, array_like=True):
    """Some consecutive lines of a text as digests; see ``outputs/text.py``, which makes and compares them."""

    first_line: int
    lines: int
    words: str
    values: str


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """What a run printed to one stream, as a terminal would leave it: all of it as ``blocks``, the start as ``lines``.

    ``lines`` are the first lines, in the order in which they ended, as they are shown on a terminal (redacted when they
    are reported, not here), up to a limit of bytes. ``count`` is the number of all lines.
    """

    count: int = 0
    size: int = 0
    lines: tuple[str, ...] = ()
    blocks: tuple[TextBlock, ...] = ()


class ListedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that a run wrote and that is only listed: ``row`` is the id of the row of configs/outputs.yaml."""

    path: str
    row: str


class Outputs(msgspec.Struct, frozen=True, kw_only=True):
    """All that left a run: what is compared of it beside its training.

    ``digests_only``: as a lock file keeps it, with one value for each file and one block for each stream. ``unread``
    says what the budget left out, ``""`` if nothing. ``listed`` are the files that are not compared by what they are.
    """

    files: tuple[File, ...] = ()
    stdout: Text | None = None
    stderr: Text | None = None
    facts: RunFacts | None = None
    exit_code: int | None = None
    unread: str = ""
    digests_only: bool = False
    listed: tuple[ListedFile, ...] = ()
