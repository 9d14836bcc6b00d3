"""Record the calls that seed random generators, each with its line of user code, up to a maximum number of calls."""

from __future__ import annotations

import os
import sys
import time

from ..process import frames
from ..process.replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from types import FrameType
    from typing import Any, Optional

    from ..process.sink import Sink

    Observer = Callable[[Optional[FrameType], tuple[Any, ...], dict[str, Any]], None]

FUNCTIONS = {
    "random": ("seed",),
    "numpy.random": ("seed", "default_rng"),
    "torch": ("manual_seed", "seed", "random.manual_seed", "random.seed"),
    "tensorflow": ("random.set_seed", "random.Generator.from_non_deterministic_state"),
    "jax": ("random.key", "random.PRNGKey"),
}
"""Module, and its functions whose first argument is a seed. Without one, they use the system's entropy."""

_ALIASES = {"torch.random.manual_seed": "torch.manual_seed", "torch.random.seed": "torch.seed"}

SETTERS = {"torch": ("use_deterministic_algorithms",)}
"""Module, and its functions that change a setting that a flag may have set."""

_MOST = 200
_MOST_OBSERVED = 20_000
_MOST_OF_A_LINE = 20
_SEEDS = (int, float, str, bytes, list, tuple)

repeatable: set[str] = set()
"""Functions whose entropy a flag has made repeatable. Their unseeded calls are not recorded."""

_CHOSEN = 10**6
"""A seed below this is one that somebody chose: a remainder of the clock is as small once in 2,000 times."""

_started = time.time_ns()
_of_the_clock: set[float] = set()
_calls: dict[tuple[str, str, int], int] = {}
_written: set[tuple[str, str, int, str]] = set()
_observed = 0


def clock_moved(by: int) -> None:
    """Account for a time of day that was moved by this number of ns."""
    global _started
    _started += by


def observe_call(sink: Sink, where: str, observe: Callable[[], None]) -> None:
    """Call ``observe``, guarded, for the first calls only, so that a loop of millions of calls stays fast."""
    global _observed
    if _observed < _MOST_OBSERVED:
        _observed += 1
        sink.guarded(where, observe)


def has_room(what: str, place: tuple[str, int]) -> bool:
    """Count a call of a function on a line, and return whether it is one of the first, which are recorded."""
    key = (what, *place)
    calls = _calls.get(key, 0)
    if calls >= _MOST_OF_A_LINE or (calls == 0 and len(_calls) >= _MOST):
        return False
    _calls[key] = calls + 1
    return True


def write(sink: Sink, kind: str, what: str, place: tuple[str, int], value: str = "") -> None:
    """Write that ``what`` was called in this file and line, unless the same was written before."""
    key = (what, *place, value)
    if key not in _written:
        _written.add(key)
        sink.write({"k": "source", "kind": kind, "what": what, "file": place[0], "line": place[1], "value": value})


def _kind(seed: float) -> str:
    """Return whether a seed may come from the clock or the process ID; the auditor believes it if it is so in all runs.

    Scripts take the time in seconds, ms, µs or ns, and reduce it to the range of a generator. The finer the unit, the
    more often such a remainder repeats, so the accepted time spans are shorter. Yet one number of 36 looks like one.
    """
    if seed == os.getpid():
        return "process-id"
    if seed in _of_the_clock:  # the script may pass it to several generators, with slow imports in between
        return "clock"
    now = time.time_ns()
    for unit, span in ((10**9, 10**9), (10**6, 10**9), (10**3, 10**9), (1, 2 * 10**7)):
        low, high = (_started - span) // unit - 1, now // unit + 1
        short = (now - span) // unit - 1
        sizes = (2**32, 2**32 - 1, 2**31, 2**31 - 1) if seed >= _CHOSEN else ()
        if low <= seed <= high or any([0 <= (seed - short) % size <= high - short for size in sizes]):
            _of_the_clock.add(seed)
            return "clock"
    return "seed"


def _described(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:
    """Return the kind of a call that seeds, and its seed as text."""
    seed = args[0] if args else next(iter(kwargs.values()), None)
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
    """Wrap the functions of ``module`` in FUNCTIONS and SETTERS, and the constructors of its generators."""
    for dotted in FUNCTIONS[name]:
        what = f"{name}.{dotted}"
        _before(module, dotted, sink, _seeding(sink, _ALIASES.get(what, what)))
    for dotted in SETTERS.get(name, ()):
        _before(module, dotted, sink, _setting(sink, f"{name}.{dotted}"))
    if name == "random":
        # Ignore calls through other libraries, which create such generators for file names and similar.
        _before(module, "Random.seed", sink, _seeding(sink, "random.Random", skip=1, through=("random",)))
    if hasattr(sys.modules.get(name + ".bit_generator"), "randbits"):
        # NumPy's compiled code has no frame, and draws entropy even if it is given a seed (RandomState(0)). A frame of
        # ours in between shows that the script did not draw this entropy itself.
        _before(sys.modules[name + ".bit_generator"], "randbits", sink, lambda *_: None)


def _before(module: Any, dotted: str, sink: Sink, observe: Observer) -> None:
    holder, (*path, name) = module, dotted.split(".")
    for part in path:
        holder = getattr(holder, part)

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            observe_call(sink, dotted, lambda: observe(frame, args, kwargs))
            return function(*args, **kwargs)

        return wrapper

    replace(holder, name, make)


def _seeding(sink: Sink, what: str, skip: int = 0, through: Container[str] | None = None) -> Observer:
    def observe(frame: FrameType | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        found = frames.user_frame(frame, through)
        if found is not None and has_room(what, frames.place(found)):
            kind, value = _described(args[skip:], kwargs)
            if not (kind == "unseeded" and what in repeatable):
                write(sink, kind, what, frames.place(found), value)

    return observe


def _setting(sink: Sink, what: str) -> Observer:
    def observe(frame: FrameType | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        found = frames.user_frame(frame)
        if found is not None and has_room(what, frames.place(found)):
            shown = [repr(arg) for arg in args] + [f"{name}={arg!r}" for name, arg in kwargs.items()]
            write(sink, "setting", what, frames.place(found), ", ".join(shown)[:80])

    return observe
