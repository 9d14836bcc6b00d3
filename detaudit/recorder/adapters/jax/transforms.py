"""Wrap the functions that are passed to jax.jit, jax.vmap and JAX's loops, to follow their calls."""

from __future__ import annotations

import functools
import sys
from types import MethodType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .tracing import Frames


class _Compiling:
    """Represents jax.jit or jax.pmap in a pickle, which looks it up when it is loaded."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call it."""
        return getattr(sys.modules[self._module], self._name)(*args, **options)

    def __reduce__(self) -> Any:
        return getattr, (sys.modules[self._module], self._name)


class Jitted:
    """Wraps the result of jax.jit or jax.pmap, ``named`` by its module and its name, and follows its calls."""

    def __init__(
        self, frames: Frames, function: Any, jit: Any, options: dict[str, Any], named: tuple[str, str] = ("jax", "jit")
    ) -> None:
        self._named = named
        functools.update_wrapper(self, function, updated=())
        self._function, self._options = function, options
        self._frames, self._traced = frames, frames.traced(function)
        self._jitted = jit(self._traced, **options)
        self._donates = any([options.get(name) not in (None, ()) for name in ("donate_argnums", "donate_argnames")])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled function."""
        jitted = self._jitted
        return self._frames.call(lambda: jitted(*args, **kwargs), self._traced, (args, kwargs), donates=self._donates)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Lower the function for these arguments, and follow the calls of what is compiled from it."""
        return self._ahead(self._jitted.lower, args, kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """Trace the function for these arguments, and follow the calls of what is compiled from it."""
        return self._ahead(self._jitted.trace, args, kwargs)

    def _ahead(self, stage: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = stage(*args, **kwargs)
        made._detaudit = self._ran_compiled, args, kwargs
        return made

    def _ran_compiled(self, run: Any, static: tuple[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run what was compiled ahead of time, which does not take the static arguments that it was lowered with."""
        given, named = static
        dynamic = iter(args)
        options = self._options
        nums, names = options.get("static_argnums") or options.get(_STATIC_IN_PMAP), options.get("static_argnames")
        places = {n % len(given) for n in ((nums,) if isinstance(nums, int) else nums or ())} if given else set()
        whole = tuple([arg if place in places else next(dynamic, arg) for place, arg in enumerate(given)])
        fixed = {name: named[name] for name in ((names,) if isinstance(names, str) else names or ()) if name in named}
        return self._frames.call(run, self._traced, (whole, {**fixed, **kwargs}), donates=self._donates)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind a compiled method."""
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_jitted", "_named"):  # copy and pickle read attributes of an empty object
            raise AttributeError(name)
        return getattr(self._jitted, name)

    def __reduce__(self) -> Any:
        return functools.partial(_Compiling(*self._named), **self._options), (self._function,)

    def __repr__(self) -> str:
        return repr(self._jitted)


def watch_ahead_of_time(stages: Any) -> None:
    """Follow the calls of functions that were compiled by ``lower(…).compile()``."""

    def inheriting(make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(make)
        def made(stage: Any, *args: Any, **kwargs: Any) -> Any:
            result = make(stage, *args, **kwargs)
            if hasattr(stage, "_detaudit"):
                result._detaudit = stage._detaudit
            return result

        return made

    run = stages.Compiled.__call__

    @functools.wraps(run)
    def __call__(compiled: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(compiled, "_detaudit"):
            return run(compiled, *args, **kwargs)
        followed, *static = compiled._detaudit
        return followed(lambda: run(compiled, *args, **kwargs), static, args, kwargs)

    stages.Lowered.compile = inheriting(stages.Lowered.compile)
    if hasattr(stages, "Traced"):
        stages.Traced.lower = inheriting(stages.Traced.lower)
    stages.Compiled.__call__ = __call__


def watched_jit(frames: Frames, jit: Any, module: str = "jax", name: str = "jit") -> Any:
    """Return a jax.jit or jax.pmap whose calls are followed."""

    @functools.wraps(jit)
    def jit_(*args: Any, **options: Any) -> Any:
        if name == "pmap" and len(args) > 1:
            options.setdefault("axis_name", args[1])
            args = (args[0], *args[2:])
        if len(args) != 1 or not callable(args[0]):
            jit(*args, **options)  # raises, unless this version of JAX returns a decorator
            return functools.partial(jit_, **options)
        return Jitted(frames, args[0], jit, options, (module, name))

    return jit_


def watched_map(frames: Frames, transform: Any) -> Any:
    """Return a jax.vmap or jax.shard_map whose calls are followed."""

    @functools.wraps(transform)
    def transform_(*args: Any, **named: Any) -> Any:
        if not args or not callable(args[0]):
            transform(*args, **named)  # raises, unless this version of JAX returns a decorator
            return functools.partial(transform_, **named)
        fun, *options = args
        traced = frames.traced(fun)
        mapped = transform(traced, *options, **named)

        @functools.wraps(mapped)
        def mapped_(*args: Any, **kwargs: Any) -> Any:
            return frames.call(lambda: mapped(*args, **kwargs), traced, (args, kwargs))

        return mapped_

    return transform_


_STATIC_IN_PMAP = "static_broadcasted_argnums"


def watched_loops(frames: Frames, lax: Any) -> dict[str, Callable[..., Any]]:
    """Return the loops of jax.lax, by name, with their iterations followed."""
    run_scan, run_for, run_while = lax.scan, lax.fori_loop, lax.while_loop

    def count(tree: Any) -> int:
        return len(frames.flatten(tree)[0])

    @functools.wraps(run_scan)
    def scan(f: Any, init: Any, xs: Any = None, *args: Any, **kwargs: Any) -> Any:
        body, carried = frames.traced(f), (0, count(init))
        return frames.call(lambda: run_scan(body, init, xs, *args, **kwargs), body, ((init, xs), {}), carried=carried)

    @functools.wraps(run_for)
    def fori_loop(lower: Any, upper: Any, body_fun: Any, init_val: Any, **kwargs: Any) -> Any:
        body, carried = frames.traced(body_fun), (1, count(init_val))
        return frames.call(
            lambda: run_for(lower, upper, body, init_val, **kwargs), body, ((lower, init_val), {}), carried=carried
        )

    @functools.wraps(run_while)
    def while_loop(cond_fun: Any, body_fun: Any, init_val: Any) -> Any:
        body, carried = frames.traced(body_fun), (0, count(init_val))
        return frames.call(lambda: run_while(cond_fun, body, init_val), body, ((init_val,), {}), carried=carried)

    return {"scan": scan, "fori_loop": fori_loop, "while_loop": while_loop}
