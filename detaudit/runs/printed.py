"""Read the losses of a run from its stdout."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from detaudit.config.options import STEP, loss_group
from detaudit.launch.local import was_cut
from detaudit.model import Number, RunError, Stage, Training, as_number
from detaudit.model.problems import (
    LossPatternFlood,
    LossPatternMisfit,
    LossPatternUnmatched,
    StdoutTruncated,
    StdoutUnreadable,
)

"""The groups of a pattern. If none is called ``loss``, the first that is not ``step`` is it."""

MOST_LOSSES = 1_000_000
_MOST_STEP = 2**53
_SHOWN = 120


@dataclass(frozen=True)
class Printed:
    """The losses as one training, or why there are none."""

    training: Training | None = None
    error: RunError | None = None


class _PatternError(Exception):
    """The pattern does not find losses; the first argument is the error of the run."""

    def __init__(self, error: RunError) -> None:
        super().__init__(error)
        self.error = error


def read(log: Path, pattern: re.Pattern[str]) -> Printed:
    """Return the losses in a log, one per step: the step in the group ``step``, else counted from 1.

    Every character of a printed number counts. A truncated log is not read, because losses are missing.
    """
    try:
        if was_cut(log):
            return Printed(error=StdoutTruncated())
        digests: dict[int, list[str]] = {}
        losses: dict[int, Number] = {}
        for step, text, value in _losses(log, pattern):
            digests.setdefault(step, []).append(hashlib.blake2b(text.encode(), digest_size=16).hexdigest())
            losses.pop(step, None)  # the last one printed comes last
            losses[step] = as_number(value)
    except _PatternError as misfit:
        return Printed(error=misfit.error)
    except OSError as error:
        return Printed(error=StdoutUnreadable(detail=str(error)))
    if not digests:
        return Printed(error=LossPatternUnmatched(pattern=pattern.pattern, last_line=_last_line(log)))
    stage_digests = {Stage.STDOUT: {step: tuple(texts) for step, texts in digests.items()}}
    return Printed(Training(framework=Stage.STDOUT.value, steps=max(digests), digests=stage_digests, losses=losses))


def _losses(log: Path, pattern: re.Pattern[str]) -> Iterator[tuple[int, str, float]]:
    group, count = loss_group(pattern) or 0, 0
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            for match in pattern.finditer(line.rstrip("\n")):
                text = match[group]
                if text is None:  # an optional group that did not match
                    continue
                count += 1
                if count > MOST_LOSSES:
                    raise _PatternError(LossPatternFlood(pattern=pattern.pattern, limit=MOST_LOSSES))
                yield _step(match, count), text, _loss(match, text)


def _step(match: re.Match[str], count: int) -> int:
    text = match[STEP] if STEP in match.re.groupindex else None
    if text is None:
        return count
    if not text.strip().isdecimal() or len(text) > 15:
        raise _PatternError(LossPatternMisfit(pattern=match.re.pattern, group="step", matched=text[:_SHOWN]))
    return int(text)


def _loss(match: re.Match[str], text: str) -> float:
    try:
        return float(text)
    except ValueError:
        misfit = LossPatternMisfit(pattern=match.re.pattern, group="loss", matched=text[:_SHOWN])
        raise _PatternError(misfit) from None


def _last_line(log: Path) -> str:
    last = ""
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            last = line.strip() or last
    return last[-_SHOWN:]
