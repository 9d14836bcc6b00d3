"""Record lines of user code that make TensorFlow random: operations without a seed, and pipelines without an order.

An operation takes its seeds when it is made, so a call of ``tf.random.set_seed`` comes too late for a dataset that was
built before.
"""

from __future__ import annotations

import importlib
import inspect
import sys

from ..process import frames
from ..process.replace import replace
from . import seeds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from ..process.log import Sink
    from ..process.recorder import Recorder


_THROUGH = ("tensorflow", "keras", "tf_keras")
"""Libraries that make operations for a script."""

_WRAPPERS = ("error_handler", "op_dispatch_handler", "wrapper", "_wrapper", "__init__", "converted_call", "get_seed")
"""Functions of TensorFlow that lie around every call of a public one."""

_GENERATED = "__autograph_generated_file"
_MOST_OBSERVED = 2000

PARALLEL = "num_parallel_calls"

_RANDOM_SOURCES = ("Shuffle", "Random", "Generator")
_HARMLESS = ("Assert",)


class _Ordering:
    """Whether a flag keeps every pipeline in order, and runs functions with state sequentially."""

    by_flag = False


ordering = _Ordering()


def keeps_order() -> bool:
    """Return whether a flag, or op determinism, makes each parallel pipeline return the same elements in every run."""
    config: Any = sys.modules.get("tensorflow.python.framework.config")
    return ordering.by_flag or bool(config is not None and config.is_op_determinism_enabled())


def is_one(calls: Any) -> bool:
    """Return whether ``num_parallel_calls``, a number or a tensor, says that there is one at a time."""
    try:
        return int(calls.numpy() if hasattr(calls, "numpy") else calls) == 1
    except Exception:  # a tensor in a graph has no value, None means that there is no parallelism to speak of
        return False


def _function_attributes(operation: Any) -> list[Any]:
    """Return the attributes of an operation that name the functions it calls."""
    attributes: list[Any] = []
    for attribute in operation.op_def.attr:  # node_def may hold constants of any size
        if attribute.type == "func":
            attributes.append(operation.get_attr(attribute.name))
        elif attribute.type == "list(func)":
            attributes += operation.get_attr(attribute.name)
    return attributes


def _is_stateful_itself(operation: Any) -> bool:
    kind = operation.type
    # Datasets are marked stateful so that they are not folded into constants.
    source = "Dataset" in kind and not any([word in kind for word in _RANDOM_SOURCES])
    return bool(operation.op_def.is_stateful) and not source and kind not in _HARMLESS


def is_stateful(function: Any) -> bool:
    """Return whether a traced function draws random numbers, calls Python or uses state, or True if unknown."""
    seen: set[str] = set()

    def any_in(graph: Any) -> bool:
        for operation in graph.get_operations():
            called = _function_attributes(operation)
            if not called and _is_stateful_itself(operation):
                return True
            for attribute in called:
                if attribute.name not in seen:
                    seen.add(attribute.name)
                    if any_in(graph._get_function(attribute.name).graph):
                        return True
        return False

    try:
        return any_in(function.graph)
    except Exception:
        return True


def _called(frame: FrameType | None, user: FrameType) -> str:
    """Return the public name of the function of TensorFlow, or of a library that calls it, that user code called."""
    name, outermost, first = "tensorflow", frame, frame
    while frame is not None and frame is not user:
        outermost = frame
        module, called = str(frame.f_globals.get("__name__", "")), frame.f_code.co_name
        if module.startswith("tensorflow.") and called not in _WRAPPERS:
            if module.startswith("tensorflow.python.data."):
                name = f"tensorflow.data.Dataset.{called.strip('_')}"
            else:
                exports: Any = sys.modules["tensorflow.python.util.tf_export"]
                public = exports.get_canonical_name_for_symbol(frame.f_globals.get(called))
                name = f"tensorflow.{public}" if public else name
        frame = frame.f_back
    in_tensorflow = outermost is None or frames.top_module(outermost) == "tensorflow"
    return name if in_tensorflow else frames.called(first, user) or name


def _place(user: FrameType) -> tuple[str, int]:
    """Return the file and the line of user code, which AutoGraph may have translated into a file of its own."""
    if _GENERATED not in user.f_code.co_filename:
        return frames.location(user)
    stack: Any = importlib.import_module("tensorflow.python.util.tf_stack").extract_stack()
    for entry in reversed(stack):
        name = entry.filename
        if frames.is_user_code(name) and not name.startswith("<") and _GENERATED not in name:
            return name, entry.lineno
    return frames.location(user)


class _Watch:
    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._observed = 0

    def _note(self, kind: str, frame: FrameType | None, value: str = "", option: str = "", what: str = "") -> None:
        user = frames.user_frame(frame, _THROUGH)
        if user is None:
            return
        what, location = (what or _called(frame, user)) + option, _place(user)
        if seeds.has_room(what, location):
            seeds.write(self._sink, kind, what, location, value)

    def taking_seeds(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def get_seed(op_seed: Any) -> Any:
            seed_pair = function(op_seed)
            if seed_pair == (None, None) and self._observed < _MOST_OBSERVED:
                self._observed += 1
                frame = sys._getframe().f_back
                self._sink.guarded("seed", lambda: self._note("unseeded", frame, "tensorflow"))
            return seed_pair

        return get_seed

    def making(self, function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        def operation(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe().f_back
            self._sink.guarded("dataset", lambda: self._made(signature.bind(*args, **kwargs).arguments, frame))
            return function(*args, **kwargs)

        return operation

    def _made(self, arguments: dict[str, Any], frame: FrameType | None) -> None:
        if keeps_order() or is_one(arguments.get(PARALLEL)):
            return
        if arguments.get("deterministic") == "false":
            self._note("completion-order-option", frame, option="(deterministic=False)")
        elif PARALLEL in arguments and "f" in arguments and is_stateful(arguments["f"]):
            self._note("unordered-operation", frame, option=f"({PARALLEL})")

    def with_options(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def with_options(dataset: Any, options: Any, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe().f_back
            self._sink.guarded("options", lambda: self._options(options, frame))
            return function(dataset, options, *args, **kwargs)

        return with_options

    def _options(self, options: Any, frame: FrameType | None) -> None:
        if options.deterministic is False and not keeps_order():
            what = "tensorflow.data.Dataset.with_options"
            self._note("completion-order-option", frame, option="(deterministic=False)", what=what)


def operations() -> list[tuple[Any, str]]:
    """Return the module and the name of each function that makes an operation of tf.data with an order to keep."""
    functions = []
    for name in ("gen_dataset_ops", "gen_experimental_dataset_ops"):
        module: Any = importlib.import_module("tensorflow.python.ops." + name)
        for operation in [name for name in dir(module) if name.islower() and not name.endswith("_eager_fallback")]:
            function = getattr(module, operation)
            if inspect.isfunction(function) and "deterministic" in inspect.signature(function).parameters:
                functions.append((module, operation))
    return functions


def watch(tf: Any, recorder: Recorder) -> None:
    """Record such lines from now on."""
    watched = _Watch(recorder.sink)
    replace(importlib.import_module("tensorflow.python.framework.random_seed"), "get_seed", watched.taking_seeds)
    for module, name in operations():
        replace(module, name, watched.making)
    replace(tf.data.Dataset, "with_options", watched.with_options)
