"""What is compared because it was asked for: the losses that --loss-pattern finds, the files that --artifact names."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from detaudit import wire
from detaudit.auditor.evidence import printed
from detaudit.auditor.evidence.artifacts import Contents, Files, read
from detaudit.auditor.evidence.formats import UnusableError
from detaudit.auditor.evidence.outputs import is_ignored
from detaudit.model import Artifact, FinalState, RunError, Stage, Training, Warning, as_number  # the term
from detaudit.model.problems import ArtifactUnusable


@dataclass(frozen=True)
class Unhooked:
    """What is compared beside the trainings; ``errors`` say what was requested and is missing.

    ``named`` are the paths of the files among it.
    """

    parts: tuple[Training, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    named: frozenset[str] = frozenset()
    errors: tuple[RunError, ...] = ()
    warnings: tuple[Warning, ...] = ()


class Watch:
    """Created before a run starts, asked after it ended.

    ``patterns`` are paths or globs, relative to ``cwd``; the results folder ``results`` is never searched. What
    ``ignore`` matches is left out.
    """

    def __init__(
        self,
        loss: re.Pattern[str] | None,
        patterns: Sequence[str],
        cwd: Path,
        results: Path,
        ignore: Sequence[str] = (),
    ) -> None:
        self._loss, self._ignore = loss, ignore
        self._cwd = cwd
        self._files = [Files(pattern, cwd, results) for pattern in patterns]

    def look(self, folder: Path) -> Unhooked:
        """Return what the run with its logs in ``folder`` printed and wrote."""
        losses = printed.read(folder / "stdout.log", self._loss) if self._loss else printed.Printed()
        errors, warnings = [losses.error], []
        contents: dict[str, Contents] = {}
        for files in self._files:
            written = files.written()
            errors.append(written.error)
            warnings.append(written.warning)
            for name, path in written.files.items():
                if is_ignored(name, self._ignore):
                    continue
                try:
                    contents[name] = read(path)
                except UnusableError as error:
                    errors.append(ArtifactUnusable(path=name, detail=str(error)))
        found = (losses.training, _files(contents) if contents else None)
        return Unhooked(
            parts=tuple(part for part in found if part is not None),
            artifacts=tuple(_artifact(name, content) for name, content in sorted(contents.items())),
            named=frozenset(str(self._cwd / name) for name in contents),
            errors=tuple(error for error in errors if error is not None),
            warnings=tuple(warning for warning in warnings if warning is not None),
        )


def _files(contents: dict[str, Contents]) -> Training:
    """Return files as a training without steps: their bytes, and what they hold, are at step 0."""
    parts = tuple(
        f"{digest} {name}: {part}" if part else f"{digest} {name}"
        for name, content in sorted(contents.items())
        for part, digest in (*((part, digest) for part, digest in content.values if part), ("", content.digest))
    )
    totals = [content.total for content in contents.values() if content.total is not None]
    final = FinalState(
        digest=hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest(),
        sum=as_number(wire.add_up(totals)) if totals else None,
    )
    return Training(framework=Stage.ARTIFACT.value, digests={Stage.ARTIFACT: {0: parts}}, final=final)


def _artifact(name: str, content: Contents) -> Artifact:
    return Artifact(path=name, by="bytes", digest=content.digest, sum_of_weights=as_number(content.total))
