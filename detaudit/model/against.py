"""What a comparison of two commits, or environments, shows: why it cannot tell, and where the two sides part."""

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.fact import Fact, count, shortened, union
from detaudit.model.problems import AnyReason

_MOST = 5


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the environment that differs between two sides, null if one side has none."""

    name: str
    a: str | None
    b: str | None


class Doubt(Fact, frozen=True, kw_only=True):
    """Why nothing follows from a comparison of two sides."""


class SideDiffers(Doubt, frozen=True, kw_only=True):
    """The runs of a side differ from each other."""

    side: str
    runs: int
    distinct_results: int

    def text(self) -> str:
        results = count(self.distinct_results, "different result")
        return f"{self.side} does not repeat itself: {count(self.runs, 'run')} gave {results}"


class SideUnusable(Doubt, frozen=True, kw_only=True):
    """The runs of a side are inconclusive."""

    side: str
    reason: AnyReason | None = None

    def text(self) -> str:
        return f"{self.side} is inconclusive: {self.reason.text() if self.reason else 'no run finished'}"


class LoadedFromOutside(Doubt, frozen=True, kw_only=True):
    """A side loaded modules of the project from the user's folder, which has the code of the working tree."""

    side: str
    files: tuple[str, ...]

    def text(self) -> str:
        names = shortened(self.files, most=_MOST)
        return f"{self.side} did not load its own code: {names} came from the working tree"


class BuiltOnce(Doubt, frozen=True, kw_only=True):
    """The runs loaded ``extensions`` that were built once, and the ``sources`` of compiled code differ."""

    extensions: tuple[str, ...]
    sources: tuple[str, ...]

    def text(self) -> str:
        built, sources = shortened(self.extensions, most=_MOST), shortened(self.sources, most=_MOST)
        return f"both sides loaded the same build of {built}, and the sources of compiled code differ: {sources}"


class StateShared(Doubt, frozen=True, kw_only=True):
    """A run read files outside of its copy that an earlier one had written, which may have been of the other side."""

    files: tuple[str, ...]

    def text(self) -> str:
        return f"runs read what earlier ones had left: {shortened(self.files, most=_MOST)}"


class OtherEnvironment(Doubt, frozen=True, kw_only=True):
    """A training of a side loaded its packages from none of the folders of its environment."""

    side: str
    folders: tuple[str, ...]

    def text(self) -> str:
        names = shortened(self.folders, most=_MOST)
        return f"{self.side} did not train in its own environment: packages came from {names}"


class NothingShared(Doubt, frozen=True, kw_only=True):
    """Both sides repeat themselves, and recorded nothing that can be compared."""

    def text(self) -> str:
        return "the two sides recorded nothing that can be compared"


if TYPE_CHECKING:
    AnyDoubt: TypeAlias = Doubt
else:
    AnyDoubt = union(Doubt)


class Attribution(Fact, frozen=True, kw_only=True):
    """What is to blame if a result differs from a baseline that was made in a different environment.

    It was told by running the ``commit`` that wrote the baseline in this one.
    """

    commit: str


class OfEnvironment(Attribution, frozen=True, kw_only=True):
    """That commit gives the same here as the working tree."""

    def text(self) -> str:
        told = f"commit {self.commit}, which wrote the baseline, gives the same here as the working tree"
        return f"it belongs to the environment: {told}"


class OfCode(Attribution, frozen=True, kw_only=True):
    """That commit gives something else here than the working tree."""

    def text(self) -> str:
        told = f"commit {self.commit}, which wrote the baseline, gives something else here than the working tree"
        return f"it belongs to the code: {told}"


class Untold(Attribution, frozen=True, kw_only=True):
    """Nothing follows from the runs of that commit."""

    doubts: tuple[AnyDoubt, ...]

    def text(self) -> str:
        why = "; ".join(one.text() for one in self.doubts) or "undecided"
        return f"commit {self.commit}, which wrote the baseline, does not tell what it belongs to: {why}"


if TYPE_CHECKING:
    AnyAttribution: TypeAlias = Attribution
else:
    AnyAttribution = union(Attribution)


class CodePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a side runs an operation: a line of its own code, and what is written there."""

    operation: str
    file: str = ""
    line: int = 0
    code: str = ""
    backward: bool = False

    def text(self) -> str:
        """Return the operation and the line."""
        location = f"{self.file}:{self.line}: " if self.file else ""
        return f"{location}{self.operation}{' (backward pass)' if self.backward else ''}"


class Apart(StrEnum):
    """What differs where two codes part.

    - ``operation``  they run different operations
    - ``number``     the same one is given another number
    - ``tensors``    the same one takes other tensors, which both codes have
    - ``input``      the data given to the framework differ
    - ``generator``  numbers were drawn from a generator in a different state
    - ``output``     the same one takes the same, and returns something else
    - ``more``       only one of them has tensors that the other never has
    - ``variable``   a line of the script makes it, and all variables that were recorded before match
    """

    OPERATION = "operation"
    NUMBER = "number"
    TENSORS = "tensors"
    INPUT = "input"
    GENERATOR = "generator"
    OUTPUT = "output"
    MORE = "more"
    VARIABLE = "variable"


APART = {
    Apart.OPERATION: "they run different operations",
    Apart.NUMBER: "a number given to the operation differs",
    Apart.TENSORS: "the operation takes other tensors, which both codes have",
    Apart.INPUT: "the data given to the framework differ",
    Apart.GENERATOR: "it draws from a generator in a different state",
    Apart.OUTPUT: "identical inputs, different output",
    Apart.MORE: "only one of them has tensors that the other never has",
    Apart.VARIABLE: "what a line makes differs, and all variables that were recorded before it match",
}
"""What differs, in words."""


class OperationPackage(msgspec.Struct, frozen=True, kw_only=True):
    """The package that an operation belongs to, with its version in each environment, ``""`` if that is unknown.

    ``requires`` are the packages that it requires and that differ. ``calls`` are what a line calls, if it is unknown.
    """

    name: str = ""
    versions: tuple[str, str] = ("", "")
    requires: tuple[Change, ...] = ()
    calls: tuple[str, ...] = ()

    def text(self) -> str:
        """Return which package it is."""
        if not self.name:
            called = f"; the line calls {', '.join(self.calls)}" if self.calls else ""
            return f"which package this belongs to is unknown{called}"
        a, b = self.versions
        if a != b:
            return f"it belongs to {self.name}: {a or 'not there'} in A, {b or 'not there'} in B"
        same = f"it belongs to {self.name}, which is {a} in both"
        if not self.requires:
            return same
        changes = ", ".join(
            f"{one.name} ({one.a or 'not there'} in A, {one.b or 'not there'} in B)" for one in self.requires
        )
        return f"{same}; of what it requires, {changes} differs"


class Parting(msgspec.Struct, frozen=True, kw_only=True):
    """Where two codes part: the first operation of each whose tensors the other never has, null if it has none.

    ``number`` is the place or the name of the argument that differs, with its two ``values``, if it is a number. Of two
    environments, which run the same code, ``package`` is that of the operation.
    """

    step: int
    apart: Apart
    a: CodePlace | None
    b: CodePlace | None
    number: str = ""
    values: tuple[str, str] = ("", "")
    package: OperationPackage | None = None

    def text(self) -> str:
        """Return the step, and what differs there."""
        values = f": {self.values[0]} in A, {self.values[1]} in B" if self.number else ""
        step = f"at step {self.step:,}" if self.step else "before the first step"
        if self.package is not None:  # of two environments, lines have no step if a script counts steps by itself
            return f"the environments part{f' {step}' if self.step else ''}: {APART[self.apart]}{values}"
        return f"the codes part {step}: {APART[self.apart]}{values}"

    def places(self) -> tuple[str, ...]:
        """Return where each side runs its operation, with the code below it."""
        lines = []
        for letter, place in (("A", self.a), ("B", self.b)):
            if place is not None:
                lines += [f"{letter}: {place.text()}", *([f"  > {place.code}"] if place.code else [])]
        if self.package is not None:
            both = [] if self.a != self.b or self.a is None else [self.a.text(), *lines[1 : len(lines) // 2]]
            lines = [*(both or lines), self.package.text()]
        return tuple(lines)
