"""What `detaudit verify` says of an archive, as lines of text and as JSON."""

from collections.abc import Collection, Iterator

import msgspec

from detaudit.errors import ExitCode
from detaudit.evidence.changes import AnyChange, Change, FileChanged, FileUnreadable
from detaudit.evidence.materials import Unhashed
from detaudit.evidence.statement import NOTE
from detaudit.model import SCHEMA_VERSION, AnyVerdict, ComparisonVerdict, Difference
from detaudit.model.fact import encode, shortened

FORMATS = ("table", "json")
"""The values of ``--format``."""


class Rerun(msgspec.Struct, frozen=True, kw_only=True):
    """One more run of an audit of the archive, compared with the audit's first finished run.

    ``audit`` is its name in a check, ``""`` of a single audit. ``verdict`` is null if the run did not finish,
    ``code_changed`` names its source files that are not those of the archive.
    """

    audit: str
    command: tuple[str, ...]
    folder: str
    code_changed: tuple[str, ...]
    archive_repeats: bool
    verdict: ComparisonVerdict | None
    first_difference: Difference | None

    def text(self) -> str:
        """Return what it shows."""
        name = f"{self.audit}: " if self.audit else ""
        if self.verdict is None:
            return f"rerun: {name}the run failed: {self.folder}"
        if self.verdict is ComparisonVerdict.IDENTICAL:
            code = f", although {shortened(self.code_changed, most=3)} changed" if self.code_changed else ""
            return f"rerun: {name}the same result as in the archive{code}"
        where = f" {self.first_difference.where()}" if self.first_difference is not None else ""
        archive = "" if self.archive_repeats else ", and so do the runs of the archive"
        return f"rerun: {name}{self.verdict}{where}{archive}: {self.folder}"


class Verification(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="verify"):
    """What was checked of an archive.

    ``verdict`` is that of its report and ``detaudit`` the version that judged it. ``edited`` says what is not as it was
    written. ``changed`` is null if the archive was checked alone, ``reruns`` if nothing was run.
    """

    schema_version: str = SCHEMA_VERSION
    file: str
    verdict: AnyVerdict
    detaudit: str
    edited: tuple[str, ...]
    changed: tuple[AnyChange, ...] | None
    reruns: tuple[Rerun, ...] | None
    not_judged_again: tuple[str, ...]
    not_hashed: tuple[Unhashed, ...]

    @property
    def exit_code(self) -> ExitCode:
        """The exit status: 1 if something was edited, has changed or differs, 125 if a rerun shows nothing."""
        verdicts = {one.verdict for one in self.reruns or ()}
        if self.edited or self.changed or ComparisonVerdict.DIFFERENT in verdicts:
            return ExitCode.NONDETERMINISTIC
        return ExitCode.INCONCLUSIVE if verdicts - {ComparisonVerdict.IDENTICAL} else ExitCode.DETERMINISTIC

    def lines(self) -> Iterator[str]:
        """Yield it as text, what needs attention first."""
        yield from (f"edited: {text}" for text in self.edited)
        yield from (f"changed: {change.text()}" for change in self.changed or ())
        yield from (one.text() for one in self.reruns or ())
        yield from (f"not judged again: {text}" for text in self.not_judged_again)
        yield from (f"not hashed: {one.name}: {one.why}" for one in self.not_hashed)
        if self.edited:
            yield f"{self.file}: not as it was written"
        else:
            yield f"{self.file}: as it was written: {self.verdict}, judged again from its logs"
            if self.changed == ():
                yield "nothing that was hashed has changed since"
        yield NOTE

    def to_json(self) -> bytes:
        """Return it as JSON."""
        return msgspec.json.format(encode(self), indent=2) + b"\n"


def code_changed(changed: Collection[Change], code: Collection[str]) -> tuple[str, ...]:
    """Return which of the files in ``code`` are not as they were."""
    files = (one for one in changed if isinstance(one, FileChanged | FileUnreadable) and one.material == "code")
    return tuple(one.name for one in files if one.name in code)
