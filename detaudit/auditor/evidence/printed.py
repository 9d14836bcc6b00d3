"""Takes the losses of a run from what it printed."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from detaudit.errors import UsageError
from detaudit.launch.log import was_cut
from detaudit.model import Number, Stage, Training, as_number

LOSS, STEP = "loss", "step"
"""The groups of a pattern. Where none is called ``loss``, the first that is not ``step`` is it."""

MOST_LOSSES = 1_000_000
_MOST_STEP = 2**53
_SHOWN = 120


@dataclass(frozen=True)
class Printed:
    """The losses as one training, or why there are none."""

    training: Training | None = None
    problem: str = ""


class _PatternMisfitError(Exception):
    """The pattern finds what is no loss; the message says what."""


def compiled(pattern: str) -> re.Pattern[str]:
    """Return the pattern of --loss-pattern. Raises UsageError where it is broken or has no group for the loss."""
    example = r"for example --loss-pattern 'loss[ :=]+(\S+)'."
    try:
        found = re.compile(pattern)
    except re.error as error:
        place = f"\n  {error.pattern!s}\n  {' ' * (error.pos or 0)}^" if "\n" not in pattern else ""
        raise UsageError(
            f"--loss-pattern is no regular expression: {error}{place}", f"Mend it there; {example}"
        ) from error
    if _loss_group(found) is None:
        raise UsageError(
            f"--loss-pattern {pattern!r} has no group that the loss is taken from",
            f"Put parentheses around the number: {example}",
        )
    return found


def _loss_group(pattern: re.Pattern[str]) -> int | None:
    step = pattern.groupindex.get(STEP)
    others = (number for number in range(1, pattern.groups + 1) if number != step)
    return pattern.groupindex.get(LOSS) or next(others, None)


def read(log: Path, pattern: re.Pattern[str]) -> Printed:
    """Return the losses in a log, each a step: the one that the group ``step`` gives, else counted from 1.

    Every letter of the printed number counts. A log that was cut is not read: nobody knows which losses are left.
    """
    try:
        if was_cut(log):
            return Printed(problem="it printed more than is kept, so the losses before the last MiB are not known")
        digests: dict[int, list[str]] = {}
        losses: dict[int, Number] = {}
        for step, text, value in _losses(log, pattern):
            digests.setdefault(step, []).append(hashlib.blake2b(text.encode(), digest_size=16).hexdigest())
            losses.pop(step, None)  # the last one printed comes last
            losses[step] = as_number(value)
    except _PatternMisfitError as misfit:
        return Printed(problem=f"--loss-pattern {pattern.pattern!r} {misfit}")
    except OSError as error:
        return Printed(problem=f"what it printed cannot be read: {error}")
    if not digests:
        return Printed(problem=f"--loss-pattern {pattern.pattern!r} matched nothing on stdout, {_last_line(log)}")
    found = {Stage.STDOUT: {step: tuple(texts) for step, texts in digests.items()}}
    return Printed(Training(framework=Stage.STDOUT.value, steps=max(digests), digests=found, losses=losses))


def _losses(log: Path, pattern: re.Pattern[str]) -> Iterator[tuple[int, str, float]]:
    group, count = _loss_group(pattern) or 0, 0
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            for match in pattern.finditer(line.rstrip("\n")):
                text = match[group]
                if text is None:  # an optional group that took no part
                    continue
                count += 1
                if count > MOST_LOSSES:
                    raise _PatternMisfitError(f"matched more than {MOST_LOSSES} times")
                yield _step(match, count), text, _number(text)


def _step(match: re.Match[str], count: int) -> int:
    text = match[STEP] if STEP in match.re.groupindex else None
    if text is None:
        return count
    if not text.strip().isdecimal() or len(text) > 15:
        raise _PatternMisfitError(f"took {text[:_SHOWN]!r} for a step, which is no whole number")
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _PatternMisfitError(f"took {text[:_SHOWN]!r} for a loss, which is no number") from None


def _last_line(log: Path) -> str:
    last = ""
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            last = line.strip() or last
    return f"whose last line is {last[-_SHOWN:]!r}" if last else "where there is nothing"
