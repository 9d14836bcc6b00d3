"""Record every operation of torch in a window of steps: inputs, outputs, numbers."""

from __future__ import annotations

import sys

from .... import wire
from ...process import threads
from . import calls
from .calls import OpKind, StepWatcher
from .memory import Memory, TorchPlaces, is_whole, tensors_in

# Enter a dispatch mode of torch, which sees each operation, while the window of steps is open.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType, ModuleType
    from typing import Any

    from ...process.stream import OpStream

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, Protocol

    from ...process.stream import OpStream

    class Watcher(Protocol):
        """Sees the operations inside the window."""

        def run(self, func: Any, args: Any, kwargs: Any, frame: FrameType | None) -> Any:
            """Run an operation, and return its result."""

        def higher_order(self, func: Any) -> None:
            """Note an operation without a schema, which takes functions or kernels, and runs by itself."""


def _mode(torch: Any, watcher: Watcher, stream: OpStream) -> Any:
    """Return a dispatch mode. Its class is created here, since its base class comes from the user's torch."""

    class Watching(sys.modules["torch.utils._python_dispatch"].TorchDispatchMode):  # type: ignore[misc]
        supports_higher_order_operators = True

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not stream.open:
                return func(*args, **(kwargs or {}))
            if not hasattr(func, "_schema"):
                watcher.higher_order(func)
                return func(*args, **(kwargs or {}))
            return watcher.run(func, args, kwargs or {}, sys._getframe().f_back)

    return Watching()


def enter(torch: Any, watcher: Watcher, stream: OpStream) -> None:
    """Have ``watcher`` see the operations of this thread while the window is open.

    In each thread that starts later it sees them until the thread ends.
    """
    mode = _mode(torch, watcher, stream)
    depth: Callable[[], int] = torch._C._len_torch_dispatch_stack
    entered: list[int] = []

    def opened(now: bool) -> None:
        if now and depth() == 0:
            mode.__enter__()
            entered.append(1)
        elif now:
            stream.trouble("torch", RuntimeError("cannot record operations: the script uses a torch dispatch mode"))
        elif entered and depth() == len(entered):
            mode.__exit__(None, None, None)
            entered.pop()

    def enter_thread() -> Callable[[], None] | None:
        inside = type(mode)()  # each thread needs an instance, which keeps the state to restore
        try:
            inside.__enter__()
        except Exception as error:
            stream.trouble("thread", error)
            return None
        return lambda: leave(inside)

    def leave(inside: Any) -> None:
        try:
            inside.__exit__(None, None, None)
        except Exception as error:
            stream.trouble("thread", error)

    stream.when_open(opened)
    threads.enter_in_threads(enter_thread)


# Read the numbers that an operation of torch is given besides tensors, such as a learning rate.


_NUMBERS = (bool, int, float, complex)
_MOST = 64
"""Elements of a list that are read."""


def scalars(args: Any, kwargs: dict[str, Any]) -> dict[str, str]:
    """Return the numbers among the arguments of an operation, by place from 1 or by name; ``2[0]`` is in a list."""
    numbers: dict[str, str] = {}
    for index, value in enumerate(args):
        if type(value) in _NUMBERS:
            numbers[str(index + 1)] = repr(value)
        elif type(value) in (list, tuple):
            numbers.update(_elements(str(index + 1), value))
    for name, value in kwargs.items():
        if type(value) in _NUMBERS:
            numbers[name] = repr(value)
        elif type(value) in (list, tuple):
            numbers.update(_elements(name, value))
    return numbers


def _elements(name: str, values: Any) -> Iterator[tuple[str, str]]:
    for index, value in enumerate(values[:_MOST]):
        if type(value) in _NUMBERS:
            yield "%s[%d]" % (name, index), repr(value)


def starts(tensors: Sequence[Any], numbers: Sequence[int]) -> dict[str, str]:
    """Return where inputs begin in their memory, in elements, for those that are parts of it: ``x[i]`` is a view.

    ``numbers`` are those of their storages, negative if they have none.
    """
    return {
        wire.START + str(index + 1): str(tensor.storage_offset())
        for index, (tensor, number) in enumerate(zip(tensors, numbers))
        if number >= 0 and not is_whole(tensor)
    }


def entering(torch: Any, args: Any) -> dict[str, str]:
    """Return the number in a tensor without dimensions on the CPU through which it enters torch, else nothing."""
    tensor: Any = args[0]
    # A subclass, such as that of a tensor without memory, may have no value.
    if type(tensor) is not torch.Tensor or tensor.dim() or tensor.device.type != "cpu":
        return {}
    return {"1": repr(tensor.item())}


# Record the operations of torch: their inputs, their outputs, and the line of user code that ran them.
#
# Operations in a region of torch.compile are recorded as the compiler arranged them, or not at all, because a fused
# kernel is not an operation of torch. Each process and each thread of Python is recorded separately.


class OperationWatcher:
    """Writes a line for each operation inside the window."""

    def __init__(self, torch: Any, stream: OpStream) -> None:
        self._torch, self._stream = torch, stream
        self._memory, self.places = Memory(torch), TorchPlaces(torch)
        self._kinds: dict[Any, OpKind] = {}
        self._node: Callable[[], Any] = torch._C._current_autograd_node
        self._counts: dict[str, int] = {}
        self._only = stream.racing if stream.level == "racing" else None
        stream.when_forked(self._forget)

    def _forget(self) -> None:
        self._memory.forget()
        self._counts = {}

    def run(self, func: Any, args: Any, kwargs: Any, frame: FrameType | None) -> Any:
        """Run an operation, and write its inputs and outputs."""
        kind = self._kinds.get(func)
        if kind is None:
            kind = self._kinds[func] = OpKind(self._torch, func, self._only)
        if kind.passed_over:
            self._guarded(lambda: self._passed(frame))
            return func(*args, **kwargs)
        pending_lines: list[Any] = []
        forward = self._torch.is_grad_enabled() and self._node() is None
        self._guarded(lambda: pending_lines.append(self._before(kind, args, kwargs, frame, forward)))
        result = func(*args, **kwargs)
        if pending_lines and kind.collective:
            self._guarded(lambda: self._wait(result))
        if pending_lines:
            self._guarded(lambda: self._after(kind, args, kwargs, result, *pending_lines[0]))
        return result

    def _guarded(self, observe: Callable[[], object]) -> None:
        try:
            with self._memory.reader.undisturbed():
                observe()
        except Exception as error:
            self._stream.trouble("an operation of torch", error)

    def _wait(self, result: Any) -> None:
        """Wait for a collective, whose results are available only then."""
        work = result[-1] if isinstance(result, tuple) else result
        self._torch._C._distributed_c10d.Work.unbox(work).wait()

    def _passed(self, frame: FrameType | None) -> None:
        if self._node() is None:
            self.places.passed(frame)

    def _before(
        self, kind: OpKind, args: Any, kwargs: Any, frame: FrameType | None, forward: bool
    ) -> tuple[dict[str, Any], list[Any]]:
        memory, node = self._memory, self._node()
        file, line, module = self.places.location(frame, node)
        thread = threads.name_of_lane()
        step = self._stream.step(not forward)
        fields = {"thread": thread, "step": step, "op": kind.name, "file": file, "line": line}
        if module:
            fields["module"] = module
        if node is not None:
            fields["backward"], fields["node"] = True, node.name()
        tensors = list(tensors_in((args, kwargs), self._torch.Tensor))
        is_requested = self._wants(thread)
        if self._stream.level == "tensors" and not is_requested:
            return fields, []
        numbers = [memory.number(tensor) for tensor in tensors]
        unread = {id(kwargs[name]) for name in kind.only_written if name in kwargs}
        if kind.overwrites:
            unread |= {id(tensor) for tensor in tensors_in(args[0], self._torch.Tensor)}
        read = [(tensor, number) for tensor, number in zip(tensors, numbers) if id(tensor) not in unread]
        read_tensors = [tensor for tensor, _ in read]
        texts = dict(zip(map(id, read_tensors), memory.digests(read_tensors, [number for _, number in read])))
        fields["ins"] = [[texts.get(id(tensor), ""), number] for tensor, number in zip(tensors, numbers)]
        shared = sorted(memory.shared.intersection(numbers))
        if shared:
            fields["shared"] = shared
        if kind.random:
            fields["random"], fields["state"] = True, self._generator_state(kwargs, tensors)
        given_numbers = scalars(args, kwargs) or (entering(self._torch, args) if kind.enters else {})
        if given_numbers := {**given_numbers, **starts(tensors, numbers)}:
            fields["scalars"] = given_numbers
        if is_requested:
            self._keep("in", read_tensors, [texts[id(tensor)] for tensor in read_tensors])
            if self._stream.request.get("call"):
                calls.save(self._torch, self._stream, kind, args, kwargs, backward=node is not None)
        return fields, [is_requested]

    def _generator_state(self, kwargs: dict[str, Any], tensors: Sequence[Any]) -> str:
        generator = kwargs.get("generator")
        device = kwargs.get("device") or (tensors[0].device if tensors else None)
        if generator is not None:
            state = generator.get_state()
        elif device is not None and getattr(device, "type", "cpu") == "cuda":
            state = self._torch.cuda.get_rng_state(device)
        else:
            state = self._torch.get_rng_state()
        ((_, _, _, words),) = self._memory.reader.parts([state])
        return "%016x" % words

    def _after(
        self, kind: OpKind, args: Any, kwargs: Any, result: Any, fields: dict[str, Any], requested: list[bool]
    ) -> None:
        if not requested:
            return
        memory, tensor = self._memory, self._torch.Tensor
        made = list(tensors_in(result, tensor))
        written = [args[index] for index in kind.places if index < len(args)]
        written += [kwargs[name] for name in kind.written if name in kwargs]
        outs = list({id(one): one for one in [*made, *tensors_in(written, tensor)]}.values())
        known = {number for _, number in fields["ins"]}
        numbers = [memory.number(one, made=not kind.enters and self._only is None) for one in outs]
        memory.written(numbers)
        texts = (
            [""] * len(outs) if kind.uninitialized else memory.digests(outs, numbers, ahead=1 if kind.written else 0)
        )
        wholes = [is_whole(one) for one in outs]
        fields["outs"] = [list(out) for out in zip(texts, numbers, wholes)]
        if kind.uninitialized and not known.issuperset(numbers):
            fields["uninitialized"] = True
        if requested[0]:
            self._keep("out", outs, texts)
        elif self._stream.level in ("ops", "racing"):
            fields["n"] = self._stream.next_number()
            self._stream.write("op", **fields)

    def _wants(self, thread: str) -> bool:
        """Count an operation, and return whether its tensors are requested: it is the n-th of the thread."""
        stream = self._stream
        if stream.level != "tensors":
            return False
        count = self._counts[thread] = self._counts.get(thread, -1) + 1
        return bool(thread == stream.request.get("thread") and count == stream.request.get("n"))

    def _keep(self, role: str, tensors: Sequence[Any], texts: Sequence[str]) -> None:
        for index, (tensor, text) in enumerate(zip(tensors, texts)):
            plain = self._memory.reader.plain(tensor)
            if plain.layout != self._torch.strided:
                continue
            raw = plain.contiguous().cpu().reshape(-1).view(self._torch.uint8)
            self._stream.keep(
                f"{role}{index}", text, str(plain.dtype).partition(".")[2], list(plain.shape), bytes(raw.tolist())
            )

    def higher_order(self, func: Any) -> None:
        """Pass over an operation without a schema: it may be one of a compiled region."""

    def called(self, path: str, inputs: Any, outputs: Any) -> None:
        """Write the inputs and outputs of a module."""
        if self._stream.open:
            self._guarded(lambda: self._called(path, inputs, outputs))

    def _called(self, path: str, inputs: Any, outputs: Any) -> None:
        def digested(value: Any) -> list[str]:
            tensors = list(tensors_in(value, self._torch.Tensor))
            return self._memory.digests(tensors, [-1] * len(tensors))

        file, line, _ = self.places.location(sys._getframe(4), None)
        self._stream.write(
            "op", n=self._stream.next_number(), thread=threads.name_of_lane(), step=self._stream.step(False),
            op="module", file=file, line=line, module=path,
            ins=[[text, -1] for text in digested(inputs)], outs=[[text, -1, True] for text in digested(outputs)],
        )  # fmt: skip


def install(torch: ModuleType, stream: OpStream) -> None:
    """Record the operations of this torch as the level of ``stream`` requests."""
    if stream.level == "step":
        noting = StepWatcher(torch, stream)
        noting.places.follow_modules()
        enter(torch, noting, stream)
        return
    watcher = OperationWatcher(torch, stream)
    if stream.level == "modules":
        watcher.places.follow_modules(watcher.called)
    elif stream.level in ("ops", "racing", "tensors"):
        watcher.places.follow_modules()
        enter(torch, watcher, stream)
