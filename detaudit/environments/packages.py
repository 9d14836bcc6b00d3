"""Which packages differ between two interpreters."""

from dataclasses import dataclass

from detaudit.launch.packages import Packages
from detaudit.model import Change

PYTHON = "python"
"""Python among the packages: its version may change results as well."""


@dataclass(frozen=True)
class PackagePair:
    """The packages of both sides."""

    a: Packages
    b: Packages

    def changes(self) -> tuple[Change, ...]:
        """Return the packages that differ, sorted by name, Python first; one version may have two builds."""
        python = Change(name=PYTHON, a=self.a.version, b=self.b.version)
        names = sorted({*self.a.packages, *self.b.packages})
        packages = filter(None, map(self._change, names))
        return (*([python] if python.a != python.b else []), *packages)

    def _change(self, name: str) -> Change | None:
        a, b = (side.packages.get(name) for side in (self.a, self.b))
        versions = [one.version if one else None for one in (a, b)]
        if a and b and a.version == b.version and a.build and b.build and a.build != b.build:
            versions = [f"{one.version} (build {one.build})" for one in (a, b)]
        return Change(name=name, a=versions[0], b=versions[1]) if versions[0] != versions[1] else None

    def required_changes(self, name: str) -> tuple[Change, ...]:
        """Return which of the packages that one requires differ."""
        required = self.a.required_by(name) | self.b.required_by(name)
        return tuple(one for one in self.changes() if one.name in required)

    def name_of(self, module: str) -> str:
        """Return the name of the package that a module belongs to on both sides, ``""`` if that is not known."""
        names = {self.a.name_of(module), self.b.name_of(module)}
        return names.pop() if len(names) == 1 else ""

    def versions(self, name: str) -> tuple[str, str]:
        """Return the versions that a package has on either side."""
        if name == PYTHON:
            return self.a.version, self.b.version
        change = self._change(name)
        if change is not None:
            return change.a or "", change.b or ""
        version = self.a.packages[name].version
        return version, version
