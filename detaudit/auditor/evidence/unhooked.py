"""What a run shows without any hook: the losses that it prints and the files that it writes."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from detaudit.auditor.evidence import printed
from detaudit.auditor.evidence.artifacts import Contents, Files, read
from detaudit.auditor.evidence.event_logs import Stream
from detaudit.auditor.evidence.event_records import Final
from detaudit.auditor.evidence.formats import UnusableError
from detaudit.auditor.evidence.formats.floats import add_up
from detaudit.model import Artifact, Stage, as_number


@dataclass(frozen=True)
class Outside:
    """The streams to compare, the last ones of a run, and why what was asked for is not there, ``""`` if it is."""

    streams: tuple[Stream, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    problem: str = ""
    warnings: tuple[str, ...] = ()


class Watch:
    """Made before a run begins, asked after it ended.

    ``patterns`` are paths or globs, relative to ``cwd``; what lies below ``results`` is ours and never looked at.
    """

    def __init__(self, loss: re.Pattern[str] | None, patterns: Sequence[str], cwd: Path, results: Path) -> None:
        self._loss = loss
        self._files = [Files(pattern, cwd, results) for pattern in patterns]

    def look(self, folder: Path) -> Outside:
        """Return what the run whose logs are in ``folder`` has shown."""
        losses = printed.read(folder / "stdout.log", self._loss) if self._loss else printed.Printed()
        problems, warnings = [losses.problem], []
        contents: dict[str, Contents] = {}
        for files in self._files:
            written = files.written()
            problems.append(written.problem)
            warnings.append(written.warning)
            for name, path in written.files.items():
                try:
                    contents[name] = read(path)
                except UnusableError as error:
                    problems.append(f"{name} {error}")
        return Outside(
            streams=(*([losses.stream] if losses.stream else []), *([_stream(contents)] if contents else [])),
            artifacts=tuple(_artifact(name, content) for name, content in sorted(contents.items())),
            problem="; ".join(filter(None, problems)),
            warnings=tuple(filter(None, warnings)),
        )


def _stream(contents: dict[str, Contents]) -> Stream:
    """Return files as one stream without steps; see Stream.stages for its one event."""
    parts = tuple(
        f"{digest} {name}: {part}" if part else f"{digest} {name}"
        for name, content in sorted(contents.items())
        for part, digest in content.parts
    )
    totals = [content.total for content in contents.values() if content.total is not None]
    final = Final(
        fw=Stage.ARTIFACT.value,
        steps=0,
        digest=hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest(),
        sum=add_up(totals).hex() if totals else "",
        loss=None,
        params=len(parts),
        sparse=False,
        devices=(),
    )
    return Stream(Stage.ARTIFACT.value, {0: {Stage.ARTIFACT: parts}}, final)


def _artifact(name: str, content: Contents) -> Artifact:
    return Artifact(path=name, by=content.by, digest=content.digest, sum_of_weights=as_number(content.total))
