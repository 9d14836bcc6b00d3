"""Lines of the user's code where a difference may enter."""

import msgspec

from detaudit.compat import StrEnum


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
