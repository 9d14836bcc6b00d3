"""Record gradients in JAX, and the steps that they end."""

from __future__ import annotations

import functools
import sys

from ...training import digest, framework
from ...training.steps import Training
from .arrays import CarriedState, JaxReader, LiveArrays, PinnedArray, has_floats, kind_of, reference_to
from .tracing import Frames, watch_ahead_of_time, watched_jit, watched_loops, watched_map

# Turn the calls of a JAX training into steps, from their losses and the weights that they take and return.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...process.recorder import Recorder
    from ...training.models import State
    from .tracing import Plan


class Steps(framework.Steps):
    """Records steps. A step ends with an update, or, if none is detected, when the next gradient gets new weights.

    ``kinds`` are the shapes and types of all weights so far, of any thread.
    """

    def __init__(self, training: Training, reader: JaxReader, kinds: set[Any]) -> None:
        super().__init__(training)
        self.state = CarriedState(reader)
        training.states = [self.state] if training.wants("state") else []
        self._reader, self._kinds = reader, kinds
        self.forget()

    def forget(self) -> None:
        """Start over, as in a forked child."""
        self._entered: list[Any] = []
        self._has_updates = False
        self._known: set[Any] = set()
        self._held: list[PinnedArray] = []
        self._without_update = 0
        self._returned: tuple[Plan, list[Callable[[], Any]]] | None = None
        # In case that no later gradient shows what the last one was used for:
        self._gradients: list[PinnedArray] = []
        self._changed: list[PinnedArray] = []

    @property
    def by_hand(self) -> bool:
        """Whether a gradient was taken that no optimizer has used so far."""
        return bool(self._entered)

    def gradient(self, weights: list[Any], losses: list[Any], gradients: list[Any]) -> None:
        """Handle a gradient in code that is not compiled."""
        with self.training.lock:
            self._enter(weights)
            self._gradients, self._changed = [PinnedArray(array) for array in gradients if has_floats(array)], []
            self._record_losses(losses, [])

    def minimized(self, start: list[Any], losses: list[Any], weights: list[Any]) -> None:
        """Handle weights that a minimizer returned, which took its gradients itself."""
        with self.training.lock:
            self._enter(start)
            self._record_losses(losses, [])
            self._end(weights)

    def mapped(self, trees: list[list[Any]], result: list[Any]) -> None:
        """Handle what jax.tree.map made of trees: if one of them are the weights, it may be their updated values."""
        with self.training.lock:
            ours = any([len(tree) == len(self._entered) and _are(tree, self._entered) for tree in trees])
            if ours and _structure(result) == _structure(self._entered):
                self._changed = [PinnedArray(array) for array in result]

    def result(self, outputs: list[Any]) -> None:
        """Handle the outputs of a call that trains weights which are none of its inputs."""
        with self.training.lock:
            arrays = [array for array in outputs if has_floats(array)]
            if arrays:
                self.training.step(("result", _structure(arrays)), [PinnedArray(array) for array in arrays])

    def update(self, weights: list[Any]) -> None:
        """Handle an update in code that is not compiled."""
        with self.training.lock:
            self._has_updates, self.training.ends_late = True, False
            self._without_update = 0
            self._end(weights)

    def before(self, plan: Plan, inputs: list[Any]) -> None:
        """Handle the inputs of a training call, before JAX may reuse their buffers."""
        with self.training.lock:
            self.state.enter(plan, inputs)
            weights = [inputs[weight] for weight in plan.weights]
            if not plan.updated and self._returned is not None and self._returned[0] is plan:
                # An output of the last call that is an input now shows where this function returns its weights.
                outputs = [reference() for reference in self._returned[1]]
                places = {id(array): i for i, array in enumerate(outputs) if i not in plan.passed}
                plan.updated = [places[id(array)] for array in weights if id(array) in places]
            self._enter(weights)

    def after(self, plan: Plan, outputs: list[Any]) -> None:
        """Handle the outputs of that call."""
        with self.training.lock:
            self.state.leave(plan, outputs)
            losses = [outputs[index] for index in plan.losses]
            self._record_losses(losses, [outputs[index] for index in plan.histories])
            if plan.updated:
                self._end([outputs[index] for index in plan.updated])
            else:
                self._returned = plan, [reference_to(array) for array in outputs]
                self._keep_results(plan, outputs)

    def collections(self, named: dict[str, Any]) -> None:
        """Handle collections that a model of Flax returned, by name."""
        with self.training.lock:
            self.state.collections(named)

    def donated(self, inputs: list[Any]) -> None:
        """Copy the weights that are held for the end, if JAX is about to reuse their buffers."""
        with self.training.lock:
            input_ids = {id(array) for array in inputs}
            for pinned in [*self._held, *self._gradients, *self._changed, *self.state.pinned_arrays()]:
                if id(pinned.array) in input_ids:
                    pinned.array = sys.modules["numpy"].array(pinned.array)

    def _record_losses(self, losses: list[Any], histories: list[Any]) -> None:
        for loss in losses:
            self.training.loss(loss)
        if len(histories) == 1:
            *earlier, last = sys.modules["numpy"].asarray(histories[0]).reshape(-1)
            for loss in earlier:
                self.training.loss(loss)
                self.training.unseen_step()
            histories = [last]
        for history in histories:
            self.training.loss(history)

    def _enter(self, weights: list[Any]) -> None:
        if not weights or (self._entered and _are(weights, self._entered)):
            return  # the same weights again: gradients are being accumulated
        key = _structure(weights)
        self._kinds.update(key)
        if self._entered and self._has_updates and key == _structure(self._entered):
            # An optimizer may take two gradients for an update, but not three, so this one is used by hand.
            self._without_update += 1
            self._has_updates = self._without_update < 2
        if self._entered and not self._has_updates:
            if key in self._known:
                self._end(weights)
            else:
                self.training.unseen_step()
        if key not in self._known:
            self._known.add(key)
            self.training.initial([PinnedArray(array) for array in weights])
        self._entered = weights

    def _end(self, weights: list[Any]) -> None:
        key = _structure(weights)
        self._kinds.update(key)
        self._entered, self._held = [], [PinnedArray(array) for array in weights]
        self._gradients, self._changed = [], []
        self.training.step(key, self._held)

    def _keep_results(self, plan: Plan, outputs: list[Any]) -> None:
        """Keep the outputs of a call that may be its updated weights, and those that may be gradients."""
        kinds = _structure(self._entered)
        known = {*plan.passed, *plan.losses, *plan.histories}
        places = [index for index in range(len(outputs)) if index not in known and index not in plan.gradients]
        starts = range(len(places) - len(kinds) + 1)
        blocks = [places[start : start + len(kinds)] for start in starts] if kinds else []
        updated = next((block for block in blocks if _structure([outputs[index] for index in block]) == kinds), [])
        self._changed = [PinnedArray(outputs[index]) for index in updated]
        others = [array for index, array in enumerate(outputs) if index not in updated and index not in known]
        self._gradients = [PinnedArray(array) for array in others if has_floats(array) and kind_of(array) in {*kinds}]

    def end_last(self) -> None:
        """End the step of the last gradient, if no update showed its end: record what is known of its results."""
        if not self._entered:
            return
        gradients = self._gradients
        if self._changed:
            self._end([pinned.array for pinned in self._changed])
            self.state.at_last({f"last gradients/{index}": pinned for index, pinned in enumerate(gradients)})
            return
        if gradients and self.training.wants("update"):
            self.training.event(self.training.steps + 1, "update", digest.of_parts(self._reader.parts(gradients)))
        self._entered, self._gradients = [], []
        self.training.unseen_step()


def _are(arrays: list[Any], others: list[Any]) -> bool:
    return all([a is b for a, b in zip(arrays, others)])


def _structure(weights: list[Any]) -> Any:
    return tuple([kind_of(array) for array in weights])


# Hook JAX: the gradients that a script takes, and the functions that it compiles.
#
# JAX compiles pure functions, and the recorder adds nothing to them. A training inside a compiled function is recorded
# through the inputs and outputs of that function (tracing.py). A step is an update. There are limits:
#
# - Several updates in one compiled function count as one step, unless a loop in it returns their losses. If neither
# their   weights nor what became of them is an input or an output, all that the function returns is recorded. - A loss
# that the function does not return is not recorded. - An update without an optimizer is detected when its weights are
# passed to the next gradient. The last one is recorded   by what the call returned or ``jax.tree.map`` made of the
# weights, by its gradients, and by the arrays that are alive   at the end. - A gradient in a transformation that is not
# followed, such as ``jax.lax.cond`` outside of any compiled function, is   reported as unseen.


_VALUE_FIRST = ("vjp", "linearize")
"""Derivatives that take a function and its arguments, and return its value first."""

_JACOBIANS = ("jacfwd", "jacrev", "jacobian", "hessian")
"""Derivatives that return a function, as jax.grad does."""


class Jax(framework.Framework[Steps]):
    """Hooks gradients, and handles the updates that an optimizer's hook reports."""

    name = "jax"

    def __init__(self, jax: Any, recorder: Recorder) -> None:
        self._reader = JaxReader()
        self._kinds: set[Any] = set()
        self._unseen: set[str] = set()
        super().__init__(recorder, self._reader)
        self._frames = Frames(jax, self)
        self._add_state(LiveArrays(jax, self._reader, lambda: self._kinds))

    def steps(self, training: Training) -> Steps:
        """Return the steps of a thread that begins to train."""
        return Steps(training, self._reader, self._kinds)

    def end_open_step(self, steps: Steps) -> None:
        """End the step of the last gradient."""
        steps.end_last()

    def forget(self, forked: bool) -> None:
        """Start over."""
        self.main.forget()

    def add_states(self, make: Callable[[JaxReader, Callable[[Any, bool], None]], State]) -> None:
        """Compare at the end what ``make(reader, write)`` finds in the models of the process."""
        self._add_state(make(self._reader, self.training.freed))

    def _add_state(self, state: State) -> None:
        if self.training.wants("state"):
            self.training.states.append(state)

    def donated(self, inputs: list[Any]) -> None:
        """Copy the weights that are held for the end, in any thread, if JAX is about to reuse their buffers."""
        for steps in self.every:
            steps.donated(inputs)

    def install(self, jax: Any) -> None:
        """Install the hooks."""
        global current
        current = self
        with self.guard("tracebacks"):
            _hide_from_tracebacks()
        compute, gradient = jax.value_and_grad, jax.grad

        @functools.wraps(compute)
        def value_and_grad(fun: Any, argnums: Any = 0, has_aux: bool = False, **options: Any) -> Any:
            return self._watched(compute(fun, argnums, has_aux, **options), argnums, has_aux)

        @functools.wraps(gradient)
        def grad(fun: Any, argnums: Any = 0, has_aux: bool = False, **options: Any) -> Any:
            # jax.grad itself is value_and_grad without the value.
            both = self._watched(compute(fun, argnums, has_aux, **options), argnums, has_aux)

            @functools.wraps(gradient(fun, argnums, has_aux, **options))
            def gradient_(*args: Any, **kwargs: Any) -> Any:
                value, gradients = both(*args, **kwargs)
                return (gradients, value[1]) if has_aux else gradients

            return gradient_

        jax.value_and_grad, jax.grad = value_and_grad, grad
        for name in _VALUE_FIRST:
            setattr(jax, name, self._differentiating(getattr(jax, name), lambda primals: primals))
        jax.jvp = self._differentiating(jax.jvp, lambda args: args[0] if args else ())
        for name in _JACOBIANS:
            setattr(jax, name, self._jacobian(getattr(jax, name)))
        jax.eval_shape, jax.make_jaxpr = self._without_values(jax.eval_shape), self._maker(jax.make_jaxpr)
        self.follow(jax, ("jit", "pmap"), ("vmap", "shard_map"))
        watch_ahead_of_time(jax.stages)
        for name, loop in watched_loops(self._frames, jax.lax).items():
            setattr(jax.lax, name, loop)
        jax.tree.map, jax.tree_util.tree_map = self._mapping(jax.tree.map), self._mapping(jax.tree_util.tree_map)

    def follow(self, holder: Any, compiling: tuple[str, ...], mapping: tuple[str, ...]) -> None:
        """Follow the calls of the functions that these transformations of a module return, if it has them."""
        for name in compiling:
            if hasattr(holder, name):
                setattr(holder, name, watched_jit(self._frames, getattr(holder, name), holder.__name__, name))
        for name in mapping:
            if hasattr(holder, name):
                setattr(holder, name, watched_map(self._frames, getattr(holder, name)))

    def _inside(self, function: Callable[[], Any]) -> tuple[Any, bool]:
        """Return what ``function`` returns, in which gradients are parts of another one, and whether it is no part."""
        frame = self._frames.top
        frame.depth += 1
        try:
            result = function()
        finally:
            frame.depth -= 1
        return result, not frame.depth

    def _watched(self, function: Any, argnums: Any, has_aux: bool, *, value: bool = True) -> Any:
        places = [argnums] if isinstance(argnums, int) else argnums

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            result, outermost = self._inside(lambda: function(*args, **kwargs))
            if outermost:
                output: Any
                output, gradients = result if value else (None, result[0] if has_aux else result)
                losses = [output[0] if has_aux else output] if value else []
                with self.guard("gradient"):
                    self._note([args[argnum] for argnum in places], losses, gradients)
            return result

        return watched

    def _jacobian(self, derive: Any) -> Any:
        @functools.wraps(derive)
        def derived(fun: Any, argnums: Any = 0, has_aux: bool = False, **options: Any) -> Any:
            return self._watched(derive(fun, argnums, has_aux, **options), argnums, has_aux, value=False)

        return derived

    def _differentiating(self, derive: Any, primals_in: Callable[[Any], Any]) -> Any:
        @functools.wraps(derive)
        def derived(fun: Any, *args: Any, **options: Any) -> Any:
            result, outermost = self._inside(lambda: derive(fun, *args, **options))
            if outermost:
                value = result[0]
                losses = [value] if getattr(value, "shape", None) == () else []
                primals = options["primals"] if "primals" in options else primals_in(args)
                with self.guard("gradient"):
                    self._note(primals, losses, () if losses else value)
            return result

        return derived

    def _without_values(self, function: Any) -> Any:
        """Wrap a function of JAX that calls functions only to learn what they are like."""

        @functools.wraps(function)
        def shaped(*args: Any, **options: Any) -> Any:
            return self._inside(lambda: function(*args, **options))[0]

        return shaped

    def _maker(self, make: Any) -> Any:
        @functools.wraps(make)
        def made(*args: Any, **options: Any) -> Any:
            return self._without_values(make(*args, **options))

        return made

    def _mapping(self, function: Any) -> Any:
        @functools.wraps(function)
        def mapped(f: Any, tree: Any, *rest: Any, **options: Any) -> Any:
            result = function(f, tree, *rest, **options)
            if self.now.by_hand and not self._frames.tracing:
                with self.guard("tree"):
                    self._note_mapped((tree, *rest), result)
            return result

        return mapped

    def _note_mapped(self, trees: tuple[Any, ...], result: Any) -> None:
        leaves = self._frames.flatten(result)[0]
        if self._frames.have_values(leaves):
            self.kept.mapped([self._frames.flatten(tree)[0] for tree in trees], leaves)

    def _note(self, weights: Any, losses: list[Any], gradients: Any) -> None:
        frames, leaves = self._frames, self._frames.flatten(weights)[0]
        if frames.tracing:
            frames.top.weights += leaves
            frames.top.losses += losses
            frames.top.gradients += frames.flatten(gradients)[0]
        elif frames.have_values(leaves):
            seen = frames.flatten(gradients)[0]
            self.kept.gradient(
                leaves, losses if frames.have_values(losses) else [], seen if frames.have_values(seen) else []
            )
        else:
            call = "a transformation of JAX outside of any compiled function, such as jax.lax.cond,"
            if call not in self._unseen:
                self._unseen.add(call)
                self.sink.write({"k": "unseen", "fw": "jax", "call": call})

    def minimized(self, minimize: Callable[[], Any], start: Any) -> Any:
        """Call a function that minimizes by itself, and handle its result as one step."""
        result, outermost = self._inside(minimize)
        if outermost:
            with self.guard("minimize"):
                self._note_minimized(start, result)
        return result

    def _note_minimized(self, start: Any, result: Any) -> None:
        frames = self._frames
        if frames.tracing:
            frames.top.weights.append(start)
            frames.top.losses.append(result.fun)
            frames.top.updated.append(result.x)
        elif frames.have_values([start, result.x, result.fun]):
            self.kept.minimized([start], [result.fun], [result.x])

    def updated(self, weights: Any) -> None:
        """Handle the weights that an optimizer returned."""
        with self.guard("update"):
            self._note_update(self._frames.flatten(weights)[0])

    def collections(self, mutated: Any) -> None:
        """Handle the collections that a model of Flax returned, but for its weights and what it shows of its layers."""
        frames = self._frames
        with self.guard("collections"):
            named = {
                f"{kind}/{name}": leaf
                for kind in sorted(mutated)
                if kind not in _NO_STATE
                for name, leaf in frames.named(mutated[kind]).items()
            }
            if frames.tracing:
                frames.top.collections += list(named.values())
            elif not frames.top.depth and frames.have_values(list(named.values())):
                self.kept.collections(named)

    def _note_update(self, weights: list[Any]) -> None:
        frames = self._frames
        if frames.top.depth:
            return
        if frames.tracing:
            frames.top.updated += weights
        elif weights and frames.have_values(weights):
            self.kept.update(weights)


_NO_STATE = ("params", "intermediates", "perturbations", "cache")
"""Collections of Flax that no training carries."""

current: Jax | None = None
"""That of this process, once JAX was imported."""


def _hide_from_tracebacks() -> None:
    # JAX hides its own frames in tracebacks. Hide the frames of the recorder's wrappers too.
    for name in ("jax._src.traceback_util", "jax._src.source_info_util"):
        register = getattr(sys.modules.get(name), "register_exclusion", None)
        for module in (__name__, Frames.__module__, watched_jit.__module__):
            if register is not None:
                register(sys.modules[module].__file__)


install = Jax.start
