"""Lines of the user's code, and flags and variations that did not apply or were overridden."""

from typing import Literal, TypeAlias

import msgspec

from detaudit.compat import StrEnum
from detaudit.model.fact import Fact

# Why a flag is not applied, and why a variation does not vary.


class ByHandOnly(Fact, frozen=True, kw_only=True):
    """detaudit cannot set it: it belongs in the script."""


class NotImported(Fact, frozen=True, kw_only=True):
    """The run imported none of these modules; of an empty tuple, nothing that the flag sets."""

    modules: tuple[str, ...] = ()


class NoGpu(Fact, frozen=True, kw_only=True):
    """No weights were on a GPU."""


class FewerThanTwoGpus(Fact, frozen=True, kw_only=True):
    """The weights were on fewer than two GPUs."""


class TooOld(Fact, frozen=True, kw_only=True):
    """The flag came with version ``since`` of its framework; ``found`` is older."""

    framework: str
    since: str
    found: str


class NoLongerNeeded(Fact, frozen=True, kw_only=True):
    """Version ``until`` of the framework was the last that needs the flag; ``found`` is newer."""

    framework: str
    until: str
    found: str


class AddressesRandom(Fact, frozen=True, kw_only=True):
    """The system does not permit fixed addresses; ``detail`` is what it says."""

    detail: str


class XlaFlagsInFile(Fact, frozen=True, kw_only=True):
    """XLA_FLAGS points to a ``file``, so nothing can be added to it."""

    file: str
    xla_flag: str


class XlaUnknown(Fact, frozen=True, kw_only=True):
    """The Python that trains is unknown, and an XLA that does not know the flag would abort."""

    xla_flag: str


class XlaTooOld(Fact, frozen=True, kw_only=True):
    """The XLA in ``library`` does not know the flag, and would abort."""

    library: str


class RefusedInProcess(Fact, frozen=True, kw_only=True):
    """The recorder could not apply it; ``detail`` is what the framework says."""

    detail: str


Inapplicable: TypeAlias = (
    ByHandOnly
    | NotImported
    | NoGpu
    | FewerThanTwoGpus
    | TooOld
    | NoLongerNeeded
    | AddressesRandom
    | XlaFlagsInFile
    | XlaUnknown
    | XlaTooOld
    | RefusedInProcess
)
"""Why a flag is not applied."""


class NoGlibc(Fact, frozen=True, kw_only=True):
    """The C library is not glibc."""


class NoAvx2(Fact, frozen=True, kw_only=True):
    """The CPU has no AVX2."""


class NoSecondLocale(Fact, frozen=True, kw_only=True):
    """No second locale is installed."""


class NeedsMachine(Fact, frozen=True, kw_only=True):
    """It puts load on the whole machine, so no two runs may go at once."""


class NeedsIsolate(Fact, frozen=True, kw_only=True):
    """It varies only with --isolate."""


class PinnedByRecipe(Fact, frozen=True, kw_only=True):
    """A flag of the recipe pins it."""

    recipe: str


NotVaried: TypeAlias = (
    AddressesRandom | NoGlibc | NoAvx2 | NoSecondLocale | NeedsIsolate | NeedsMachine | PinnedByRecipe
)
"""Why a variation does not vary."""


# Lines of the user's code, as they were when they were audited.


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a file around ``line``, from the line ``first`` on, without secrets.

    ``digest`` is the SHA-256 of the file.
    """

    file: str
    line: int
    first: int
    lines: tuple[str, ...]
    digest: str


# Lines of the user's code where a difference may enter.


class SourceKind(StrEnum):
    """What a line does. The first seven were observed to differ between runs, the rest must or may differ."""

    SEED = "seed"
    CLOCK = "clock"
    PROCESS_ID = "process-id"
    LISTING_ORDER = "listing-order"
    COMPLETION_ORDER = "completion-order"
    LISTING_FILES = "listing-files"
    HYPERPARAMETER = "hyperparameter"
    UNSEEDED = "unseeded"
    COMPLETION_ORDER_OPTION = "completion-order-option"
    ENTROPY = "entropy"
    SET_ORDER = "set-order"
    OBJECT_SET_ORDER = "object-set-order"
    HASH = "hash"
    ADDRESS = "address"
    UNINITIALIZED = "uninitialized"
    RACING_OPERATION = "racing-operation"
    UNORDERED_OPERATION = "unordered-operation"
    SYSTEM_VALUE = "system-value"


SEEDING = frozenset({SourceKind.SEED, SourceKind.CLOCK, SourceKind.PROCESS_ID})
"""Lines that pass a seed of their own, which no flag can override."""

COMPLETION = frozenset({SourceKind.COMPLETION_ORDER, SourceKind.COMPLETION_ORDER_OPTION})
"""Lines that take results in the order in which they are ready."""

ORDERS = frozenset(
    {
        SourceKind.LISTING_ORDER,
        SourceKind.LISTING_FILES,
        *COMPLETION,
        SourceKind.SET_ORDER,
        SourceKind.OBJECT_SET_ORDER,
        SourceKind.HASH,
        SourceKind.ADDRESS,
    }
)
"""Lines that introduce an order, and no values."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the user's code where a difference may enter.

    ``call`` is the function that it calls, or the operation that it runs, ``generators`` the unseeded global generators
    it draws from. A ``suspect`` was found by reading the code, or by the operations that ran; any other line was
    observed. ``condition`` says when an operation races.
    """

    file: str
    line: int
    kind: SourceKind
    call: str = ""
    generators: tuple[str, ...] = ()
    suspect: bool = False
    condition: str = ""


class SourceMatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which lines a flag fixes, or a variation brings out: all of ``kinds``, or those with certain calls.

    ``calls`` are full names of functions, or ends of them that begin with a class or a function (``Generator.seed``,
    ``default_rng``), since ``random.seed`` is not ``numpy.random.seed``. ``generators`` are names of modules. Without
    ``kinds``, calls and generators match lines of any kind.
    """

    kinds: tuple[SourceKind, ...] = ()
    calls: tuple[str, ...] = ()
    generators: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.kinds or self.calls or self.generators)

    def matches(self, source: Source) -> bool:
        """Whether this line is one of them."""
        if not self or (self.kinds and source.kind not in self.kinds):
            return False
        if not (self.calls or self.generators):
            return True
        called = any(_is_call(source.call, call) for call in self.calls)
        return called or not set(self.generators).isdisjoint(source.generators)


def _is_call(name: str, call: str) -> bool:
    is_end = "." not in call or call[0].isupper()
    return name == call or (is_end and name.endswith(f".{call}"))


# How a script undid a flag.


class ScriptCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call in the user's code, with the text of its argument."""

    file: str
    line: int
    call: str
    value: str


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """What the script set instead of a flag.

    ``at`` says when it was noticed: a variable had ``value`` at the ``start`` of the process, a switch at its ``end``,
    or the script passed a ``seed`` of its own, or none. ``differs`` says how that seed differs between runs, null if it
    is the same in all of them.
    """

    at: Literal["start", "end", "seed"]
    name: str = ""
    value: str = ""
    call: ScriptCall | None = None
    differs: SourceKind | None = None
