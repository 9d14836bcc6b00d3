"""The packages of an interpreter, and which of them differ between two; nothing of them is imported."""

import subprocess
from dataclasses import dataclass

import msgspec

from detaudit.errors import UnknownNameError
from detaudit.launch.target import outer_environment
from detaudit.model import Change

PYTHON = "python"
"""Python among the packages: its version may change results as well."""

_ASK = r"""
import hashlib, importlib.metadata as metadata, json, platform, re, sys
packages, plain = {}, lambda name: re.sub(r"[-_.]+", "-", name).lower()
for one in metadata.distributions():
    if not one.metadata["Name"] or plain(one.metadata["Name"]) in packages:
        continue  # the first on the path is the one that is imported
    rows = [line.rsplit(",", 2) for line in (one.read_text("RECORD") or "").splitlines()]
    rows = [row[:2] for row in rows if len(row) == 3 and row[1] and "__pycache__/" not in row[0]]
    rows = [row for row in rows if row[0][:1] not in "./" and ".dist-info/" not in row[0] and ".data/" not in row[0]]
    requires = [re.match(r"[\w.-]+", text) for text in one.requires or () if not re.search(r"\bextra\b", text)]
    packages[plain(one.metadata["Name"])] = {
        "version": one.version,
        "build": hashlib.sha256(repr(sorted(rows)).encode()).hexdigest()[:8] if rows else "",
        "modules": sorted({row[0].split("/")[0].split(".")[0] for row in rows}),
        "requires": sorted({plain(name[0]) for name in requires if name}),
    }
print(json.dumps({"version": platform.python_version(), "prefix": sys.prefix, "packages": packages}))
"""
"""Asks a Python for its packages. What is not in a RECORD, such as what a system installed, has no build."""


class Package(msgspec.Struct, frozen=True):
    """A package: its version, a digest of its files, its modules at the top, and the packages that it requires."""

    version: str
    build: str = ""
    modules: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()


class Packages(msgspec.Struct, frozen=True):
    """The packages of an interpreter by their normalized names, its version, and the folder of its environment."""

    version: str
    prefix: str
    packages: dict[str, Package]

    def name_of(self, module: str) -> str:
        """Return the name of the package that has a module, ``""`` if none has, or if several do."""
        names = [name for name, one in self.packages.items() if module.partition(".")[0] in one.modules]
        return names[0] if len(names) == 1 else ""

    def required_by(self, name: str) -> set[str]:
        """Return the packages that one requires, and those that these require."""
        known: set[str] = set()
        waiting = [name]
        while waiting:
            one = self.packages.get(waiting.pop())
            more = {*(one.requires if one else ())} - known
            known |= more
            waiting += more
        return known - {name}


def of_python(python: str) -> Packages:
    """Return the packages that an interpreter has in the environment of runs.

    Raises UnknownNameError if it is no Python that runs.
    """
    try:
        answer = subprocess.run(
            [python, "-c", _ASK],
            cwd="/",
            env=outer_environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return msgspec.json.decode(answer.stdout.splitlines()[-1], type=Packages)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError, IndexError) as error:
        stderr = getattr(error, "stderr", None) or str(error)
        reason = stderr.strip().splitlines()[-1] if stderr.strip() else "it printed nothing"
        raise UnknownNameError(f"{python} is not a working Python interpreter: {reason}", "Check --python.") from error


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
