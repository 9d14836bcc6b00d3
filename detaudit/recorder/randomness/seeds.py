"""Record the calls that seed random generators, each with its line of user code, up to a maximum number of calls."""

from __future__ import annotations

import _thread
import os
import sys
import time

from ... import wire
from ..process import frames
from ..process.replace import replace, set_in_c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from types import CodeType, FrameType
    from typing import Any, Optional

    from ..process.log import Sink
    from ..process.recorder import Recorder

    Observer = Callable[[Optional[FrameType], tuple[Any, ...], dict[str, Any]], None]

FUNCTIONS: dict[str, Sequence[str]] = {
    "random": ("seed",),
    "numpy.random": ("seed", "default_rng"),
    **{name: framework.seeds for name, framework in wire.FRAMEWORKS.items() if framework.seeds},
}
"""Module, and its functions whose first argument is a seed. Without one, they use the system's entropy."""

ALIASES = {
    "%s.%s" % (module, name): "%s.%s" % (module, name.rpartition(".")[2])
    for module, names in FUNCTIONS.items()
    for name in names
    if name.rpartition(".")[2] in names
}
"""Functions that a module has in itself and in a part of it, and their shorter names."""

_MOST = 200
_MOST_OBSERVED = 20_000
_MOST_OF_A_LINE = 20
_SEEDS = (int, float, str, bytes, list, tuple)

repeatable: set[str] = set()
"""Functions whose entropy a flag has made repeatable. Their unseeded calls are not recorded."""

_CHOSEN = 10**6
"""A seed below this is one that somebody chose: a remainder of the clock is as small once in 2,000 times."""

_started = time.time_ns()
_counted_ns: Callable[[], int] | None = None
_of_the_clock: set[float] = set()
_calls: dict[tuple[str, str, int], int] = {}
_seeds: dict[tuple[str, str, int], set[int]] = {}
_written: set[tuple[str, str, int, str]] = set()
_observed = 0


def clock_moved(by: int) -> None:
    """Account for a time of day that was moved by this number of ns."""
    global _started
    _started += by


def clock_counts(counted_ns: Callable[[], int]) -> Callable[[], None]:
    """Compare seeds with a clock that counts its readings, and return a function that takes the real one again."""
    global _counted_ns, _started
    before = _counted_ns, _started
    _counted_ns, _started = counted_ns, counted_ns()

    def back() -> None:
        global _counted_ns, _started
        _counted_ns, _started = before

    return back


def observe_call(sink: Sink, where: str, observe: Callable[[], None]) -> None:
    """Call ``observe``, guarded, for the first calls only, so that a loop of millions of calls stays fast."""
    global _observed
    if _observed < _MOST_OBSERVED:
        _observed += 1
        sink.guarded(where, observe)


def has_room(what: str, location: tuple[str, int]) -> bool:
    """Count a call of a function on a line, and return whether it is one of the first, which are recorded."""
    key = (what, *location)
    calls = _calls.get(key, 0)
    if calls >= _MOST_OF_A_LINE or (calls == 0 and len(_calls) >= _MOST):
        return False
    _calls[key] = calls + 1
    return True


def _is_recorded(what: str, location: tuple[str, int], seed: str) -> bool:
    """Return whether a seed is among the lowest of its line: the same calls in another order leave the same seeds.

    Threads call this at the same time, without a lock, which a fork could leave taken: then more seeds are recorded.
    """
    key = (what, *location)
    if key not in _seeds and len(_seeds) >= _MOST:
        return False
    known, number = _seeds.setdefault(key, set()), wire.seed_number(seed)
    if number in known or (len(known) >= wire.MOST_SEEDS and number > sorted(known)[wire.MOST_SEEDS - 1]):
        return False
    known.add(number)
    return True


def write(
    sink: Sink, kind: str, what: str, location: tuple[str, int], value: str = "", takes: Sequence[str] = ()
) -> None:
    """Write that ``what`` was called in this file and line, unless the same was written before."""
    key = (what, *location, value)
    if key not in _written:
        _written.add(key)
        line = {"k": "source", "kind": kind, "what": what, "file": location[0], "line": location[1], "value": value}
        sink.write({**line, "takes": takes} if takes else line)


_NEVER_SEEDED = "from_non_deterministic_state"
"""A function that is called to start from entropy: of what it is given, its class among it, nothing is a seed."""


def _kind(seed: float) -> str:
    """Return whether a seed may come from the clock or the process ID; the auditor believes it if it is so in all runs.

    Scripts take the time in seconds, ms, µs or ns, and reduce it to the range of a generator. The finer the unit, the
    more often such a remainder repeats, so the accepted time spans are shorter. Yet one number of 36 looks like one.
    """
    if seed == os.getpid():
        return "process-id"
    if seed in _of_the_clock:  # the script may pass it to several generators, with slow imports in between
        return "clock"
    now = time.time_ns() if _counted_ns is None else _counted_ns()
    for unit, span in ((10**9, 10**9), (10**6, 10**9), (10**3, 10**9), (1, 2 * 10**7)):
        low, high = (_started - span) // unit - 1, now // unit + 1
        short = (now - span) // unit - 1
        sizes = (2**32, 2**32 - 1, 2**31, 2**31 - 1) if seed >= _CHOSEN else ()
        if _counted_ns is not None:  # it is near a constant in every run
            low = short = _started // unit
            sizes = sizes if (high - low) * 1000 < 2**31 else ()
        if low <= seed <= high or any([0 <= (seed - short) % size <= high - short for size in sizes]):
            _of_the_clock.add(seed)
            return "clock"
    return "seed"


def _seed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else next(iter(kwargs.values()), None)


def described(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:
    """Return the kind of a call that seeds, and its seed as text."""
    seed = _seed(args, kwargs)
    if seed is None:
        return "unseeded", ""
    if not isinstance(seed, _SEEDS) and hasattr(seed, "__index__"):
        try:
            seed = int(seed)  # such as a NumPy integer
        except TypeError:
            pass  # a tracer of JAX, which has no value
    kind = _kind(seed) if isinstance(seed, (int, float)) else "seed"
    return kind, repr(seed)[:80] if isinstance(seed, _SEEDS) else type(seed).__name__


def watch(module: Any, name: str, sink: Sink) -> None:
    """Wrap the functions of ``module`` in FUNCTIONS and its setters, and the constructors of its generators."""
    for dotted in FUNCTIONS[name]:
        what = f"{name}.{dotted}"
        seeding = _seeding(sink, ALIASES.get(what, what))
        _before(module, dotted, sink, _without_arguments(seeding) if dotted.endswith(_NEVER_SEEDED) else seeding)
    for dotted in wire.FRAMEWORKS[name].setters if name in wire.FRAMEWORKS else ():
        _before(module, dotted, sink, _setting(sink, f"{name}.{dotted}"))
    if name == "random":
        # Ignore most calls through other libraries, which create such generators for file names and similar.
        _before(module, "Random.seed", sink, _seeding(sink, "random.Random", skip=1, through=("random",)))


def _without_arguments(observe: Observer) -> Observer:
    return lambda frame, *_: observe(frame, (), {})


def _before(module: Any, dotted: str, sink: Sink, observe: Observer) -> None:
    holder, (*path, name) = module, dotted.split(".")
    for part in path:
        holder = getattr(holder, part)

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe().f_back
            observe_call(sink, dotted, lambda: observe(frame, args, kwargs))
            return function(*args, **kwargs)

        return wrapper

    replace(holder, name, make)


def _seeding(sink: Sink, what: str, skip: int = 0, through: Container[str] | None = None) -> Observer:
    """Return what records a call. That by a library that is not in ``through`` counts if something takes a seed."""

    def observe(frame: FrameType | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        args, direct = args[skip:], frames.user_frame(frame, through)
        in_library = direct is None and through is not None and _seed(args, kwargs) is None
        user_frame = frames.user_frame(frame) if in_library else direct
        if user_frame is None or (in_library and _names_files(frame)):
            return
        (kind, value), location = described(args, kwargs), frames.location(user_frame)
        takers = _takers(frame, user_frame) if kind == "unseeded" else []
        if (in_library and not takers) or (kind == "unseeded" and what in repeatable):
            return
        if _is_recorded(what, location, value):
            write(sink, kind, what, location, value, takers)

    return observe


def _names_files(frame: FrameType | None) -> bool:
    """Return whether ``tempfile`` made a generator, for the names of files."""
    while frame is not None and frames.top_module(frame) == "random":
        frame = frame.f_back
    return frame is not None and frames.top_module(frame) == "tempfile"


_TAKEN_AS = ("random_state", "random_seed", "seed", "rng", "rstate")
"""What libraries call a parameter that is a seed, or a generator."""

_HELPERS = ("random_state", "seed", "rng", "generator")
"""Parts of the names of functions that turn a seed into a generator for the library itself."""

_MOST_TAKERS = 3


def _takers(frame: FrameType | None, user_frame: FrameType) -> list[str]:
    """Return what libraries take a seed by, between a call without one and the user's line, that nearest to it first.

    Each is a function or a class with its library and its parameter, such as ``umap.UMAP(random_state)``. No variable
    of a frame is read: that would keep its objects alive.
    """
    found: list[str] = []
    while frame is not None and frame is not user_frame:
        caller = frame.f_back
        while frames.is_ours(caller):  # a fit that is recorded
            caller = caller.f_back if caller is not None else None
        taker = _taker(frame, called=caller is user_frame)
        if taker and taker not in found:
            found.append(taker)
        frame = caller
    return found[::-1][:_MOST_TAKERS]


def _taker(frame: FrameType, called: bool) -> str:
    """Return what takes a seed in this frame: the function, if the user's line ``called`` it, or else its class."""
    code, module = frame.f_code, frames.top_module(frame)
    name = getattr(code, "co_qualname", code.co_name)  # since Python 3.11
    holder, _, function = name.rpartition(".")
    offered = frames.offered(frame, holder or function)
    parameter = _seed_parameter(code)
    if parameter and called and function[:1] != "_" and not any([part in function for part in _HELPERS]):
        what = f"{offered or f'{module}.{holder}'}.{function}" if holder else offered or f"{module}.{function}"
        return f"{what}({parameter})"
    kind = frame.f_globals.get(holder) if holder else None
    if not isinstance(kind, type):
        return ""
    init: Any = kind.__init__  # type: ignore[misc]
    while hasattr(init, "__wrapped__"):  # as one with parameters that are deprecated
        init = init.__wrapped__
    parameter = _seed_parameter(code if function == "__init__" else getattr(init, "__code__", None))
    return f"{offered or f'{module}.{holder}'}({parameter})" if parameter else ""


def _seed_parameter(code: CodeType | None) -> str:
    if code is None:
        return ""
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return next((name for name in _TAKEN_AS if name in parameters), "")


class _Compiled:
    """Watches what compiled code of NumPy seeds: a ``RandomState`` that the script makes, with its seed.

    And generators that a library makes without a seed, though it takes one: ``numpy.random.RandomState(self.seed)``.

    NumPy's compiled code has no frame, and draws entropy for RandomState(0) too, which it seeds thereafter: only what
    comes next shows whether there was a seed. The frame of this hook also shows that the script did not draw itself.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._of_thread = _thread._local()

    def watch(self, random: Any) -> None:
        """Install the hooks; this NumPy may draw its entropy elsewhere."""
        bits, kind = sys.modules.get("numpy.random.bit_generator"), getattr(random, "MT19937", None)
        if not hasattr(bits, "randbits"):
            return
        seeding = vars(kind).get("_legacy_seeding") if kind is not None else None
        _before(bits, "randbits", self._sink, self._drawn if seeding is not None else lambda *_: None)
        if seeding is None:
            return

        seeded = _seeding(self._sink, "numpy.random.RandomState", through=())

        def _legacy_seeding(generator: Any, seed: Any) -> Any:
            self._of_thread.made = None
            frame = sys._getframe().f_back
            if seed is not None and frame is not None and frames.is_user_code(frame.f_code.co_filename):
                observe_call(self._sink, "RandomState", lambda: seeded(frame, (seed,), {}))
            return seeding(generator, seed)

        set_in_c(kind, _legacy_seeding=_legacy_seeding)  # type: ignore[arg-type]

    def _drawn(self, frame: FrameType | None, *_: Any) -> None:
        self.end()
        if frame is None or frames.is_ours(frame):  # of a function that is recorded itself
            return
        user_frame = frames.user_frame(frame)
        takers = _takers(frame, user_frame) if user_frame not in (None, frame) else ()
        if user_frame is not None and takers:
            self._of_thread.made = frames.location(user_frame), takers

    def end(self) -> None:
        """Write the last one, if no seed followed."""
        made, self._of_thread.made = getattr(self._of_thread, "made", None), None
        what = "numpy.random.SeedSequence"
        if made is not None and what not in repeatable and _is_recorded(what, made[0], ""):
            write(self._sink, "unseeded", what, made[0], "", made[1])


def _setting(sink: Sink, what: str) -> Observer:
    def observe(frame: FrameType | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        user_frame = frames.user_frame(frame)
        if user_frame is not None and has_room(what, frames.location(user_frame)):
            shown = [repr(arg) for arg in args] + [f"{name}={arg!r}" for name, arg in kwargs.items()]
            write(sink, "setting", what, frames.location(user_frame), ", ".join(shown)[:80])

    return observe


def watch_entropy(random: Any, recorder: Recorder) -> None:
    """Watch the generators that compiled code makes, from the import of ``numpy.random`` on."""
    made = _Compiled(recorder.sink)
    recorder.sink.guarded("generators", lambda: made.watch(random))
    recorder.before_bye(made.end, lambda: None)
