"""What a replay shows: one operation of a trace, run many times on the inputs that were recorded."""

import msgspec

from detaudit.compat import StrEnum

MOST_RESULTS = 8
"""Counts of different results that a report lists, the most frequent first."""


class Condition(StrEnum):
    """Under which condition an operation is repeated, each in a process of its own.

    - ``as-recorded``    with the settings of the training, and as many threads
    - ``loaded``         the same, with a busy process for each CPU beside it
    - ``filled``         as recorded, and new memory is filled with one byte after the other
    - ``one-thread``     with one thread, and memory filled in the same way
    - ``deterministic``  with the framework's deterministic mode, loaded, and memory filled in the same way
    """

    AS_RECORDED = "as-recorded"
    LOADED = "loaded"
    FILLED = "filled"
    ONE_THREAD = "one-thread"
    DETERMINISTIC = "deterministic"


class ReplayVerdict(StrEnum):
    """What an operation does by itself, if its inputs are the same.

    - ``races``          its threads race: the results differ
    - ``varies``         the results differ with one thread too
    - ``memory``         it reads uninitialized memory: the result follows what memory is filled with
    - ``per-process``    the results of one process match, and those of another process are different
    - ``deterministic``  all results match
    - ``inconclusive``   it could not be repeated
    """

    RACES = "races"
    VARIES = "varies"
    MEMORY = "memory"
    PER_PROCESS = "per-process"
    DETERMINISTIC = "deterministic"
    INCONCLUSIVE = "inconclusive"


class ModeEffect(StrEnum):
    """What the framework's deterministic mode does: all results match, it raises an error, or they still differ."""

    FIXES = "fixes"
    RAISES = "raises"
    NO_EFFECT = "no-effect"


class Obstacle(StrEnum):
    """Why an operation was not replayed.

    - ``not-recorded``    no instrumented run recorded its inputs
    - ``too-large``       its inputs do not fit into memory
    - ``argument``        an argument has a type that cannot be saved
    - ``random``          it draws random numbers
    - ``library``         it was defined by the script, or by a library that cannot be imported alone
    - ``variable``        the value of a variable that it uses is unknown
    - ``failed``          the process that was to repeat it failed
    """

    NOT_RECORDED = "not-recorded"
    TOO_LARGE = "too-large"
    ARGUMENT = "argument"
    RANDOM = "random"
    LIBRARY = "library"
    VARIABLE = "variable"
    FAILED = "failed"


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one operation under one condition: ``distinct`` ones in so many ``repeats``.

    ``fill`` is the byte, in hexadecimal, that memory was filled with, ``""`` if it was left as it is. ``counts`` says
    how often each of the MOST_RESULTS most frequent ones came out. ``error`` is that of the first repeat, ``""`` if it
    raised none.
    """

    condition: Condition
    fill: str = ""
    threads: int = 0
    repeats: int = 0
    distinct: int = 0
    counts: tuple[int, ...] = ()
    error: str = ""

    @property
    def differing(self) -> int:
        """How many results differ from the most frequent one; all of them if no two match."""
        if self.distinct > 1 and self.counts[0] == 1:
            return self.repeats
        return self.repeats - self.counts[0] if self.counts else 0


class ReplayedPass(msgspec.Struct, frozen=True, kw_only=True):
    """What the forward or the backward pass of an operation does by itself, and how its ``mode`` changes that.

    ``mode`` is null if there is nothing to fix, and if it is unknown.
    """

    verdict: ReplayVerdict
    mode: ModeEffect | None = None
    series: tuple[Series, ...] = ()


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """An operation that was repeated, or the ``obstacle`` to that, with a ``detail`` such as an error.

    ``own`` is the operation itself, ``gradient`` the backward pass that autograd makes of it, null if it has none.
    ``saved_to`` is the folder of the script that shows it.
    """

    own: ReplayedPass | None = None
    gradient: ReplayedPass | None = None
    obstacle: Obstacle | None = None
    detail: str = ""
    saved_to: str | None = None
