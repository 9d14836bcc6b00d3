"""Patches: generators with a seed, and the system's entropy."""

from __future__ import annotations

import _thread
import os
import random
import sys

from ..process import frames
from ..process.log import rank_and_world
from ..process.replace import set_in_c
from ..randomness import seeds
from . import loaded

# Replace the system's entropy by numbers that repeat in every run, but differ between processes, ranks and threads.


_forks = 0
_path: tuple[int, ...] = ()
_watched = False


def _before_fork() -> None:
    global _forks
    _forks += 1


def _in_child() -> None:
    global _forks, _path
    _path, _forks = (*_path, _forks), 0


def _thread_name() -> str:
    # A thread's name is the same in every run; its identifier and the order in which threads draw are not.
    threading = sys.modules.get("threading")
    # current_thread() would create an object for a thread that Python did not start.
    thread = getattr(threading, "_active", {}).get(_thread.get_ident())
    main = threading.main_thread() if threading is not None else None
    return "" if thread is None or thread is main else str(thread.name)


def _process() -> str:
    """Return a name that distinguishes this process from the others of a run, ``""`` in the first."""
    process = sys.modules.get("multiprocessing.process")
    identity = getattr(process.current_process(), "_identity", ()) if process is not None else ()
    rank, _ = rank_and_world()
    parts = [f"rank {rank}"] if rank else []
    parts += [f"child {identity}"] if identity else []  # a spawned child has not been forked
    parts += [f"fork {_path}"] if _path else []
    return " ".join(parts)


class Stream:
    """Draws numbers that depend on ``seed``, the process and the thread, in the order of each thread's calls."""

    def __init__(self, seed: int) -> None:
        global _watched
        self._seed = seed
        self._streams: dict[tuple[str, str], random.Random] = {}
        if not _watched and hasattr(os, "register_at_fork"):
            _watched = True
            os.register_at_fork(before=_before_fork, after_in_child=_in_child)

    def bits(self, count: int) -> int:
        """Return the next ``count`` bits as a number."""
        who = (_process(), _thread_name())
        stream = self._streams.get(who)
        if stream is None:
            stream = random.Random(f"{self._seed} {who}" if any(who) else self._seed)
            self._streams[who] = stream
        return stream.getrandbits(count)


# Seed unseeded generators from the seed of the recipe. A seed that the script takes from the clock is kept.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from . import Changes, PatchOptions


_BITS = 128


def _repeatable(changes: Changes, *functions: str) -> None:
    seeds.repeatable.update(functions)
    changes.on_undo(lambda: seeds.repeatable.difference_update(functions))


def _for_the_standard_library(frame: FrameType | None) -> bool:
    """Return whether the standard library made the call, such as tempfile, whose names must differ by process."""
    while frame is not None and (frames.is_ours(frame) or frames.top_module(frame) == "random"):
        frame = frame.f_back
    return frame is not None and frames.is_standard_library(frame.f_code.co_filename)


def seed_python(options: PatchOptions, changes: Changes) -> None:
    """Seed each ``random.Random()``, and the global generator when ``random.seed()`` or a fork would give it entropy.

    SystemRandom, secrets, os.urandom and the generators that the standard library creates are not affected.
    """
    random = loaded("random")
    stream = Stream(options.seed)

    def method(function: Callable[..., Any]) -> Callable[..., Any]:
        def seed(self: Any, a: Any = None, *args: Any, **kwargs: Any) -> Any:
            if a is None and not _for_the_standard_library(sys._getframe().f_back):
                a = stream.bits(_BITS)
            return function(self, a, *args, **kwargs)

        return seed

    def of_module(function: Callable[..., Any]) -> Callable[..., Any]:
        def seed(a: Any = None, *args: Any, **kwargs: Any) -> Any:
            return function(stream.bits(_BITS) if a is None else a, *args, **kwargs)

        return seed

    changes.replace(random.Random, "seed", method)
    changes.replace(random, "seed", of_module)
    if hasattr(os, "register_at_fork"):
        # Runs after the hook of random itself, which seeds the global generator of a forked child from entropy.
        os.register_at_fork(after_in_child=lambda: changes.in_force and random._inst.seed(stream.bits(_BITS)))
    _repeatable(changes, "random.Random", "random.seed")


def seed_numpy(options: PatchOptions, changes: Changes) -> None:
    """Give NumPy's unseeded generators repeatable entropy.

    ``default_rng()``, ``SeedSequence()``, ``RandomState()`` and ``seed(None)`` all draw from the module
    global ``randbits`` of numpy.random.bit_generator (numpy/random/bit_generator.pyx).

    Raises AttributeError if this NumPy draws its entropy elsewhere.
    """
    module = loaded("numpy.random.bit_generator")
    changes.replace(module, "randbits", lambda _: Stream(options.seed).bits)
    _repeatable(changes, "numpy.random.default_rng", "numpy.random.seed", "numpy.random.SeedSequence")


def seed_torch(options: PatchOptions, changes: Changes) -> None:
    """Make ``torch.Generator.seed()`` repeatable, and ``torch.seed()``, which calls it on each device."""
    kind = loaded("torch").Generator
    stream = Stream(options.seed)
    original = vars(kind)["seed"]

    def seed(self: Any) -> int:
        """Seed the generator, and return the seed."""
        drawn = stream.bits(53)  # as many bits as torch draws from the system's entropy for CUDA
        self.manual_seed(drawn)
        return drawn

    set_in_c(kind, seed=seed)
    changes.on_undo(lambda: set_in_c(kind, seed=original))
    _repeatable(changes, "torch.seed")


def seed_tensorflow(options: PatchOptions, changes: Changes) -> None:
    """Make ``tf.random.Generator.from_non_deterministic_state()`` start from a repeatable state."""
    stream = Stream(options.seed)

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def from_non_deterministic_state(cls: Any, *args: Any, **kwargs: Any) -> Any:
            return cls.from_seed(stream.bits(53), *args, **kwargs)

        return from_non_deterministic_state

    changes.replace(loaded("tensorflow").random.Generator, "from_non_deterministic_state", make)
    _repeatable(changes, "tensorflow.random.Generator.from_non_deterministic_state")
