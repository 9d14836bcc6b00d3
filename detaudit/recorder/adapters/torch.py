"""Watches torch: every backward pass for its loss, every optimizer step for its weights."""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref

from .. import digest, rng
from ..training import Training

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

    from ..boot import Recorder


class TensorReader:
    """Reads tensors where they live, outside the user's dispatch modes and functorch levels."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._digest = digest.TorchDigest(torch)
        self._on_host: digest.NumpyDigest | None = None
        self._asked_numpy = False
        self._functorch = getattr(torch._C, "_functorch", None)

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Read as if no gradient, mode or transform of the script were active."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._torch.no_grad())
            dispatch = sys.modules.get("torch.utils._python_dispatch")
            if dispatch is not None:
                stack.enter_context(dispatch._disable_current_modes())
            if self._functorch is not None and self._functorch.peek_interpreter_stack() is not None:
                pyfunctorch = sys.modules["torch._functorch.pyfunctorch"]
                stack.enter_context(pyfunctorch.temporarily_clear_interpreter_stack())
            yield

    def plain(self, tensor: Any) -> Any:
        """Return the tensor's own values: unwrapped, detached, this rank's shard of a distributed one."""
        if self._functorch is not None:
            while self._functorch.is_functorch_wrapped_tensor(tensor):
                tensor = self._functorch.get_unwrapped(tensor)
        tensor = tensor.detach()
        return tensor.to_local() if hasattr(tensor, "to_local") else tensor

    def part(self, name: str, tensor: Any) -> tuple[str, str, tuple[int, ...], int]:
        """Return (name, dtype, shape, word digest) of a dense or sparse tensor."""
        tensor = self.plain(tensor)
        if tensor.layout != self._torch.strided:
            tensor = tensor.coalesce() if tensor.layout == self._torch.sparse_coo else tensor.to_sparse_coo()
            indices, values = tensor.indices(), tensor.values()
            mixed = f"{self._words(indices):016x}{self._words(values):016x}"
            return name, f"sparse {tensor.dtype}", tuple(tensor.shape), int(digest.of_bytes(mixed.encode())[:16], 16)
        return name, str(tensor.dtype), tuple(tensor.shape), self._words(tensor)

    def _words(self, tensor: Any) -> int:
        tensor = tensor.resolve_conj().resolve_neg().contiguous()
        numpy_digest = self._numpy() if tensor.device.type == "cpu" else None
        if numpy_digest is not None:
            return numpy_digest.words(tensor.reshape(-1).view(self._torch.uint8).numpy())
        return self._digest.words(tensor)

    def raw(self, state: Any) -> bytes:
        """Return the bytes of a generator's state, a short tensor of bytes on the CPU."""
        return bytes(state.numpy()) if self._numpy() is not None else bytes(state.tolist())

    def _numpy(self) -> digest.NumpyDigest | None:
        # Faster on a CPU. torch imports NumPy itself, so where it is missing here, it is not installed.
        if not self._asked_numpy and "numpy" in sys.modules:
            self._asked_numpy = True
            with contextlib.suppress(RuntimeError):  # a torch built against another NumPy
                self._torch.empty(0, dtype=self._torch.uint8).numpy()
                self._on_host = digest.NumpyDigest(sys.modules["numpy"])
        return self._on_host

    def total(self, tensor: Any) -> float:
        """Return the sum of a tensor's elements in float64."""
        tensor = self.plain(tensor)
        if tensor.layout != self._torch.strided:
            tensor = tensor.to_dense()
        return self._digest.total(tensor)

    def device(self, tensor: Any) -> str:
        """Return where a tensor lives, such as ``cuda:0``."""
        return str(tensor.device)

    def scalar(self, tensor: Any) -> float | None:
        """Return the value of a real tensor of one element."""
        return float(tensor) if tensor.numel() == 1 and not tensor.is_complex() else None


class TorchWatcher:
    """The hooks, and how what they see becomes steps.

    With an optimizer, a step is a call of its ``step``. Without one (``p -= lr * p.grad``), a step ends where
    the next backward pass begins, and the weights are the leaves of the loss's graph.
    """

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._torch = torch
        self._sink = recorder.sink
        self._reader = TensorReader(torch)
        rng.watch("torch", self._generator_states)
        self._training = Training("torch", recorder.sink, self._reader, rng.state_digest)
        self._optimizers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._optimizers_seen = 0
        self._any_optimizer = False
        self._leaves: list[Any] = []
        recorder.at_end(self._finish, self._forget)

    def install(self) -> None:
        """Put the hooks in place."""
        torch = self._torch
        optimizer = sys.modules.get("torch.optim.optimizer")
        if hasattr(optimizer, "register_optimizer_step_post_hook"):
            optimizer.register_optimizer_step_pre_hook(self._hook(self._before_step))  # type: ignore[union-attr]
            optimizer.register_optimizer_step_post_hook(self._hook(self._after_step))  # type: ignore[union-attr]
            self._notice_optimizers(torch.optim.Optimizer)
        graph = sys.modules.get("torch.autograd.graph")
        run = torch.autograd._engine_run_backward if hasattr(torch.autograd, "_engine_run_backward") else None
        if run is None or graph is None:
            raise AttributeError(f"torch {torch.__version__} has no _engine_run_backward: losses cannot be seen")
        on_backward = self._hook(self._before_backward)

        def run_backward(t_outputs: Any, *args: Any, **kwargs: Any) -> Any:
            on_backward(t_outputs)
            return run(t_outputs, *args, **kwargs)

        torch.autograd._engine_run_backward = run_backward
        graph._engine_run_backward = run_backward  # type: ignore[attr-defined]

    def _hook(self, observe: Callable[..., None]) -> Callable[..., None]:
        """Guard a hook, and keep it out of the compiler's sight."""
        compiler = getattr(self._torch, "compiler", None)
        is_compiling = getattr(compiler, "is_compiling", lambda: False)

        def guarded(*args: Any) -> None:
            if not is_compiling():
                self._sink.guarded(observe.__name__, lambda: self._observe(observe, args))

        return guarded

    def _observe(self, observe: Callable[..., None], args: tuple[Any, ...]) -> None:
        with self._training.lock, self._reader.undisturbed():
            observe(*args)

    def _notice_optimizers(self, base: Any) -> None:
        construct = base.__init__

        @functools.wraps(construct)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self._any_optimizer = True
            construct(optimizer, *args, **kwargs)

        base.__init__ = __init__

    def _before_backward(self, outputs: Any) -> None:
        if self._torch._C._current_graph_task_id() != -1:
            return  # inside another backward pass: checkpoint recomputation
        losses = [output for output in outputs if isinstance(output, self._torch.Tensor)]
        if not self._any_optimizer:
            self._end_manual_step()
            self._leaves = self._leaves_of(losses)
            if self._training.steps == 0 and not self._training.pending:
                self._training.initial(self._leaves)
        for loss in losses:
            self._training.loss(self._reader.plain(loss).clone())

    def _end_manual_step(self) -> None:
        if self._leaves and self._training.pending:
            self._training.step(tuple([id(leaf) for leaf in self._leaves]), self._leaves)

    def _leaves_of(self, outputs: list[Any]) -> list[Any]:
        # Depth first along next_functions: the order follows the graph, not addresses.
        leaves, seen = [], set()
        stack = [output.grad_fn for output in outputs if output.grad_fn is not None]
        while stack:
            node = stack.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            variable = getattr(node, "variable", None)
            if isinstance(variable, self._torch.Tensor):
                leaves.append(variable)
            stack.extend([function for function, _ in node.next_functions])
        return leaves

    @staticmethod
    def _parameters(optimizer: Any) -> list[Any]:
        return [parameter for group in optimizer.param_groups for parameter in group["params"]]

    def _before_step(self, optimizer: Any, *_: Any) -> None:
        if optimizer not in self._optimizers:
            self._optimizers_seen += 1
            self._optimizers[optimizer] = self._optimizers_seen
            self._training.initial(self._parameters(optimizer))

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        self._before_step(optimizer)
        self._training.step(self._optimizers[optimizer], self._parameters(optimizer), optimizer)

    def _generator_states(self) -> bytes:
        torch = self._torch
        states = [torch.get_rng_state()]
        if torch.cuda.is_initialized():  # asking whether there is CUDA would spoil a later fork
            states += torch.cuda.get_rng_state_all()
        return b"".join([self._reader.raw(state) for state in states])

    def _finish(self) -> None:
        with self._reader.undisturbed():
            if not self._any_optimizer:
                self._end_manual_step()
            self._training.finish()

    def _forget(self) -> None:
        self._training.forget()
        self._optimizers = weakref.WeakKeyDictionary()
        self._leaves = []


def install(torch: ModuleType, recorder: Recorder) -> None:
    """Watch this torch from now on."""
    recorder.sink.write({"k": "framework", "name": "torch", "version": str(torch.__version__)})
    TorchWatcher(torch, recorder).install()
