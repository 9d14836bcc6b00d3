"""A scripted training of 1,000 steps: a test says what each run with some flags does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from detaudit.judge.policy import END, NONE, START, Flags, Length, OneRun, TrialOutcome

MATCHES, DIFFERS, FAILS = TrialOutcome.MATCHES, TrialOutcome.DIFFERS, TrialOutcome.FAILS

Shows: TypeAlias = int | TrialOutcome | None


def matches(through: int, compared: int = -1) -> OneRun:
    return OneRun(MATCHES, through, compared, name="kept")


def differs(*steps: int, compared: int = END) -> list[OneRun]:
    return [OneRun(DIFFERS, step, compared, (step,), "kept") for step in steps]


@dataclass
class Scripted:
    """A training of 1,000 steps. ``shows`` has what each new run with flags does, in turn: where it differs, FAILS.

    It matches if that is None or nothing, or if it differs after the step through which it is compared.
    """

    shows: Mapping[Flags, Sequence[Shows]] = field(default_factory=dict)
    kept: dict[Flags, list[OneRun]] = field(default_factory=dict)
    length: Length | None = None
    seconds: float = 1000.0
    first: int = 10
    whole: bool = False
    asked: list[tuple[Flags, int]] = field(default_factory=list)

    def runs(self, flags: Flags) -> Sequence[OneRun]:
        return self.kept.get(flags, [])

    def run(self, flags: Flags, through: int, more: int = 0) -> None:
        shows = dict(enumerate(self.shows.get(flags, ()))).get(len(self.of(flags)))
        self.asked.append((flags, through))
        kept = self.kept.setdefault(flags, [])
        reached = END if self.whole or through >= 1000 else self.first if through == START else through
        compared = min(reached, max((run.through for run in kept if run.outcome is MATCHES), default=-1))
        name = "".join(flags) or "none"
        if shows is FAILS:
            kept.append(OneRun(FAILS, reached, compared, name=name))
        elif isinstance(shows, int) and shows <= compared:
            kept.append(OneRun(DIFFERS, shows, compared, (shows, 7), name))
        else:
            if reached == END:
                self.length = Length(1000, self.seconds)
            kept.append(OneRun(MATCHES, reached, compared, name=name))

    def of(self, flags: Flags) -> list[int]:
        """Return through which steps runs with these flags were asked for."""
        return [through for asked, through in self.asked if asked == flags]


def known(
    kept: Mapping[str, list[OneRun]] | None = None,
    shows: Mapping[Flags, Sequence[Shows]] | None = None,
    *,
    first: int = 10,
    seconds: float = 1000.0,
) -> Scripted:
    """Return a training whose length is known, from a run without flags; ``kept`` are the runs with each flag."""
    runs = {
        NONE: [matches(first), matches(END, first)],
        **{frozenset(flag): runs for flag, runs in (kept or {}).items()},
    }
    return Scripted(shows or {}, runs, Length(1000, seconds), seconds, first)
