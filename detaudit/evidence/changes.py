"""What has changed since runs were archived: their code, data, packages, commit and machine, each as a fact."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from detaudit.evidence.materials import (
    Hashed,
    Materials,
    Package,
    Report,
    code_sha256,
    git_state,
    packages_of,
    python_of,
    sha256,
)
from detaudit.model.fact import Fact, union
from detaudit.runs import environment


class Change(Fact, frozen=True, kw_only=True):
    """One thing that is not as it was when the archive was written."""


class FileChanged(Change, frozen=True, kw_only=True):
    """A file with other bytes. ``material`` is ``code`` or ``data``; sizes are in bytes, null if they are unknown."""

    material: str
    name: str
    sha256_then: str
    sha256_now: str
    size_then: int | None
    size_now: int

    def text(self) -> str:
        then = "unknown" if self.size_then is None else self.size_then
        return f"{self.material}: {self.name} has changed ({then} bytes then, {self.size_now} now)"


class FileUnreadable(Change, frozen=True, kw_only=True):
    """A file that is gone, or cannot be read."""

    material: str
    name: str
    error: str

    def text(self) -> str:
        return f"{self.material}: {self.name} cannot be read: {self.error}"


class CodeAdded(Change, frozen=True, kw_only=True):
    """A source file that a rerun loaded, and no run of the archive."""

    name: str

    def text(self) -> str:
        return f"code: {self.name} is new: the rerun loaded it, and no run of the archive"


class PackageChanged(Change, frozen=True, kw_only=True):
    """A package that is new (``then`` is null), gone (``now`` is null), of a different version or of other files."""

    name: str
    then: str | None
    now: str | None

    def text(self) -> str:
        if self.then is None or self.now is None:
            return f"packages: {self.name} {self.now or self.then or ''} {'is gone' if self.now is None else 'is new'}"
        if self.then == self.now:
            return f"packages: {self.name} {self.now} has other files than then"
        return f"packages: {self.name} {self.then} then, {self.now} now"


class PackagesUnknown(Change, frozen=True, kw_only=True):
    """The packages of today cannot be listed."""

    why: str

    def text(self) -> str:
        return f"packages: {self.why}"


class CommitChanged(Change, frozen=True, kw_only=True):
    """The project is at a different commit; ``now`` is null if it is at none."""

    then: str
    now: str | None

    def text(self) -> str:
        return f"git: commit {self.then[:12]} then, {self.now[:12] if self.now else 'none'} now"


class TreeChanged(Change, frozen=True, kw_only=True):
    """The tree differs from its commit in a different way."""

    def text(self) -> str:
        return "git: the tree has other changes than then beside its commit"


class MachineChanged(Change, frozen=True, kw_only=True):
    """A fact of the machine, or the version of its Python."""

    name: str
    then: str
    now: str

    def text(self) -> str:
        return f"machine: {self.name}: {self.then or 'none'} then, {self.now or 'none'} now"


class VariableChanged(Change, frozen=True, kw_only=True):
    """An environment variable that affects determinism; null if it is unset."""

    name: str
    then: str | None
    now: str | None

    def text(self) -> str:
        return f"variables: {self.name}: {self.then or 'unset'} then, {self.now or 'unset'} now"


if TYPE_CHECKING:
    AnyChange: TypeAlias = Change
else:
    AnyChange = union(Change)


def changes(then: Materials, report: Report, cwd: Path, python: str = "") -> Iterator[Change]:
    """Yield what is not as it was: code, data, packages, the commit and the machine."""
    yield from _files("code", then.code, cwd)
    yield from _files("data", then.data, cwd)
    version, packages, missing = packages_of(python or python_of(report, cwd))
    if missing:
        yield PackagesUnknown(why=missing)
    else:
        yield from _packages(then.packages, packages)
    git, _, _ = git_state(cwd)
    if then.git is not None:
        if git is None or git.commit != then.git.commit:
            yield CommitChanged(then=then.git.commit, now=git.commit if git else None)
        elif git.diff != then.git.diff:
            yield TreeChanged()
    now = {**environment.describe(), "python": version or None}
    for name in sorted(now.keys() & then.machine.keys()):
        if then.machine[name] is not None and msgspec.to_builtins(now[name]) != then.machine[name]:
            before, after = environment.words(then.machine[name]), environment.words(now[name])
            yield MachineChanged(name=name, then=before, now=after)
    for change in environment.changes(then.variables, now["variables"]):
        yield VariableChanged(name=change.name, then=change.a, now=change.b)


def _files(material: str, files: Iterable[Hashed], cwd: Path) -> Iterator[Change]:
    for file in files:
        try:
            digest, size = (code_sha256 if material == "code" else sha256)(cwd / file.name)
        except OSError as error:
            yield FileUnreadable(material=material, name=file.name, error=error.strerror or str(error))
            continue
        if digest != file.sha256:
            yield FileChanged(
                material=material,
                name=file.name,
                sha256_then=file.sha256,
                sha256_now=digest,
                size_then=file.size,
                size_now=size,
            )


def _packages(then: Iterable[Package], now: Iterable[Package]) -> Iterator[Change]:
    before, after = ({one.name: one for one in packages} for packages in (then, now))
    for name in sorted({*before, *after}):
        a, b = before.get(name), after.get(name)
        if a != b:
            yield PackageChanged(name=name, then=a.version if a else None, now=b.version if b else None)
