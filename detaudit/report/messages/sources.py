"""What a line of the user's code does that may differ between runs."""

from detaudit.model import Source, SourceKind
from detaudit.report.messages.wording import both

_TEXTS = {
    SourceKind.SEED: "{call}() is seeded with a value that differs between runs",
    SourceKind.CLOCK: "{call}() is seeded from the clock",
    SourceKind.PROCESS_ID: "{call}() is seeded from the process ID",
    SourceKind.LISTING_ORDER: "{call}() lists files in an order that differs between runs",
    SourceKind.COMPLETION_ORDER: "{call}() returns results in completion order, which differed between runs",
    SourceKind.LISTING_FILES: "{call}() found different files between runs",
    SourceKind.HYPERPARAMETER: "sets {call} to a value that differs between runs",
    SourceKind.UNSEEDED: "{call}() is called without a seed",
    SourceKind.COMPLETION_ORDER_OPTION: "{call} returns batches in completion order",
    SourceKind.ENTROPY: "{call}() returns different values in every run",
    SourceKind.SYSTEM_VALUE: "{call}() returns a value that is different in every run",
    SourceKind.SET_ORDER: "iterates over a set: its order depends on PYTHONHASHSEED if it holds strings",
    SourceKind.OBJECT_SET_ORDER: "iterates over a set: its order depends on memory addresses if it holds objects",
    SourceKind.HASH: "calls hash(), which depends on PYTHONHASHSEED for strings",
    SourceKind.ADDRESS: "uses id(), a memory address that changes in every run",
    SourceKind.UNINITIALIZED: "calls {call}(), which returns uninitialized memory",
    SourceKind.RACING_OPERATION: "runs {call}, which is known to race",
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


def sentence(source: Source) -> str:
    """Return what the line does."""
    if source.kind is SourceKind.UNINITIALIZED and not source.call:
        return SOME_EMPTY
    if source.kind is SourceKind.UNSEEDED and source.generators == ("tensorflow",):
        return f"{source.call}() is called without a seed, and before any tf.random.set_seed()"
    if source.kind is SourceKind.UNSEEDED and source.generators:
        noun = "generator" if len(source.generators) == 1 else "generators"
        return f"{source.call}() draws from the unseeded global {noun} of {both(source.generators)}"
    condition = f" ({source.condition})" if source.condition else ""
    return _TEXTS[source.kind].format(call=source.call) + condition


def with_place(source: Source) -> str:
    """Return the file and the line, and what the line does."""
    return f"{source.file}:{source.line}: {sentence(source)}"
