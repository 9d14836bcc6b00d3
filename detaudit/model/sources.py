"""Lines of the user's code, and flags and variations that did not apply or were overridden."""

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from detaudit.compat import StrEnum, assert_never
from detaudit.model.fact import Fact, both, either, union
from detaudit.notebooks.cells import location_of

# Why a flag is not applied, and why a variation does not vary.


class Inapplicable(Fact, frozen=True, kw_only=True):
    """Why a flag is not applied."""


class NotVaried(Fact, frozen=True, kw_only=True):
    """Why a variation does not vary."""


class ByHandOnly(Inapplicable, frozen=True, kw_only=True):
    """detaudit cannot set it: it belongs in the script."""

    def text(self) -> str:
        return "detaudit cannot set it: it belongs in the script"


class NotImported(Inapplicable, frozen=True, kw_only=True):
    """The run imported none of these modules; of an empty tuple, nothing that the flag sets."""

    modules: tuple[str, ...] = ()

    def text(self) -> str:
        if not self.modules:
            return "what it sets was not imported"
        return f"{' and '.join(self.modules)} {'were' if len(self.modules) > 1 else 'was'} not imported"


class NoGpu(Inapplicable, frozen=True, kw_only=True):
    """No weights were on a GPU."""

    def text(self) -> str:
        return "no weights on a GPU"


class FewerThanTwoGpus(Inapplicable, frozen=True, kw_only=True):
    """The weights were on fewer than two GPUs."""

    def text(self) -> str:
        return "weights on fewer than two GPUs"


class TooOld(Inapplicable, frozen=True, kw_only=True):
    """The flag came with version ``since`` of its framework; ``found`` is older."""

    framework: str
    since: str
    found: str

    def text(self) -> str:
        return f"needs {self.framework} {self.since} or later (found {self.found})"


class NoLongerNeeded(Inapplicable, frozen=True, kw_only=True):
    """Version ``until`` of the framework was the last that needs the flag; ``found`` is newer."""

    framework: str
    until: str
    found: str

    def text(self) -> str:
        return f"not needed after {self.framework} {self.until} (found {self.found})"


class AddressesRandom(Inapplicable, NotVaried, frozen=True, kw_only=True):
    """The system does not permit fixed addresses; ``detail`` is what it says."""

    detail: str

    def text(self) -> str:
        return self.detail


class XlaFlagsInFile(Inapplicable, frozen=True, kw_only=True):
    """XLA_FLAGS points to a ``file``, so nothing can be added to it."""

    file: str
    xla_flag: str

    def text(self) -> str:
        return f"XLA_FLAGS points to a file ({self.file}); add {self.xla_flag} there"


class XlaUnknown(Inapplicable, frozen=True, kw_only=True):
    """The Python that trains is unknown, and an XLA that does not know the flag would abort."""

    xla_flag: str

    def text(self) -> str:
        return f"the Python that trains is unknown, and an XLA that does not know {self.xla_flag} would abort"


class XlaTooOld(Inapplicable, frozen=True, kw_only=True):
    """The XLA in ``library`` does not know the flag, and would abort."""

    library: str

    def text(self) -> str:
        return f"{self.library} does not know this flag and would abort"


class RefusedInProcess(Inapplicable, frozen=True, kw_only=True):
    """The recorder could not apply it; ``detail`` is what the framework says."""

    detail: str

    def text(self) -> str:
        return self.detail


class NoGlibc(NotVaried, frozen=True, kw_only=True):
    """The C library is not glibc."""

    def text(self) -> str:
        return "the C library is not glibc"


class NoAvx2(NotVaried, frozen=True, kw_only=True):
    """The CPU has no AVX2."""

    def text(self) -> str:
        return "this CPU has no AVX2"


class NoSecondLocale(NotVaried, frozen=True, kw_only=True):
    """No second locale is installed."""

    def text(self) -> str:
        return "no second locale is installed"


class NeedsMachine(NotVaried, frozen=True, kw_only=True):
    """It puts load on the whole machine, so no two runs may go at once."""

    def text(self) -> str:
        return "needs --jobs 1, because it loads the whole machine"


class NeedsIsolate(NotVaried, frozen=True, kw_only=True):
    """It varies only with --isolate."""

    def text(self) -> str:
        return "needs --isolate"


class PinnedByRecipe(NotVaried, frozen=True, kw_only=True):
    """A flag of the recipe pins it."""

    recipe: str

    def text(self) -> str:
        return f"recipe {self.recipe} pins it"


if TYPE_CHECKING:
    AnyInapplicable: TypeAlias = Inapplicable
    AnyNotVaried: TypeAlias = NotVaried
else:
    AnyInapplicable, AnyNotVaried = union(Inapplicable), union(NotVaried)


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
    ROW_ORDER = "row-order"
    HASH = "hash"
    ADDRESS = "address"
    UNINITIALIZED = "uninitialized"
    RACING_OPERATION = "racing-operation"
    UNORDERED_OPERATION = "unordered-operation"
    SHARED_GENERATOR = "shared-generator"
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
        SourceKind.ROW_ORDER,
        SourceKind.HASH,
        SourceKind.ADDRESS,
    }
)
"""Lines that introduce an order, and no values."""


_TEXTS = {
    SourceKind.SEED: "{call}() is seeded with a value that differs between runs",
    SourceKind.CLOCK: "{call}() is seeded from the clock",
    SourceKind.PROCESS_ID: "{call}() is seeded from the process ID",
    SourceKind.LISTING_ORDER: "{call}() lists files in an order that differs between runs",
    SourceKind.COMPLETION_ORDER: "{call}() returns results in completion order, which differed between runs",
    SourceKind.LISTING_FILES: "{call}() found different files between runs",
    SourceKind.HYPERPARAMETER: "sets {call} to a value that differs between runs",
    SourceKind.UNSEEDED: "{call}() is called without a seed",
    SourceKind.COMPLETION_ORDER_OPTION: "{call} returns results in completion order",
    SourceKind.ENTROPY: "{call}() returns different values in every run",
    SourceKind.SYSTEM_VALUE: "{call}() returns a value that is different in every run",
    SourceKind.SET_ORDER: "iterates over a set: its order depends on PYTHONHASHSEED if it holds strings",
    SourceKind.OBJECT_SET_ORDER: "iterates over a set: its order depends on memory addresses if it holds objects",
    SourceKind.ROW_ORDER: "calls {call}() of Polars, which returns rows in no fixed order without maintain_order=True",
    SourceKind.HASH: "calls hash(), which depends on PYTHONHASHSEED for strings, on addresses for most objects",
    SourceKind.ADDRESS: "uses id(), a memory address that changes in every run",
    SourceKind.UNINITIALIZED: "calls {call}(), which returns uninitialized memory",
    SourceKind.RACING_OPERATION: "runs {call}, which is known to race",
    SourceKind.SHARED_GENERATOR: (
        "{call}() draws from a generator that other threads draw from: which numbers each gets may depend on timing, "
        "unless each item has a generator of its own"
    ),
    SourceKind.UNORDERED_OPERATION: (
        "runs {call} in no fixed order unless it runs sequentially (parallel_iterations=1, no parallel calls)"
    ),
}

SOME_EMPTY = "calls torch.empty() or similar, which returns uninitialized memory"
"""For a line whose call is not known."""

REPEATED = (
    "this line may run more than once: with a constant seed it would give the same numbers each time, so make the "
    "generator once, outside"
)
"""For a line that makes a generator, or seeds one, each time that it runs."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the user's code where a difference may enter.

    ``call`` is the function that it calls, or the operation that it runs, ``generators`` the unseeded global generators
    it draws from, ``takes`` what libraries between the line and the call take a seed by: ``umap.UMAP(random_state)``. A
    ``suspect`` was found by reading the code, or by the operations that ran; any other line was observed. ``condition``
    says when an operation races.
    """

    file: str
    line: int
    kind: SourceKind
    call: str = ""
    generators: tuple[str, ...] = ()
    suspect: bool = False
    condition: str = ""
    takes: tuple[str, ...] = ()

    @property
    def names_something(self) -> bool:
        """Whether it makes up a name, as of the run, and no number to compute with."""
        return self.call.startswith("uuid.")

    def text(self) -> str:
        """Return what the line does."""
        if self.kind is SourceKind.UNINITIALIZED and not self.call:
            return SOME_EMPTY
        if self.kind is SourceKind.UNSEEDED and self.generators == ("tensorflow",):
            return f"{self.call}() is called without a seed, and before any tf.random.set_seed()"
        if self.kind is SourceKind.UNSEEDED and self.generators:
            noun = "generator" if len(self.generators) == 1 else "generators"
            return f"{self.call}() draws from the unseeded global {noun} of {both(self.generators)}"
        if self.takes:
            takers = either([taker.replace(")", "=...)") for taker in self.takes])
            return f"{self.call}() is called without a seed: {takers} takes one"
        condition = f" ({self.condition})" if self.condition else ""
        return _TEXTS[self.kind].format(call=self.call).replace(")()", ")") + condition  # KMeans.fit(random_state)

    def with_place(self) -> str:
        """Return the file and the line, and what the line does."""
        return f"{location_of(self.file, self.line)}: {self.text()}"


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

    def seed_text(self, differs: SourceKind | None) -> str:
        """Return how it passes a seed, which differs between runs so."""
        if not self.value:
            return f"{self.text()} without a seed"
        match differs:
            case None:
                return self.text(self.value)
            case SourceKind.CLOCK:
                return f"{self.text()} with a seed from the clock"
            case SourceKind.PROCESS_ID:
                return f"{self.text()} with a seed from the process ID"
            case _:
                return f"{self.text()} with a seed that differs between runs"

    def text(self, value: str = "") -> str:
        """Return the place of the call and the call, with a value as its argument."""
        return f"{location_of(self.file, self.line)} calls {self.call}({value})"


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

    def text(self) -> str:
        """Return what the script set instead of the flag."""
        match self.at:
            case "start":
                value = f"was {self.value}" if self.value else "had no value"
                return f"{self.name} {value} when the process started"
            case "end":
                by = f": {self.call.text(self.call.value)}" if self.call else ""
                return f"{self.name} was {self.value} at the end{by}"
            case "seed":
                return self.call.seed_text(self.differs) if self.call else "the script sets a seed of its own"
            case _:
                assert_never(self.at)
