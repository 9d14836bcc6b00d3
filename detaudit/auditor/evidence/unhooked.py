"""What a run shows without any hook: the losses that it prints and the files that it writes."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from detaudit.auditor.evidence import printed
from detaudit.auditor.evidence.artifacts import Contents, Files, read
from detaudit.auditor.evidence.formats import UnusableError
from detaudit.auditor.evidence.formats.floats import add_up
from detaudit.model import Artifact, FinalState, Stage, Training, as_number


@dataclass(frozen=True)
class Unhooked:
    """What is compared beside the trainings, and why what was asked for is not there, ``""`` if it is."""

    parts: tuple[Training, ...] = ()
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

    def look(self, folder: Path) -> Unhooked:
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
        return Unhooked(
            parts=(*([losses.training] if losses.training else []), *([_files(contents)] if contents else [])),
            artifacts=tuple(_artifact(name, content) for name, content in sorted(contents.items())),
            problem="; ".join(filter(None, problems)),
            warnings=tuple(filter(None, warnings)),
        )


def _files(contents: dict[str, Contents]) -> Training:
    """Return files as a training without steps: all their tensors are at step 0."""
    parts = tuple(
        f"{digest} {name}: {part}" if part else f"{digest} {name}"
        for name, content in sorted(contents.items())
        for part, digest in content.parts
    )
    totals = [content.total for content in contents.values() if content.total is not None]
    final = FinalState(
        digest=hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest(),
        sum=as_number(add_up(totals)) if totals else None,
    )
    return Training(framework=Stage.ARTIFACT.value, digests={Stage.ARTIFACT: {0: parts}}, final=final)


def _artifact(name: str, content: Contents) -> Artifact:
    return Artifact(path=name, by=content.by, digest=content.digest, sum_of_weights=as_number(content.total))
